//! The events of the view, and how each changes the state. Pure: time comes in as a value.

use std::sync::Arc;

use tokio::time::Instant;
use toolway::{HostSnapshot, ServerSnapshot};
use toolway_types::ConnectionState;

use crate::state::{LiveServer, RowStatus, ViewState, clean};

/// One event.
#[derive(Debug, Clone)]
pub(crate) enum ViewEvent {
    /// The host published a new snapshot.
    Snapshot(Arc<HostSnapshot>),
    /// Time has passed.
    Tick,
    /// The host is gone.
    Ended,
}

/// Folds one event into the state.
pub(crate) fn update(state: &mut ViewState, event: &ViewEvent, now: Instant) {
    match event {
        ViewEvent::Snapshot(snapshot) => state.rows = rows(&state.rows, snapshot, now),
        ViewEvent::Tick => state.ticks += 1,
        ViewEvent::Ended => state.ended = true,
    }
}

fn rows(old: &[LiveServer], snapshot: &HostSnapshot, now: Instant) -> Vec<LiveServer> {
    snapshot
        .servers
        .iter()
        .map(|server| {
            let name = clean(server.name.as_str());
            let before = old.iter().find(|row| row.name == name);
            row(name, before, status(server), now)
        })
        .collect()
}

fn row(name: String, before: Option<&LiveServer>, status: RowStatus, now: Instant) -> LiveServer {
    let was_pending = before.is_none_or(|row| row.took.is_none());
    let (since, took) = match (&status, before) {
        // The clock of a further attempt runs on; one after a success starts again.
        (RowStatus::Pending { .. }, Some(row)) if was_pending => (row.since, None),
        (RowStatus::Pending { .. }, _) => (now, None),
        (_, Some(row)) => (row.since, Some(row.elapsed(now))),
        (_, None) => (now, Some(std::time::Duration::ZERO)),
    };
    LiveServer {
        name,
        status,
        since,
        took,
    }
}

fn status(server: &ServerSnapshot) -> RowStatus {
    match &server.state {
        ConnectionState::Pending { attempt } => RowStatus::Pending {
            attempt: *attempt,
            trouble: server.warnings.last().map(|trouble| clean(trouble)),
        },
        ConnectionState::Connected(_) => RowStatus::Connected {
            counts: server.counts,
        },
        ConnectionState::Failed(failure) => RowStatus::Failed {
            reason: clean(&failure.message),
        },
        ConnectionState::NeedsAuth { unnamed_scopes, .. } => RowStatus::NeedsAuth {
            further: *unnamed_scopes,
        },
        ConnectionState::Disabled { reason } => {
            // The plan's own words are the more exact ones.
            let reason = clean(server.reason.as_deref().unwrap_or(reason));
            // A broken entry is a failure, as it is in the table of `list`.
            if server.verdict_word == "invalid" {
                RowStatus::Failed { reason }
            } else {
                RowStatus::Disabled { reason }
            }
        }
    }
}
