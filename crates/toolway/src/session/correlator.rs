//! Requests over a channel: ids, deadlines, cancellation, and the loop that reads (`reader.rs`).
//!
//! Owns the map of pending requests and everything that can end one of them. Knows no era: what a
//! request says, and whether the server must be told of a cancellation, comes from `legacy.rs` and
//! `modern.rs`.
//!
//! Invariants: an id is used once; every accepted request ends exactly once; the reading loop
//! never waits for the server to read, so a server that does not read cannot stop the answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use toolway_transport::{
    AnswerTimeout, Channel, ChannelCommand, CloseReason, OutgoingMessage, RequestTag,
};
use toolway_types::Untrusted;
use tracing::debug;

pub(super) use self::deadline::Deadline;
use self::deadline::QuestionsInProgress;
pub(crate) use self::reader::Pump;
use super::ChannelTap;
use super::inbound::{self, ListChanges, Reception};
use crate::call::{ProgressSink, RequestOrigin};
use crate::error::{RequestError, RequestResult};
use crate::listing::ListKind;
use crate::lock::lock;
pub(super) use crate::session::correlator::pending::LateAnswerHandler;
use crate::session::correlator::pending::PendingRequests;
pub(super) use crate::session::correlator::questions::MAX_QUESTIONS;

mod deadline;
mod outbox;
mod pending;
mod questions;
mod reader;

/// How many changes of resources wait for a slow reader before the oldest are dropped.
const UPDATES_LEN: usize = 64;

/// A cheap handle for sending requests over one channel.
#[derive(Clone)]
pub(crate) struct Correlator {
    shared: Arc<CorrelatorShared>,
}

/// What the handle and the reading loop share.
struct CorrelatorShared {
    /// Weak, because the loop alone decides how long the channel lives.
    commands: mpsc::WeakSender<ChannelCommand>,
    notices: mpsc::UnboundedSender<Notice>,
    waiting: PendingRequests,
    /// Tasks of the server that are followed, to be woken when it reports on them.
    followed: Mutex<HashMap<String, Arc<Notify>>>,
    next_id: AtomicU64,
    counters: Counters,
    changes: watch::Sender<ListChanges>,
    updates: broadcast::Sender<Untrusted>,
    reception: Reception,
    asking: watch::Sender<QuestionsInProgress>,
    tap: Option<Arc<dyn ChannelTap>>,
    stop: CancellationToken,
    closed: CancellationToken,
}

/// What a server sent that had no place to go.
#[derive(Debug, Default)]
struct Counters {
    late: AtomicU64,
    unknown: AtomicU64,
    malformed: AtomicU64,
}

impl Counters {
    fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A reading of [`Counters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Strays {
    /// Answers to requests that had ended: late or repeated.
    pub late: u64,
    /// Answers to requests that were never sent, or without an id.
    pub unknown: u64,
    /// Messages that are not the protocol: log lines, broken JSON.
    pub malformed: u64,
}

/// Something to be sent without waiting.
enum Notice {
    /// A request that was cancelled.
    Left { id: u64, farewell: Farewell },
    /// A request whose answer is not needed.
    Order(OutgoingMessage),
}

/// What the server hears when a request is cancelled. Its own stream, where it has one, is closed
/// in any case.
#[derive(Debug, Clone)]
pub(super) enum Farewell {
    /// This notification, with these headers.
    Notify(Vec<(HeaderName, HeaderValue)>),
    /// Nothing: closing the stream says it, or the message must not be sent (`initialize`, a
    /// probe).
    Silent,
}

/// One request, ready to go.
pub(super) struct RequestExchange {
    /// From [`Correlator::reserve`].
    pub id: u64,
    /// The whole message.
    pub bytes: Bytes,
    /// For transports that have headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The longest to wait.
    pub deadline: Deadline,
    /// Where its progress goes.
    pub progress: Option<ProgressSink>,
    /// What the server hears when the wait ends early.
    pub farewell: Farewell,
    /// What is done with an answer that comes all the same.
    pub late: Option<LateAnswerHandler>,
    /// What it is sent for.
    pub origin: Option<Arc<RequestOrigin>>,
}

/// Puts a correlator on a channel. Nothing moves until the pump is polled.
pub(super) fn open(
    channel: Channel,
    reception: Reception,
    tap: Option<Arc<dyn ChannelTap>>,
) -> (Correlator, Pump) {
    let (notices, notices_receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(CorrelatorShared {
        commands: channel.commands.downgrade(),
        notices,
        waiting: PendingRequests::default(),
        followed: Mutex::default(),
        next_id: AtomicU64::new(1),
        counters: Counters::default(),
        changes: watch::Sender::default(),
        updates: broadcast::Sender::new(UPDATES_LEN),
        reception,
        asking: QuestionsInProgress::none(),
        tap,
        stop: CancellationToken::new(),
        closed: CancellationToken::new(),
    });
    let first = Arc::clone(&shared);
    (channel.first_look).set(move |message| first.settle_at_once(message));
    let pump = Pump::new(Arc::clone(&shared), channel, notices_receiver);
    (Correlator { shared }, pump)
}

impl Correlator {
    /// A new request id, which is also its progress token.
    pub(super) fn reserve(&self) -> u64 {
        self.shared.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer. Dropping the future ends the request.
    ///
    /// In a box of its own: a request is one box around this one, and allocators are slow from a
    /// kilobyte on.
    pub(super) fn request(&self, exchange: RequestExchange) -> BoxFuture<'_, RequestResult> {
        let answer =
            match (self.shared.waiting).register(exchange.id, exchange.progress, exchange.origin) {
                Ok(answer) => answer,
                Err(error) => return Box::pin(std::future::ready(Err(error))),
            };
        let outgoing = OutgoingMessage {
            bytes: exchange.bytes,
            tag: Some(RequestTag(exchange.id)),
            headers: exchange.headers,
            answer_timeout: exchange.deadline.answer_timeout(),
        };
        let in_flight = InFlight {
            shared: &self.shared,
            id: exchange.id,
            unsent: Some(outgoing),
            answer,
            farewell: exchange.farewell,
            late: exchange.late,
        };
        Box::pin(in_flight.wait(exchange.deadline))
    }

    /// Sends a notification.
    pub(super) async fn notify(
        &self,
        bytes: Bytes,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<(), RequestError> {
        let closed = || RequestError::Closed(self.shared.waiting.close_reason());
        let commands = self.shared.commands.upgrade().ok_or_else(closed)?;
        self.shared.tap_sent(&bytes);
        let message = ChannelCommand::Send(outgoing(bytes, None, headers));
        tokio::select! {
            () = self.shared.closed.cancelled() => Err(closed()),
            sent = commands.send(message) => sent.map_err(|_| closed()),
        }
    }

    /// Sends a request whose answer is not needed. Never waits, so that it can be used in a drop.
    pub(super) fn order(&self, id: u64, bytes: Bytes, headers: Vec<(HeaderName, HeaderValue)>) {
        // Its answer is then received and ignored.
        if self.shared.waiting.register(id, None, None).is_ok() {
            let order = outgoing(bytes, Some(RequestTag(id)), headers);
            let _ = self.shared.notices.send(Notice::Order(order));
        }
    }

    /// Has `news` notified whenever the server speaks of this task, or of this page in the era
    /// without tasks.
    pub(super) fn follow(&self, task: &str) -> Arc<Notify> {
        let mut followed = lock(&self.shared.followed);
        Arc::clone(followed.entry(task.to_owned()).or_default())
    }

    /// This task is not followed any more.
    pub(super) fn unfollow(&self, task: &str) {
        lock(&self.shared.followed).remove(task);
    }

    /// Says that a list must have changed, although the server did not.
    pub(super) fn suspect(&self, list: ListKind) {
        self.shared
            .changes
            .send_modify(|changes| changes.note(list));
    }

    /// Asks for an orderly end. Every waiting request fails; the pump ends when all is gone.
    pub(crate) fn close(&self) {
        self.shared.stop.cancel();
    }

    /// Waits until the channel has ended, and says why.
    pub(super) async fn closed(&self) -> CloseReason {
        self.shared.closed.cancelled().await;
        self.shared.waiting.close_reason()
    }

    /// How often the server said that a list changed.
    pub(super) fn changes(&self) -> watch::Receiver<ListChanges> {
        self.shared.changes.subscribe()
    }

    /// Which resources the server says have changed, from now on.
    pub(super) fn updates(&self) -> broadcast::Receiver<Untrusted> {
        self.shared.updates.subscribe()
    }

    /// The handshake is over: from here on server requests are judged by this reception.
    pub(super) fn reception(&self) -> &Reception {
        &self.shared.reception
    }

    /// What had no place to go so far.
    pub(super) fn strays(&self) -> Strays {
        let counters = &self.shared.counters;
        Strays {
            late: counters.late.load(Ordering::Relaxed),
            unknown: counters.unknown.load(Ordering::Relaxed),
            malformed: counters.malformed.load(Ordering::Relaxed),
        }
    }
}

impl CorrelatorShared {
    fn tap_sent(&self, message: &[u8]) {
        if let Some(tap) = &self.tap {
            tap.sent(message);
        }
    }

    /// Ends the request that this message is the result of, where it is one and somebody waits for it.
    /// Everything else takes its turn in the reading loop.
    fn settle_at_once(&self, message: &Bytes) -> bool {
        let Some((id, result)) = inbound::plain_result(message) else {
            return false;
        };
        let Some(waiter) = self.waiting.take(id) else {
            return false;
        };
        if let Some(tap) = &self.tap {
            tap.received(message);
        }
        waiter.settle(Ok(result));
        true
    }

    /// Ends one request; an answer without a pending request is counted.
    fn settle(&self, id: u64, answer: RequestResult) {
        if let Some(late) = self.waiting.late(id)
            && let Ok(result) = &answer
        {
            late(result);
        }
        if self.waiting.settle(id, answer) {
            return;
        }
        let ever_sent = id != 0 && id < self.next_id.load(Ordering::Relaxed);
        let counter = if ever_sent {
            &self.counters.late
        } else {
            &self.counters.unknown
        };
        counter.fetch_add(1, Ordering::Relaxed);
        debug!(id, ever_sent, "dropped an answer that nobody waits for");
    }

    /// An error without an id can only be meant for a request when there is exactly one.
    fn settle_only(&self, answer: RequestResult) {
        let only = self.waiting.only();
        if let Some(id) = only.filter(|_| !self.reception.is_settled()) {
            self.settle(id, answer);
        } else {
            self.counters.unknown.fetch_add(1, Ordering::Relaxed);
            debug!("dropped an error without an id");
        }
    }

    /// Ends every request.
    fn close_all(&self, reason: &CloseReason) {
        if self.waiting.close(reason) {
            self.closed.cancel();
        }
    }
}

/// A message to whose answer the channel has its own limits.
fn outgoing(
    bytes: Bytes,
    tag: Option<RequestTag>,
    headers: Vec<(HeaderName, HeaderValue)>,
) -> OutgoingMessage {
    OutgoingMessage {
        bytes,
        tag,
        headers,
        answer_timeout: AnswerTimeout::ByChannel,
    }
}

/// A request that is being waited for; dropping it before the answer ends the request.
struct InFlight<'a> {
    shared: &'a CorrelatorShared,
    id: u64,
    /// Until it is sent.
    unsent: Option<OutgoingMessage>,
    answer: oneshot::Receiver<RequestResult>,
    farewell: Farewell,
    late: Option<LateAnswerHandler>,
}

impl InFlight<'_> {
    async fn wait(mut self, deadline: Deadline) -> RequestResult {
        let exchanged = async {
            if let Some(commands) = self.shared.commands.upgrade() {
                // The answer side is watched meanwhile: a channel that closes while its queue is
                // full must still end this request.
                tokio::select! {
                    early = &mut self.answer => return early,
                    permit = commands.reserve() => if let Ok(permit) = permit
                        && let Some(outgoing) = self.unsent.take()
                    {
                        self.shared.tap_sent(&outgoing.bytes);
                        permit.send(ChannelCommand::Send(outgoing));
                    },
                }
            }
            (&mut self.answer).await
        };
        let last_sign = || self.shared.waiting.last_sign(self.id);
        let outcome = tokio::select! {
            biased;
            outcome = exchanged => outcome,
            error = deadline.passes(last_sign, &self.shared.asking) => return Err(error),
        };
        outcome.unwrap_or_else(|_| Err(RequestError::Closed(self.shared.waiting.close_reason())))
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let is_sent = self.unsent.is_none();
        if !is_sent {
            self.late = None;
        }
        let waited_for = self.shared.waiting.leave(self.id, &mut self.late);
        if !waited_for
            && let Ok(Ok(result)) = self.answer.try_recv()
            && let Some(late) = self.late.take()
        {
            // It was answered, but the caller went away before it looked.
            late(&result);
        }
        if waited_for && is_sent {
            let farewell = std::mem::replace(&mut self.farewell, Farewell::Silent);
            let _ = self.shared.notices.send(Notice::Left {
                id: self.id,
                farewell,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocators keep small blocks at hand; larger ones are looked for, for every request.
    #[test]
    fn waiting_for_an_answer_fits_into_a_small_block() {
        fn room<A, B, F>(_: impl FnOnce(A, B) -> F) -> usize {
            size_of::<F>()
        }
        let room = room(InFlight::wait);
        assert!(room <= 1024, "{room}");
    }
}
