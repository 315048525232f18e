//! Servers that are not there when their tools are listed.
//!
//! Owns what is said of them: an error where one was asked for, a warning where all were.

use std::time::Duration;

use toolway::HostSnapshot;
use toolway_types::ConnectionState;
use toolway_types::name::as_word;

use crate::connect::Typed;
use crate::context::Context;
use crate::report::Report;

/// Asked for one server: its failure is the command's failure.
pub(crate) fn require_connected(
    snapshot: &HostSnapshot,
    name: &str,
    typed: Option<&Typed>,
) -> Result<(), Report> {
    match snapshot.server(name).map(|server| &server.state) {
        Some(ConnectionState::Connected(_)) => Ok(()),
        Some(state) => {
            Err(Report::unavailable(name, state)
                .better_hint(typed.and_then(|typed| typed.hint(state))))
        }
        None => {
            let hint = format!("see why with `toolway explain {}`", as_word(name));
            Err(Report::configuration(format!("server `{name}` is not in the plan")).hint(hint))
        }
    }
}

/// Asked for all: those that are missing are named, and the rest is shown.
pub(crate) fn say_missing(context: &Context, snapshot: &HostSnapshot) {
    for server in &snapshot.servers {
        if let ConnectionState::Failed(_) | ConnectionState::NeedsAuth { .. } = &server.state {
            let report = Report::unavailable(server.name.as_str(), &server.state);
            context.warn_of(&context.advised(report));
        }
    }
}

/// Asked for one server: that it is late is the command's failure.
pub(super) fn require_in_time(
    snapshot: &HostSnapshot,
    name: &str,
    limit: Option<Duration>,
) -> Result<(), Report> {
    let server = snapshot.server(name).filter(|server| server.is_pending());
    match (server, limit) {
        (Some(_), Some(limit)) => Err(Report::late(name, limit)),
        _ => Ok(()),
    }
}

/// Names those that are late.
pub(super) fn say_late(context: &Context, snapshot: &HostSnapshot, limit: Option<Duration>) {
    let Some(limit) = limit else {
        return;
    };
    for server in snapshot.servers.iter().filter(|server| server.is_pending()) {
        context.warn_of(&Report::late(server.name.as_str(), limit));
    }
}
