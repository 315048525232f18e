//! What the HTTP front has done and has in hand, as plain numbers.
//!
//! Owns the counters and their text for Prometheus. They are read and written without a lock, and
//! nothing is decided by them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers. Those that can fall are of what is there now; all others only grow.
#[derive(Debug, Default)]
pub struct FrontCounters {
    /// Connections that are open.
    pub open_connections: AtomicU64,
    /// Connections that were accepted.
    pub connections: AtomicU64,
    /// Connections that gave way to others.
    pub evicted_connections: AtomicU64,
    /// Requests over HTTP that came in, of every kind.
    pub requests: AtomicU64,
    /// Requests that the guard, a limit or the form of their message kept out.
    pub refused: AtomicU64,
    /// Requests that showed no token, or none that is taken.
    pub unauthorized: AtomicU64,
    /// Requests of one principal too many.
    pub limited: AtomicU64,
    /// Calls that are being answered.
    pub open_calls: AtomicU64,
    /// Event streams that are open.
    pub open_streams: AtomicU64,
    /// Event streams that were opened.
    pub streams: AtomicU64,
    /// Sessions that are open.
    pub open_sessions: AtomicU64,
    /// Sessions that were opened.
    pub sessions: AtomicU64,
    /// Sessions that ended because nobody used them, or to make room.
    pub expired_sessions: AtomicU64,
    /// Bytes that came in.
    pub received_bytes: AtomicU64,
    /// Bytes that went out.
    pub sent_bytes: AtomicU64,
}

/// One more, or one less, of something.
pub(super) trait Counter {
    fn up(&self);
    fn down(&self);
    fn add(&self, count: usize);
}

impl Counter for AtomicU64 {
    fn up(&self) {
        self.fetch_add(1, Ordering::Relaxed);
    }

    fn down(&self) {
        self.fetch_sub(1, Ordering::Relaxed);
    }

    fn add(&self, count: usize) {
        self.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl FrontCounters {
    /// Appends the numbers as Prometheus reads them.
    pub fn write_metrics(&self, out: &mut String) {
        for (name, kind, help, counter) in self.table() {
            let value = counter.load(Ordering::Relaxed);
            // Writing to a string does not fail.
            _ = write!(
                out,
                "# HELP toolway_http_{name} {help}\n# TYPE toolway_http_{name} {kind}\n\
                 toolway_http_{name} {value}\n"
            );
        }
    }

    fn table(&self) -> [(&'static str, &'static str, &'static str, &AtomicU64); 15] {
        [
            (
                "connections",
                "gauge",
                "Open connections.",
                &self.open_connections,
            ),
            (
                "connections_total",
                "counter",
                "Accepted connections.",
                &self.connections,
            ),
            (
                "connections_evicted_total",
                "counter",
                "Idle connections that gave way to others.",
                &self.evicted_connections,
            ),
            (
                "requests_total",
                "counter",
                "HTTP requests of every kind.",
                &self.requests,
            ),
            (
                "refused_total",
                "counter",
                "HTTP requests that were not let in.",
                &self.refused,
            ),
            (
                "unauthorized_total",
                "counter",
                "HTTP requests without a token that is taken.",
                &self.unauthorized,
            ),
            (
                "limited_total",
                "counter",
                "HTTP requests over the limits of their principal.",
                &self.limited,
            ),
            (
                "calls",
                "gauge",
                "Requests that are being answered.",
                &self.open_calls,
            ),
            (
                "streams",
                "gauge",
                "Open event streams.",
                &self.open_streams,
            ),
            (
                "streams_total",
                "counter",
                "Event streams that were opened.",
                &self.streams,
            ),
            ("sessions", "gauge", "Open sessions.", &self.open_sessions),
            (
                "sessions_total",
                "counter",
                "Sessions that were opened.",
                &self.sessions,
            ),
            (
                "sessions_expired_total",
                "counter",
                "Sessions that ended without being asked to.",
                &self.expired_sessions,
            ),
            (
                "received_bytes_total",
                "counter",
                "Bytes received.",
                &self.received_bytes,
            ),
            (
                "sent_bytes_total",
                "counter",
                "Bytes sent.",
                &self.sent_bytes,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        let counters = FrontCounters::default();
        counters.requests.add(3);
        counters.open_calls.up();
        counters.open_calls.up();
        counters.open_calls.down();
        let mut text = String::new();
        counters.write_metrics(&mut text);
        assert!(text.contains("# TYPE toolway_http_requests_total counter\n"));
        assert!(text.contains("\ntoolway_http_requests_total 3\n"));
        assert!(text.contains("\ntoolway_http_calls 1\n"));
    }
}
