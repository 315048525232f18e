//! Logging out at the provider: here first, then there (RFC 7009).
//!
//! Owns giving back what renews the identity. That never keeps the user logged in: whatever the
//! provider answers, and however long it takes, the identity is forgotten.

use std::time::Duration;

use toolway_types::Secret;

use super::{IdentityProvider, IdpError};
use crate::revoke::{Revocation, RevokeError};

/// How long a logout waits for the provider.
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(10);

/// What became of a login at the provider.
#[derive(Debug)]
pub enum IdpLogoutOutcome {
    /// The provider ended it.
    Revoked,
    /// There was nothing that could be given back.
    Nothing,
    /// The provider takes nothing back.
    NotOffered,
    /// It failed, or the outcome is unknown; the message says why.
    Failed(String),
}

impl IdentityProvider {
    /// Forgets who the user is, and has the provider forget it too.
    pub async fn logout(&self) -> Result<IdpLogoutOutcome, IdpError> {
        let kept = self.store.read(&self.settings).await;
        self.store.remove(&self.settings).await?;
        // One that could not be read is gone all the same.
        let refresh = kept.ok().flatten().and_then(|kept| kept.refresh);
        let Some(refresh) = refresh else {
            return Ok(IdpLogoutOutcome::Nothing);
        };
        let given = tokio::time::timeout(LOGOUT_TIMEOUT, self.give_back(&refresh)).await;
        Ok(match given {
            Ok(Ok(given)) => given,
            Ok(Err(why)) => IdpLogoutOutcome::Failed(why),
            Err(_) => IdpLogoutOutcome::Failed(format!(
                "the identity provider {} did not answer in time: its login stays good there \
                 until it expires",
                self.name()
            )),
        })
    }

    async fn give_back(&self, refresh: &Secret) -> Result<IdpLogoutOutcome, String> {
        let metadata = self.metadata().await.map_err(|error| error.to_string())?;
        let Some(endpoint) = &metadata.revocation_endpoint else {
            return Ok(IdpLogoutOutcome::NotOffered);
        };
        let offered = metadata.revocation_auth_methods.as_ref();
        let offered = offered.or(metadata.token_auth_methods.as_ref());
        let revocation = Revocation {
            endpoint,
            issuer: &self.settings.issuer,
            client: &self.client(offered.map(Vec::as_slice)),
        };
        let sent = revocation.refresh_token(&self.web, refresh).await;
        sent.map_err(|error: RevokeError| error.to_string())?;
        Ok(IdpLogoutOutcome::Revoked)
    }
}
