//! The user interface of a login.

use futures_util::future::BoxFuture;
use url::Url;

use crate::device::DeviceLogin;

/// A page that a user is to open. Its address is for their eyes and their browser alone.
#[derive(Clone, Copy)]
pub struct LoginPage<'a> {
    /// The server, as the user calls it.
    pub server: &'a str,
    /// Whose page it is. To be shown: it is what a user can check.
    pub host: &'a str,
    /// The address.
    pub url: &'a Url,
    /// Where the browser comes back to.
    pub redirect_uri: &'a str,
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
    fn show(&self, page: LoginPage<'_>);

    /// The next text that the user pastes; never, where nothing can be pasted.
    fn pasted(&self) -> BoxFuture<'_, String>;

    /// Shows a code to be typed on another device.
    fn device(&self, device: DeviceCodePrompt<'_>);

    /// Says how far it is.
    fn say(&self, progress: LoginProgress);
}
