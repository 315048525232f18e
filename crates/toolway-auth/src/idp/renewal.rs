//! Renewing who the person is, without the person.
//!
//! Owns that a renewal is finished and saved although whoever wanted it has gone: what it was made
//! from may be spent.
//! Does not own: asking the person (`idp.rs`), or where it is kept (`store.rs`).

use std::sync::Arc;
use std::time::Duration;

use super::{Identity, IdentityProvider, IdpError, Turns};
use crate::token::{Grant, TokenError};

impl IdentityProvider {
    /// What is kept is refused, or has expired for the provider: renewed without the person if
    /// that works, else forgotten.
    pub(crate) async fn refused(&self, identity: &Identity) -> Result<(), IdpError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let turns: Turns = (turn, self.store.turn(&self.settings).await?);
        let (provider, identity) = (self.clone(), identity.clone());
        let errand = self.errands.start(async move {
            let _turns = turns;
            let kept = provider.store.read(&provider.settings).await?;
            // Somebody else was quicker.
            if kept.as_ref().map(|kept| &kept.id_token) != Some(&identity.id_token) {
                return Ok(());
            }
            match provider.renewed(&identity).await? {
                Some(renewed) => Ok(provider.store.write(&provider.settings, &renewed).await?),
                None => Ok(provider.store.remove(&provider.settings).await?),
            }
        });
        errand.await.unwrap_or_else(|given_up| Err(given_up.into()))
    }

    /// Waits until what is being renewed is saved, and no longer than this.
    pub async fn settle(&self, within: Duration) {
        self.errands.settle(within).await;
    }

    /// What somebody else has renewed before it was our turn, or what is renewed now and saved:
    /// that is not lost with whoever wanted it. Nothing when the provider wants to see the person;
    /// whoever has the turns may ask them.
    pub(super) async fn renewed_in_turn(
        &self,
        turns: Turns,
    ) -> Result<(Turns, Result<Option<Identity>, IdpError>), IdpError> {
        let provider = self.clone();
        let errand = self.errands.start(async move {
            if let Some(identity) = provider.kept().await? {
                return Ok((turns, Ok(Some(identity))));
            }
            let renewed = match provider.store.read(&provider.settings).await {
                Ok(Some(kept)) => provider.renewed(&kept).await,
                Ok(None) => Ok(None),
                Err(error) => Err(error.into()),
            };
            if let Ok(Some(identity)) = &renewed {
                provider.store.write(&provider.settings, identity).await?;
            }
            Ok((turns, renewed))
        });
        errand.await.unwrap_or_else(|given_up| Err(given_up.into()))
    }

    /// The successor of an identity, without the person; `None` when the provider wants to see
    /// them.
    async fn renewed(&self, old: &Identity) -> Result<Option<Identity>, IdpError> {
        let Some(refresh) = &old.refresh else {
            return Ok(None);
        };
        let desk = self.desk().await?;
        let request = self.request(&desk, &[]);
        let tokens = match request.send(&self.web, Grant::Refresh(refresh)).await {
            Ok(tokens) => tokens,
            Err(TokenError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Not every provider gives a new one here.
        if tokens.id_token.is_none() {
            return Ok(None);
        }
        let mut renewed = self.believed(tokens, None).await?;
        if renewed.subject != old.subject {
            return Err(IdpError::OtherPerson {
                issuer: self.name(),
            });
        }
        renewed.refresh = renewed.refresh.or_else(|| Some(refresh.clone()));
        Ok(Some(renewed))
    }
}
