//! Widening a login in the middle of a request.
//!
//! A server that answers 403 and names scopes may get them after the user agreed. Owns asking the
//! user, with what the login has and what it would get, waiting until they are done with the page,
//! and that requests which lack scopes together share one question (REL-26). Does not own: sending
//! the request again (`connection/session_slot.rs`), the login itself (`login.rs`), how often there
//! may be one (`toolway-auth`, `scopes.rs`), or logins that need no user: those get more scopes
//! where they are sent (`oauth.rs`).

use std::sync::{Arc, Weak};

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use toolway_auth::challenge;
use toolway_auth::logins::Login;
use toolway_types::{ServerName, Untrusted, may_be_opened};
use tracing::{debug, info};

use super::Auth;
use super::login::{Invitation, LoginHandle, LoginOptions, LoginProblem, LoginResult};
use crate::auth::access_token::LoginTarget;
use crate::call::NotWidened;
use crate::call::{Attention, RequestOrigin};
use crate::client_handler::{Elicitation, ElicitationAnswer, MoreRights};
use crate::error::{is_short, scopes_in};
use crate::lock::lock;
use crate::server_source::definition::ServerIdentity;
use crate::session::{ClientSide, question};
use crate::tasks::{self, Task};

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Widened {
    /// There is another login now.
    Yes,
    /// The user was not asked: there is none, or it would not help.
    Unasked,
    /// There is none, and why.
    No(NotWidened),
}

/// Can get more scopes for the login of one server.
#[derive(Clone)]
pub(crate) struct Widener {
    pub(crate) auth: Arc<Auth>,
    /// Whose login it is.
    pub(crate) server: ServerIdentity,
    /// Who is asked.
    pub(crate) client_side: ClientSide,
    /// Told as long as a person is at it.
    pub(crate) attention: Option<Attention>,
}

/// An attempt under way. It ends when no request waits for it any more.
#[derive(Debug)]
pub(super) struct StepUp {
    scopes: Vec<String>,
    outcome: watch::Receiver<Option<Widened>>,
    _task: Task<()>,
}

/// The last login of a server that was widened.
#[derive(Debug)]
pub(super) struct WidenedLogin {
    at: Instant,
    scopes: Vec<String>,
}

impl Widener {
    /// Has a person agree to a login that reaches as far as the challenge wants. `began` is when
    /// the request was sent that fell short.
    pub(crate) async fn widen(
        &self,
        challenge: &str,
        began: Instant,
        origin: Option<&Arc<RequestOrigin>>,
    ) -> Widened {
        let bearer = challenge::bearer(challenge).unwrap_or_default();
        let wanted = bearer.scopes;
        // Nothing that is not named can be asked for.
        let side = self
            .client_side
            .during(origin.map_or(&[], std::slice::from_ref));
        if wanted.is_empty() || !has_somebody(&side) {
            return Widened::Unasked;
        }
        loop {
            if self.has_reached(&wanted, began) {
                return Widened::Yes;
            }
            let under_way = self.joined_or_begun(challenge, &wanted, &side, origin);
            let mut outcome = under_way.outcome.clone();
            let outcome = outcome.wait_for(Option::is_some).await;
            let outcome = outcome.ok().and_then(|outcome| outcome.clone());
            // Who wants something else takes the next turn.
            if covers(&under_way.scopes, &wanted) {
                return outcome.unwrap_or(Widened::Unasked);
            }
        }
    }

    /// A request was taken that was not before: attempts are counted anew.
    pub(crate) fn helped(&self) {
        self.auth.helped(&self.server);
    }

    /// Whether the login was widened since a request was sent, by another that fell short.
    fn has_reached(&self, wanted: &[String], began: Instant) -> bool {
        let reached = lock(&self.auth.reached);
        let reached = reached.get(&self.server);
        reached.is_some_and(|it| it.at >= began && covers(&it.scopes, wanted))
    }

    fn joined_or_begun(
        &self,
        challenge: &str,
        wanted: &[String],
        side: &ClientSide,
        origin: Option<&Arc<RequestOrigin>>,
    ) -> Arc<StepUp> {
        let server = &self.server;
        let mut all = lock(&self.auth.step_ups);
        let running = all.get(server).and_then(Weak::upgrade);
        if let Some(running) = running.filter(|it| it.outcome.borrow().is_none()) {
            return running;
        }
        let (done, outcome) = watch::channel(None);
        let widener = Self {
            auth: Arc::clone(&self.auth),
            server: server.clone(),
            client_side: side.clone(),
            attention: origin.map(|origin| origin.caller.attention.clone()),
        };
        let (challenge, scopes) = (challenge.to_owned(), wanted.to_vec());
        let work = async move {
            // It is large, and most of it is waiting.
            let outcome = Box::pin(widener.attempt(&challenge, &scopes)).await;
            widener.conclude(&outcome, challenge);
            done.send_replace(Some(outcome));
        };
        let begun = Arc::new(StepUp {
            scopes: wanted.to_vec(),
            outcome,
            _task: tasks::spawn("step-up", work),
        });
        all.insert(server.clone(), Arc::downgrade(&begun));
        begun
    }

    /// What the next login has to know.
    fn conclude(&self, outcome: &Widened, challenge: String) {
        let server = &self.server;
        match outcome {
            Widened::Yes => {
                info!(%server, "the login reaches further now");
                lock(&self.auth.short).remove(server);
            }
            Widened::Unasked | Widened::No(_) => {
                debug!(%server, ?outcome, "the login does not reach further");
                self.auth.note_missing_scopes(server, challenge);
            }
        }
    }

    async fn attempt(&self, challenge: &str, wanted: &[String]) -> Widened {
        let server = &self.server;
        let Some(login) = self.auth.login_of(server).await else {
            return Widened::Unasked;
        };
        // Another process was quicker, and its login was not sent from here yet.
        let shown = lock(&self.auth.shown).get(server).cloned();
        if shown.as_ref() != Some(&login.tokens.access) && covers(&login.requested, wanted) {
            return Widened::Yes;
        }
        // More scopes would not help the others.
        let Some(way) = login.how.method().filter(|way| way.grant().needs_user()) else {
            return Widened::Unasked;
        };
        let options = LoginOptions {
            way,
            account: Some(login.account.clone()),
            ..LoginOptions::default()
        };
        let challenge = Untrusted::new(challenge);
        let Ok(mut handle) = self.auth.begin(server, Some(&challenge), options) else {
            return Widened::Unasked;
        };
        // A login is under way already, and its end is told there.
        let Some(outcome) = handle.take_outcome() else {
            return Widened::Unasked;
        };
        let mut begun = BegunLogin {
            widener: self,
            handle,
        };
        let widened = self.asked(&mut begun.handle, outcome, &login, wanted).await;
        if widened == Widened::Yes
            && let Some(login) = self.auth.login_of(server).await
        {
            let reached = WidenedLogin {
                at: Instant::now(),
                scopes: login.requested,
            };
            lock(&self.auth.reached).insert(server.clone(), reached);
        }
        widened
    }

    /// Asks while the login waits for the person, who may as well go to the page and never answer.
    async fn asked(
        &self,
        handle: &mut LoginHandle,
        mut outcome: oneshot::Receiver<LoginResult>,
        login: &Login,
        wanted: &[String],
    ) -> Widened {
        let invitation = handle.invitation().await;
        if let Some(invitation) = invitation {
            let Some(request) = request(&self.client_side.server, invitation, login, wanted) else {
                return Widened::Unasked;
            };
            // Not only while the question stands: a person at the page is being asked still.
            let _attention = self.attention.as_ref().map(Attention::open);
            let answer = tokio::select! {
                biased;
                ended = &mut outcome => return judged(ended),
                answer = question::put_to_person(request, &self.client_side) => answer,
            };
            if !matches!(answer, ElicitationAnswer::Accept(_)) {
                return Widened::No(NotWidened::Declined);
            }
        }
        judged(outcome.await)
    }
}

/// Whether a question about more scopes could be answered.
fn has_somebody(side: &ClientSide) -> bool {
    let person = side.client_handler.as_ref();
    person.is_some_and(|person| person.offers().url) || side.hooks.answers(&side.server)
}

/// A login that was begun for a question, and is given up with it.
struct BegunLogin<'a> {
    widener: &'a Widener,
    handle: LoginHandle,
}

impl Drop for BegunLogin<'_> {
    fn drop(&mut self) {
        let server = &self.widener.server;
        self.widener.auth.give_up(server, &self.handle);
    }
}

fn judged(ended: Result<LoginResult, oneshot::error::RecvError>) -> Widened {
    match ended {
        Ok(Ok(_)) => Widened::Yes,
        // The user was not asked: it is known already that it would not help.
        Ok(Err(LoginProblem::Spent { .. })) => Widened::Unasked,
        Ok(Err(problem)) => Widened::No(NotWidened::Failed(problem.to_string())),
        Err(_) => Widened::No(NotWidened::Failed(LoginProblem::Ended.to_string())),
    }
}

/// The question; `None` where the page is one that users are not sent to.
fn request(
    server: &ServerName,
    invitation: Invitation,
    login: &Login,
    wanted: &[String],
) -> Option<Elicitation> {
    let granted = &login.tokens.scopes;
    let has = if granted.is_empty() {
        &login.requested
    } else {
        granted
    };
    let lacks = wanted.iter().filter(|scope| !has.contains(scope));
    let (url, code) = match invitation {
        Invitation::Page { url, .. } => (url, None),
        Invitation::Code { url, code, .. } => (url, Some(code)),
    };
    let rights = MoreRights {
        has: has.clone(),
        wants: lacks.cloned().collect(),
        code,
    };
    let has = match rights.has.as_slice() {
        [] => "no scope that is known".to_owned(),
        scopes => format!("`{}`", scopes.join(" ")),
    };
    let mut message = format!(
        "The login to `{server}` has {has}. What was asked of the server takes `{}` as well. \
         Log in on this page to grant that; then it is sent again.",
        rights.wants.join(" ")
    );
    if let Some(code) = &rights.code {
        message = format!("{message} The code to type there is {}.", code.expose());
    }
    may_be_opened(&url).then_some(Elicitation::Url {
        message: Untrusted::new(message),
        url,
        id: None,
        rights: Some(Box::new(rights)),
    })
}

fn covers(all: &[String], some: &[String]) -> bool {
    some.iter().all(|scope| all.contains(scope))
}

impl Auth {
    /// A server took what a step-up got it.
    pub(super) fn helped(&self, server: &ServerIdentity) {
        self.attempts.helped(&server.to_key());
    }

    /// Whether a server was shown a login, and wants one that reaches further without saying how
    /// far.
    pub(crate) fn fell_short_of_unnamed(
        &self,
        server: &ServerIdentity,
        challenge: &Untrusted,
    ) -> bool {
        let is_unnamed = is_short(Some(challenge.as_received())) && scopes_in(challenge).is_empty();
        is_unnamed && lock(&self.shown).contains_key(server)
    }

    /// The login that a server is shown, where one is kept.
    async fn login_of(&self, server: &ServerIdentity) -> Option<Login> {
        let known = lock(&self.known).get(server).cloned();
        self.kept_login(&known?.login?).await
    }

    /// The same for a server that is known.
    pub(super) async fn kept_login(&self, target: &LoginTarget) -> Option<Login> {
        let logins = &self.store.as_ref()?.logins;
        let account = target.oauth.account.as_deref();
        let found = logins.find(target.server.as_str(), &target.definition, account);
        found.await.ok().flatten()
    }
}
