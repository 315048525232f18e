//! Logging in to the account from inside a host that runs.
//!
//! Owns the one login under way: who asks meanwhile, for whichever connector, gets the same
//! invitation. What follows from a login is `follow.rs`'s, as for one in any other process.
//! Does not own: the steps (`toolway-auth`, `account/kept.rs`).

use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use toolway_auth::account::StoredAccount;
use toolway_auth::login::LoginMethod;

use crate::auth::{Invitation, InvitationRelay};
use crate::lock::lock;
use crate::tasks::{self, Task};

/// Where the account is logged in to.
pub(crate) struct AccountLoginRunner {
    kept: Arc<StoredAccount>,
    running: Mutex<Option<RunningAccountLogin>>,
}

/// A login under way.
struct RunningAccountLogin {
    login: AccountLoginHandle,
    task: Task<()>,
}

/// A login that was begun. Dropping it does not end the login.
#[derive(Clone)]
pub(crate) struct AccountLoginHandle {
    invited: watch::Receiver<Option<Invitation>>,
    outcome: watch::Receiver<Option<Result<(), String>>>,
}

impl AccountLoginRunner {
    pub(super) fn new(kept: Arc<StoredAccount>) -> Self {
        Self {
            kept,
            running: Mutex::default(),
        }
    }

    /// Begins a login in a browser, or joins the one under way.
    pub(crate) fn begin(&self) -> AccountLoginHandle {
        let mut running = lock(&self.running);
        if let Some(running) = &*running
            && !running.task.is_finished()
        {
            return running.login.clone();
        }
        let (invite, invited) = watch::channel(None);
        let (done, outcome) = watch::channel(None);
        let kept = Arc::clone(&self.kept);
        let task = tasks::spawn("account login", async move {
            let person = InvitationRelay {
                invite,
                person: None,
            };
            let ended = kept.log_in(LoginMethod::Browser, &person).await;
            done.send_replace(Some(ended.map_err(|error| error.to_string())));
        });
        let login = AccountLoginHandle { invited, outcome };
        *running = Some(RunningAccountLogin {
            login: login.clone(),
            task,
        });
        login
    }

    /// The login under way.
    pub(crate) fn under_way(&self) -> Option<AccountLoginHandle> {
        let running = lock(&self.running);
        let running = running.as_ref()?;
        (!running.task.is_finished()).then(|| running.login.clone())
    }

    /// Gives up the login under way.
    pub(crate) fn end(&self) {
        lock(&self.running).take();
    }
}

impl fmt::Debug for AccountLoginRunner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("AccountLoginRunner")
            .field(&self.kept)
            .finish()
    }
}

impl AccountLoginHandle {
    /// What the person is to do; none when the login ended before.
    pub(crate) async fn invitation(&mut self) -> Option<Invitation> {
        let invited = self.invited.wait_for(Option::is_some).await;
        invited.ok().and_then(|invited| invited.clone())
    }

    /// How it ended; none when it was given up.
    pub(crate) async fn outcome(&mut self) -> Option<Result<(), String>> {
        let outcome = self.outcome.wait_for(Option::is_some).await;
        outcome.ok().and_then(|outcome| outcome.clone())
    }
}
