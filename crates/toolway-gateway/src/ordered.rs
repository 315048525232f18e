//! The requests of one client over a pipe that are under way.
//!
//! Owns what every ordered way in (stdio, in-process) needs: it keeps ids apart, drops what the
//! client cancelled, and bounds how much runs at once or waits unread. HTTP has one request per
//! exchange and needs none of it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use futures_util::stream::FuturesUnordered;
use toolway_types::limits;
use toolway_wire::envelope::{self, ReceivedMessage};
use toolway_wire::era::method;
use toolway_wire::{Id, RawJson};

use crate::conversation::{Answer, Conversation, IncomingRequest, NoConversation, Peer, Service};
use crate::error::RequestRefusal;
use crate::outlet::Outlet;

/// How many requests of one client may run or wait unread; more wait in the client's pipe.
const MAX_IN_FLIGHT: usize = limits::gateway::IN_FLIGHT;

type RunningRequest = Pin<Box<dyn Future<Output = (Id, Option<Bytes>)> + Send>>;

/// One client's requests.
pub(crate) struct OrderedClient {
    conversation: Arc<dyn Conversation>,
    running: FuturesUnordered<RunningRequest>,
    cancels: HashMap<Id, AbortHandle>,
    outlet: Outlet,
}

/// Later sends to this client fail, because it is gone.
impl Drop for OrderedClient {
    fn drop(&mut self) {
        self.outlet.close();
    }
}

impl OrderedClient {
    pub(crate) fn new(service: &dyn Service, peer: &Peer) -> Result<Self, NoConversation> {
        let outlet = Outlet::default();
        Ok(Self {
            conversation: service.open(peer, outlet.clone())?,
            running: FuturesUnordered::new(),
            cancels: HashMap::new(),
            outlet,
        })
    }

    /// Where answers wait to be written.
    pub(crate) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Whether one more message may be accepted now.
    pub(crate) fn has_room(&self) -> bool {
        let (unread, room) = self.outlet.unread();
        room && self.running.len() + unread < MAX_IN_FLIGHT
    }

    /// Whether nothing of it is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes one message.
    pub(crate) fn accept(&mut self, message: &Bytes) {
        if let Some(refusal) = self.begin(message) {
            self.outlet.answer(refusal);
        }
    }

    /// Answers a message that could not be taken, under its id where that was seen.
    pub(crate) fn refuse(&self, refusal: &RequestRefusal, id: Option<&Id>) {
        // An answer under an id in flight would be taken for the other request's (SEC-25).
        let id = id.filter(|id| !self.cancels.contains_key(id));
        self.outlet.answer(refusal.answer(id));
    }

    /// Gives an answer only where the message is refused without being served.
    fn begin(&mut self, message: &Bytes) -> Option<Bytes> {
        match envelope::parse_unambiguous(message) {
            Err((error, id)) => return Some(RequestRefusal::from(error).answer(id.as_ref())),
            Ok(ReceivedMessage::Request { id, .. }) if self.cancels.contains_key(&id) => {
                // Two answers with one id cannot be told apart (SEC-25).
                return Some(RequestRefusal::DuplicateId.answer(Some(&id)));
            }
            Ok(ReceivedMessage::Request { id, method, params }) => {
                match IncomingRequest::without_headers(id, method, params) {
                    Ok(request) => self.start(request),
                    Err((refusal, id)) => return Some(refusal.answer(Some(&id))),
                }
            }
            Ok(ReceivedMessage::Notification { method, params }) => {
                if method == method::CANCELLED {
                    self.cancel(params.as_ref());
                } else {
                    Arc::clone(&self.conversation).notified(&method, params);
                }
            }
            Ok(ReceivedMessage::Response { id, outcome }) => {
                if let Some(id) = id {
                    self.conversation.answered(id, outcome);
                }
            }
        }
        None
    }

    fn start(&mut self, request: IncomingRequest) {
        let (handle, registration) = AbortHandle::new_pair();
        let id = request.id.clone();
        self.cancels.insert(id.clone(), handle);
        let conversation = Arc::clone(&self.conversation);
        let taken_back = conversation.taken_back(&request.method);
        let answer = conversation.request(request, self.outlet.clone());
        let work = Abortable::new(answer, registration);
        self.running.push(Box::pin(async move {
            let answer = match work.await {
                Ok(answer) => Some(answer.message(&id)),
                // In MCP, the client asked not to be answered.
                Err(Aborted) => taken_back.map(|error| Answer::from(error).message(&id)),
            };
            (id, answer)
        }));
    }

    fn cancel(&mut self, params: Option<&RawJson>) {
        let id = params.and_then(cancelled_id);
        if let Some(handle) = id.and_then(|id| self.cancels.get(&id)) {
            handle.abort();
        }
    }

    /// Carries on with what runs until something changes: an answer waits to be written, or one
    /// was. Losing the future loses no answer.
    pub(crate) async fn carry_on(&mut self) {
        let outlet = self.outlet.clone();
        let room = self.has_room();
        tokio::select! {
            Some((id, answer)) = self.running.next() => self.finish(&id, answer),
            // Only waited for while there is no room.
            () = outlet.taken(), if !room => {}
            else => std::future::pending().await,
        }
    }

    /// Carries on until nothing runs and everything is written: the client says nothing any more.
    pub(crate) async fn drain(&mut self) {
        self.conversation.ended();
        while let Some((id, answer)) = self.running.next().await {
            self.finish(&id, answer);
        }
        self.outlet.drained().await;
    }

    fn finish(&mut self, id: &Id, answer: Option<Bytes>) {
        self.cancels.remove(id);
        if let Some(answer) = answer {
            self.outlet.answer(answer);
        }
    }
}

/// The request that a client does not want answered any more.
pub(crate) fn cancelled_id(params: &RawJson) -> Option<Id> {
    let raw = toolway_wire::request_head::raw_param(params, "requestId")?;
    Id::read(raw).ok().flatten()
}
