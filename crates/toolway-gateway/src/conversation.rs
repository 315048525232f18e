//! What can be served, and how a client and a service talk.
//!
//! Owns the contract between the ways in (stdio, HTTP, in-process) and what is served: who a client
//! is, what it asks, and what it is answered. The ways in own bytes, ids in flight, sessions and
//! limits; a service owns meaning. An answer's payload stays the bytes that it came in.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use toolway::CallTrace;
use toolway_types::Era;
use toolway_wire::era::{self, method};
use toolway_wire::{Id, RawJson, RequestHead, RpcError, envelope};

use crate::error::RequestRefusal;
use crate::outlet::Outlet;

/// Something that clients can talk to.
pub trait Service: Send + Sync + 'static {
    /// Begins a conversation with a client that stays: over a pipe, or in a session of the legacy
    /// era. What is said to it unasked goes to `unasked`. Dropping the conversation ends it.
    fn open(&self, peer: &Peer, unasked: Outlet) -> Result<Arc<dyn Conversation>, NoConversation>;

    /// The conversation that single exchanges of this peer belong to: those of the modern era over
    /// HTTP, which have no session.
    fn visit(&self, peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation>;
}

/// One client's talk with a service.
pub trait Conversation: Send + Sync + 'static {
    /// Answers a request. What is said before the answer goes to `outlet`. Dropping the future
    /// cancels the request.
    fn request(self: Arc<Self>, request: IncomingRequest, outlet: Outlet) -> AnswerFuture;

    /// Hears a notification. `notifications/cancelled` is the way in's to heed.
    fn notified(self: Arc<Self>, _method: &str, _params: Option<RawJson>) {}

    /// Hears the answer to a request of ours.
    fn answered(&self, _id: Id, _outcome: Result<RawJson, RpcError>) {}

    /// What a request of this method is answered that its client took back; mostly nothing.
    fn taken_back(&self, _method: &str) -> Option<RpcError> {
        None
    }

    /// The client says nothing any more, and answers nothing. What it asked before may still end.
    fn ended(&self) {}
}

/// The answer on its way.
pub type AnswerFuture = BoxFuture<'static, Answer>;

/// Who a client is, as the way in found out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Peer {
    /// For whom it acts: what its session and everything sealed for it are bound to.
    pub principal: Arc<str>,
    /// What people are shown of it.
    pub shown: Arc<str>,
    /// What it wants to talk to.
    pub endpoint: Endpoint,
    /// The profile that its token is bound to; it gets no other.
    pub profile: Option<Arc<str>>,
    /// How long it is let in.
    pub lease: AccessLease,
}

/// How long somebody is let in, which may end while a stream or a session of theirs is open. It is no
/// part of who they are: all leases are alike.
#[derive(Clone, Default)]
pub struct AccessLease(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl AccessLease {
    /// Lasts as long as this holds.
    pub fn lasting(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(holds)))
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|holds| !holds())
    }
}

impl fmt::Debug for AccessLease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccessLease")
    }
}

impl PartialEq for AccessLease {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for AccessLease {}

impl std::hash::Hash for AccessLease {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Peer {
    /// A client that acts for whoever runs this program, and wants all there is.
    pub fn owner(shown: &str) -> Self {
        Self {
            principal: "owner".into(),
            shown: shown.into(),
            endpoint: Endpoint::All,
            profile: None,
            lease: AccessLease::default(),
        }
    }
}

/// What a client wants to talk to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Endpoint {
    /// Everything that is served.
    #[default]
    All,
    /// One server, under its own names.
    Server(Arc<str>),
    /// What a profile shows.
    Profile(Arc<str>),
}

/// Why there is no conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoConversation {
    /// The endpoint is not there, or not for this peer: which of both is not said.
    #[error("there is no such endpoint")]
    NoEndpoint,
    /// Too many conversations are open.
    #[error("too many conversations are open; try again later")]
    Crowded,
}

/// One request of a client.
#[derive(Debug, Clone)]
pub struct IncomingRequest {
    /// Its id, to be answered with.
    pub id: Id,
    /// What is asked for.
    pub method: String,
    /// With what.
    pub params: Option<RawJson>,
    /// What it says of itself.
    pub head: RequestHead,
    /// The era that it is written in.
    pub era: Era,
    /// The headers that it came with, where it came over HTTP.
    pub headers: Option<HeaderMap>,
    /// What servers are told of its trace; nothing where that is not settled yet, or where it says
    /// nothing of one.
    pub trace: Option<Arc<CallTrace>>,
}

impl IncomingRequest {
    /// A request that came without headers.
    pub(crate) fn without_headers(
        id: Id,
        method: String,
        params: Option<RawJson>,
    ) -> Result<Self, (RequestRefusal, Id)> {
        let head = match RequestHead::read(params.as_ref()) {
            Ok(head) => head,
            Err(error) => return Err((RequestRefusal::Params(error), id)),
        };
        let era = match era_of(&head, &method) {
            Ok(era) => era,
            Err(refusal) => return Err((refusal, id)),
        };
        Ok(Self {
            id,
            method,
            params,
            head,
            era,
            headers: None,
            trace: None,
        })
    }
}

/// The era of a request by what it says of itself.
pub(crate) fn era_of(head: &RequestHead, method: &str) -> Result<Era, RequestRefusal> {
    match &head.version {
        None if method == method::DISCOVER => Err(RequestRefusal::NoMeta),
        None => Ok(Era::Legacy),
        // A handshake says its version elsewhere.
        Some(_) if method == method::INITIALIZE => Ok(Era::Legacy),
        Some(version) if era::MODERN_VERSIONS.contains(&version.as_str()) => {
            if head.capabilities.is_none() {
                return Err(RequestRefusal::NoCapabilities);
            }
            Ok(Era::Modern)
        }
        Some(version) => Err(RequestRefusal::Version {
            requested: version.clone(),
        }),
    }
}

/// What a request is answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Its result.
    Result(AnsweredResult),
    /// Why there is none.
    Error(RpcError),
}

/// A result: the bytes that it came in, and members that are put before its own.
#[derive(Debug, Clone)]
pub struct AnsweredResult {
    /// Members of a JSON object, each followed by a comma; mostly none.
    added: Bytes,
    /// The result itself.
    raw: RawJson,
}

impl Answer {
    /// A result as it is.
    pub fn result(raw: impl Into<RawJson>) -> Self {
        Self::Result(AnsweredResult {
            added: Bytes::new(),
            raw: raw.into(),
        })
    }

    /// A result that is an object, with members before its own. They are written as in JSON, each
    /// followed by a comma.
    pub fn with_members(added: Bytes, raw: RawJson) -> Self {
        Self::Result(AnsweredResult { added, raw })
    }

    /// The whole message, on one line.
    pub fn message(&self, id: &Id) -> Bytes {
        match self {
            Self::Error(error) => envelope::error_response(Some(id), error),
            Self::Result(result) if result.added.is_empty() => {
                envelope::response_of_bytes(id, result.raw.bytes())
            }
            Self::Result(result) => result.joined(id),
        }
    }

    /// The same as what stands before the payload, the payload as it came, and what stands behind
    /// it: nothing large is copied. Line breaks of the payload stay.
    pub(crate) fn parts(&self, id: &Id) -> [Bytes; 3] {
        let Self::Result(result) = self else {
            return [self.message(id), Bytes::new(), Bytes::new()];
        };
        let mut before = Vec::with_capacity(result.added.len() + 64);
        before.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write(&mut before);
        before.extend_from_slice(b",\"result\":");
        let payload = if result.added.is_empty() {
            result.raw.bytes().clone()
        } else {
            before.push(b'{');
            before.extend_from_slice(result.members());
            result.raw.bytes().slice_ref(result.rest())
        };
        [before.into(), payload, Bytes::from_static(b"}")]
    }

    /// How many bytes its payload has.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Result(result) => result.raw.len(),
            Self::Error(error) => error.message.len(),
        }
    }

    /// The error, where it is one.
    pub fn error(&self) -> Option<&RpcError> {
        match self {
            Self::Error(error) => Some(error),
            Self::Result(_) => None,
        }
    }
}

impl From<RpcError> for Answer {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

impl AnsweredResult {
    /// The result itself.
    pub(crate) fn payload(&self) -> &RawJson {
        &self.raw
    }

    /// The members of the result itself, behind its opening bracket.
    fn rest(&self) -> &[u8] {
        let bytes = self.raw.bytes();
        bytes.strip_prefix(b"{").unwrap_or(bytes)
    }

    fn joined(&self, id: &Id) -> Bytes {
        let mut json = Vec::with_capacity(self.added.len() + self.raw.len() + 96);
        json.push(b'{');
        json.extend_from_slice(self.members());
        json.extend_from_slice(self.rest());
        envelope::response_of_bytes(id, &json)
    }

    /// The added members, with a comma behind each that something follows.
    fn members(&self) -> &[u8] {
        if self.rest().trim_ascii_start().starts_with(b"}") {
            // Nothing follows, so neither does a comma.
            self.added.strip_suffix(b",").unwrap_or(&self.added)
        } else {
            &self.added
        }
    }
}

/// A service without state: every client has the same conversation.
pub fn stateless(conversation: Arc<dyn Conversation>) -> Arc<dyn Service> {
    Arc::new(SharedConversation(conversation))
}

struct SharedConversation(Arc<dyn Conversation>);

impl Service for SharedConversation {
    fn open(
        &self,
        _peer: &Peer,
        _unasked: Outlet,
    ) -> Result<Arc<dyn Conversation>, NoConversation> {
        Ok(Arc::clone(&self.0))
    }

    fn visit(&self, _peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        Ok(Arc::clone(&self.0))
    }
}

impl fmt::Debug for dyn Conversation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Conversation")
    }
}
