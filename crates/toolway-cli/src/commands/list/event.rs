//! What `list --watch` prints where there is no terminal: one line for each change.
//!
//! Owns both forms of a line; the JSON one is an interface. Absent values are null, never left
//! out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use toolway::event::{Changes, HostEvent};
use toolway::journal::timestamp;
use toolway::{Host, HostSnapshot, ServerSnapshot};
use toolway_types::text::clean_line;
use toolway_types::{ConnectionState, ServerName};

use crate::context::Context;
use crate::report::{Report, UNNAMED_SCOPES};

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
    #[serde(rename = "state")]
    word: &'static str,
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
    let mut printer = Printer {
        context,
        json,
        told: BTreeMap::new(),
    };
    printer.snapshot(&host.snapshot())?;
    loop {
        match events.recv().await {
            Ok(event) => printer.event(host, event)?,
            // Some were lost; what is true now stands in the snapshot.
            Err(RecvError::Lagged(_)) => {
                printer.told.clear();
                printer.snapshot(&host.snapshot())?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

struct Printer<'a> {
    context: &'a Context,
    json: bool,
    /// The state that was last told of each server.
    told: BTreeMap<ServerName, &'static str>,
}

impl Printer<'_> {
    fn event(&mut self, host: &Host, event: HostEvent) -> Result<(), Report> {
        let snapshot = host.snapshot();
        match event {
            // How much it offers is known in a moment, and told with that. What a resource holds
            // is no part of it, nor what anybody is asked or
            // calls, logs or logs in to.
            HostEvent::StateChanged {
                to: ConnectionState::Connected(_),
                ..
            }
            | HostEvent::ResourceUpdated { .. }
            | HostEvent::CallStarted { .. }
            | HostEvent::CallFinished { .. }
            | HostEvent::LogLine { .. }
            | HostEvent::LoginChanged { .. }
            | HostEvent::QuestionOpened { .. }
            | HostEvent::QuestionClosed { .. } => Ok(()),
            HostEvent::StateChanged { server, to, .. } => {
                // One that is gone is told of with the configuration that it went with.
                let Some(shown) = snapshot.server(server.as_str()) else {
                    return Ok(());
                };
                let mut state = State::at(server, &to);
                if matches!(to, ConnectionState::Pending { .. }) {
                    state.error = trouble(shown);
                }
                self.state(state)
            }
            HostEvent::CatalogChanged { server, .. } => match snapshot.server(server.as_str()) {
                Some(shown) if matches!(shown.state, ConnectionState::Connected(_)) => {
                    self.state(State::of(shown))
                }
                _ => Ok(()),
            },
            HostEvent::Reloaded(changes) => {
                self.reload(changes, &snapshot)?;
                self.snapshot(&snapshot)
            }
            HostEvent::Notice { server, message } => {
                // Why it is tried again is told with the state.
                let told = snapshot.server(server.as_str()).and_then(trouble);
                if told.is_some_and(|told| message.starts_with(&told)) {
                    return Ok(());
                }
                self.put(Change::Notice { server, message })
            }
        }
    }

    /// What a new configuration did. Servers that only stood in a list are gone without having
    /// been stopped.
    fn reload(&mut self, changes: Changes, snapshot: &HostSnapshot) -> Result<(), Report> {
        let mut stopped = changes.stopped;
        let gone = self
            .told
            .keys()
            .filter(|name| snapshot.server(name.as_str()).is_none());
        for name in gone {
            if !stopped.contains(name) {
                stopped.push(name.clone());
            }
        }
        self.told
            .retain(|name, _| snapshot.server(name.as_str()).is_some());
        if changes.started.is_empty() && stopped.is_empty() && changes.replaced.is_empty() {
            return Ok(());
        }
        self.put(Change::Reload {
            started: changes.started,
            stopped,
            replaced: changes.replaced,
        })
    }

    /// Tells of servers that were not told of yet, and of those that may not connect any more.
    fn snapshot(&mut self, snapshot: &HostSnapshot) -> Result<(), Report> {
        for server in &snapshot.servers {
            let state = State::of(server);
            let news = match self.told.get(&server.name) {
                None => true,
                Some(told) => {
                    matches!(server.state, ConnectionState::Disabled { .. }) && *told != state.word
                }
            };
            if news {
                self.state(state)?;
            }
        }
        Ok(())
    }

    fn state(&mut self, state: State) -> Result<(), Report> {
        self.told.insert(state.server.clone(), state.word);
        self.put(Change::State(Box::new(state)))
    }

    fn put(&self, change: Change) -> Result<(), Report> {
        let time = timestamp(SystemTime::now());
        if self.json {
            self.context.output.json_line(&Line { time, change })?;
        } else {
            let text = format!("{time} {}", change.words());
            self.context
                .output
                .result(&format!("{}\n", clean_line(&text)))?;
        }
        Ok(())
    }
}

/// Why the attempt before the one under way failed.
fn trouble(server: &ServerSnapshot) -> Option<String> {
    server.warnings.last().cloned()
}

impl State {
    /// A server as the host shows it.
    fn of(server: &ServerSnapshot) -> Self {
        let mut state = Self::at(server.name.clone(), &server.state);
        if server.is_pending() {
            state.error = trouble(server);
        }
        // A broken entry is a failure, as it is in the table.
        if server.verdict_word == "invalid" {
            state.word = "failed";
            state.error = server.reason.clone().or(state.reason.take());
        } else if let Some(reason) = &server.reason {
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
            word: state.as_str(),
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
            ConnectionState::NeedsAuth { unnamed_scopes, .. } => {
                let wants = if *unnamed_scopes {
                    UNNAMED_SCOPES
                } else {
                    "wants a login first"
                };
                shown.error = Some(wants.to_owned());
            }
            ConnectionState::Disabled { reason } => shown.reason = Some(reason.clone()),
        }
        shown
    }

    fn words(&self) -> String {
        let mut text = format!("{}: {}", self.server, self.word);
        if let Some(attempt) = self.attempt.filter(|attempt| *attempt > 1) {
            // Writing into a string cannot fail.
            let _ = write!(text, ", attempt {attempt}");
        }
        let counts = self.tools.map(|tools| {
            toolway_tui::offers(toolway::Counts {
                tools,
                resources: self.resources.unwrap_or_default(),
                prompts: self.prompts.unwrap_or_default(),
            })
        });
        let details = [counts.as_ref(), self.error.as_ref(), self.reason.as_ref()];
        for detail in details.into_iter().flatten() {
            let _ = write!(text, " ({detail})");
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
