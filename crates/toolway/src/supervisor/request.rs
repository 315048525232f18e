//! What is asked of the supervisor.
//!
//! Owns the shapes of requests, and when one has been overtaken. Does not own carrying them out.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use toolway_types::{ConnectionState, ServerName};

use super::Member;
use crate::account::AccountChange;
use crate::event::{Changes, UnknownServer};
use crate::snapshot::Settings;

/// What the host asks of the supervisor.
pub(crate) enum Request {
    /// End what is there and connect anew.
    Reconnect {
        server: String,
        unless: Unless,
        done: oneshot::Sender<Result<(), UnknownServer>>,
    },
    /// Somebody wants to call a server that failed.
    Revive {
        server: String,
        done: oneshot::Sender<()>,
    },
    /// A new plan takes over.
    Apply {
        members: BTreeMap<ServerName, Member>,
        settings: Arc<Settings>,
        anew: Anew,
        done: oneshot::Sender<Changes>,
    },
}

/// What makes an order to connect anew stale by the time that it is heard. A connection that stands
/// must not be ended, with the calls on it, by what was true before it stood.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unless {
    /// Nothing: somebody asked for it.
    Never,
    /// Another order, or another connection, since this epoch.
    Later(u64),
    /// The server does not wait for a login any more.
    LoggedIn,
}

impl Unless {
    /// Whether it does, for this server as it is now.
    pub(super) fn holds(self, member: &Member) -> bool {
        match self {
            Self::Never => false,
            Self::Later(epoch) => member.epoch != epoch,
            Self::LoggedIn => !matches!(member.shown.state, ConnectionState::NeedsAuth { .. }),
        }
    }
}

/// What connections rest on and a new plan changes, beside their definitions.
#[derive(Debug, Default)]
pub(crate) struct Anew {
    /// Whether another organisation vouches for the person.
    pub organisation: bool,
    /// The account whose connectors are servers too.
    pub account: AccountChange,
}
