//! Which events of a host are worth a line, and what the line says.
//!
//! Owns that each is told once: a state with what else is known at that moment, and a reload with
//! the servers that went with it.

use std::collections::BTreeMap;

use toolway_rows::{HostChange, QuestionRow, StateRow, Word};

use toolway_types::{ConnectionState, ServerName};

use super::UNNAMED_SCOPES;
use super::calls::told_call;
use crate::event::{Changes, HostEvent};
use crate::snapshot::{HostSnapshot, ServerSnapshot};

/// Turns the events of one host into changes.
#[derive(Debug, Default)]
pub struct EventTeller {
    /// The state that was last told of each server.
    told: BTreeMap<ServerName, Word>,
}

impl EventTeller {
    /// What an event changes. The snapshot is the host's of now.
    pub fn event(&mut self, event: HostEvent, snapshot: &HostSnapshot) -> Vec<HostChange> {
        match event {
            // How much it offers is known in a moment, and told with that.
            HostEvent::StateChanged {
                to: ConnectionState::Connected(_),
                ..
            } => Vec::new(),
            HostEvent::ResourceUpdated { server, uri } => {
                let uri = uri.as_received().to_owned();
                vec![HostChange::Resource { server, uri }]
            }
            HostEvent::QuestionOpened { id, .. } => {
                // What servers ask of others is not the owner's to see.
                let seen = snapshot.questions.iter().find(|question| question.id == id);
                let row = seen.map(|question| Box::new(QuestionRow::from(&**question)));
                row.map(HostChange::Question).into_iter().collect()
            }
            HostEvent::QuestionClosed { id, end, .. } => vec![HostChange::Answered {
                question: id.to_string(),
                answer: end.as_str().into(),
            }],
            HostEvent::CallStarted { call, caller, tool } => {
                vec![HostChange::Call(Box::new(told_call(
                    call, &caller, tool, None,
                )))]
            }
            HostEvent::CallFinished {
                call,
                caller,
                tool,
                took,
                outcome,
            } => {
                let end = Some((took, outcome));
                vec![HostChange::Call(Box::new(told_call(
                    call, &caller, tool, end,
                )))]
            }
            HostEvent::LogLine { server, line } => vec![HostChange::Log { server, line }],
            HostEvent::LoginChanged { server, login } => vec![HostChange::Login {
                server,
                login: login.as_str().into(),
            }],
            HostEvent::StateChanged { server, to, .. } => {
                // One that is gone is told of with the configuration that it went with.
                let Some(shown) = snapshot.server(server.as_str()) else {
                    return Vec::new();
                };
                let mut state = state_at(server, &to);
                if matches!(to, ConnectionState::Pending { .. }) {
                    if shown.is_resting() {
                        state = shown.into();
                    }
                    state.error = trouble(shown);
                }
                vec![self.state(state)]
            }
            HostEvent::CatalogChanged { server, .. } => match snapshot.server(server.as_str()) {
                Some(shown) if matches!(shown.state, ConnectionState::Connected(_)) => {
                    vec![self.state(shown.into())]
                }
                _ => Vec::new(),
            },
            HostEvent::Reloaded(changes) => {
                let mut told = Vec::from_iter(self.reload(changes, snapshot));
                told.extend(self.snapshot(snapshot));
                told
            }
            HostEvent::Notice { server, message } => {
                // Why it is tried again is told with the state.
                let told = snapshot.server(server.as_str()).and_then(trouble);
                if told.is_some_and(|told| message.starts_with(&told)) {
                    return Vec::new();
                }
                vec![HostChange::Notice { server, message }]
            }
        }
    }

    /// Everything anew: events were lost, and what is true now stands in the snapshot.
    pub fn again(&mut self, snapshot: &HostSnapshot) -> Vec<HostChange> {
        self.told.clear();
        self.snapshot(snapshot)
    }

    /// Servers that were not told of yet, and those that may not connect any more.
    pub fn snapshot(&mut self, snapshot: &HostSnapshot) -> Vec<HostChange> {
        let mut changes = Vec::new();
        for server in &snapshot.servers {
            let state = StateRow::from(&**server);
            let is_news = match self.told.get(&server.name) {
                None => true,
                Some(told) => {
                    matches!(server.state, ConnectionState::Disabled { .. }) && *told != state.state
                }
            };
            if is_news {
                changes.push(self.state(state));
            }
        }
        changes
    }

    /// What a new configuration did. Servers that only stood in a list are gone without having
    /// been stopped.
    fn reload(&mut self, changes: Changes, snapshot: &HostSnapshot) -> Option<HostChange> {
        let mut stopped = changes.stopped;
        let is_gone = |name: &ServerName| snapshot.server(name.as_str()).is_none();
        for name in self.told.keys().filter(|name| is_gone(name)) {
            if !stopped.contains(name) {
                stopped.push(name.clone());
            }
        }
        self.told.retain(|name, _| !is_gone(name));
        if changes.started.is_empty() && stopped.is_empty() && changes.replaced.is_empty() {
            return None;
        }
        Some(HostChange::Reload {
            started: changes.started,
            stopped,
            replaced: changes.replaced,
        })
    }

    fn state(&mut self, state: StateRow) -> HostChange {
        self.told.insert(state.server.clone(), state.state.clone());
        HostChange::State(Box::new(state))
    }
}

/// Why the attempt before the one under way failed.
fn trouble(server: &ServerSnapshot) -> Option<String> {
    server.warnings.last().cloned()
}

impl From<&ServerSnapshot> for StateRow {
    /// A server as the host shows it.
    fn from(server: &ServerSnapshot) -> Self {
        let mut state = state_at(server.name.clone(), &server.state);
        if server.is_pending() {
            state.error = trouble(server);
        } else if server.is_resting() {
            // Nothing is tried.
            (state.resting, state.attempt) = (true, None);
        }
        // A broken entry is a failure, as it is in the list.
        if server.verdict_word == "invalid" {
            state.state = "failed".into();
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
}

fn state_at(server: ServerName, state: &ConnectionState) -> StateRow {
    let mut shown = StateRow {
        server,
        state: state.as_str().into(),
        resting: false,
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
