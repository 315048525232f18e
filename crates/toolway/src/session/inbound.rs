//! What a server says on its own: its requests and notifications.
//!
//! Owns sorting a message into an [`InboundMessage`], and which of its requests are answered at
//! once, which take time and which are refused. Decides nothing about our own requests;
//! `correlator.rs` does, from what this returns.

mod subscriptions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use toolway_types::Era;
use toolway_wire::envelope::ReceivedMessage;
use toolway_wire::era::method;
use toolway_wire::skim::IdSkimmer;
use toolway_wire::view::task;
use toolway_wire::{Id, RawJson, RpcError, envelope};

use self::subscriptions::Subscriptions;
use super::declared::DeclaredCapabilities;
use super::freshness::Freshness;
use super::{progress, raw};
use crate::call::{CallerSide, LogMessage, Progress, RequestOrigin, ServerNotice};
use crate::client_handler::Root;
use crate::listing::ListKind;
use crate::lock::lock;
use crate::session::ClientSide;

/// The longest URI of a resource that is said to have changed. Many of them wait for slow
/// listeners.
const MAX_URI: usize = 8 * 1024;

/// A message, sorted.
pub(super) enum InboundMessage {
    /// An answer to one of our requests.
    Answer {
        id: u64,
        outcome: Result<RawJson, RpcError>,
    },
    /// An error for a request whose id the server could not read.
    Uncorrelated(RpcError),
    /// An answer to something we never asked.
    Stray,
    /// Not the protocol; where an id of ours can still be read, that request has to end.
    Unusable { id: Option<u64>, problem: String },
    /// Progress of one of our requests.
    Progress { id: u64, report: Progress },
    /// The server logs.
    Logged(LogMessage),
    /// The server says something that the protocol does not have.
    Noticed(ServerNotice),
    /// A list has changed.
    Changed(ListKind),
    /// A resource has changed.
    Updated(String),
    /// A task is further than before.
    TaskChanged(String),
    /// The page of this elicitation is dealt with.
    PageDone(String),
    /// We answer this at once.
    Reply(Bytes),
    /// Somebody may have to be asked before we answer this.
    Asked(AskedMessage),
    /// The server does not want an answer to this any more.
    Withdrawn(Id),
    /// Nothing to do.
    Nothing,
}

/// A server's request, unread: what of it is answered depends on who caused it.
pub(super) struct AskedMessage {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Box<RawValue>,
    /// How many bytes the server asked it in.
    pub(super) size: usize,
    /// The task that it belongs to, which its answer has to name.
    pub(super) task: Option<Box<RawValue>>,
}

/// How often each list was said to have changed. Counts, not flags, so that several changes
/// during one refetch are one more refetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListChanges([u64; 3]);

impl ListChanges {
    pub(super) fn note(&mut self, list: ListKind) {
        self.0[list as usize] += 1;
    }

    /// The count of one list.
    pub(crate) fn of(&self, list: ListKind) -> u64 {
        self.0[list as usize]
    }
}

/// How server requests are received on one channel.
pub(super) struct Reception {
    client_side: ClientSide,
    declared: Arc<DeclaredCapabilities>,
    /// What is declared with requests of other callers than the host's own.
    declared_of_others: Mutex<Vec<(Weak<CallerSide>, Arc<DeclaredCapabilities>)>>,
    settled: OnceLock<Settled>,
    subscriptions: Subscriptions,
    freshness: Freshness,
    /// Whether what belongs to a request comes on the stream of that request.
    has_streams: AtomicBool,
}

#[derive(Debug)]
struct Settled {
    era: Era,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reception {
    /// Offers what the client side offers.
    pub(super) fn new(client_side: ClientSide) -> Self {
        Self {
            declared: Arc::new(DeclaredCapabilities::new(&client_side)),
            declared_of_others: Mutex::default(),
            client_side,
            settled: OnceLock::new(),
            subscriptions: Subscriptions::default(),
            freshness: Freshness::default(),
            has_streams: AtomicBool::new(false),
        }
    }

    /// Where subscriptions are known.
    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// The answers that may be used again.
    pub(super) fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Who answers.
    pub(super) fn client_side(&self) -> &ClientSide {
        &self.client_side
    }

    /// What the server is told that it may ask because of a request.
    pub(super) fn declared_to(
        &self,
        origin: Option<&Arc<RequestOrigin>>,
    ) -> Arc<DeclaredCapabilities> {
        let is_other = |origin: &&Arc<RequestOrigin>| {
            !self.client_side.is_of(origin) || origin.stated().is_some()
        };
        let Some(origin) = origin.filter(is_other) else {
            return Arc::clone(&self.declared);
        };
        let side = || self.client_side.during(std::slice::from_ref(origin));
        if origin.stated().is_some() {
            return Arc::new(DeclaredCapabilities::new(&side()));
        }
        let mut others = lock(&self.declared_of_others);
        let known = others
            .iter()
            .find(|(caller, _)| std::ptr::eq(caller.as_ptr(), Arc::as_ptr(&origin.caller)));
        if let Some((_, declared)) = known {
            return Arc::clone(declared);
        }
        others.retain(|(caller, _)| caller.strong_count() > 0);
        let declared = Arc::new(DeclaredCapabilities::new(&side()));
        others.push((Arc::downgrade(&origin.caller), Arc::clone(&declared)));
        declared
    }

    /// What a legacy server, which was told once for all callers, may ask this one.
    pub(super) fn answered_by(&self, side: &ClientSide) -> DeclaredCapabilities {
        DeclaredCapabilities::new(side).within(&self.declared)
    }

    /// Who answers a question of which nothing says who caused it.
    pub(super) fn of_unclear_caller(&self) -> ClientSide {
        self.client_side.of_unclear_caller(&self.declared.person)
    }

    /// The roots of whoever a request is sent for.
    pub(super) fn roots_of(&self, origin: Option<&Arc<RequestOrigin>>) -> Arc<[Root]> {
        let roots = match origin {
            Some(origin) if !self.client_side.has_fixed_roots => origin.caller.roots.borrow(),
            _ => self.client_side.roots.borrow(),
        };
        Arc::clone(&roots)
    }

    /// What a legacy server is told that it may ask.
    pub(super) fn legacy_capabilities(&self) -> serde_json::Value {
        self.declared.legacy(&self.client_side.roots.borrow())
    }

    /// The handshake is over. `headers` go with every answer of ours.
    pub(super) fn settle(&self, era: Era, headers: Vec<(HeaderName, HeaderValue)>) {
        let _ = self.settled.set(Settled { era, headers });
    }

    /// From here on what comes on no request's stream belongs to no request.
    pub(super) fn note_streams(&self) {
        self.has_streams.store(true, Ordering::Relaxed);
    }

    /// Whether what belongs to a request comes on the stream of that request.
    pub(super) fn has_streams(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    /// Whether the handshake is over.
    pub(super) fn is_settled(&self) -> bool {
        self.settled.get().is_some()
    }

    /// Whether the server wants to hear that the roots changed.
    pub(super) fn follows_roots(&self) -> bool {
        self.declared.roots() && self.era() == Some(Era::Legacy)
    }

    /// What goes with every message that is no request of ours.
    pub(super) fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.settled
            .get()
            .map(|settled| settled.headers.clone())
            .unwrap_or_default()
    }

    fn era(&self) -> Option<Era> {
        self.settled.get().map(|settled| settled.era)
    }
}

/// The result in a message that is nothing but that, and the request that it answers.
pub(super) fn plain_result(message: &Bytes) -> Option<(u64, RawJson)> {
    match envelope::receive(message) {
        Ok(ReceivedMessage::Response {
            id: Some(id),
            outcome: Ok(result),
        }) => Some((id.as_ours()?, result)),
        _ => None,
    }
}

/// Sorts one message.
pub(super) fn receive(bytes: &Bytes, reception: &Reception) -> InboundMessage {
    match envelope::receive(bytes) {
        Ok(ReceivedMessage::Response {
            id: Some(id),
            outcome,
        }) => match id.as_ours() {
            Some(id) => InboundMessage::Answer { id, outcome },
            None => InboundMessage::Stray,
        },
        Ok(ReceivedMessage::Response {
            id: None,
            outcome: Err(error),
        }) => InboundMessage::Uncorrelated(error),
        Ok(ReceivedMessage::Response {
            id: None,
            outcome: Ok(_),
        }) => InboundMessage::Stray,
        Ok(ReceivedMessage::Notification { method, params }) => notified(
            bytes,
            &method,
            params.as_ref().map(RawJson::as_raw),
            reception,
        ),
        Ok(ReceivedMessage::Request { id, method, params }) => {
            asked(id, &method, params.as_ref().map(RawJson::as_raw), reception)
        }
        Err(problem) => {
            let mut skimmer = IdSkimmer::new();
            skimmer.feed(bytes);
            let id = skimmer.response_id().and_then(|id| id.as_ours());
            InboundMessage::Unusable {
                id,
                problem: problem.to_string(),
            }
        }
    }
}

fn notified(
    bytes: &Bytes,
    name: &str,
    params: Option<&RawValue>,
    reception: &Reception,
) -> InboundMessage {
    if let Some(heard) = subscriptions::hear(name, params, &reception.subscriptions) {
        return heard;
    }
    let message = match name {
        method::PROGRESS => params
            .and_then(|params| progress::read(bytes, params))
            .map(|(id, report)| InboundMessage::Progress { id, report }),
        method::MESSAGE => params
            .and_then(|params| {
                let raw = RawJson::part_of(bytes, params);
                LogMessage::read(&reception.client_side.server, raw)
            })
            .map(InboundMessage::Logged),
        method::RESOURCE_UPDATED => params.and_then(updated).map(|uri| {
            reception.freshness.forget_resource(&uri);
            InboundMessage::Updated(uri)
        }),
        method::TOOLS_CHANGED => Some(InboundMessage::Changed(ListKind::Tools)),
        method::RESOURCES_CHANGED => Some(InboundMessage::Changed(ListKind::Resources)),
        method::PROMPTS_CHANGED => Some(InboundMessage::Changed(ListKind::Prompts)),
        method::TASK_CHANGED | method::TASK_STATUS => params
            .and_then(task::task_id)
            .map(InboundMessage::TaskChanged),
        method::ELICITATION_COMPLETE => params.and_then(dealt_with).map(InboundMessage::PageDone),
        method::CANCELLED => params.and_then(withdrawn).map(InboundMessage::Withdrawn),
        // Nobody else's business.
        method::INITIALIZED | method::ROOTS_CHANGED => None,
        _ => Some(InboundMessage::Noticed(ServerNotice {
            method: name.into(),
            params: params.map(|params| RawJson::part_of(bytes, params).detached()),
        })),
    };
    message.unwrap_or(InboundMessage::Nothing)
}

fn dealt_with(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Complete {
        #[serde(rename = "elicitationId")]
        id: String,
    }
    let complete: Complete = serde_json::from_str(params.get()).ok()?;
    Some(complete.id)
}

fn updated(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    let updated: Updated = serde_json::from_str(params.get()).ok()?;
    (updated.uri.len() <= MAX_URI).then_some(updated.uri)
}

fn withdrawn(params: &RawValue) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let params: Params<'_> = serde_json::from_str(params.get()).ok()?;
    Id::read(params.request_id).ok().flatten()
}

/// Sorts a server's request. In the modern era a server must not ask, and a client must not
/// answer, so the request is only noted.
fn asked(id: Id, name: &str, params: Option<&RawValue>, reception: &Reception) -> InboundMessage {
    if reception.era() == Some(Era::Modern) {
        return InboundMessage::Unusable {
            id: None,
            problem: "a request from a modern server".to_owned(),
        };
    }
    if name == method::PING {
        return InboundMessage::Reply(envelope::response(&id, &raw("{}")));
    }
    let named = match &id {
        Id::Number(_) => 0,
        Id::Text(text) => text.len(),
    };
    let size = named + params.map_or(0, |params| params.get().len());
    InboundMessage::Asked(AskedMessage {
        id,
        method: name.to_owned(),
        params: params.map_or_else(|| raw("{}"), ToOwned::to_owned),
        size,
        task: params.and_then(related_task),
    })
}

/// The task that a request belongs to.
fn related_task(params: &RawValue) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/related-task")]
        task: Box<RawValue>,
    }
    let params: Params = serde_json::from_str(params.get()).ok()?;
    Some(params.meta.task)
}

/// The notification that a request is cancelled.
pub(super) fn cancelled(id: u64) -> Bytes {
    let params = to_raw_value(&json!({ "requestId": id, "reason": "no longer needed" })).ok();
    envelope::notification(method::CANCELLED, params.as_deref())
}
