//! Servers that live in the program: MCP inside `toolway/servers/message`, in both directions.
//!
//! Owns the connections to one such server, which answer is to which request, and that what one
//! connection leaves is over with it. A program's answer counts only for the request that it was asked:
//! it can never be taken for another's. What the messages mean is the host's, which is their client.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};
use toolway::{InProcessServer, ServerEnd};
use toolway_wire::envelope::{self, ReceivedMessage};
use toolway_wire::era::method;
use toolway_wire::{Id, RawJson, RpcError, error};

use super::error::ControlError;
use super::messages::{ClosedConnection, MessageParams, MessageReply};
use super::methods::{CLOSED, MESSAGE};
use crate::client_questions::ClientQuestions;
use crate::ordered::cancelled_id;
use crate::outlet::Outlet;

/// A server that lives in the program.
pub(super) struct Resident {
    name: String,
    questions: Arc<ClientQuestions>,
    outlet: Outlet,
    manifest: Option<Manifest>,
    last: AtomicU64,
    open: Mutex<BTreeMap<u64, ResidentConnection>>,
}

/// What a server says at the start, known beforehand.
struct Manifest {
    initialize: Box<RawValue>,
    tools: Option<Box<RawValue>>,
}

/// One connection, as the program reaches it.
#[derive(Clone)]
struct ResidentConnection {
    to_host: mpsc::Sender<Bytes>,
    /// The server's own requests that the host has not answered.
    waiting: Arc<Mutex<HashMap<Id, oneshot::Sender<Bytes>>>>,
}

impl Resident {
    /// By the entry that says so.
    pub(super) fn new(
        name: &str,
        manifest: Option<&Value>,
        questions: Arc<ClientQuestions>,
        outlet: Outlet,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            questions,
            outlet,
            manifest: manifest.and_then(Manifest::read),
            last: AtomicU64::new(0),
            open: Mutex::default(),
        })
    }

    /// As something that the host connects to.
    pub(super) fn object(self: &Arc<Self>) -> InProcessServer {
        let resident = Arc::clone(self);
        Arc::new(move |end| {
            let resident = Arc::clone(&resident);
            Box::pin(async move { resident.serve(end).await })
        })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, ResidentConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries what the host says to the program, and its answers back, until the host is gone.
    async fn serve(&self, end: ServerEnd) {
        let ServerEnd {
            mut incoming,
            outgoing,
        } = end;
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let connection = ResidentConnection {
            to_host: outgoing.clone(),
            waiting: Arc::default(),
        };
        self.open().insert(number, connection.clone());
        let _registered = Registered { of: self, number };
        let mut exchange = Exchange {
            resident: self,
            connection: &connection,
            number,
            running: FuturesUnordered::new(),
            aborts: HashMap::new(),
            is_listed: false,
        };
        loop {
            tokio::select! {
                message = incoming.recv() => match message {
                    Some(message) => exchange.pass_on(&message),
                    None => return,
                },
                Some((id, reply)) = exchange.running.next() => {
                    if let Some(id) = &id {
                        exchange.aborts.remove(id);
                    }
                    if let Some(reply) = reply
                        && outgoing.send(reply).await.is_err()
                    {
                        return;
                    }
                }
            }
        }
    }

    /// Takes a message of the program's for one connection; gives the host's answer where it is a
    /// request.
    pub(super) async fn hear(
        &self,
        number: u64,
        message: RawJson,
    ) -> Result<Option<RawJson>, ControlError> {
        let connection = self.open().get(&number).cloned();
        let connection = connection.ok_or_else(|| {
            let message = format!("server `{}` has no connection {number}", self.name);
            ControlError::unavailable(message, "disconnected")
        })?;
        let gone = || {
            let message = format!("connection {number} of server `{}` has ended", self.name);
            ControlError::unavailable(message, "disconnected")
        };
        let bytes = message.bytes().clone();
        match envelope::parse_unambiguous(&bytes) {
            Err((why, _)) => Err(ControlError::invalid(why.to_string())),
            Ok(ReceivedMessage::Notification { .. }) => {
                connection.to_host.send(bytes).await.map_err(|_| gone())?;
                Ok(None)
            }
            Ok(ReceivedMessage::Response { .. }) => Err(ControlError::invalid(
                "an answer belongs into the answer to the request that it is for",
            )),
            Ok(ReceivedMessage::Request { id, .. }) => {
                let (sender, answer) = oneshot::channel();
                let waiting = WaitingRequest {
                    connection: &connection,
                    id,
                };
                {
                    let mut all = lock(&connection.waiting);
                    if all.contains_key(&waiting.id) {
                        return Err(ControlError::invalid("a request of this id waits already"));
                    }
                    all.insert(waiting.id.clone(), sender);
                }
                connection.to_host.send(bytes).await.map_err(|_| gone())?;
                let reply = answer.await.map_err(|_| gone())?;
                RawJson::read(&reply)
                    .map(Some)
                    .map_err(|error| ControlError::internal(error.to_string()))
            }
        }
    }
}

/// Keeps a connection reachable.
struct Registered<'a> {
    of: &'a Resident,
    number: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let connection = self.of.open().remove(&self.number);
        if let Some(connection) = connection {
            // Whoever waits hears that it is over.
            lock(&connection.waiting).clear();
        }
        let over = ClosedConnection {
            server: &self.of.name,
            connection: self.number,
        };
        let params = to_raw_value(&over).ok();
        let told = envelope::notification(CLOSED, params.as_deref());
        self.of.outlet.notify(told);
    }
}

/// A request of the server that nobody waits for any more when this goes.
struct WaitingRequest<'a> {
    connection: &'a ResidentConnection,
    id: Id,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        lock(&self.connection.waiting).remove(&self.id);
    }
}

/// What goes on between the host and the program over one connection.
struct Exchange<'a> {
    resident: &'a Resident,
    connection: &'a ResidentConnection,
    number: u64,
    running: FuturesUnordered<BoxFuture<'static, (Option<Id>, Option<Bytes>)>>,
    /// By the ids of the host's requests.
    aborts: HashMap<Id, AbortHandle>,
    /// Whether the tools of the manifest were told.
    is_listed: bool,
}

impl Exchange<'_> {
    /// Passes one message of the host on.
    fn pass_on(&mut self, message: &Bytes) {
        let received = match envelope::parse_unambiguous(message) {
            Ok(received) => received,
            Err((error, _)) => {
                tracing::debug!(%error, "a message of the host was not passed on");
                return;
            }
        };
        match received {
            ReceivedMessage::Response { id, .. } => {
                let waiting = id.and_then(|id| lock(&self.connection.waiting).remove(&id));
                if let Some(waiting) = waiting {
                    // The program may have taken it back.
                    let _ = waiting.send(message.clone());
                }
            }
            ReceivedMessage::Notification { method, params } => {
                if method == method::CANCELLED
                    && let Some(id) = params.as_ref().and_then(cancelled_id)
                    && let Some(abort) = self.aborts.remove(&id)
                {
                    abort.abort();
                }
                // Its answer says nothing.
                if let Ok(put) = self.put(message) {
                    self.running.push(Box::pin(async move {
                        let _ = put.answer().await;
                        (None, None)
                    }));
                }
            }
            ReceivedMessage::Request { id, method, .. } => {
                if let Some(known) = self.known(&id, &method) {
                    self.running
                        .push(Box::pin(async move { (Some(id), Some(known)) }));
                    return;
                }
                let put = self.put(message);
                let (handle, registration) = AbortHandle::new_pair();
                self.aborts.insert(id.clone(), handle);
                self.running.push(Box::pin(async move {
                    let answered = async {
                        let answer = match put {
                            Ok(put) => put.answer().await,
                            Err(error) => Err(error),
                        };
                        match answer {
                            Ok(answer) => reply_to(&id, &answer),
                            Err(error) => envelope::error_response(Some(&id), &error),
                        }
                    };
                    let reply = Abortable::new(answered, registration).await.ok();
                    (Some(id), reply)
                }));
            }
        }
    }

    fn put(&self, message: &Bytes) -> Result<crate::client_questions::PutQuestion, RpcError> {
        let unread =
            |error: serde_json::Error| RpcError::new(error::INTERNAL_ERROR, error.to_string());
        let message = RawJson::read(message).map_err(unread)?;
        let params = to_raw_value(&MessageParams {
            server: self.resident.name.as_str().into(),
            connection: self.number,
            message: message.as_raw(),
        });
        let resident = self.resident;
        resident
            .questions
            .put(&resident.outlet, MESSAGE, &params.map_err(unread)?)
    }

    /// What the manifest says to a request.
    fn known(&mut self, id: &Id, method: &str) -> Option<Bytes> {
        let manifest = self.resident.manifest.as_ref()?;
        match method {
            method::INITIALIZE => Some(envelope::response(id, &manifest.initialize)),
            method::DISCOVER => {
                let error = RpcError::new(error::METHOD_NOT_FOUND, "method not found");
                Some(envelope::error_response(Some(id), &error))
            }
            method::TOOLS_LIST if !self.is_listed => {
                let tools = manifest.tools.as_ref()?;
                self.is_listed = true;
                Some(envelope::response(id, tools))
            }
            _ => None,
        }
    }
}

impl Manifest {
    fn read(manifest: &Value) -> Option<Self> {
        let tools = manifest.get("tools").filter(|tools| tools.is_array());
        let listed = tools.map(|tools| to_raw_value(&serde_json::json!({ "tools": tools })));
        Some(Self {
            initialize: to_raw_value(manifest.get("initialize")?).ok()?,
            tools: listed.and_then(Result::ok),
        })
    }
}

/// The message that answers a request, as the program gave it, if it does answer that one.
fn reply_to(id: &Id, answer: &RawJson) -> Bytes {
    let wrong = |why: &str| {
        let error = RpcError::new(error::INTERNAL_ERROR, why);
        envelope::error_response(Some(id), &error)
    };
    let reply: Result<MessageReply<'_>, _> = serde_json::from_str(answer.get());
    let Ok(MessageReply {
        message: Some(message),
    }) = reply
    else {
        return wrong("the program gave no answer");
    };
    let message = RawJson::part_of(answer.bytes(), message);
    match envelope::parse_unambiguous(message.bytes()) {
        Ok(ReceivedMessage::Response {
            id: Some(answered), ..
        }) if answered == *id => message.into(),
        _ => wrong("the program answered something else"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
