//! One server's rest: whether it rests, how long it may go unused, and since when nobody uses it.
//!
//! Owns what is known of that, and what using a server means. The orders are `supervisor/rest.rs`'s.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolway_config::ServerIdle;
use toolway_types::{ConnectionState, ServerFacts};

use super::ManagedServer;
use crate::call::ServerLogs;
use crate::server_use::{ServerUse, UseReading};
use crate::snapshot::ServerRest;

/// The rest of one server.
pub(in crate::supervisor) struct MemberRest {
    /// What its entry says.
    pub(in crate::supervisor) idle: Option<ServerIdle>,
    /// What is known of it, while it rests.
    pub(in crate::supervisor) resting: Option<ServerRest>,
    /// Who listens to its log: they hear it again when it is awake.
    pub(in crate::supervisor) logs: ServerLogs,
    /// Its use since it last rested. The ways of before have another one, which lets nobody in.
    usage: Arc<ServerUse>,
    /// How that was at the last look.
    seen: UseReading,
    /// Since when it is not used, as far as was looked.
    unused_since: Instant,
}

impl MemberRest {
    pub(super) fn new(idle: Option<ServerIdle>) -> Self {
        Self {
            idle,
            resting: None,
            logs: ServerLogs::default(),
            usage: Arc::default(),
            seen: UseReading::default(),
            unused_since: Instant::now(),
        }
    }

    /// What counts its requests.
    pub(super) fn usage(&self) -> &Arc<ServerUse> {
        &self.usage
    }

    /// It is wanted, from now on at least for as long as it may go unused.
    pub(in crate::supervisor) fn note_wanted(&mut self) {
        self.unused_since = Instant::now();
    }

    /// It rests no more.
    pub(in crate::supervisor) fn end(&mut self) {
        if self.resting.take().is_some() {
            self.usage = Arc::default();
            self.seen = UseReading::default();
        }
        self.note_wanted();
    }
}

impl ManagedServer {
    /// Whether it rests.
    pub(in crate::supervisor) fn is_resting(&self) -> bool {
        self.rest.resting.is_some()
    }

    /// How long it may go unused, where others may for so long; for ever when absent.
    pub(in crate::supervisor) fn may_idle(&self, usual: Option<Duration>) -> Option<Duration> {
        let usual = usual?;
        // What an editor says comes unasked.
        let is_editor = self.source.as_ref()?.is_editor();
        match self.rest.idle {
            _ if is_editor => None,
            None => Some(usual),
            Some(ServerIdle::After(limit)) => Some(limit),
            Some(ServerIdle::Never) => None,
        }
    }

    /// Whether it has gone unused for as long as it may. Then its ways let nobody in any more.
    pub(in crate::supervisor) fn stops_serving(&mut self, usual: Option<Duration>) -> bool {
        let Some(limit) = self.may_idle(usual) else {
            return false;
        };
        let is_connected = matches!(self.shown.state, ConnectionState::Connected(_));
        let Some(claim) = self.claim.as_ref().filter(|_| is_connected) else {
            return false;
        };
        let (now, seen) = (Instant::now(), self.rest.usage.read());
        let is_used = seen != self.rest.seen
            || seen.is_busy()
            || self.rest.usage.has_tasks(now)
            || !claim.interests().is_empty()
            || claim.beside().is_held();
        self.rest.seen = seen;
        if is_used {
            self.rest.unused_since = now;
            return false;
        }
        let unused = now.saturating_duration_since(self.rest.unused_since);
        unused >= limit && self.rest.usage.rest(seen)
    }

    /// Has it rest with what it last listed: nothing that was on offer goes.
    pub(in crate::supervisor) fn lie_down(&mut self) {
        let facts = match &self.shown.state {
            ConnectionState::Connected(facts) => Some(facts.clone()),
            _ => None,
        };
        self.open_session = None;
        self.is_recalled = true;
        self.stood = false;
        self.trouble = None;
        self.is_touched = true;
        self.rest.resting = Some(ServerRest { facts });
    }

    /// What it said of itself, as far as that counts for what it offers.
    pub(super) fn offering_facts(&self) -> Option<&ServerFacts> {
        match (&self.shown.state, &self.rest.resting) {
            (ConnectionState::Connected(facts), _) => Some(facts),
            (_, Some(rest)) => rest.facts.as_deref(),
            _ => None,
        }
    }

    /// Its rest as it is shown.
    pub(super) fn outward_rest(&self) -> Option<ServerRest> {
        let mut rest = self.rest.resting.clone()?;
        if let Some(facts) = rest.facts.as_deref_mut()
            && self.curation.instructions_dropped.is_some()
        {
            facts.instructions = None;
        }
        Some(rest)
    }
}
