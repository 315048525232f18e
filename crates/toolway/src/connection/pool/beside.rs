//! Claims that end with another one: of instances that callers have for themselves.
//!
//! Owns which there are, and that they end together. What an instance is for is `instance.rs`'s.

use std::sync::{Arc, Mutex, Weak};

use super::{ConnectionClaim, LeavingConnection, RetryMode};
use crate::lock::lock;

/// Claims of other instances of the same server, which end with this one.
#[derive(Default)]
pub(crate) struct ClaimsBeside(Mutex<ClaimList>);

#[derive(Default)]
struct ClaimList {
    claims: Vec<Weak<HeldClaim>>,
    has_ended: bool,
}

/// A claim that can be taken from whoever holds it.
pub(crate) struct HeldClaim(Mutex<Option<ConnectionClaim>>);

impl ClaimsBeside {
    /// Has this claim end with the other; false where that has ended.
    pub(in crate::connection) fn add(&self, claim: &Arc<HeldClaim>) -> bool {
        let mut list = lock(&self.0);
        list.claims.retain(|claim| claim.strong_count() > 0);
        if !list.has_ended {
            list.claims.push(Arc::downgrade(claim));
        }
        !list.has_ended
    }

    /// Whether one of them is held.
    pub(crate) fn is_held(&self) -> bool {
        let list = lock(&self.0);
        let mut held = list.claims.iter().filter_map(Weak::upgrade);
        held.any(|claim| !claim.is_over())
    }

    /// Ends them without waiting for calls in flight.
    pub(crate) fn stop(&self) {
        self.end(LeavingConnection::stop);
    }

    pub(super) fn end(&self, how: impl Fn(&LeavingConnection)) {
        let claims = {
            let mut list = lock(&self.0);
            list.has_ended = true;
            std::mem::take(&mut list.claims)
        };
        let held = claims.iter().filter_map(Weak::upgrade);
        for claim in held.filter_map(|held| held.take()) {
            let pool = claim.pool.clone();
            let left = claim.release();
            left.iter().for_each(&how);
            pool.see_off(left);
        }
    }
}

impl HeldClaim {
    pub(in crate::connection) fn new(claim: ConnectionClaim) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(claim))))
    }

    /// Whether it was taken.
    pub(in crate::connection) fn is_over(&self) -> bool {
        lock(&self.0).is_none()
    }

    /// Orders its connection to connect anew.
    pub(in crate::connection) fn reconnect(&self, tries: RetryMode) {
        if let Some(claim) = &*lock(&self.0) {
            claim.reconnect(tries);
        }
    }

    pub(in crate::connection) fn take(&self) -> Option<ConnectionClaim> {
        lock(&self.0).take()
    }
}
