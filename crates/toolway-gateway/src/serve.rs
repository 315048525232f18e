//! What can be served, and the requests of one client that are under way.
//!
//! Owns the [`Service`] trait and [`Conversation`], which every ordered transport (stdio,
//! in-process) drives: it keeps ids apart, drops what the client cancelled, and bounds how much
//! runs at once. HTTP has one request per exchange and needs none of it.

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
use toolway_wire::Id;
use toolway_wire::envelope::{self, Message};

use crate::error::Refusal;

/// How many requests of one client may run at once; more wait in the client's pipe.
pub const MAX_IN_FLIGHT: usize = 256;

/// The answer on its way; `None` for what needs no answer.
pub type Reply<'a> = Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>>;

/// Something that answers MCP messages.
pub trait Service: Send + Sync + 'static {
    /// Answers one JSON-RPC message (a request, a notification, or an answer to one of ours).
    /// A request gets exactly one answer with its id. Dropping the future cancels the request.
    fn handle(&self, message: Bytes) -> Reply<'_>;
}

type Running = Pin<Box<dyn Future<Output = (Option<Id>, Option<Bytes>)> + Send>>;

/// One client's requests.
pub(crate) struct Conversation {
    service: Arc<dyn Service>,
    running: FuturesUnordered<Running>,
    cancels: HashMap<Id, AbortHandle>,
}

impl Conversation {
    pub(crate) fn new(service: Arc<dyn Service>) -> Self {
        Self {
            service,
            running: FuturesUnordered::new(),
            cancels: HashMap::new(),
        }
    }

    /// Whether one more message may be accepted now.
    pub(crate) fn has_room(&self) -> bool {
        self.running.len() < MAX_IN_FLIGHT
    }

    /// Takes one message. Gives an answer only where it is refused without being served.
    pub(crate) fn accept(&mut self, message: &Bytes) -> Option<Bytes> {
        let id = match envelope::parse(message) {
            Err(error) => return Some(Refusal::from(error).answer(None)),
            Ok(Message::Request { id, .. }) if self.cancels.contains_key(&id) => {
                // Two answers with one id cannot be told apart (SEC-25).
                return Some(Refusal::DuplicateId.answer(Some(&id)));
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
                .map(|id| answer.unwrap_or_else(|| Refusal::NoAnswer.answer(Some(id))));
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

    /// The next answer; `None` when nothing runs any more. Losing the future loses no answer.
    pub(crate) async fn finish_one(&mut self) -> Option<Bytes> {
        while let Some((id, answer)) = self.running.next().await {
            if let Some(id) = id {
                self.cancels.remove(&id);
            }
            if answer.is_some() {
                return answer;
            }
        }
        None
    }

    /// The next answer. Waits for ever while nothing runs.
    pub(crate) async fn answer(&mut self) -> Bytes {
        match self.finish_one().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}
