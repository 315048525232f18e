//! What `list --watch` prints where there is no terminal: one line for each change.
//!
//! Owns the line for people; the JSON one is `toolway_rows`', and what is told `toolway::rows`'.

use std::fmt::Write as _;
use std::time::SystemTime;

use tokio::sync::broadcast::error::RecvError;
use toolway::Host;
use toolway::journal::timestamp;
use toolway::rows::EventTeller;
use toolway_rows::{EventRow, HostChange, StateRow};
use toolway_types::ServerName;
use toolway_types::text::clean_line;

use crate::context::Context;
use crate::report::Report;

/// Prints every change until the host is gone.
pub(super) async fn print(context: &Context, host: &Host, json: bool) -> Result<(), Report> {
    let mut events = host.subscribe();
    let mut teller = EventTeller::default();
    let mut changes = teller.snapshot(&host.snapshot());
    loop {
        for change in changes {
            put(context, change, json)?;
        }
        changes = match events.recv().await {
            Ok(event) => teller.event(event, &host.snapshot()),
            Err(RecvError::Lagged(_)) => teller.again(&host.snapshot()),
            Err(RecvError::Closed) => return Ok(()),
        };
    }
}

fn put(context: &Context, change: HostChange, json: bool) -> Result<(), Report> {
    let Some(words) = change_in_words(&change) else {
        return Ok(());
    };
    let time = timestamp(SystemTime::now());
    if json {
        context.output.json_line(&EventRow { time, change })?;
    } else {
        let text = format!("{time} {words}");
        context.output.result(&format!("{}\n", clean_line(&text)))?;
    }
    Ok(())
}

fn state_in_words(state: &StateRow) -> String {
    let mut text = format!("{}: {}", state.server, state.state);
    if let Some(attempt) = state.attempt.filter(|attempt| *attempt > 1) {
        // Writing into a string cannot fail.
        let _ = write!(text, ", attempt {attempt}");
    }
    let counts = state.tools.map(|tools| {
        toolway_tui::offers(toolway::Counts {
            tools,
            resources: state.resources.unwrap_or_default(),
            prompts: state.prompts.unwrap_or_default(),
        })
    });
    let details = [counts.as_ref(), state.error.as_ref(), state.reason.as_ref()];
    for detail in details.into_iter().flatten() {
        let _ = write!(text, " ({detail})");
    }
    text
}

/// A change of servers; of others nothing is said here.
fn change_in_words(change: &HostChange) -> Option<String> {
    let words = match change {
        HostChange::State(state) => state_in_words(state),
        HostChange::Reload {
            started,
            stopped,
            replaced,
        } => {
            let parts: Vec<String> = [
                ("started", started),
                ("stopped", stopped),
                ("replaced", replaced),
            ]
            .into_iter()
            .filter(|(_, servers)| !servers.is_empty())
            .map(|(word, servers)| {
                let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
                format!("{word} {}", names.join(", "))
            })
            .collect();
            format!("configuration changed: {}", parts.join("; "))
        }
        HostChange::Notice { server, message } => format!("{server}: {message}"),
        HostChange::Resource { .. }
        | HostChange::Question(_)
        | HostChange::Answered { .. }
        | HostChange::Log { .. }
        | HostChange::Login { .. }
        | HostChange::Call(_) => return None,
    };
    Some(words)
}
