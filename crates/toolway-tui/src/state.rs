//! What the screen is drawn from: one row per server, already cleaned.

use std::time::Duration;

use tokio::time::Instant;
use toolway::Counts;
use toolway_types::Untrusted;
use toolway_types::text::is_hidden;

/// The whole state of the view.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewState {
    /// In the order of the snapshot.
    pub(crate) rows: Vec<LiveServer>,
    /// Counts up, to turn the spinner.
    pub(crate) ticks: usize,
    /// Nothing more will change.
    pub(crate) ended: bool,
}

impl ViewState {
    /// Whether no server is still connecting.
    pub(crate) fn is_settled(&self) -> bool {
        self.ended
            || !self
                .rows
                .iter()
                .any(|row| matches!(row.status, RowStatus::Pending { .. }))
    }
}

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LiveServer {
    /// Its name, safe to show.
    pub(crate) name: String,
    /// Where it stands.
    pub(crate) status: RowStatus,
    /// When it began to connect.
    pub(crate) since: Instant,
    /// How long that took, once it is over.
    pub(crate) took: Option<Duration>,
}

impl LiveServer {
    /// How long it connects, or took to.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        self.took
            .unwrap_or_else(|| now.saturating_duration_since(self.since))
    }
}

/// A connection's state, as far as this view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowStatus {
    /// A handshake is under way.
    Pending {
        /// The attempt, counted from 1.
        attempt: u32,
        /// Why the attempt before this one failed, safe to show.
        trouble: Option<String>,
    },
    /// The handshake is done.
    Connected {
        /// How much it offers, once that is listed.
        counts: Option<Counts>,
    },
    /// It could not be reached.
    Failed {
        /// Why, safe to show.
        reason: String,
    },
    /// It wants a login first.
    NeedsAuth {
        /// Whether one is there that does not reach far enough.
        further: bool,
    },
    /// It must not connect.
    Disabled {
        /// Why, safe to show.
        reason: String,
    },
}

/// Text on one line without anything that steers the terminal. Messages quote servers, so
/// everything shown goes through here.
pub(crate) fn clean(text: &str) -> String {
    let shown = Untrusted::new(text).to_string();
    let plain: String = shown
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_hidden(*c))
        .collect();
    plain.trim().to_owned()
}
