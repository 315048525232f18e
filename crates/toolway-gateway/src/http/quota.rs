//! How much one principal has under way: calls, event streams, sessions.
//!
//! Owns counting them and saying when it is enough, so that one client cannot take the room of all
//! others. What is told to who has too much is for the routes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::counters::{Counter as _, FrontCounters};

/// What a principal can have several of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counted {
    Call,
    Stream,
    Session,
}

/// What each principal has.
#[derive(Debug)]
pub(super) struct Quotas {
    loads: Mutex<HashMap<Arc<str>, Arc<PrincipalLoad>>>,
    counters: Arc<FrontCounters>,
}

/// What one principal has.
#[derive(Debug)]
pub(super) struct PrincipalLoad {
    calls: AtomicUsize,
    streams: AtomicUsize,
    sessions: AtomicUsize,
    counters: Arc<FrontCounters>,
}

/// One of what a principal has; given back when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    load: Arc<PrincipalLoad>,
    what: Counted,
}

impl Quotas {
    pub(super) fn new(counters: Arc<FrontCounters>) -> Self {
        Self {
            loads: Mutex::default(),
            counters,
        }
    }

    /// What this principal has.
    pub(super) fn of(&self, principal: &Arc<str>) -> Arc<PrincipalLoad> {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = loads.get(principal) {
            return Arc::clone(load);
        }
        let load = Arc::new(PrincipalLoad {
            calls: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            counters: Arc::clone(&self.counters),
        });
        loads.insert(Arc::clone(principal), Arc::clone(&load));
        load
    }

    /// Forgets principals that have nothing.
    pub(super) fn sweep(&self) {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        // Each permit holds one.
        loads.retain(|_, load| Arc::strong_count(load) > 1);
    }
}

impl PrincipalLoad {
    /// One more, unless there are as many as there may be.
    pub(super) fn take(self: &Arc<Self>, what: Counted, limit: usize) -> Option<Permit> {
        let more = |count: usize| (count < limit).then_some(count + 1);
        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
        let taken = self.count(what).fetch_update(done, seen, more);
        if taken.is_err() {
            return None;
        }
        self.gauge(what).up();
        Some(Permit {
            load: Arc::clone(self),
            what,
        })
    }

    /// Whether there could be one more.
    pub(super) fn has_room(&self, what: Counted, limit: usize) -> bool {
        self.count(what).load(Ordering::Acquire) < limit
    }

    fn count(&self, what: Counted) -> &AtomicUsize {
        match what {
            Counted::Call => &self.calls,
            Counted::Stream => &self.streams,
            Counted::Session => &self.sessions,
        }
    }

    fn gauge(&self, what: Counted) -> &AtomicU64 {
        match what {
            Counted::Call => &self.counters.open_calls,
            Counted::Stream => &self.counters.open_streams,
            Counted::Session => &self.counters.open_sessions,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.load.count(self.what).fetch_sub(1, Ordering::AcqRel);
        self.load.gauge(self.what).down();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_principal_has_its_own_room_and_is_forgotten_without_any() {
        let counters = Arc::new(FrontCounters::default());
        let quotas = Quotas::new(Arc::clone(&counters));
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let first = quotas.of(&one).take(Counted::Stream, 2).unwrap();
        let second = quotas.of(&one).take(Counted::Stream, 2).unwrap();
        assert!(quotas.of(&one).take(Counted::Stream, 2).is_none());
        assert!(!quotas.of(&one).has_room(Counted::Stream, 2));
        assert!(quotas.of(&one).take(Counted::Call, 1).is_some());
        let third = quotas.of(&other).take(Counted::Stream, 2).unwrap();
        assert_eq!(counters.open_streams.load(Ordering::SeqCst), 3);
        assert_eq!(counters.open_calls.load(Ordering::SeqCst), 0);
        drop((first, third));
        quotas.sweep();
        assert_eq!(quotas.loads.lock().unwrap().len(), 1);
        assert!(quotas.of(&one).has_room(Counted::Stream, 2));
        drop(second);
        quotas.sweep();
        assert!(quotas.loads.lock().unwrap().is_empty());
    }
}
