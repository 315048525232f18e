//! The numbers of a plan that concern connecting.
//!
//! Owns how many servers connect at a time, and how long each may take. How much longer a package
//! runner may take by default is `server_source/patience.rs`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use toolway_config::RunLimits;

use crate::server_source::{ConnectGroup, ServerSource};

/// How many connect at a time, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct ConnectLimits {
    /// The longest that opening, greeting and listing may take together, where configured.
    chosen: Option<Duration>,
    /// How long the answer to an HTTP request may take to begin, where configured.
    request: Option<Duration>,
    local: Arc<Semaphore>,
    remote: Arc<Semaphore>,
}

impl ConnectLimits {
    pub(crate) fn new(limits: &RunLimits) -> Self {
        Self {
            chosen: limits.connect_timeout,
            request: limits.request_timeout,
            local: slots(limits.local_batch),
            remote: slots(limits.remote_batch),
        }
    }

    /// The longest that opening, greeting and listing may take together, for most servers.
    pub(super) fn usual(&self) -> Duration {
        self.chosen.unwrap_or(RunLimits::USUAL_CONNECT)
    }

    /// The same for this attempt at a server, counted from 1. A configured limit is used as it is.
    pub(super) fn of_attempt(&self, source: &ServerSource, number: u32) -> Duration {
        let usual = || source.patience(RunLimits::USUAL_CONNECT, number);
        self.chosen.unwrap_or_else(usual)
    }

    /// How long the answer to an HTTP request may take to begin, where configured.
    pub(super) fn of_request(&self, source: &ServerSource) -> Option<Duration> {
        source.request_timeout().or(self.request)
    }

    /// The slots for connecting to such servers.
    pub(super) fn slots(&self, group: ConnectGroup) -> &Semaphore {
        match group {
            ConnectGroup::Local => &self.local,
            ConnectGroup::Remote => &self.remote,
        }
    }
}

/// As many slots as a semaphore can have: with none no server would ever connect.
fn slots(wanted: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(wanted.clamp(1, Semaphore::MAX_PERMITS)))
}
