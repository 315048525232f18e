//! The transport of 2024-11-05: one long stream to the client, and an address that it posts to.
//!
//! Owns the clients that are connected in this way. Each is like one on a pipe: what it posts is
//! taken in order, and when its stream ends, all that it asked for is dropped. The address names
//! the client, so only the principal that opened the stream can use it (SEC-26).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::access::Identity;
use super::body;
use super::closing::UntilClosing;
use super::events::{self, EventSource};
use super::front::Front;
use super::lease::leased;
use super::respond::{self, HttpResponse};
use super::sessions::SessionId;
use super::visitor::Visitor;
use crate::conversation::Peer;
use crate::error::RequestRefusal;
use crate::ordered::OrderedClient;
use crate::outlet::Outlet;

/// How many messages of one client wait to be taken.
const MAX_WAITING: usize = 64;

/// The clients that are connected.
#[derive(Default)]
pub(super) struct OldClients {
    open: Mutex<HashMap<SessionId, OldClient>>,
}

struct OldClient {
    principal: Arc<str>,
    profile: Option<Arc<str>>,
    messages: mpsc::Sender<Bytes>,
}

impl OldClients {
    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, OldClient>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the stream of a client.
pub(super) fn open(
    front: &Arc<Front>,
    clients: &Arc<OldClients>,
    visitor: &Visitor,
    peer: &Peer,
) -> HttpResponse {
    let held = match visitor.stream(front, &peer.principal) {
        Ok(held) => held,
        Err(refusal) => return front.refuse(&refusal, None),
    };
    let client = match OrderedClient::new(&*front.service, peer) {
        Ok(client) => client,
        Err(none) => return front.refuse(&none.into(), None),
    };
    let Some(id) = SessionId::random() else {
        return front.refuse(&RequestRefusal::Internal, None);
    };
    let (messages, incoming) = mpsc::channel(MAX_WAITING);
    clients.open().insert(
        id,
        OldClient {
            principal: Arc::clone(&peer.principal),
            profile: peer.profile.clone(),
            messages,
        },
    );
    let source = OldStream {
        opening: Some(format!("/messages?sessionId={}", id.text())),
        outlet: client.outlet().clone(),
        talking: Box::pin(talk(client, incoming)),
        _entry: OldClientEntry {
            clients: Arc::clone(clients),
            id,
        },
    };
    let source = UntilClosing::new(Box::new(source), &front.closing);
    respond::events(leased(Box::new(source), held, &peer.lease))
}

/// Takes a message of a client; its answer comes on the client's stream.
pub(super) async fn post(
    front: &Arc<Front>,
    clients: &Arc<OldClients>,
    identity: &Identity,
    query: Option<&str>,
    body: Incoming,
) -> HttpResponse {
    let mut pairs = query.unwrap_or_default().split('&');
    let id = pairs.find_map(|pair| pair.strip_prefix("sessionId="));
    let messages = id.and_then(SessionId::read).and_then(|id| {
        let open = clients.open();
        let client = open.get(&id)?;
        let is_its = client.principal == identity.principal && client.profile == identity.profile;
        is_its.then(|| client.messages.clone())
    });
    let Some(messages) = messages else {
        return front.refuse(&RequestRefusal::NoSession, None);
    };
    let (message, _share) = match body::read(body, &front.body_budget).await {
        Ok(read) => read,
        Err(refusal) => return front.refuse(&refusal, None),
    };
    match messages.try_send(message) {
        Ok(()) => respond::text(StatusCode::ACCEPTED, "Accepted"),
        Err(mpsc::error::TrySendError::Full(_)) => {
            front.refuse(&RequestRefusal::TooMany { what: "requests" }, None)
        }
        Err(mpsc::error::TrySendError::Closed(_)) => front.refuse(&RequestRefusal::NoSession, None),
    }
}

/// Takes messages and carries on with what runs. Ends with its stream.
async fn talk(mut client: OrderedClient, mut incoming: mpsc::Receiver<Bytes>) {
    loop {
        tokio::select! {
            message = incoming.recv(), if client.has_room() => match message {
                Some(message) => client.accept(&message),
                None => return,
            },
            () = client.carry_on() => {}
        }
    }
}

/// The place among those connected.
struct OldClientEntry {
    clients: Arc<OldClients>,
    id: SessionId,
}

impl Drop for OldClientEntry {
    fn drop(&mut self) {
        self.clients.open().remove(&self.id);
    }
}

/// What a client is told.
struct OldStream {
    /// Where to post to.
    opening: Option<String>,
    outlet: Outlet,
    talking: BoxFuture<'static, ()>,
    _entry: OldClientEntry,
}

impl EventSource for OldStream {
    fn poll_events(
        &mut self,
        context: &mut Context<'_>,
        ready: &mut VecDeque<Bytes>,
    ) -> Poll<bool> {
        if let Some(address) = self.opening.take() {
            ready.push_back(events::named("endpoint", &address));
            return Poll::Ready(true);
        }
        if self.talking.as_mut().poll(context).is_ready() {
            return Poll::Ready(false);
        }
        match self.outlet.poll_next(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(false),
            Poll::Ready(Some(message)) => {
                ready.push_back(events::message(None, &message));
                self.outlet.written();
                Poll::Ready(true)
            }
        }
    }
}
