//! What `list --watch` prints where there is no terminal: one line for each change.
//!
//! Owns both forms of a line; the JSON one is an interface. Absent values are null, never left
//! out.

use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use toolway::event::{Changes, HostEvent};
use toolway::journal::timestamp;
use toolway::{Host, ServerSnapshot};
use toolway_types::text::clean_line;
use toolway_types::{ConnectionState, ServerName};

use crate::context::Context;
use crate::report::Report;

/// A change, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Change {
    /// Where a server stands: at the start, and whenever that changes.
    State(Box<State>),
    /// What a new configuration did.
    Reload {
        started: Vec<ServerName>,
        stopped: Vec<ServerName>,
        replaced: Vec<ServerName>,
    },
    /// Something worth a line that changes nothing.
    Notice { server: ServerName, message: String },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    server: ServerName,
    state: &'static str,
    attempt: Option<u32>,
    error: Option<String>,
    reason: Option<String>,
    protocol_version: Option<String>,
    tools: Option<usize>,
    resources: Option<usize>,
    prompts: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Line {
    time: String,
    #[serde(flatten)]
    change: Change,
}

/// Prints every change until the host is gone.
pub(super) async fn print(context: &Context, host: &Host, json: bool) -> Result<(), Report> {
    let mut events = host.subscribe();
    for server in &host.snapshot().servers {
        put(context, Change::State(Box::new(State::of(server))), json)?;
    }
    loop {
        match events.recv().await {
            Ok(event) => {
                if let Some(change) = translate(host, event) {
                    put(context, change, json)?;
                }
            }
            // Some were lost; what is true now stands in the snapshot.
            Err(RecvError::Lagged(_)) => {
                for server in &host.snapshot().servers {
                    put(context, Change::State(Box::new(State::of(server))), json)?;
                }
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

fn translate(host: &Host, event: HostEvent) -> Option<Change> {
    let shown = |server: &ServerName| {
        let picture = host.snapshot();
        let server = picture.server(server.as_str())?;
        Some(State::of(server))
    };
    Some(match event {
        // How much it offers is known in a moment, and told with that.
        HostEvent::StateChanged {
            to: ConnectionState::Connected(_),
            ..
        } => return None,
        HostEvent::StateChanged { server, to, .. } => {
            let mut state = State::at(server, &to);
            let trouble = host
                .snapshot()
                .server(state.server.as_str())?
                .warnings
                .last()
                .cloned();
            if matches!(to, ConnectionState::Pending { .. }) {
                state.error = trouble;
            }
            Change::State(Box::new(state))
        }
        HostEvent::CatalogChanged { server, .. } => {
            let state = shown(&server).filter(|state| state.state == "connected")?;
            Change::State(Box::new(state))
        }
        HostEvent::Reloaded(changes) if changes.is_empty() => return None,
        HostEvent::Reloaded(Changes {
            started,
            stopped,
            replaced,
            ..
        }) => Change::Reload {
            started,
            stopped,
            replaced,
        },
        HostEvent::Notice { server, message } => Change::Notice { server, message },
    })
}

fn put(context: &Context, change: Change, json: bool) -> Result<(), Report> {
    let time = timestamp(SystemTime::now());
    if json {
        context.output.json_line(&Line { time, change })?;
    } else {
        let text = format!("{time} {}", change.words());
        context.output.result(&format!("{}\n", clean_line(&text)))?;
    }
    Ok(())
}

impl State {
    /// A server as the host shows it.
    fn of(server: &ServerSnapshot) -> Self {
        let mut state = Self::at(server.name.clone(), &server.state);
        if server.is_pending() {
            state.error = server.warnings.last().cloned();
        }
        if let Some(reason) = &server.reason {
            state.reason = Some(reason.clone());
        }
        if let Some(counts) = server.counts {
            state.tools = Some(counts.tools);
            state.resources = Some(counts.resources);
            state.prompts = Some(counts.prompts);
        }
        state
    }

    fn at(server: ServerName, state: &ConnectionState) -> Self {
        let mut shown = Self {
            server,
            state: state.as_str(),
            attempt: None,
            error: None,
            reason: None,
            protocol_version: None,
            tools: None,
            resources: None,
            prompts: None,
        };
        match state {
            ConnectionState::Pending { attempt } => shown.attempt = Some(*attempt),
            ConnectionState::Connected(facts) => {
                shown.protocol_version = Some(facts.protocol_version.clone());
            }
            ConnectionState::Failed(failure) => shown.error = Some(failure.message.clone()),
            ConnectionState::NeedsAuth { .. } => {
                shown.error = Some("wants a login first".to_owned());
            }
            ConnectionState::Disabled { reason } => shown.reason = Some(reason.clone()),
        }
        shown
    }

    fn words(&self) -> String {
        let mut text = format!("{}: {}", self.server, self.state);
        if let Some(attempt) = self.attempt.filter(|attempt| *attempt > 1) {
            text.push_str(&format!(", attempt {attempt}"));
        }
        let counts = self.tools.map(|tools| {
            toolway_tui::offers(toolway::Counts {
                tools,
                resources: self.resources.unwrap_or_default(),
                prompts: self.prompts.unwrap_or_default(),
            })
        });
        for detail in [counts.as_ref(), self.error.as_ref(), self.reason.as_ref()] {
            if let Some(detail) = detail {
                text.push_str(&format!(" ({detail})"));
            }
        }
        text
    }
}

impl Change {
    fn words(&self) -> String {
        match self {
            Change::State(state) => state.words(),
            Change::Reload {
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
            Change::Notice { server, message } => format!("{server}: {message}"),
        }
    }
}
