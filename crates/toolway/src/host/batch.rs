//! Several calls at once, as one turn of a model asks for them.
//!
//! Owns what runs beside what. Calls of tools that say they only read run beside each other; any
//! other call waits for all before it, and all behind it wait for it, so that no call reads what
//! was true before a write that was asked for earlier. A caller whose calls have nothing to do with
//! each other says so ([`BatchOrder::Parallel`]). That a tool only reads is its server's word: it
//! decides what runs beside what and nothing more, least of all permission (SEC-34).
//!
//! Invariants: outcomes come in the order asked, each its own; at most [`MAX_PARALLEL`] calls are
//! under way, and at most [`MAX_AHEAD`] outcomes wait for one before them; dropping the stream
//! cancels every call that has not ended.

use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::{RwLock, Semaphore, oneshot};
use toolway_types::limits;

use super::attached::CallingParty;
use super::{Attached, HostCore};
use crate::audit::AuditEntry;
use crate::call::{BatchOrder, CallOptions, CallResult, ToolRequest};

/// How many calls of one batch are under way at most.
const MAX_PARALLEL: usize = limits::call::PARALLEL;

/// How far a batch goes on while its first call is not done: what came of the others waits, and
/// servers decide how large that is.
const MAX_AHEAD: usize = 32;

impl Attached {
    /// Makes several calls under the same conditions, each as [`Attached::call`] does, and gives their
    /// outcomes in the order asked. Calls that only read by their server's word run beside each
    /// other; any other waits for all before it, and what comes behind it waits for it. With
    /// [`BatchOrder::Parallel`] nothing waits. Dropping the future cancels all of them.
    pub async fn call_all(
        &self,
        requests: Vec<ToolRequest>,
        options: CallOptions,
    ) -> Vec<CallResult> {
        self.call_each(requests, options).collect().await
    }

    /// As [`Attached::call_all`], giving each outcome as soon as it and all before it are there.
    pub fn call_each(
        &self,
        requests: Vec<ToolRequest>,
        options: CallOptions,
    ) -> impl Stream<Item = CallResult> + Send + '_ {
        let room = std::sync::Arc::new(BatchLimits {
            places: Semaphore::new(MAX_PARALLEL),
            writing: RwLock::new(()),
        });
        let (first, mut before) = oneshot::channel();
        // Nothing is before the first.
        drop(first);
        let calls = requests.into_iter().map(move |request| {
            let (done, next) = oneshot::channel();
            let turn = BatchTurn {
                before: std::mem::replace(&mut before, next),
                done,
            };
            let (room, options) = (std::sync::Arc::clone(&room), options.clone());
            let (core, party) = (&*self.core, &*self.party);
            async move { core.in_turn(party, request, options, turn, &room).await }
        });
        stream::iter(calls).buffered(MAX_AHEAD)
    }
}

/// What the calls of one batch share.
struct BatchLimits {
    /// So many may be under way.
    places: Semaphore,
    /// Shared by those that only read, held alone by one that may write.
    writing: RwLock<()>,
}

/// A place in the order asked. Every call has one, because which kind it is shows only when its
/// server is there; until then the calls behind it cannot know whether to wait for it.
struct BatchTurn {
    before: oneshot::Receiver<()>,
    /// Dropped, it lets the next one go.
    done: oneshot::Sender<()>,
}

impl BatchTurn {
    /// Waits until all before it have begun; the next goes when what is given is dropped.
    async fn comes(self) -> oneshot::Sender<()> {
        // An error is what is waited for: the one before was dropped.
        let _ = self.before.await;
        self.done
    }
}

impl HostCore {
    async fn in_turn(
        &self,
        party: &CallingParty,
        request: ToolRequest,
        options: CallOptions,
        turn: BatchTurn,
        room: &BatchLimits,
    ) -> CallResult {
        let order = options.order;
        let waited = party.await_server(&request.target, &options, || ());
        if let Err(error) = waited.await {
            // It was waited for as long as the call may take: it is not waited for again.
            let mut entry = AuditEntry::begin(self.audit.as_ref(), &request, &party.side);
            entry.awaited(&request.arguments);
            let outcome = Err(error);
            let (done, ()) = tokio::join!(turn.comes(), entry.finish(&outcome));
            drop(done);
            return outcome;
        }
        let call = async {
            // Never an error: it is never closed.
            let _place = room.places.acquire().await;
            self.call(party, request.clone(), options).await
        };
        if order == BatchOrder::Parallel {
            let pass = async { drop(turn.comes().await) };
            return tokio::join!(call, pass).0;
        }
        let turn = turn.comes().await;
        // The next one goes once this one has its hold: it queues behind it, never before.
        if party.only_reads(&request) {
            let _beside = room.writing.read().await;
            drop(turn);
            call.await
        } else {
            let _alone = room.writing.write().await;
            drop(turn);
            call.await
        }
    }
}

impl CallingParty {
    fn only_reads(&self, request: &ToolRequest) -> bool {
        let snapshot = self.view.snapshot();
        let tool = snapshot.catalog.find(&request.target);
        tool.is_ok_and(|tool| tool.hints.read_only == Some(true))
    }
}
