//! The loop that reads a channel, and the work behind it.
//!
//! Owns what is done with each message, and what we send unasked: answers to the server's requests,
//! and cancellations. It never waits for the server to read: what cannot be sent at once is kept in
//! an outbox.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolway_transport::{
    Channel, ChannelCommand, ChannelDriver, ChannelEvent, CloseReason, RequestTag, SendFailure,
    woken,
};
use toolway_types::Untrusted;
use toolway_wire::era::method;
use toolway_wire::{RawJson, envelope};
use tracing::{debug, trace};

use super::outbox::Outbox;
use super::{CorrelatorShared, Farewell, Notice, outgoing};
use crate::call::{LogMessage, RequestOrigin};
use crate::error::RequestError;
use crate::lock::lock;
use crate::session::correlator::pending::QuestionCause;
use crate::session::correlator::questions::Questions;
use crate::session::inbound::{self, InboundMessage};

/// How many cancelled requests are remembered until they are answered.
const ORDERS_LEN: usize = 1024;

/// For how long such a request is remembered.
const ORDER_FOR: Duration = Duration::from_mins(1);

/// The work behind a correlator: the reading loop and the channel's driver. Ends when the channel
/// and everything it owned are gone; dropping it ends them at once.
pub(crate) struct Pump {
    reader: ChannelReader,
    driver: ChannelDriver,
}

struct ChannelReader {
    shared: Arc<CorrelatorShared>,
    commands: mpsc::Sender<ChannelCommand>,
    events: mpsc::Receiver<ChannelEvent>,
    notices: mpsc::UnboundedReceiver<Notice>,
    outbox: Outbox,
    /// Cancelled requests, and until when their answers are expected; oldest first.
    orders: VecDeque<(Instant, RequestTag)>,
    questions: Questions,
}

impl Pump {
    pub(super) fn new(
        shared: Arc<CorrelatorShared>,
        channel: Channel,
        notices: mpsc::UnboundedReceiver<Notice>,
    ) -> Self {
        let reader = ChannelReader {
            shared,
            commands: channel.commands,
            events: channel.events,
            notices,
            outbox: Outbox::default(),
            orders: VecDeque::new(),
            questions: Questions::new(),
        };
        Self {
            reader,
            driver: channel.driver,
        }
    }

    /// Runs until the channel and everything behind it are gone.
    pub(crate) async fn run(self) {
        let Pump { reader, driver } = self;
        // In this order: what the driver reads is seen to at once.
        woken::both(driver, reader.run()).await;
    }
}

impl ChannelReader {
    async fn run(mut self) {
        let reason = self.read().await;
        trace!(?reason, "channel ended");
        self.shared.close_all(&reason);
        // Dropping the senders asks the transport to end; dropping `events` frees a transport that
        // wants to report something that is not read any more.
    }

    async fn read(&mut self) -> CloseReason {
        let stop = self.shared.stop.clone();
        let commands = self.commands.clone();
        let mut roots = self.shared.reception.client_side().roots.clone();
        roots.mark_unchanged();
        let mut rooted = true;
        loop {
            let due = self.orders.front().map(|(due, _)| *due);
            tokio::select! {
                () = stop.cancelled() => return CloseReason::Asked,
                event = self.events.recv() => match event {
                    Some(ChannelEvent::Message { bytes, during }) => self.receive(&bytes, during),
                    Some(ChannelEvent::Failed { tag, failure }) => {
                        self.shared.settle(tag.0, Err(RequestError::Send(failure)));
                    }
                    Some(ChannelEvent::Oversized { id_hint, limit }) => {
                        match id_hint.and_then(|id| id.as_ours()) {
                            Some(id) => {
                                let failure = SendFailure::TooLarge { limit };
                                self.shared.settle(id, Err(RequestError::Send(failure)));
                            }
                            None => self.shared.counters.count_malformed(),
                        }
                    }
                    Some(ChannelEvent::Closed(reason)) => return reason,
                    None => return CloseReason::Broken("the transport ended".to_owned()),
                },
                Some(notice) = self.notices.recv() => self.heed(notice),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.forget_order();
                }
                bytes = self.questions.next() => self.say(bytes),
                changed = roots.changed(), if rooted => {
                    // Without a host there are no more changes.
                    rooted = changed.is_ok();
                    if rooted && self.shared.reception.follows_roots() {
                        self.say(envelope::notification(method::ROOTS_CHANGED, None));
                    }
                }
                permit = commands.reserve(), if !self.outbox.is_empty() => match permit {
                    Ok(permit) => if let Some(command) = self.outbox.pop() {
                        if let ChannelCommand::Send(outgoing) = &command {
                            self.shared.tap_sent(&outgoing.bytes);
                        }
                        permit.send(command);
                    },
                    // The transport is ending; its last event says why.
                    Err(_) => self.outbox.clear(),
                },
            }
        }
    }

    fn receive(&mut self, bytes: &Bytes, during: Option<RequestTag>) {
        if let Some(tap) = &self.shared.tap {
            tap.received(bytes);
        }
        let inbound = inbound::receive(bytes, &self.shared.reception);
        // Revisions up to 2025-03-26 may answer several requests in one array.
        if let InboundMessage::Unusable { id: None, .. } = &inbound
            && let Some(batch) = envelope::split_batch(bytes)
        {
            for message in batch {
                let message = inbound::receive(
                    RawJson::part_of(bytes, message).bytes(),
                    &self.shared.reception,
                );
                self.act(message, during);
            }
            return;
        }
        self.act(inbound, during);
    }

    /// The requests of the one caller that what the server says belongs to; none where it belongs to
    /// nobody's, and nothing where that is not known.
    fn cause_of_news(&self, during: Option<RequestTag>) -> Option<Vec<Arc<RequestOrigin>>> {
        let CorrelatorShared {
            waiting, reception, ..
        } = &*self.shared;
        match during {
            // Nothing where it has ended: whose it was is not known any more.
            Some(tag) => waiting.origin(tag.0),
            None if reception.has_streams() => Some(Vec::new()),
            None => match waiting.cause(None, reception.client_side().caller.as_ref()) {
                QuestionCause::Requests(requests) => Some(requests),
                // Another's would be worse than none; the journal has it.
                QuestionCause::Unclear => None,
            },
        }
    }

    /// Gives a message of the server's log to whoever may hear it.
    fn log(&self, message: &LogMessage, during: Option<RequestTag>) {
        let logs = &self.shared.reception.client_side().logs;
        match self.cause_of_news(during) {
            Some(none) if none.is_empty() => logs.tell_all(message),
            Some(requests) => logs.tell_caller(&requests, message),
            None => {}
        }
    }

    fn act(&mut self, inbound: InboundMessage, during: Option<RequestTag>) {
        match inbound {
            InboundMessage::Answer { id, outcome } => {
                self.shared.settle(id, outcome.map_err(RequestError::Rpc));
            }
            InboundMessage::Uncorrelated(error) => {
                self.shared.settle_only(Err(RequestError::Rpc(error)));
            }
            InboundMessage::Unusable { id, problem } => {
                self.shared.counters.count_malformed();
                if let Some(id) = id {
                    (self.shared).settle(id, Err(RequestError::Malformed(problem)));
                } else {
                    debug!(problem, "ignored a message that is not the protocol");
                }
            }
            InboundMessage::Stray => {
                self.shared.counters.unknown.fetch_add(1, Ordering::Relaxed);
            }
            InboundMessage::Progress { id, report } => {
                // The listener runs outside the lock: it is foreign code.
                if let Some(sink) = self.shared.waiting.stir(id) {
                    sink(report);
                }
            }
            InboundMessage::Logged(message) => self.log(&message, during),
            InboundMessage::Noticed(notice) => {
                if let Some(requests) = self.cause_of_news(during) {
                    let logs = &self.shared.reception.client_side().logs;
                    logs.notices.tell(&requests, notice);
                }
            }
            InboundMessage::Changed(list) => self
                .shared
                .changes
                .send_modify(|changes| changes.note(list)),
            // There may be no listener.
            InboundMessage::Updated(uri) => drop(self.shared.updates.send(Untrusted::new(uri))),
            InboundMessage::TaskChanged(id) | InboundMessage::PageDone(id) => {
                if let Some(follower) = lock(&self.shared.followed).get(&id) {
                    follower.notify_one();
                }
            }
            InboundMessage::Reply(bytes) => self.say(bytes),
            InboundMessage::Asked(asked) => {
                let (reception, asking) = (&self.shared.reception, &self.shared.asking);
                let own = reception.client_side().caller.as_ref();
                let cause = self.shared.waiting.cause(during.map(|tag| tag.0), own);
                if let Some(bytes) = self.questions.take(asked, cause, reception, asking) {
                    self.say(bytes);
                }
            }
            InboundMessage::Withdrawn(id) => self.questions.withdraw(&id),
            InboundMessage::Nothing => {}
        }
    }

    fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::Left { id, farewell } => {
                if let Farewell::Notify(headers) = farewell {
                    let cancelled = outgoing(inbound::cancelled(id), None, headers);
                    self.post(ChannelCommand::Send(cancelled));
                }
                self.post(ChannelCommand::Abandon(RequestTag(id)));
            }
            Notice::Order(order) => {
                if let Some(tag) = order.tag {
                    if self.orders.len() == ORDERS_LEN {
                        self.forget_order();
                    }
                    self.orders.push_back((Instant::now() + ORDER_FOR, tag));
                }
                self.post(ChannelCommand::Send(order));
            }
        }
    }

    /// The oldest order is not remembered any more. A server that never answers one would
    /// otherwise be remembered for ever, and its stream held open.
    fn forget_order(&mut self) {
        if let Some((_, tag)) = self.orders.pop_front()
            && self.shared.waiting.forget(tag.0)
        {
            self.post(ChannelCommand::Abandon(tag));
        }
    }

    /// Says something that is no request.
    fn say(&mut self, bytes: Bytes) {
        let headers = self.shared.reception.headers();
        self.post(ChannelCommand::Send(outgoing(bytes, None, headers)));
    }

    fn post(&mut self, command: ChannelCommand) {
        if !self.outbox.push(command) {
            debug!("the server does not read: dropped a message to it");
        }
    }
}

impl Drop for ChannelReader {
    fn drop(&mut self) {
        // After an orderly end this changes nothing. After an abort or a panic no caller may wait
        // for a loop that is gone.
        let reason = CloseReason::Broken("the session ended unexpectedly".to_owned());
        self.shared.close_all(&reason);
    }
}
