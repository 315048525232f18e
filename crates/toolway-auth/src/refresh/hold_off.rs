//! Pausing requests to an authorization server after it failed (REL-27).
//!
//! Owns how long a login's token endpoint is not asked again by this process: not by another
//! connection, and not by a retry. A login that changed meanwhile is exempt, and so is one that
//! still works.
//! Does not own: what a failure means (`refresh.rs`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolway_types::Secret;

use super::{RefreshError, RenewedLogins, still_good};
use crate::logins::Login;
use crate::token::{TokenError, Tokens};
use crate::vault::VaultKey;

/// How long a renewal that failed is not tried again where the authorization server names no
/// time: requests that ran at once share one failure.
pub const DEFAULT_HOLD_OFF: Duration = Duration::from_millis(500);

/// The longest wait that an authorization server is granted.
pub const LONGEST_WAIT: Duration = Duration::from_mins(15);

/// The logins that are not renewed for a while.
#[derive(Default)]
pub(super) struct HoldOffs(Mutex<HashMap<VaultKey, HoldOff>>);

impl HoldOffs {
    fn all(&self) -> MutexGuard<'_, HashMap<VaultKey, HoldOff>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A renewal that may work later.
struct HoldOff {
    /// What was to be renewed.
    tokens: Tokens,
    until: Instant,
    error: Arc<TokenError>,
}

impl RenewedLogins {
    /// Makes all callers wait.
    pub(super) fn hold_off(&self, login: &Login, error: &Arc<TokenError>) {
        let wait = match &**error {
            // No server was asked, so none needs a pause.
            TokenError::NotAsked(_) | TokenError::Assertion(_) | TokenError::Proof(_) => return,
            TokenError::Busy {
                retry_after: Some(after),
            } => (*after).clamp(DEFAULT_HOLD_OFF, LONGEST_WAIT),
            _ => DEFAULT_HOLD_OFF,
        };
        let hold_off = HoldOff {
            tokens: login.tokens.clone(),
            until: Instant::now() + wait,
            error: Arc::clone(error),
        };
        self.state.hold_offs.all().insert(login.key(), hold_off);
    }

    /// What a caller gets during the hold-off; `None` when the server may be asked.
    pub(super) fn held_off(
        &self,
        login: &Login,
        refused: Option<&Secret>,
    ) -> Option<Result<Login, RefreshError>> {
        let key = login.key();
        let mut hold_offs = self.state.hold_offs.all();
        let hold_off = hold_offs.get(&key)?;
        let left = hold_off.until.saturating_duration_since(Instant::now());
        if left.is_zero() || hold_off.tokens != login.tokens {
            hold_offs.remove(&key);
            return None;
        }
        if still_good(login, refused) {
            return Some(Ok(login.clone()));
        }
        let source = match &*hold_off.error {
            TokenError::Busy {
                retry_after: Some(_),
            } => {
                let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
                Arc::new(TokenError::Busy {
                    retry_after: Some(Duration::from_secs(seconds)),
                })
            }
            _ => Arc::clone(&hold_off.error),
        };
        Some(Err(RefreshError::Unavailable {
            server: login.server.clone(),
            source,
        }))
    }
}
