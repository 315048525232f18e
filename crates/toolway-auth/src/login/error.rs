//! Why a login failed, and what may mend that.

use crate::authorize::{AuthorizationResponseError, AuthorizationStartError};
use crate::callback::CallbackError;
use crate::device::DeviceError;
use crate::discovery::DiscoveryError;
use crate::logins::LoginsError;
use crate::registration::RegistrationError;
use crate::scopes::LoginAttemptError;
use crate::token::TokenError;
use crate::voucher::VoucherError;
use crate::web::WebError;

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
    /// A federated login has no user who could register a client.
    #[error("{issuer} must know us: register a client there and set `oauth.clientId`")]
    NoClient {
        /// Which authorization server.
        issuer: String,
    },
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
    /// Nobody vouches, or it does not count.
    #[error(transparent)]
    Voucher(#[from] VoucherError),
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
    Keep(#[from] LoginsError),
}

/// What may mend a login that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginRemedy {
    /// Starting it again.
    Again,
    /// The same, in a way in which no browser has to come back here.
    AgainWithoutReturn,
    /// Another way, in which no browser has to come back here.
    WithoutReturn,
    /// A browser.
    Browser,
    /// Waiting.
    Later,
    /// Ending the other login.
    EndOther,
    /// A client of the user's own.
    OwnClient,
    /// The same, or the operator.
    OwnClientOrOperator,
    /// The credentials of a client.
    Credentials,
    /// The client's id and secret, one of which is wrong.
    CheckClient,
    /// Other scopes.
    OtherScopes,
    /// The server's entry.
    Entry,
    /// The place where logins are kept.
    Storage,
    /// Its operator alone: it stays the same however often one tries.
    Operator,
    /// Its operator alone, and no other way would be safe.
    NoSafeWay,
    /// Its operator's word that PKCE is checked, and the entry.
    UnannouncedPkce,
}

impl LoginError {
    /// What may mend it.
    pub fn remedy(&self) -> LoginRemedy {
        match &self.fault {
            LoginFault::Answer(error) | LoginFault::Callback(CallbackError::Answer(error)) => {
                after_answer(error)
            }
            LoginFault::Callback(CallbackError::TimedOut) => LoginRemedy::AgainWithoutReturn,
            // The browser, or its way back to here, is what does not work.
            LoginFault::Callback(_) => LoginRemedy::WithoutReturn,
            LoginFault::NoEndpoint { field, .. } if *field == "device_authorization_endpoint" => {
                LoginRemedy::Browser
            }
            LoginFault::NoCredentials => LoginRemedy::Credentials,
            LoginFault::Registration(_) | LoginFault::NoClient { .. } => LoginRemedy::OwnClient,
            LoginFault::Discovery(_)
            | LoginFault::Web(_)
            | LoginFault::NoEndpoint { .. }
            | LoginFault::Voucher(_)
            | LoginFault::Moved { .. } => LoginRemedy::Entry,
            LoginFault::Keep(_) => LoginRemedy::Storage,
            LoginFault::Attempt(AuthorizationStartError::NoPkce {
                is_announced: true, ..
            }) => LoginRemedy::NoSafeWay,
            LoginFault::Attempt(AuthorizationStartError::NoPkce { .. }) => {
                LoginRemedy::UnannouncedPkce
            }
            LoginFault::Token(error) | LoginFault::Device(DeviceError::Token(error)) => {
                self.after_token(error)
            }
            LoginFault::Device(DeviceError::Malformed(_)) => LoginRemedy::Operator,
            LoginFault::Spent(_) => LoginRemedy::EndOther,
            LoginFault::Device(_) | LoginFault::Attempt(AuthorizationStartError::Random(_)) => {
                LoginRemedy::Again
            }
        }
    }

    /// The token endpoint gave nothing.
    fn after_token(&self, error: &TokenError) -> LoginRemedy {
        let code = match error {
            TokenError::Refused { code, .. } => code.as_str(),
            TokenError::Lost | TokenError::Busy { .. } | TokenError::Failed { .. } => {
                return LoginRemedy::Later;
            }
            TokenError::Web(_) => return LoginRemedy::Entry,
            TokenError::Malformed(_)
            | TokenError::NotAsked(_)
            | TokenError::Assertion(_)
            | TokenError::Proof(_) => return LoginRemedy::Operator,
        };
        match code {
            "invalid_grant" => LoginRemedy::Again,
            "invalid_scope" => LoginRemedy::OtherScopes,
            "invalid_client" | "unauthorized_client" | "http_401" if self.is_configured => {
                LoginRemedy::CheckClient
            }
            "invalid_client" | "unauthorized_client" | "http_401" => {
                LoginRemedy::OwnClientOrOperator
            }
            _ => LoginRemedy::Operator,
        }
    }
}

/// The user came back without a code.
fn after_answer(error: &AuthorizationResponseError) -> LoginRemedy {
    match error {
        AuthorizationResponseError::Refused { code, .. } => match code.as_received() {
            "invalid_scope" => LoginRemedy::OtherScopes,
            "server_error"
            | "temporarily_unavailable"
            | "login_required"
            | "interaction_required"
            // The next one registers anew.
            | "invalid_client"
            | "unauthorized_client" => LoginRemedy::Again,
            _ => LoginRemedy::Operator,
        },
        AuthorizationResponseError::Declined { .. }
        | AuthorizationResponseError::State
        | AuthorizationResponseError::Repeated(_) => LoginRemedy::Again,
        AuthorizationResponseError::IssuerMissing { .. }
        | AuthorizationResponseError::IssuerMismatch { .. }
        | AuthorizationResponseError::NoCode { .. } => LoginRemedy::Operator,
    }
}
