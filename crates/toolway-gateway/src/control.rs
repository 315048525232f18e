//! Control: a program that uses Toolway as a library, over its own stdin and stdout.
//!
//! Owns the methods below `toolway/` that such a program has: its beginning (`conversation.rs`), the
//! servers that it brings (`brought.rs`) and those that live in it (`resident.rs`), calls, questions
//! put to it (`asking.rs`), hooks, agents, and what it may look at. What travels is `messages.rs`.
//! MCP on the same pipe is the service of clients (`hosted.rs`). Does not own what may run: every call
//! goes through the host's pipeline. `docs/control.md` is the contract.

mod asking;
mod brought;
mod calls;
mod conversation;
mod error;
mod events;
mod hooks;
mod looking;
pub mod messages;
mod methods;
mod program;
mod resident;
mod rows;
mod servers;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use toolway::{Host, Tracer, UserSetup};

use self::conversation::ControlConversation;
pub use self::methods::{ASKED_OF_PROGRAM, METHODS, TOLD};
use crate::conversation::{Conversation, NoConversation, Peer, Service};
use crate::hosted::{OwnerService, ServiceDriver};
use crate::outlet::Outlet;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// What a program is served.
pub struct ControlOptions {
    /// What carries its calls. Its owner's view should show no more than what hooks need: servers are
    /// seen by the program's own.
    pub host: Arc<Host>,
    /// Whose files count.
    pub setup: Arc<UserSetup>,
    /// What makes spans of requests, where they are wanted.
    pub tracer: Option<Tracer>,
}

/// The service for one program.
pub struct ControlService(Arc<ControlCore>);

/// What all that serves one program shares.
struct ControlCore {
    host: Arc<Host>,
    setup: Arc<UserSetup>,
    tracer: Option<Tracer>,
    beside: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    /// What its owner is served, once the program has said something.
    owner: watch::Sender<Option<Arc<OwnerService>>>,
}

impl ControlService {
    /// Serves a program. What must run beside is to be polled as long as it is served.
    pub fn new(options: ControlOptions) -> (Self, ServiceDriver) {
        let (beside, incoming) = mpsc::unbounded_channel();
        let core = ControlCore {
            host: options.host,
            setup: options.setup,
            tracer: options.tracer,
            beside,
            owner: watch::Sender::default(),
        };
        (Self(Arc::new(core)), Box::pin(drive(incoming)))
    }

    /// What the owner of the host is served: who is there, and the questions that wait for nobody but
    /// them. There is none before the program has said something.
    pub async fn owner(&self) -> Arc<OwnerService> {
        let mut owner = self.0.owner.subscribe();
        let begun = owner.wait_for(Option::is_some).await;
        match begun.ok().and_then(|owner| owner.clone()) {
            Some(owner) => owner,
            // Its sender is this value's own.
            None => std::future::pending().await,
        }
    }
}

impl ControlCore {
    /// Has something run beside requests.
    fn beside(&self, work: BoxFuture<'static, ()>) {
        // Without a driver nothing runs any more.
        let _ = self.beside.send(work);
    }
}

impl Service for ControlService {
    fn open(&self, peer: &Peer, unasked: Outlet) -> Result<Arc<dyn Conversation>, NoConversation> {
        let core = Arc::clone(&self.0);
        Ok(Arc::new(ControlConversation::new(core, peer, unasked)))
    }

    fn visit(&self, _peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        // A program has a pipe.
        Err(NoConversation::NoEndpoint)
    }
}

async fn drive(mut incoming: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(work) = incoming.recv() => running.push(work),
            Some(()) = running.next() => {}
            else => std::future::pending().await,
        }
    }
}
