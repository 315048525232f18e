//! The parties that vouch for a user or a machine, so that the server needs no login page.
//!
//! Owns what is true of each: its grant, how tokens are got by its word, and why there are none.
//! Does not own: the login around it (`federated.rs`).

pub mod workload;
pub mod xaa;

use std::sync::Arc;

use toolway_transport::OpenOptions;
use toolway_types::{VoucherKind, VoucherSpec};

use crate::grant::LoginGrant;
use crate::idp::{IdentityProvider, IdpLoginMethod};
use crate::references::ReferenceResolver;
use crate::token::{TokenError, Tokens};
use crate::web::WebClient;
use workload::{PlatformTokenSource, WorkloadError};
use xaa::{CrossAppRule, TokenTarget, XaaError};

/// Who vouches. Owned, because a renewal may outlive its caller.
#[derive(Clone)]
pub enum Voucher {
    /// The user's organisation.
    Organisation {
        /// Its identity provider.
        provider: IdentityProvider,
        /// Whether another way to log in may follow.
        rule: CrossAppRule,
    },
    /// The platform.
    Platform {
        /// Where its token comes from.
        source: Arc<PlatformTokenSource>,
        /// Its audience, when it is not the authorization server itself.
        audience: Option<String>,
    },
}

impl Voucher {
    /// The one that an entry names. `finder` finds the secrets that the entry names for it.
    pub fn of(spec: &VoucherSpec, finder: Option<ReferenceResolver>, options: OpenOptions) -> Self {
        match spec {
            VoucherSpec::Workload { source, audience } => Self::Platform {
                source: Arc::new(PlatformTokenSource::of(source, finder, options)),
                audience: audience.clone(),
            },
        }
    }

    /// The grant of a login by its word.
    pub fn grant(&self) -> LoginGrant {
        match self {
            Self::Organisation { .. } => LoginGrant::CrossApp,
            Self::Platform { .. } => LoginGrant::Vouched(VoucherKind::Workload),
        }
    }

    /// `method` is how the user is reached, if they must be.
    pub(crate) async fn tokens(
        &self,
        web: &WebClient,
        target: &TokenTarget<'_>,
        method: IdpLoginMethod<'_>,
    ) -> Result<Option<Tokens>, VoucherError> {
        Ok(match self {
            Self::Organisation { provider, rule } => {
                xaa::obtain(provider, method, web, target, *rule).await?
            }
            Self::Platform { source, audience } => {
                Some(workload::obtain(web, target, source, audience.as_deref()).await?)
            }
        })
    }
}

/// Why there are no tokens by somebody's word.
#[derive(Debug, thiserror::Error)]
pub enum VoucherError {
    /// The organisation gave no assertion, or it was refused.
    #[error(transparent)]
    Organisation(#[from] XaaError),
    /// The platform gave no token, or it was refused.
    #[error(transparent)]
    Platform(#[from] WorkloadError),
}

impl From<VoucherError> for TokenError {
    /// As the renewal of a login understands it: what the login's own authorization server said
    /// stays what it said, and everything before that means that it was not asked.
    fn from(error: VoucherError) -> Self {
        match error {
            VoucherError::Organisation(XaaError::Token(error))
            | VoucherError::Platform(WorkloadError::Token(error)) => error,
            other => Self::NotAsked(other.to_string()),
        }
    }
}
