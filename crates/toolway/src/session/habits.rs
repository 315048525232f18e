//! What a server was seen to ask on a connection that callers share.
//!
//! Owns the two facts that decide whether callers can go on sharing it (`connection/instance.rs`).
//! They outlive sessions.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a server was seen to ask.
#[derive(Debug, Default)]
pub(crate) struct ServerHabits {
    asks_unclearly: AtomicBool,
    asks_for_roots: AtomicBool,
    /// Whether it was told the roots of a caller that is not the connection's own.
    has_others_roots: AtomicBool,
}

impl ServerHabits {
    /// It asked something while requests of several callers were under way, and nothing said which
    /// of them it belongs to.
    pub(crate) fn note_unclear_question(&self, server: &toolway_types::ServerName) {
        if !self.asks_unclearly.swap(true, Ordering::Relaxed) {
            tracing::info!(%server, "asks its callers: each gets an instance of its own from now on");
        }
    }

    /// It asked for roots in a request of its own, and may keep what it was told.
    pub(crate) fn note_asked_for_roots(&self) {
        self.asks_for_roots.store(true, Ordering::Relaxed);
    }

    /// It was told the roots of another caller than the connection's own.
    pub(crate) fn note_others_roots(&self) {
        self.has_others_roots.store(true, Ordering::Relaxed);
    }

    /// Whether it was; it must hear that this is over.
    pub(crate) fn take_others_roots(&self) -> bool {
        self.has_others_roots.load(Ordering::Relaxed)
            && self.has_others_roots.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn asks_unclearly(&self) -> bool {
        self.asks_unclearly.load(Ordering::Relaxed)
    }

    pub(crate) fn asks_for_roots(&self) -> bool {
        self.asks_for_roots.load(Ordering::Relaxed)
    }
}
