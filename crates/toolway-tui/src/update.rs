//! How a happening changes the state. Pure: time comes in as a value.

use tokio::time::Instant;
use toolway::{HostSnapshot, ServerSnapshot};
use toolway_types::ConnectionState;

use crate::app::{App, Row, Status, clean};
use crate::event::Event;

/// Folds one event into the state.
pub(crate) fn update(app: &mut App, event: &Event, now: Instant) {
    match event {
        Event::Snapshot(snapshot) => app.rows = rows(&app.rows, snapshot, now),
        Event::Tick => app.ticks += 1,
        Event::Ended => app.ended = true,
    }
}

fn rows(old: &[Row], snapshot: &HostSnapshot, now: Instant) -> Vec<Row> {
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

fn row(name: String, before: Option<&Row>, status: Status, now: Instant) -> Row {
    let was_pending = before.is_none_or(|row| row.took.is_none());
    let (since, took) = match (&status, before) {
        // The clock of a further attempt runs on; one after a success starts anew.
        (Status::Pending { .. }, Some(row)) if was_pending => (row.since, None),
        (Status::Pending { .. }, _) => (now, None),
        (_, Some(row)) => (row.since, Some(row.elapsed(now))),
        (_, None) => (now, Some(std::time::Duration::ZERO)),
    };
    Row {
        name,
        status,
        since,
        took,
    }
}

fn status(server: &ServerSnapshot) -> Status {
    match &server.state {
        ConnectionState::Pending { attempt } => Status::Pending {
            attempt: *attempt,
            trouble: server.warnings.last().map(|trouble| clean(trouble)),
        },
        ConnectionState::Connected(_) => Status::Connected {
            counts: server.counts,
        },
        ConnectionState::Failed(failure) => Status::Failed {
            reason: clean(&failure.message),
        },
        ConnectionState::NeedsAuth { unnamed_scopes, .. } => Status::NeedsAuth {
            further: *unnamed_scopes,
        },
        ConnectionState::Disabled { reason } => {
            // The plan's own words are the more exact ones.
            let reason = clean(server.reason.as_deref().unwrap_or(reason));
            // A broken entry is a failure, as it is in the table of `list`.
            if server.verdict_word == "invalid" {
                Status::Failed { reason }
            } else {
                Status::Disabled { reason }
            }
        }
    }
}
