//! What a user is invited to do, and handing it to the caller that waits for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolway_auth::login::{DeviceCodePrompt, LoginPage, LoginProgress, LoginUi};
use toolway_types::Secret;
use url::Url;

/// What a person is to do. The address and the code are for their eyes alone.
#[derive(Clone, PartialEq, Eq)]
pub enum Invitation {
    /// Open a page.
    Page {
        /// Whose page it is.
        host: String,
        /// Its address.
        url: Url,
    },
    /// Type a code on another device.
    Code {
        /// The code.
        code: Secret,
        /// Where.
        url: Url,
        /// How long it is good.
        life: Duration,
    },
}

/// The address holds the state of the login.
impl fmt::Debug for Invitation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Invitation::Page { .. } => "Page",
            Invitation::Code { .. } => "Code",
        })
    }
}

/// Tells the host what the person is invited to, and passes everything on.
pub(crate) struct InvitationRelay {
    pub(crate) invite: watch::Sender<Option<Invitation>>,
    pub(crate) person: Option<Arc<dyn LoginUi>>,
}

impl InvitationRelay {
    fn page(&self, page: LoginPage<'_>) {
        self.invite.send_replace(Some(Invitation::Page {
            host: page.host.to_owned(),
            url: page.url.clone(),
        }));
    }
}

impl LoginUi for InvitationRelay {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        self.page(page);
        match &self.person {
            Some(person) => person.open(page),
            // Who holds the invitation opens it.
            None => Box::pin(async { Ok(()) }),
        }
    }

    fn show(&self, page: LoginPage<'_>) {
        self.page(page);
        if let Some(person) = &self.person {
            person.show(page);
        }
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        match &self.person {
            Some(person) => person.pasted(),
            None => Box::pin(std::future::pending()),
        }
    }

    fn device(&self, device: DeviceCodePrompt<'_>) {
        let login = device.login;
        self.invite.send_replace(Some(Invitation::Code {
            code: login.user_code().clone(),
            url: login.verification_uri().clone(),
            life: login.life(),
        }));
        if let Some(person) = &self.person {
            person.device(device);
        }
    }

    fn say(&self, progress: LoginProgress) {
        if let Some(person) = &self.person {
            person.say(progress);
        }
    }
}

/// The absent user of a client that logs in for itself.
pub(super) struct NoUser;

impl LoginUi for NoUser {
    fn open<'a>(&'a self, _: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err("there is nobody to open a page for".to_owned()) })
    }
}
