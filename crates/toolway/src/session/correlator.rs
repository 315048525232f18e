//! Requests over a channel: ids, deadlines, cancellation, progress, and the loop that reads.
//!
//! Owns the map of waiting requests and everything that can end one of them. Knows no era: what
//! a request says, and whether the server must be told that nobody waits for it, comes from
//! `legacy.rs` and `modern.rs`.
//!
//! Invariants: an id is used once; every accepted request ends exactly once; the reading loop
//! never waits for the server to read, so a server that does not read cannot stop the answers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use toolway_transport::{Channel, CloseReason, Command, Driver, Event, Outgoing, SendFailure, Tag};
use toolway_wire::envelope;
use tracing::{debug, trace};

use super::inbound::{self, Inbound, ListChanges, Reception};
use crate::call::ProgressSink;
use crate::error::RequestError;

/// How many answers and notices of ours may wait for a server that does not read.
const OUTBOX_LEN: usize = 1024;

type Answer = Result<Box<RawValue>, RequestError>;

/// A cheap handle for sending requests over one channel.
#[derive(Clone)]
pub(crate) struct Correlator {
    shared: Arc<Shared>,
}

/// What the handle and the reading loop share.
struct Shared {
    /// Weak, because the loop alone decides how long the channel lives.
    commands: mpsc::WeakSender<Command>,
    notices: mpsc::UnboundedSender<Notice>,
    waiting: Mutex<Waiting>,
    next_id: AtomicU64,
    counters: Counters,
    changes: watch::Sender<ListChanges>,
    reception: Reception,
    stop: CancellationToken,
    closed: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    requests: HashMap<u64, Waiter>,
    closed: Option<CloseReason>,
}

struct Waiter {
    answer: oneshot::Sender<Answer>,
    progress: Option<ProgressSink>,
}

impl Waiter {
    fn listener(&self) -> Option<ProgressSink> {
        self.progress.clone()
    }
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

/// A request that nobody waits for any more.
struct Notice {
    id: u64,
    farewell: Farewell,
}

/// What the server hears when nobody waits for a request any more. Its own stream, where it has
/// one, is closed in any case.
#[derive(Debug, Clone)]
pub(super) enum Farewell {
    /// This notification, with these headers.
    Notify(Vec<(HeaderName, HeaderValue)>),
    /// Nothing: closing the stream says it, or the message must not be sent (`initialize`, a
    /// probe).
    Silent,
}

/// One request, ready to go.
pub(super) struct Exchange {
    /// From [`Correlator::reserve`].
    pub id: u64,
    /// The whole message.
    pub bytes: Bytes,
    /// For transports that have headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The longest to wait.
    pub timeout: Duration,
    /// Where its progress goes.
    pub progress: Option<ProgressSink>,
    /// What the server hears when the wait ends early.
    pub farewell: Farewell,
}

/// The work behind a correlator: the reading loop and the channel's driver. Ends when the channel and
/// everything it owned are gone; dropping it ends them at once.
pub(crate) struct Pump {
    reader: Reader,
    driver: Driver,
}

struct Reader {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    events: mpsc::Receiver<Event>,
    notices: mpsc::UnboundedReceiver<Notice>,
    outbox: VecDeque<Command>,
}

/// Puts a correlator on a channel. Nothing moves until the pump is polled.
pub(super) fn open(channel: Channel, reception: Reception) -> (Correlator, Pump) {
    let (notices, notices_receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        commands: channel.commands.downgrade(),
        notices,
        waiting: Mutex::default(),
        next_id: AtomicU64::new(1),
        counters: Counters::default(),
        changes: watch::Sender::default(),
        reception,
        stop: CancellationToken::new(),
        closed: CancellationToken::new(),
    });
    let reader = Reader {
        shared: Arc::clone(&shared),
        commands: channel.commands,
        events: channel.events,
        notices: notices_receiver,
        outbox: VecDeque::new(),
    };
    (
        Correlator { shared },
        Pump {
            reader,
            driver: channel.driver,
        },
    )
}

impl Correlator {
    /// A new request id, which is also its progress token.
    pub(super) fn reserve(&self) -> u64 {
        self.shared.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer. Dropping the future ends the request.
    pub(super) async fn exchange(&self, exchange: Exchange) -> Answer {
        let Exchange {
            id,
            bytes,
            headers,
            timeout,
            progress,
            farewell,
        } = exchange;
        let (sender, mut answer) = oneshot::channel();
        self.shared.register(
            id,
            Waiter {
                answer: sender,
                progress,
            },
        )?;
        let mut in_flight = InFlight {
            shared: &self.shared,
            id,
            farewell,
            sent: false,
        };
        let outcome = tokio::time::timeout(timeout, async {
            if let Some(commands) = self.shared.commands.upgrade() {
                // The answer side is watched meanwhile: a channel that closes while its queue is
                // full must still end this request.
                tokio::select! {
                    early = &mut answer => return early,
                    permit = commands.reserve() => if let Ok(permit) = permit {
                        in_flight.sent = true;
                        let tag = Some(Tag(id));
                        permit.send(Command::Send(Outgoing { bytes, tag, headers }));
                    },
                }
            }
            answer.await
        })
        .await;
        match outcome {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(RequestError::Closed(self.shared.close_reason())),
            Err(_) => Err(RequestError::TimedOut),
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(
        &self,
        bytes: Bytes,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<(), RequestError> {
        let closed = || RequestError::Closed(self.shared.close_reason());
        let commands = self.shared.commands.upgrade().ok_or_else(closed)?;
        let message = Command::Send(Outgoing {
            bytes,
            tag: None,
            headers,
        });
        tokio::select! {
            () = self.shared.closed.cancelled() => Err(closed()),
            sent = commands.send(message) => sent.map_err(|_| closed()),
        }
    }

    /// Asks for an orderly end. Every waiting request fails; the pump ends when all is gone.
    pub(crate) fn close(&self) {
        self.shared.stop.cancel();
    }

    /// Waits until the channel has ended, and says why.
    pub(super) async fn closed(&self) -> CloseReason {
        self.shared.closed.cancelled().await;
        self.shared.close_reason()
    }

    /// How often the server said that a list changed.
    pub(super) fn changes(&self) -> watch::Receiver<ListChanges> {
        self.shared.changes.subscribe()
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

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Every change to the map is one call, so a panic elsewhere leaves it whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, id: u64, waiter: Waiter) -> Result<(), RequestError> {
        let mut waiting = self.waiting();
        if let Some(reason) = &waiting.closed {
            return Err(RequestError::Closed(reason.clone()));
        }
        waiting.requests.insert(id, waiter);
        Ok(())
    }

    fn close_reason(&self) -> CloseReason {
        self.waiting().closed.clone().unwrap_or(CloseReason::Asked)
    }

    /// Ends one request; an answer that nobody waits for is counted.
    fn settle(&self, id: u64, answer: Answer) {
        let waiter = self.waiting().requests.remove(&id);
        if let Some(waiter) = waiter {
            let _ = waiter.answer.send(answer);
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
    fn settle_only(&self, answer: Answer) {
        let only = {
            let waiting = self.waiting();
            let mut ids = waiting.requests.keys().copied();
            match (ids.next(), ids.next()) {
                (Some(only), None) if !self.reception.is_settled() => Some(only),
                _ => None,
            }
        };
        if let Some(id) = only {
            self.settle(id, answer);
        } else {
            self.counters.unknown.fetch_add(1, Ordering::Relaxed);
            debug!("dropped an error without an id");
        }
    }

    /// Ends every request.
    fn close_all(&self, reason: &CloseReason) {
        let requests = {
            let mut waiting = self.waiting();
            if waiting.closed.is_some() {
                return;
            }
            waiting.closed = Some(reason.clone());
            std::mem::take(&mut waiting.requests)
        };
        for waiter in requests.into_values() {
            let _ = waiter
                .answer
                .send(Err(RequestError::Closed(reason.clone())));
        }
        self.closed.cancel();
    }
}

/// A request that is being waited for; dropping it before the answer ends the request.
struct InFlight<'a> {
    shared: &'a Shared,
    id: u64,
    farewell: Farewell,
    sent: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let waited_for = self.shared.waiting().requests.remove(&self.id).is_some();
        if waited_for && self.sent {
            let farewell = std::mem::replace(&mut self.farewell, Farewell::Silent);
            let _ = self.shared.notices.send(Notice {
                id: self.id,
                farewell,
            });
        }
    }
}

impl Pump {
    /// Runs until the channel and everything behind it are gone.
    pub(crate) async fn run(self) {
        let Pump { reader, driver } = self;
        tokio::join!(reader.run(), driver);
    }
}

impl Reader {
    async fn run(mut self) {
        let reason = self.read().await;
        trace!(?reason, "channel ended");
        self.shared.close_all(&reason);
        // Dropping the senders asks the transport to end; dropping `events` frees a transport
        // that wants to report something nobody reads.
    }

    async fn read(&mut self) -> CloseReason {
        let stop = self.shared.stop.clone();
        let commands = self.commands.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return CloseReason::Asked,
                event = self.events.recv() => match event {
                    Some(Event::Message(bytes)) => self.receive(&bytes),
                    Some(Event::Failed { tag, failure }) => {
                        self.shared.settle(tag.0, Err(RequestError::Send(failure)));
                    }
                    Some(Event::Oversized { id_hint, limit }) => {
                        match id_hint.and_then(|id| id.as_ours()) {
                            Some(id) => {
                                let failure = SendFailure::TooLarge { limit };
                                self.shared.settle(id, Err(RequestError::Send(failure)));
                            }
                            None => self.shared.counters.count_malformed(),
                        }
                    }
                    Some(Event::Closed(reason)) => return reason,
                    None => return CloseReason::Broken("the transport ended".to_owned()),
                },
                Some(notice) = self.notices.recv() => self.take_leave(notice),
                permit = commands.reserve(), if !self.outbox.is_empty() => match permit {
                    Ok(permit) => if let Some(command) = self.outbox.pop_front() {
                        permit.send(command);
                    },
                    // The transport is ending; its last event says why.
                    Err(_) => self.outbox.clear(),
                },
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let inbound = inbound::receive(bytes, &self.shared.reception);
        // Revisions up to 2025-03-26 may answer several requests in one array.
        if let Inbound::Unusable { id: None, .. } = &inbound
            && let Some(batch) = envelope::split_batch(bytes)
        {
            for message in batch {
                let message = inbound::receive(message.get().as_bytes(), &self.shared.reception);
                self.act(message);
            }
            return;
        }
        self.act(inbound);
    }

    fn act(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Answer { id, outcome } => {
                self.shared.settle(id, outcome.map_err(RequestError::Rpc));
            }
            Inbound::Uncorrelated(error) => {
                self.shared.settle_only(Err(RequestError::Rpc(error)));
            }
            Inbound::Unusable {
                id: Some(id),
                problem,
            } => {
                self.shared.counters.count_malformed();
                self.shared
                    .settle(id, Err(RequestError::Malformed(problem)));
            }
            Inbound::Unusable { id: None, problem } => {
                self.shared.counters.count_malformed();
                debug!(problem, "ignored a message that is not the protocol");
            }
            Inbound::Stray => {
                self.shared.counters.unknown.fetch_add(1, Ordering::Relaxed);
            }
            Inbound::Progress { id, report } => {
                // The listener runs outside the lock: it is somebody else's code.
                let sink = self
                    .shared
                    .waiting()
                    .requests
                    .get(&id)
                    .and_then(Waiter::listener);
                if let Some(sink) = sink {
                    sink(report);
                }
            }
            Inbound::Changed(list) => self
                .shared
                .changes
                .send_modify(|changes| changes.note(list)),
            Inbound::Reply { bytes, headers } => {
                self.post(Command::Send(Outgoing {
                    bytes,
                    tag: None,
                    headers,
                }));
            }
            Inbound::Nothing => {}
        }
    }

    fn take_leave(&mut self, notice: Notice) {
        if let Farewell::Notify(headers) = notice.farewell {
            let bytes = inbound::cancelled(notice.id);
            self.post(Command::Send(Outgoing {
                bytes,
                tag: None,
                headers,
            }));
        }
        self.post(Command::Abandon(Tag(notice.id)));
    }

    fn post(&mut self, command: Command) {
        if self.outbox.len() < OUTBOX_LEN {
            self.outbox.push_back(command);
        } else {
            debug!("the server does not read: dropped a message to it");
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Also when the task was aborted: nobody may wait for a loop that is gone.
        self.shared.close_all(&CloseReason::Asked);
    }
}
