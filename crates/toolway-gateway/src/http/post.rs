//! Messages that clients send: requests, notifications and answers, of both eras.
//!
//! Owns which era a message is of, and everything that belongs to no session. What belongs to one
//! is [`legacy`](super::legacy)'s.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use toolway_types::Era;
use toolway_wire::envelope::{self, ReceivedMessage};
use toolway_wire::era::method;
use toolway_wire::headers::SESSION_ID;
use toolway_wire::{Id, RawJson, RequestHead, RpcError};

use super::body;
use super::exchange::{Reads, SingleExchange};
use super::front::Front;
use super::headers;
use super::legacy;
use super::lookup::{has, only};
use super::options::SessionPolicy;
use super::quota::Counted;
use super::respond::{self, HttpResponse};
use super::sessions::HttpSession;
use super::visitor::Visitor;
use crate::conversation::{IncomingRequest, Peer};
use crate::error::RequestRefusal;
use crate::ordered::cancelled_id;
use crate::outlet::Outlet;

/// Takes one message.
pub(super) async fn post(
    front: &Arc<Front>,
    visitor: &Visitor,
    peer: Peer,
    mut headers: HeaderMap,
    body: Incoming,
) -> HttpResponse {
    let session = match session_of(&headers) {
        Ok(session) => session,
        Err(refusal) => return front.refuse(&refusal, None),
    };
    // What was for us is for nobody behind us (SEC-46).
    for name in [&AUTHORIZATION, &PROXY_AUTHORIZATION, &COOKIE, &SESSION_ID] {
        if has(&headers, name) {
            headers.remove(name);
        }
    }
    // The share is held until the answer is there: the message is, too.
    let (message, share) = match body::read(body, &front.body_budget).await {
        Ok(read) => read,
        Err(refusal) => return front.refuse(&refusal, None),
    };
    let post = ClientPost {
        front,
        visitor,
        peer,
        session,
    };
    match parse(&message) {
        Err((refusal, id)) => front.refuse(&refusal, id.as_ref()),
        Ok(ReceivedMessage::Request { id, method, params }) => {
            match incoming(id, method, params, headers) {
                Ok(request) => post.request(request, Box::new(share)).await,
                Err((refusal, id)) => front.refuse(&refusal, Some(&id)),
            }
        }
        Ok(ReceivedMessage::Notification { method, params }) => {
            post.tell(&headers, ClientWord::Notification { method, params })
        }
        Ok(ReceivedMessage::Response { id, outcome }) => {
            post.tell(&headers, ClientWord::Answer { id, outcome })
        }
    }
}

/// The session that a client names; it can name one.
fn session_of(headers: &HeaderMap) -> Result<Option<String>, RequestRefusal> {
    if !has(headers, &SESSION_ID) {
        return Ok(None);
    }
    match only(headers, &SESSION_ID) {
        Some(id) => Ok(Some(id.to_owned())),
        None => Err(RequestRefusal::NoSession),
    }
}

fn parse(message: &Bytes) -> Result<ReceivedMessage, (RequestRefusal, Option<Id>)> {
    match envelope::parse_unambiguous(message) {
        Ok(received) => Ok(received),
        Err(_) if message.trim_ascii_start().starts_with(b"[") => {
            Err((RequestRefusal::Batch, None))
        }
        Err((error, id)) => Err((error.into(), id)),
    }
}

/// A request with what it says of itself, if that fits together.
fn incoming(
    id: Id,
    method: String,
    params: Option<RawJson>,
    headers: HeaderMap,
) -> Result<IncomingRequest, (RequestRefusal, Id)> {
    let checked = RequestHead::read(params.as_ref())
        .map_err(RequestRefusal::Params)
        .and_then(|head| {
            let era = headers::check(&headers, &method, params.as_ref(), &head)?;
            Ok((head, era))
        });
    match checked {
        Ok((head, era)) => Ok(IncomingRequest {
            id,
            method,
            params,
            head,
            era,
            headers: Some(headers),
            trace: None,
        }),
        Err(refusal) => Err((refusal, id)),
    }
}

/// What a client says without asking anything.
enum ClientWord {
    Notification {
        method: String,
        params: Option<RawJson>,
    },
    Answer {
        id: Option<Id>,
        outcome: Result<RawJson, RpcError>,
    },
}

/// One message on its way in.
struct ClientPost<'a> {
    front: &'a Arc<Front>,
    visitor: &'a Visitor,
    peer: Peer,
    /// The session that it says it belongs to.
    session: Option<String>,
}

impl ClientPost<'_> {
    async fn request(self, request: IncomingRequest, held: Box<dyn Send + Sync>) -> HttpResponse {
        let id = request.id.clone();
        let front = self.front;
        let permit = match front.permit(&self.peer.principal, Counted::Call) {
            Ok(permit) => permit,
            Err(refusal) => return front.refuse(&refusal, Some(&id)),
        };
        let held: Box<dyn Send + Sync> = Box::new((permit, held));
        if request.era == Era::Modern {
            return self.single(request, held).await;
        }
        if request.method == method::INITIALIZE {
            return legacy::initialize(front, &self.peer, request).await;
        }
        match self.of_session() {
            Ok(Some(session)) => {
                legacy::call(front, self.visitor, &self.peer, &session, request, held).await
            }
            Ok(None) => self.single(request, held).await,
            Err(refusal) => front.refuse(&refusal, Some(&id)),
        }
    }

    /// The session of a legacy message; none where it stands for itself.
    fn of_session(&self) -> Result<Option<Arc<HttpSession>>, RequestRefusal> {
        match &self.session {
            Some(id) => match self.front.sessions.find(id, &self.peer) {
                Some(session) => Ok(Some(session)),
                None => Err(RequestRefusal::NoSession),
            },
            None if self.front.policy == SessionPolicy::Required => {
                Err(RequestRefusal::SessionMissing)
            }
            None => Ok(None),
        }
    }

    /// A request that belongs to no session.
    async fn single(self, request: IncomingRequest, held: Box<dyn Send + Sync>) -> HttpResponse {
        let Self {
            front,
            visitor,
            peer,
            ..
        } = self;
        let stream = || visitor.stream(front, &peer.principal).ok();
        let conversation = match front.service.visit(&peer) {
            Ok(conversation) => conversation,
            Err(none) => return front.refuse(&none.into(), Some(&request.id)),
        };
        if request.method == method::SUBSCRIPTIONS_LISTEN
            && !front
                .quotas
                .of(&peer.principal)
                .has_room(Counted::Stream, front.limits.streams)
        {
            // It is nothing without a stream.
            let refusal = RequestRefusal::TooMany {
                what: "event streams",
            };
            return front.refuse(&refusal, Some(&request.id));
        }
        let reads = (request.headers.as_ref()).map_or(Reads::Json, Reads::of);
        let outlet = Outlet::default();
        let exchange = SingleExchange {
            id: request.id.clone(),
            era: request.era,
            answer: conversation.request(request, outlet.clone()),
            outlet,
            held,
        };
        exchange
            .respond(reads, &peer.lease, &visitor.patience, stream)
            .await
    }

    /// Passes on what needs no answer.
    fn tell(self, headers: &HeaderMap, word: ClientWord) -> HttpResponse {
        match self.told(headers, word) {
            Ok(()) => respond::empty(StatusCode::ACCEPTED),
            Err(refusal) => self.front.refuse(&refusal, None),
        }
    }

    fn told(&self, headers: &HeaderMap, word: ClientWord) -> Result<(), RequestRefusal> {
        headers::check_version(headers)?;
        let session = self.of_session()?;
        let conversation = match &session {
            Some(session) => session.conversation(),
            None => self.front.service.visit(&self.peer)?,
        };
        match (word, session) {
            (ClientWord::Notification { method, params }, session)
                if method == method::CANCELLED =>
            {
                // Outside a session, closing the connection is the way.
                if let (Some(session), Some(id)) = (session, params.as_ref().and_then(cancelled_id))
                {
                    session.cancel(&id);
                }
            }
            (ClientWord::Notification { method, params }, _) => {
                conversation.notified(&method, params);
            }
            (ClientWord::Answer { id, outcome }, _) => {
                if let Some(id) = id {
                    conversation.answered(id, outcome);
                }
            }
        }
        Ok(())
    }
}
