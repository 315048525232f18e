//! One renewal for all callers of a process, finished whether they wait for it or not.
//!
//! Owns which callers share a renewal. It runs as a detached task, from taking the lock until
//! everything is saved: a call that is dropped between the request and its answer would lose a
//! refresh token that has just taken the place of another, and with it the login.
//! Does not own: what a renewal does (`refresh.rs`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolway_types::Secret;

use super::{RefreshError, RenewalContext, RenewedLogins};
use crate::detached::TaskLost;
use crate::logins::Login;
use crate::token::TokenError;
use crate::vault::VaultKey;

type RenewalResult = Result<Login, RefreshError>;

/// The renewals under way.
#[derive(Default)]
pub(super) struct RunningRenewals(Mutex<HashMap<VaultKey, watch::Receiver<Option<RenewalResult>>>>);

impl RunningRenewals {
    fn all(&self) -> MutexGuard<'_, HashMap<VaultKey, watch::Receiver<Option<RenewalResult>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RenewedLogins {
    /// Renews, or waits for the renewal that is under way.
    pub(super) async fn shared(
        &self,
        key: &VaultKey,
        refused: Option<&Secret>,
        means: &RenewalContext,
    ) -> RenewalResult {
        loop {
            let (mut renewal, is_ours) = self.renewal(key, refused, means);
            let outcome = renewal.wait_for(Option::is_some).await;
            let outcome = outcome.ok().and_then(|outcome| outcome.clone());
            match outcome.unwrap_or_else(|| Err(lost(key))) {
                // It was renewed for a caller that did not know that this token is refused.
                Ok(login) if !is_ours && refused == Some(&login.tokens.access) => {}
                outcome => return outcome,
            }
        }
    }

    /// Whether a renewal is under way, or waits for its turn.
    #[cfg(test)]
    pub(super) fn is_under_way(&self, key: &VaultKey) -> bool {
        self.state.under_way.all().contains_key(key)
    }

    /// The renewal of this login, and whether it was begun for this caller.
    fn renewal(
        &self,
        key: &VaultKey,
        refused: Option<&Secret>,
        means: &RenewalContext,
    ) -> (watch::Receiver<Option<RenewalResult>>, bool) {
        let mut under_way = self.state.under_way.all();
        // One whose task was lost never has an outcome.
        if let Some(renewal) = under_way.get(key)
            && renewal.has_changed().is_ok()
        {
            return (renewal.clone(), false);
        }
        let (outcome, renewal) = watch::channel(None);
        under_way.insert(key.clone(), renewal.clone());
        let (logins, key) = (self.clone(), key.clone());
        let (refused, means) = (refused.cloned(), means.clone());
        let task = self.state.detached.start(async move {
            let renewed = logins.in_turn(&key, refused.as_ref(), &means).await;
            // First: later callers read what was saved.
            logins.state.under_way.all().remove(&key);
            outcome.send_replace(Some(renewed));
        });
        drop(task);
        (renewal, true)
    }
}

fn lost(key: &VaultKey) -> RefreshError {
    RefreshError::Unavailable {
        server: key.server.clone(),
        source: Arc::new(TokenError::NotAsked(TaskLost.to_string())),
    }
}
