//! The session slot of one server: the place where requests enter, whichever session is open.
//!
//! Owns what is in it. Sending through it is `server_route.rs`; a session's end and its successor are
//! `connection.rs`.

use std::sync::Arc;

use tokio::sync::watch;
use toolway_types::ConnectionState;

use crate::connection::open_session::OpenSession;

/// What is in the slot.
#[derive(Clone)]
pub(super) enum SlotState {
    /// Nowhere yet: a connection is being made.
    Waiting,
    /// To this session.
    Open(Arc<OpenSession>),
    /// Nowhere, until the state changes.
    Shut(ConnectionState),
}

/// One server's session slot. It outlives sessions, connections and definitions.
pub(crate) struct SessionSlot {
    state: watch::Sender<SlotState>,
}

impl SessionSlot {
    /// The slot of a server that is being connected.
    pub(crate) fn new() -> Self {
        Self {
            state: watch::Sender::new(SlotState::Waiting),
        }
    }

    /// Calls wait here from now on.
    pub(crate) fn hold(&self) {
        self.state.send_replace(SlotState::Waiting);
    }

    /// Calls go to this session from now on.
    pub(crate) fn open(&self, open_session: &Arc<OpenSession>) {
        self.state
            .send_replace(SlotState::Open(Arc::clone(open_session)));
    }

    /// Calls are turned away from now on.
    pub(crate) fn shut(&self, state: &ConnectionState) {
        self.state.send_replace(SlotState::Shut(state.clone()));
    }

    /// Where requests come in.
    pub(super) fn entrance(&self) -> watch::Receiver<SlotState> {
        self.state.subscribe()
    }
}
