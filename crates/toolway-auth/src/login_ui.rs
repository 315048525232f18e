//! The user interface of a login, and bringing an answer back through it.
//!
//! Owns what a user who logs in is shown and told, and the wait for the answer of their browser, or
//! for what they paste in its place. No terminal is touched here.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use url::Url;

use crate::authorize::{
    AuthorizationCode, AuthorizationResponseError, PendingAuthorization, pasted,
};
use crate::callback::{Callback, CallbackError};
use crate::device::DeviceLogin;
use crate::grant::LoginMethod;

/// A page that a user is to open. Its address is for their eyes and their browser alone.
#[derive(Clone, Copy)]
pub struct LoginPage<'a> {
    /// The server, as the user calls it.
    pub server: &'a str,
    /// Whose page it is. To be shown: it is what a user can check.
    pub host: &'a str,
    /// The address.
    pub url: &'a Url,
}

/// The address holds the state of the login.
impl std::fmt::Debug for LoginPage<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LoginPage")
            .field("server", &self.server)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// A code that a user is to type on another device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceCodePrompt<'a> {
    /// The server, as the user calls it.
    pub server: &'a str,
    /// The code, where to type it, and how long it is good.
    pub login: &'a DeviceLogin,
}

/// How far a login is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginProgress {
    /// Looking for the authorization server.
    Discovering,
    /// Registering this program there.
    Registering,
    /// The same because the last login with the former registration had no answer.
    RegisteringAnew,
    /// This authorization server does not say that it knows PKCE, and the entry allows that.
    UnannouncedPkce(String),
    /// The browser was opened; the user has to act there.
    Waiting,
    /// No browser could be opened.
    NoBrowser(String),
    /// What was pasted is not what is needed; it can be pasted again.
    Pasted(String),
    /// The user is done; tokens are being fetched.
    Finishing,
    /// This address has not answered yet.
    Slow(String),
}

/// The interface to the user who logs in.
pub trait LoginUi: Send + Sync {
    /// Opens a page in a browser on this machine. A failure is no end: the page is shown then.
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>>;

    /// Shows a page's address, to be opened anywhere.
    fn show(&self, _page: LoginPage<'_>) {}

    /// The next text that the user pastes; never, where nothing can be pasted.
    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(pending())
    }

    /// Shows a code to be typed on another device.
    fn device(&self, _device: DeviceCodePrompt<'_>) {}

    /// Says how far it is.
    fn say(&self, _progress: LoginProgress) {}
}

impl dyn LoginUi + '_ {
    /// Opens or shows the login page of an attempt.
    pub(crate) async fn send_off(
        &self,
        server: &str,
        method: LoginMethod,
        attempt: &PendingAuthorization,
    ) {
        let page = LoginPage {
            server,
            host: attempt.url().host_str().unwrap_or_default(),
            url: attempt.url(),
        };
        if method == LoginMethod::Paste {
            self.show(page);
        } else if let Err(why) = self.open(page).await {
            self.say(LoginProgress::NoBrowser(why));
            self.show(page);
        }
        self.say(LoginProgress::Waiting);
    }

    /// Waits for the answer, from wherever it comes first, and spends it once.
    pub(crate) async fn returned<'a, T, E>(
        &self,
        callback: Callback,
        attempt: &PendingAuthorization,
        spend: impl Fn(AuthorizationCode) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E>
    where
        E: From<CallbackError> + From<AuthorizationResponseError>,
    {
        let is_spent = AtomicBool::new(false);
        let returning = callback.finish(attempt, async |code| {
            is_spent.store(true, Ordering::Release);
            spend(code).await
        });
        let pasting = async {
            let code = self.paste(attempt).await;
            if is_spent.load(Ordering::Acquire) {
                // The browser was first.
                return pending().await;
            }
            code
        };
        tokio::select! {
            returned = returning => returned?,
            code = pasting => spend(code?).await,
        }
    }

    /// The code in what the user pastes; they may try again until it is this login's answer.
    async fn paste(
        &self,
        attempt: &PendingAuthorization,
    ) -> Result<AuthorizationCode, AuthorizationResponseError> {
        loop {
            let problem = match pasted(&self.pasted().await) {
                Err(problem) => problem.to_string(),
                Ok(answer) => match attempt.check(&answer) {
                    Err(
                        problem @ (AuthorizationResponseError::State
                        | AuthorizationResponseError::Repeated(_)),
                    ) => problem.to_string(),
                    judged => return judged,
                },
            };
            self.say(LoginProgress::Pasted(problem));
        }
    }
}
