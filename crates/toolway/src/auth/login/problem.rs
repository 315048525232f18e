//! Why there is no login.

use toolway_auth::jwt::KeyError;
use toolway_auth::login::LoginError;
use toolway_auth::logins::LoginsError;
use toolway_auth::references::ReferenceError;
use toolway_auth::scopes::LoginAttemptError;
use toolway_types::ServerName;

use crate::auth::federated_login::NoFederatedLogin;
use crate::event::UnknownServer;

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginProblem {
    /// No such server is running.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// The host keeps no logins.
    #[error("this program keeps no logins")]
    NoVault,
    /// It is none that logs in.
    #[error("server `{0}` takes no login: only servers of type http, sse and ws do")]
    NotRemote(ServerName),
    /// Its entry has the login.
    #[error(
        "server `{0}` has an `Authorization` header or a secret in the path of its `url`, which is its login: take it out to log in"
    )]
    Written(ServerName),
    /// The server wants what was asked for already.
    #[error("cannot log in to `{server}`: {why}")]
    Spent {
        /// The server.
        server: ServerName,
        /// Why.
        why: LoginAttemptError,
    },
    /// There was no federated login.
    #[error(transparent)]
    NoFederatedLogin(Box<NoFederatedLogin>),
    /// A secret that the entry names for its login is not there.
    #[error("cannot log in to `{server}`: {why}")]
    Secret {
        /// The server.
        server: ServerName,
        /// What is missing.
        #[source]
        why: Box<ReferenceError>,
    },
    /// The client's key is of no use.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It failed.
    #[error(transparent)]
    Failed(Box<LoginError>),
    /// It cannot be kept.
    #[error("the login cannot be kept: {0}")]
    NotKept(#[from] LoginsError),
    /// The host ended first.
    #[error("the login was given up")]
    Ended,
}

impl From<LoginError> for LoginProblem {
    fn from(error: LoginError) -> Self {
        Self::Failed(Box::new(error))
    }
}
