//! The answer to a request that is rejected (RFC 6750, section 3; RFC 9728, section 5.1).

use http::{HeaderValue, StatusCode};
use url::Url;

use super::AccessClaimError;
use crate::jwt::VerifyError;

/// Why a request is turned away. Shows nothing of what it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InboundFault {
    /// It shows no token.
    #[error("the request shows no bearer token")]
    NoToken,
    /// It shows several, and readers could disagree on which one counts.
    #[error("the request shows more than one token")]
    Several,
    /// It shows one where it does not stay secret.
    #[error("the request has a token in its address: use the Authorization header")]
    InAddress,
    /// It is longer than any that is looked at.
    #[error("the token is too long")]
    TooLong,
    /// No accepted issuer signed it.
    #[error("the token is not taken: {0}")]
    Signature(#[from] VerifyError),
    /// It says something that is not for us or not for now.
    #[error(transparent)]
    Claims(#[from] AccessClaimError),
    /// It is good and allows too little.
    #[error("the token does not allow this")]
    Scopes,
    /// Whether it is good cannot be found out now.
    #[error("the keys of the token's issuer cannot be had now")]
    NoKeys {
        /// After how many seconds to try again.
        seconds: u64,
    },
}

/// How a request is answered that is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct InboundRefusal {
    why: InboundFault,
    challenge: Option<String>,
}

impl InboundRefusal {
    pub(super) fn new(why: InboundFault, metadata: &Url, scopes: &[String]) -> Self {
        let mut parameters = vec![("resource_metadata", metadata.to_string())];
        match why {
            // A request without a token gets no `error`.
            InboundFault::NoToken => {}
            InboundFault::Several | InboundFault::InAddress => {
                parameters.push(("error", "invalid_request".into()));
            }
            InboundFault::TooLong | InboundFault::Signature(_) | InboundFault::Claims(_) => {
                parameters.push(("error", "invalid_token".into()));
            }
            InboundFault::Scopes => parameters.push(("error", "insufficient_scope".into())),
            InboundFault::NoKeys { .. } => parameters.clear(),
        }
        if parameters.len() > 1 {
            parameters.push(("error_description", why.to_string()));
        }
        if !parameters.is_empty() && !scopes.is_empty() {
            parameters.push(("scope", scopes.join(" ")));
        }
        let written: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        Self {
            why,
            challenge: (!written.is_empty()).then(|| format!("Bearer {}", written.join(", "))),
        }
    }

    /// Why.
    pub fn why(&self) -> InboundFault {
        self.why
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self.why {
            InboundFault::Several | InboundFault::InAddress => StatusCode::BAD_REQUEST,
            InboundFault::NoToken
            | InboundFault::TooLong
            | InboundFault::Signature(_)
            | InboundFault::Claims(_) => StatusCode::UNAUTHORIZED,
            InboundFault::Scopes => StatusCode::FORBIDDEN,
            // A client throws away a token that is called bad.
            InboundFault::NoKeys { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The answer's `WWW-Authenticate`.
    pub fn challenge(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.challenge.as_deref()?).ok()
    }

    /// The answer's `Retry-After`, in seconds.
    pub fn retry_after(&self) -> Option<u64> {
        match self.why {
            InboundFault::NoKeys { seconds } => Some(seconds),
            _ => None,
        }
    }
}
