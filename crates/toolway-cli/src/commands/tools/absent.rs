//! Servers that are not there when their tools are listed.
//!
//! Owns what is said of them: an error where one was asked for, a warning where all were.

use std::time::Duration;

use toolway::HostSnapshot;
use toolway_types::ConnectionState;

use crate::connect::Typed;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Report;

/// Asked for one server: its failure is the command's failure.
pub(crate) fn require_connected(
    snapshot: &HostSnapshot,
    name: &str,
    typed: Option<&Typed>,
) -> Result<(), Report> {
    match snapshot
        .servers
        .iter()
        .find(|server| server.name.as_str() == name)
    {
        Some(server) => match &server.state {
            ConnectionState::Connected(_) => Ok(()),
            state => {
                let report = Report::unavailable(name, state);
                Err(match typed.and_then(|typed| typed.hint(state)) {
                    Some(hint) => report.hint(hint),
                    None => report,
                })
            }
        },
        None => Err(Report::new(
            Exit::Configuration,
            format!("server `{name}` is not in the plan"),
        )
        .hint(format!(
            "see why with `toolway explain {}`",
            toolway_types::name::as_word(name)
        ))),
    }
}

/// Asked for all: those that are missing are named, and the rest is shown.
pub(crate) fn say_missing(context: &Context, snapshot: &HostSnapshot) {
    for server in &snapshot.servers {
        match &server.state {
            ConnectionState::Failed(_) | ConnectionState::NeedsAuth { .. } => {
                let report = Report::unavailable(server.name.as_str(), &server.state);
                let report = context.advised(report);
                context.output.say(&format!("warning: {}", report.message));
                if let Some(hint) = report.hint {
                    context.output.say(&format!("hint: {hint}"));
                }
            }
            _ => {}
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
        let report = Report::late(server.name.as_str(), limit);
        context.output.say(&format!("warning: {}", report.message));
        if let Some(hint) = report.hint {
            context.output.say(&format!("hint: {hint}"));
        }
    }
}
