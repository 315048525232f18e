//! Several calls at once, as one turn of a model asks for them.
//!
//! Owns what runs beside what. Calls of tools that say they only read run beside everything else;
//! the others run one after the other, in the order asked. That a tool only reads is its server's
//! word: it decides what runs beside what and nothing more, least of all permission (SEC-34).
//!
//! Invariants: outcomes come in the order asked, each its own; at most [`MAX_PARALLEL`] calls are
//! under way, and at most [`MAX_AHEAD`] outcomes wait for one before them; dropping the stream
//! cancels every call that has not ended.

use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::{Semaphore, oneshot};

use super::{Host, Reach};
use crate::audit::Entry;
use crate::call::{CallError, CallOptions, ToolOutcome, ToolRequest};

/// How many calls of one batch are under way at most.
const MAX_PARALLEL: usize = 10;

/// How far a batch goes on while its first call is not done: what came of the others waits, and
/// servers decide how large that is.
const MAX_AHEAD: usize = 32;

type Outcome = Result<ToolOutcome, CallError>;

impl Host {
    /// Makes several calls under the same conditions, each as [`Host::call`] does, and gives their
    /// outcomes in the order asked. Calls that only read by their server's word run beside each
    /// other and beside the rest, the rest one after the other: what has to see the effect of
    /// another call belongs in the next batch. Dropping the future cancels all of them.
    pub async fn call_all(&self, requests: Vec<ToolRequest>, options: CallOptions) -> Vec<Outcome> {
        self.call_each(requests, options).collect().await
    }

    /// As [`Host::call_all`], giving each outcome as soon as it and all before it are there.
    pub fn call_each(
        &self,
        requests: Vec<ToolRequest>,
        options: CallOptions,
    ) -> impl Stream<Item = Outcome> + Send + '_ {
        let room = std::sync::Arc::new(Semaphore::new(MAX_PARALLEL));
        let (first, mut before) = oneshot::channel();
        // Nobody is before the first.
        drop(first);
        let calls = requests.into_iter().map(move |request| {
            let (done, next) = oneshot::channel();
            let turn = Turn {
                before: std::mem::replace(&mut before, next),
                done,
            };
            let (room, options) = (std::sync::Arc::clone(&room), options.clone());
            let reach = &*self.reach;
            async move { reach.in_turn(request, options, turn, &room).await }
        });
        stream::iter(calls).buffered(MAX_AHEAD)
    }
}

/// A place among the calls that run one after the other. Every call has one, because which kind
/// it is shows only when its server is there.
struct Turn {
    before: oneshot::Receiver<()>,
    /// Dropped, it lets the next one go.
    done: oneshot::Sender<()>,
}

impl Turn {
    /// Waits until all before it are done; the next goes when what is given is dropped.
    async fn comes(self) -> oneshot::Sender<()> {
        // An error is what is waited for: the one before was dropped.
        let _ = self.before.await;
        self.done
    }
}

impl Reach {
    async fn in_turn(
        &self,
        request: ToolRequest,
        options: CallOptions,
        turn: Turn,
        room: &Semaphore,
    ) -> Outcome {
        if let Err(error) = self.await_server(&request.target, &options, || ()).await {
            // It was waited for as long as the call may take: it is not waited for again.
            let mut entry = match &self.audit {
                Some(audit) => audit.begin(&request, &options),
                None => Entry::none(),
            };
            entry.asked(&request.arguments);
            let outcome = Err(error);
            let (done, ()) = tokio::join!(turn.comes(), entry.finish(&outcome));
            drop(done);
            return outcome;
        }
        let call = async {
            // Never an error: nobody closes it.
            let _room = room.acquire().await;
            self.call(request.clone(), options).await
        };
        if self.only_reads(&request) {
            let pass = async { drop(turn.comes().await) };
            tokio::join!(call, pass).0
        } else {
            let _done = turn.comes().await;
            call.await
        }
    }

    fn only_reads(&self, request: &ToolRequest) -> bool {
        let picture = self.snapshot();
        let tool = picture.catalog.find(&request.target);
        tool.is_ok_and(|tool| tool.hints.read_only == Some(true))
    }
}
