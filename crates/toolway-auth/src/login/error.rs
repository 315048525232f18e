//! Why a login failed.

use crate::authorize::{AuthorizationResponseError, AuthorizationStartError};
use crate::callback::CallbackError;
use crate::device::DeviceError;
use crate::discovery::DiscoveryError;
use crate::registration::RegistrationError;
use crate::scopes::LoginAttemptError;
use crate::token::TokenError;
use crate::web::WebError;

use super::ClientStoreError;

/// A login failed. No message holds a secret.
#[derive(Debug, thiserror::Error)]
#[error("cannot log in to `{server}`: {fault}")]
pub struct LoginError {
    /// The server, as the user calls it.
    pub server: String,
    /// Why.
    #[source]
    pub fault: LoginFault,
    /// Whether the client was configured.
    pub is_configured: bool,
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginFault {
    /// It is not known where to log in.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The authorization server has no such endpoint.
    #[error("the authorization server {issuer} has no `{field}`, so it cannot be done in this way")]
    NoEndpoint {
        /// Who.
        issuer: String,
        /// Which.
        field: &'static str,
    },
    /// There is no client id.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// A client that is to log in for itself needs something to do it with.
    #[error(
        "a login without a person needs a client of your own: set `oauth.clientId` and its secret or key"
    )]
    NoCredentials,
    /// The server names another authorization server than the one a configured secret is for.
    #[error(
        "the server now names the authorization server {to}, but the client secret in its configuration belongs to {from}: it was not sent. Ask the server's operator; if the change is right, set `oauth.authServerMetadataUrl`"
    )]
    Moved {
        /// Whose the secret is.
        from: String,
        /// Who wants it.
        to: String,
    },
    /// No attempt could be begun.
    #[error(transparent)]
    Attempt(#[from] AuthorizationStartError),
    /// The answer that the user pasted ends the login.
    #[error(transparent)]
    Answer(#[from] AuthorizationResponseError),
    /// The browser did not come back, or came back with an error.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The device login failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// An address of the authorization server is none that is asked.
    #[error(transparent)]
    Web(#[from] WebError),
    /// Another login is under way, or enough of them were.
    #[error(transparent)]
    Spent(#[from] LoginAttemptError),
    /// A registration could not be kept, or not be found.
    #[error(transparent)]
    Keep(#[from] ClientStoreError),
}
