//! What can be served, and the requests of one client that are under way.
//!
//! Owns the [`Service`] trait and [`ClientSession`], which every ordered transport (stdio,
//! in-process) drives: it keeps ids apart, drops what the client cancelled, and bounds how much
//! runs at once or waits unread. HTTP has one request per exchange and needs none of it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_types::limits;
use toolway_wire::Id;
use toolway_wire::envelope::{self, Message};

use crate::client::ClientHandle;
use crate::error::RequestRefusal;

/// How many requests of one client may run or wait unread; more wait in the client's pipe.
pub const MAX_IN_FLIGHT: usize = limits::gateway::IN_FLIGHT;

/// The answer on its way; `None` for what needs no answer.
pub type ReplyFuture<'a> = Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>>;

/// Something that answers MCP messages.
pub trait Service: Send + Sync + 'static {
    /// Answers one JSON-RPC message (a request, a notification, or an answer to one of ours).
    /// A request gets exactly one answer with its id. Dropping the future cancels the request.
    fn handle(&self, message: Bytes) -> ReplyFuture<'_>;

    /// A client has come that can be told something unasked. Clients over HTTP cannot, and are
    /// not announced: there an exchange is all there is.
    fn meet(&self, _client: ClientHandle) {}
}

type RunningRequest = Pin<Box<dyn Future<Output = (Option<Id>, Option<Bytes>)> + Send>>;

/// One client's requests.
pub(crate) struct ClientSession {
    service: Arc<dyn Service>,
    running: FuturesUnordered<RunningRequest>,
    cancels: HashMap<Id, AbortHandle>,
    client: ClientHandle,
}

/// Later sends to this client fail, because it is gone.
impl Drop for ClientSession {
    fn drop(&mut self) {
        self.client.close();
    }
}

impl ClientSession {
    pub(crate) fn new(service: Arc<dyn Service>) -> Self {
        let client = ClientHandle::default();
        service.meet(client.clone());
        Self {
            service,
            running: FuturesUnordered::new(),
            cancels: HashMap::new(),
            client,
        }
    }

    /// Where answers wait to be written.
    pub(crate) fn client(&self) -> &ClientHandle {
        &self.client
    }

    /// Whether one more message may be accepted now.
    pub(crate) fn has_room(&self) -> bool {
        let (unread, room) = self.client.unread();
        room && self.running.len() + unread < MAX_IN_FLIGHT
    }

    /// Takes one message.
    pub(crate) fn accept(&mut self, message: &Bytes) {
        if let Some(refusal) = self.begin(message) {
            self.client.answer(refusal);
        }
    }

    /// Answers a message that could not be taken.
    pub(crate) fn refuse(&self, refusal: &RequestRefusal) {
        self.client.answer(refusal.answer(None));
    }

    /// Gives an answer only where the message is refused without being served.
    fn begin(&mut self, message: &Bytes) -> Option<Bytes> {
        let id = match envelope::parse_unambiguous(message) {
            Err((error, id)) => return Some(RequestRefusal::from(error).answer(id.as_ref())),
            Ok(Message::Request { id, .. }) if self.cancels.contains_key(&id) => {
                // Two answers with one id cannot be told apart (SEC-25).
                return Some(RequestRefusal::DuplicateId.answer(Some(&id)));
            }
            Ok(Message::Request { id, .. }) => Some(id),
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(params);
                }
                None
            }
            Ok(Message::Response { .. }) => None,
        };
        self.start(id, message.clone());
        None
    }

    fn start(&mut self, id: Option<Id>, message: Bytes) {
        let (handle, registration) = AbortHandle::new_pair();
        if let Some(id) = &id {
            self.cancels.insert(id.clone(), handle);
        }
        let service = Arc::clone(&self.service);
        let work = Abortable::new(async move { service.handle(message).await }, registration);
        self.running.push(Box::pin(async move {
            let answer = match work.await {
                Ok(answer) => answer,
                // The client asked not to be answered.
                Err(Aborted) => return (id, None),
            };
            // A client that waits for an answer gets one, and one that does not gets none.
            let answer = id
                .as_ref()
                .map(|id| answer.unwrap_or_else(|| RequestRefusal::NoAnswer.answer(Some(id))));
            (id, answer)
        }));
    }

    fn cancel(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
        }
        let id = params
            .and_then(|params| serde_json::from_str::<Cancelled<'_>>(params.get()).ok())
            .and_then(|cancelled| Id::read(cancelled.request_id).ok().flatten());
        if let Some(handle) = id.and_then(|id| self.cancels.get(&id)) {
            handle.abort();
        }
    }

    /// Carries on with what runs until something changes: an answer waits to be written, or one
    /// was. Losing the future loses no answer.
    pub(crate) async fn carry_on(&mut self) {
        let client = self.client.clone();
        let room = self.has_room();
        tokio::select! {
            Some((id, answer)) = self.running.next() => self.finish(id, answer),
            // Only waited for while there is no room.
            () = client.taken(), if !room => {}
            else => std::future::pending().await,
        }
    }

    /// Carries on until nothing runs and everything is written.
    pub(crate) async fn drain(&mut self) {
        while let Some((id, answer)) = self.running.next().await {
            self.finish(id, answer);
        }
        self.client.drained().await;
    }

    fn finish(&mut self, id: Option<Id>, answer: Option<Bytes>) {
        if let Some(id) = id {
            self.cancels.remove(&id);
        }
        if let Some(answer) = answer {
            self.client.answer(answer);
        }
    }
}
