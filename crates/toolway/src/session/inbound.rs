//! What a server says on its own: its requests and notifications.
//!
//! Owns sorting a message into an [`Inbound`] and our answers to server requests. Decides
//! nothing about our own requests; `correlator.rs` does, from what this returns.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use toolway_types::Era;
use toolway_wire::era::method;
use toolway_wire::skim::Skimmer;
use toolway_wire::{Id, Message, RpcError, envelope, error};
use tracing::debug;

use super::declared::Declared;
use super::progress;
use crate::call::Progress;
use crate::respondent::{Counterpart, Root};

/// A message, sorted.
pub(super) enum Inbound {
    /// An answer to one of our requests.
    Answer {
        id: u64,
        outcome: Result<Box<RawValue>, RpcError>,
    },
    /// An error for a request whose id the server could not read.
    Uncorrelated(RpcError),
    /// An answer to something we never asked.
    Stray,
    /// Not the protocol; where an id of ours can still be read, that request has to end.
    Unusable { id: Option<u64>, problem: String },
    /// Progress of one of our requests.
    Progress { id: u64, report: Progress },
    /// A list has changed.
    Changed(List),
    /// We answer this.
    Reply {
        bytes: Bytes,
        headers: Vec<(HeaderName, HeaderValue)>,
    },
    /// Nothing to do.
    Nothing,
}

/// The lists a server may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// Tools.
    Tools,
    /// Resources and their templates.
    Resources,
    /// Prompts.
    Prompts,
}

/// How often each list was said to have changed. Counts, not flags, so that several changes
/// during one refetch are one more refetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListChanges {
    /// Of the tools.
    pub tools: u64,
    /// Of the resources.
    pub resources: u64,
    /// Of the prompts.
    pub prompts: u64,
}

impl ListChanges {
    pub(super) fn note(&mut self, list: List) {
        match list {
            List::Tools => self.tools += 1,
            List::Resources => self.resources += 1,
            List::Prompts => self.prompts += 1,
        }
    }
}

/// How server requests are received on one channel.
#[derive(Debug)]
pub(super) struct Reception {
    counterpart: Counterpart,
    declared: Declared,
    settled: OnceLock<Settled>,
}

#[derive(Debug)]
struct Settled {
    era: Era,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reception {
    /// Offers what the counterpart offers.
    pub(super) fn new(counterpart: Counterpart) -> Self {
        Self {
            declared: Declared::new(&counterpart),
            counterpart,
            settled: OnceLock::new(),
        }
    }

    /// What a legacy server is told that it may ask.
    pub(super) fn legacy_capabilities(&self) -> serde_json::Value {
        self.declared.legacy()
    }

    /// What a modern server is told with every request.
    pub(super) fn modern_capabilities(&self) -> &RawValue {
        self.declared.modern(&self.counterpart.roots.borrow())
    }

    /// The handshake is over. `headers` go with every answer of ours.
    pub(super) fn settle(&self, era: Era, headers: Vec<(HeaderName, HeaderValue)>) {
        let _ = self.settled.set(Settled { era, headers });
    }

    /// Whether the handshake is over.
    pub(super) fn is_settled(&self) -> bool {
        self.settled.get().is_some()
    }
}

/// Sorts one message.
pub(super) fn receive(bytes: &[u8], reception: &Reception) -> Inbound {
    match envelope::parse(bytes) {
        Ok(Message::Response {
            id: Some(id),
            outcome,
        }) => match id.as_ours() {
            Some(id) => Inbound::Answer {
                id,
                outcome: outcome.map(ToOwned::to_owned),
            },
            None => Inbound::Stray,
        },
        Ok(Message::Response {
            id: None,
            outcome: Err(error),
        }) => Inbound::Uncorrelated(error),
        Ok(Message::Response {
            id: None,
            outcome: Ok(_),
        }) => Inbound::Stray,
        Ok(Message::Notification { method, params }) => notified(&method, params),
        Ok(Message::Request { id, method, .. }) => asked(&id, &method, reception),
        Err(problem) => {
            let mut skimmer = Skimmer::new();
            skimmer.feed(bytes);
            let id = skimmer.response_id().and_then(|id| id.as_ours());
            Inbound::Unusable {
                id,
                problem: problem.to_string(),
            }
        }
    }
}

fn notified(name: &str, params: Option<&RawValue>) -> Inbound {
    match name {
        method::PROGRESS => match params.and_then(progress::read) {
            Some((id, report)) => Inbound::Progress { id, report },
            None => Inbound::Nothing,
        },
        method::TOOLS_CHANGED => Inbound::Changed(List::Tools),
        method::RESOURCES_CHANGED => Inbound::Changed(List::Resources),
        method::PROMPTS_CHANGED => Inbound::Changed(List::Prompts),
        _ => {
            debug!(method = %toolway_types::Untrusted::new(name), "ignored a notification");
            Inbound::Nothing
        }
    }
}

/// Answers a server's request. In the modern era a server must not ask, and a client must not
/// answer, so the request is only noted.
fn asked(id: &Id, name: &str, reception: &Reception) -> Inbound {
    let settled = reception.settled.get();
    if settled.is_some_and(|settled| settled.era == Era::Modern) {
        return Inbound::Unusable {
            id: None,
            problem: "a request from a modern server".to_owned(),
        };
    }
    let answer = match name {
        method::PING => to_raw_value(&json!({})).ok(),
        method::ROOTS_LIST if reception.declared.roots => {
            roots(&reception.counterpart.roots.borrow())
        }
        // `sampling/createMessage` and `elicitation/create` too: neither is declared, and a
        // client without the capability does not have the method.
        _ => None,
    };
    let bytes = if let Some(result) = answer {
        envelope::response(id, &result)
    } else {
        let refusal = RpcError::new(error::METHOD_NOT_FOUND, "method not found");
        envelope::error_response(Some(id), &refusal)
    };
    let headers = settled
        .map(|settled| settled.headers.clone())
        .unwrap_or_default();
    Inbound::Reply { bytes, headers }
}

fn roots(roots: &[Root]) -> Option<Box<RawValue>> {
    let roots: Vec<_> = roots.iter().map(describe_root).collect();
    to_raw_value(&json!({ "roots": roots })).ok()
}

fn describe_root(root: &Root) -> serde_json::Value {
    let uri = root.uri.as_str();
    match &root.name {
        Some(name) => json!({ "uri": uri, "name": name }),
        None => json!({ "uri": uri }),
    }
}

/// The notification that nobody waits for a request any more.
pub(super) fn cancelled(id: u64) -> Bytes {
    let params = to_raw_value(&json!({ "requestId": id, "reason": "no longer needed" })).ok();
    envelope::notification(method::CANCELLED, params.as_deref())
}
