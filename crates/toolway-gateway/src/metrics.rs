//! What the gateway counts, for whoever watches it.
//!
//! Owns the counters and how calls are timed. A call costs a few relaxed atomics and two looks at
//! the clock: no lock, no allocation. Its page is written on demand in [`text`]. What holds at the
//! moment of a look (servers, sessions, clients, spans) is not kept here but handed in with it; bytes
//! and what was turned away are the front's to count (`http/counters.rs`).
//!
//! Nobody outside can make the page grow: labels are words of ours, and names of configured
//! servers, up to [`MAX_SERVERS`] of them; the rest is counted as [`OTHER`].

#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use toolway::{ListKind, QuestionCounts};
use toolway_rows::CallEnd;
use toolway_types::ServerName;

/// How many servers have counters of their own.
pub const MAX_SERVERS: usize = 256;
/// What servers beyond those are called.
pub const OTHER: &str = "other";
/// The content type of the page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The upper bounds of durations, in microseconds: from less than a pipe takes to a long wait.
const BOUNDS: [u64; 18] = [
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
];
/// With the one for all that is longer.
const BUCKETS: usize = BOUNDS.len() + 1;

/// What holds at the moment of a look, as the service knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GatewayGauges {
    /// Clients that are known now.
    pub clients: usize,
    /// Sessions of the legacy era, and pipes that speak it.
    pub legacy_sessions: usize,
    /// Conversations of the modern era.
    pub modern_sessions: usize,
    /// Calls that wait for their client to come back.
    pub parked_calls: usize,
    /// Questions that nobody has answered yet.
    pub open_questions: usize,
    /// Those that ended, since the start.
    pub ended_questions: QuestionCounts,
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    servers: RwLock<BTreeMap<Arc<str>, Arc<ServerMetrics>>>,
    list_changes: [AtomicU64; 3],
}

impl Metrics {
    /// Counters that stand at nothing.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            servers: RwLock::default(),
            list_changes: zeros(),
        })
    }

    /// The counters of a server. They stay the same, so look once and keep them: this takes a lock.
    pub fn server(&self, name: &ServerName) -> Arc<ServerMetrics> {
        let known = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = known.get(name.as_str()) {
            return Arc::clone(server);
        }
        drop(known);
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        // One place is kept for the rest.
        let is_full = servers.len() + 1 >= MAX_SERVERS && !servers.contains_key(name.as_str());
        let label = if is_full { OTHER } else { name.as_str() };
        Arc::clone(servers.entry(label.into()).or_default())
    }

    /// A list changed for some client.
    pub fn list_changed(&self, list: ListKind) {
        let place = match list {
            ListKind::Tools => 0,
            ListKind::Resources => 1,
            ListKind::Prompts => 2,
        };
        add(&self.list_changes, place, 1);
    }
}

/// What is counted for one server.
#[derive(Debug)]
pub struct ServerMetrics {
    begun: AtomicU64,
    /// By end and duration: one number more for each call.
    ended: [[AtomicU64; BUCKETS]; CallEnd::ALL.len()],
    microseconds: AtomicU64,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: std::array::from_fn(|_| zeros()),
            microseconds: AtomicU64::new(0),
        }
    }
}

impl ServerMetrics {
    /// A call begins.
    pub fn begin(self: &Arc<Self>) -> CallTimer {
        self.begun.fetch_add(1, Relaxed);
        CallTimer {
            server: Arc::clone(self),
            begun: Instant::now(),
            end: CallEnd::Cancelled,
        }
    }

    fn ended(&self, end: CallEnd, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < took);
        self.microseconds.fetch_add(took, Relaxed);
        if let Some(buckets) = self.ended.get(end as usize) {
            add(buckets, bucket, 1);
        }
    }
}

/// A call under way. Dropping it counts the call as cancelled.
#[derive(Debug)]
#[must_use = "dropping it counts the call as cancelled"]
pub struct CallTimer {
    server: Arc<ServerMetrics>,
    begun: Instant,
    end: CallEnd,
}

impl CallTimer {
    /// The call has ended.
    pub fn finish(mut self, end: CallEnd) {
        self.end = end;
    }
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        self.server.ended(self.end, self.begun.elapsed());
    }
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn add(counters: &[AtomicU64], place: usize, count: u64) {
    if let Some(counter) = counters.get(place) {
        counter.fetch_add(count, Relaxed);
    }
}
