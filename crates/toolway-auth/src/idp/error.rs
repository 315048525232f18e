//! Errors of the identity provider.

use std::sync::Arc;

use super::IdTokenError;
use crate::authorize::{AuthorizationResponseError, AuthorizationStartError};
use crate::callback::CallbackError;
use crate::detached::TaskLost;
use crate::device::DeviceError;
use crate::metadata::MetadataError;
use crate::random::NoRandom;
use crate::token::TokenError;
use crate::vault::VaultError;
use crate::web::WebError;

/// Why it is not known who the user is.
#[derive(Debug, thiserror::Error)]
pub enum IdpError {
    /// No identity is stored, and the user may not be asked.
    #[error("nobody is logged in at the identity provider {issuer}: run `toolway idp login`")]
    NeedsLogin {
        /// Which provider.
        issuer: String,
    },
    /// The provider's metadata is not usable.
    #[error("the metadata of the identity provider {issuer} is not usable: {fault}")]
    Metadata {
        /// Which provider.
        issuer: String,
        /// What is wrong.
        fault: MetadataError,
    },
    /// The metadata is from another issuer.
    #[error(
        "the metadata of the identity provider {issuer} is that of {named}: mend the issuer in the settings"
    )]
    OtherIssuer {
        /// Which provider.
        issuer: String,
        /// Who it says it is.
        named: String,
    },
    /// The provider has no such endpoint.
    #[error("the identity provider {issuer} has no `{endpoint}`")]
    NoEndpoint {
        /// Which provider.
        issuer: String,
        /// Which one.
        endpoint: &'static str,
    },
    /// The issuer in the settings is no address.
    #[error("the identity provider `{issuer}` in the settings is no `https` address")]
    BadIssuer {
        /// As written.
        issuer: String,
    },
    /// It gave no id token.
    #[error(
        "the identity provider {issuer} gave no id token: its client must be allowed the scope `openid`"
    )]
    NoIdToken {
        /// Which provider.
        issuer: String,
    },
    /// Its id token is not believed.
    #[error("the id token of the identity provider {issuer} is not taken: {fault}")]
    Claims {
        /// Which provider.
        issuer: String,
        /// Why.
        fault: IdTokenError,
    },
    /// The renewed identity is another user's.
    #[error("the identity provider {issuer} answered for another person: run `toolway idp login`")]
    OtherPerson {
        /// Which provider.
        issuer: String,
    },
    /// It could not be asked.
    #[error("the identity provider could not be asked: {0}")]
    Web(#[from] WebError),
    /// The login could not begin.
    #[error(transparent)]
    Attempt(#[from] AuthorizationStartError),
    /// The answer that the user pasted ends the login.
    #[error(transparent)]
    Answer(#[from] AuthorizationResponseError),
    /// The login did not come back.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The login on another device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It gave no token.
    #[error("the identity provider: {0}")]
    Token(#[from] TokenError),
    /// What is kept cannot be read or written.
    #[error(transparent)]
    Store(#[from] VaultError),
    /// No randomness.
    #[error(transparent)]
    Random(#[from] NoRandom),
    /// The login that was waited for, begun for another server, failed.
    #[error(transparent)]
    Together(Arc<IdpError>),
}

impl From<TaskLost> for IdpError {
    fn from(lost: TaskLost) -> Self {
        Self::Token(TokenError::NotAsked(lost.to_string()))
    }
}
