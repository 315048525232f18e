//! What makes a legacy HTTP conversation one session: its id, its version, its GET stream.
//!
//! Owns `Mcp-Session-Id` from the answer that sets it to the DELETE that ends it. The modern era
//! has none of this.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue};
use toolway_wire::headers::{METHOD, PROTOCOL_VERSION, SESSION_ID};

use crate::channel::OutgoingMessage;

/// The session's state, shared by the requests in flight. A cheap handle.
#[derive(Debug, Clone, Default)]
pub(super) struct HttpSession(Arc<Mutex<HttpSessionState>>);

#[derive(Debug, Default)]
struct HttpSessionState {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// A request of the legacy era has been answered.
    is_up: bool,
}

/// Which rules a message follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageRules {
    /// Sessions, GET, resumption.
    Legacy,
    /// One POST, one answer.
    Modern,
}

impl MessageRules {
    /// Only modern messages name their method in a header.
    pub(super) fn of(outgoing: &OutgoingMessage) -> Self {
        if outgoing.headers.iter().any(|(name, _)| *name == METHOD) {
            MessageRules::Modern
        } else {
            MessageRules::Legacy
        }
    }
}

impl HttpSession {
    fn state(&self) -> MutexGuard<'_, HttpSessionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the session has to say to a legacy request.
    pub(super) fn stamp(&self, headers: &mut HeaderMap) {
        let state = self.state();
        if let Some(id) = &state.id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = &state.version
            && !headers.contains_key(PROTOCOL_VERSION)
        {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
    }

    /// Remembers the version the session layer has settled on, for requests it does not write.
    pub(super) fn note_sent(&self, headers: &HeaderMap) {
        if let Some(version) = headers.get(PROTOCOL_VERSION) {
            self.state().version = Some(version.clone());
        }
    }

    /// Remembers the id a server has given.
    pub(super) fn note_answer(&self, headers: &HeaderMap) {
        let mut state = self.state();
        state.is_up = true;
        if let Some(id) = headers.get(SESSION_ID) {
            let mut id = id.clone();
            id.set_sensitive(true);
            state.id = Some(id);
        }
    }

    /// The server does not know the session any more.
    pub(super) fn forget(&self) {
        self.state().id = None;
    }

    /// Whether the server has given an id.
    pub(super) fn has_id(&self) -> bool {
        self.state().id.is_some()
    }

    /// Whether a legacy request has been answered.
    pub(super) fn is_up(&self) -> bool {
        self.state().is_up
    }
}
