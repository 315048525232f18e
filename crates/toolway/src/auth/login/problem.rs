//! Why there is no login, and why no federated one.

use std::fmt;

use toolway_auth::idp::IdpError;
use toolway_auth::jwt::KeyError;
use toolway_auth::login::{LoginError, LoginFault};
use toolway_auth::logins::LoginsError;
use toolway_auth::references::ReferenceError;
use toolway_auth::scopes::LoginAttemptError;
use toolway_auth::voucher::VoucherError;
use toolway_auth::voucher::xaa::XaaError;
use toolway_types::ServerName;

use crate::auth::organisation::OrganisationError;
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

/// Why there was no federated login.
#[derive(Debug, thiserror::Error)]
#[error("cannot log in to `{server}`: {fault}{}", PolicyNote(self))]
pub struct NoFederatedLogin {
    /// The server.
    pub server: ServerName,
    /// Why.
    #[source]
    pub fault: NoFederatedLoginReason,
    /// The policy that leaves no other way.
    pub policy: Option<String>,
}

/// Why there was no federated login.
#[derive(Debug, thiserror::Error)]
pub enum NoFederatedLoginReason {
    /// There is no organisation.
    #[error(
        "it takes cross-app access, and no identity provider is configured: set `identityProvider` in your settings"
    )]
    NoProvider,
    /// Another way was asked for.
    #[error("it takes cross-app access and no other login")]
    OtherWay,
    /// The organisation cannot be asked.
    #[error(transparent)]
    Organisation(#[from] OrganisationError),
    /// The organisation gave no assertion, or it was refused.
    #[error(transparent)]
    Login(LoginFault),
}

/// Says which policy leaves no other way, where a person could think of one.
struct PolicyNote<'a>(&'a NoFederatedLogin);

impl fmt::Display for PolicyNote<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.policy {
            Some(policy) if !self.0.lacks_identity() => {
                write!(formatter, "; the policy is {policy}")
            }
            _ => Ok(()),
        }
    }
}

impl NoFederatedLogin {
    /// Whether all that is missing is a login at the identity provider.
    pub fn lacks_identity(&self) -> bool {
        let (NoFederatedLoginReason::Organisation(OrganisationError::Identity(error))
        | NoFederatedLoginReason::Login(LoginFault::Voucher(VoucherError::Organisation(
            XaaError::Identity(error),
        )))) = &self.fault
        else {
            return false;
        };
        let error = match error {
            IdpError::Together(error) => error.as_ref(),
            error => error,
        };
        matches!(error, IdpError::NeedsLogin { .. })
    }
}
