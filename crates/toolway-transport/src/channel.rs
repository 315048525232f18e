//! The interface of every transport: bytes out, bytes in, bounded, with a reason when it ends.
//!
//! Owns the types that pass between a session and a transport. Knows no MCP: a message is bytes
//! and a tag. A transport spawns nothing; it returns a [`ChannelDriver`] that its opener runs.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use toolway_types::limits;
use toolway_wire::{Id, envelope};

use crate::error::{CloseReason, SendFailure};
use crate::first_look::FirstLook;
use crate::server_log::ServerLog;

/// How many messages may wait in either direction before the sender is held back.
pub const QUEUE_LEN: usize = 64;

/// The session's name for one of its own requests, so that a transport that answers requests one
/// by one (HTTP) can say which of them failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestTag(pub u64);

/// One message on its way to the server.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// One JSON-RPC message, without a line break at its end and without one inside.
    pub bytes: Bytes,
    /// Set for requests; absent for notifications and answers.
    pub tag: Option<RequestTag>,
    /// Protocol headers for transports that have headers; others ignore them.
    pub headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// How long its answer may take to begin.
    pub answer_timeout: AnswerTimeout,
}

/// Who limits the wait for an answer to begin, on transports that answer requests one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerTimeout {
    /// The channel, by [`ChannelLimits::first_byte`].
    #[default]
    ByChannel,
    /// The sender alone, with [`ChannelCommand::Abandon`].
    BySender,
}

/// The caps on what a server may send, and on how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelLimits {
    /// The longest line on a process's stdout, in bytes.
    pub line: usize,
    /// The largest HTTP answer, in bytes.
    pub response: usize,
    /// The largest single event of an event stream, in bytes.
    pub sse_event: usize,
    /// The largest WebSocket message, in bytes.
    pub websocket_message: usize,
    /// How much of a process's stderr is kept, in bytes.
    pub stderr_ring: usize,
    /// How long a process may leave its stdin unread while there is something to write.
    pub write_stall: Duration,
    /// How long an HTTP request may take until its answer begins, where its sender leaves that to
    /// the channel, and an event stream or a WebSocket until it stands.
    pub first_byte: Duration,
    /// How long the stream on which a legacy HTTP server speaks unasked may be silent before it is
    /// opened again.
    pub stream_idle: Duration,
    /// How long any stream may be silent although its server sends keepalives; three times their
    /// interval when that is longer.
    pub keepalive: Duration,
    /// How often a WebSocket is pinged; after two intervals without data it is closed.
    pub ping: Duration,
}

impl Default for ChannelLimits {
    fn default() -> Self {
        Self {
            line: limits::message::STDIO_LINE,
            response: limits::message::HTTP_RESPONSE,
            sse_event: limits::message::SSE_EVENT,
            websocket_message: limits::message::WEBSOCKET,
            stderr_ring: limits::process::STDERR,
            write_stall: limits::connection::WRITE_STALL,
            first_byte: limits::connection::FIRST_BYTE,
            stream_idle: limits::connection::STREAM_IDLE,
            keepalive: limits::connection::KEEPALIVE,
            ping: limits::connection::PING,
        }
    }
}

impl ChannelLimits {
    /// How long an answer may take to begin, where the channel decides that.
    pub(crate) fn within(&self, answer_timeout: AnswerTimeout) -> Option<Duration> {
        match answer_timeout {
            AnswerTimeout::ByChannel => Some(self.first_byte),
            AnswerTimeout::BySender => None,
        }
    }
}

/// What a session asks of a transport.
#[derive(Debug, Clone)]
pub enum ChannelCommand {
    /// Send this message.
    Send(OutgoingMessage),
    /// The caller gave this request up: close its stream, where it has one of its own.
    Abandon(RequestTag),
}

/// What a transport reports.
#[derive(Debug)]
pub enum ChannelEvent {
    /// One message from the server.
    Message {
        /// The message.
        bytes: Bytes,
        /// The request on whose own stream it came, where requests have streams of their own.
        during: Option<RequestTag>,
    },
    /// This one request could not be delivered or answered; the channel lives on.
    Failed {
        /// The request.
        tag: RequestTag,
        /// Why.
        failure: SendFailure,
    },
    /// A message was larger than the cap and was skipped; the channel lives on.
    Oversized {
        /// The request it answers, where its id could be read on the way past.
        id_hint: Option<Id>,
        /// The cap in bytes.
        limit: usize,
    },
    /// The channel has ended; nothing follows.
    Closed(CloseReason),
}

/// The work behind a channel: reads, writes, reaps. Resolves when everything it owned — process,
/// sockets — is gone. Dropping it ends the channel at once.
pub type ChannelDriver = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// An open connection to a server.
pub struct Channel {
    /// Commands to the transport. Dropping the last sender asks for an orderly end.
    pub commands: mpsc::Sender<ChannelCommand>,
    /// What comes back.
    pub events: mpsc::Receiver<ChannelEvent>,
    /// Who sees messages before they come there, where the transport asks.
    pub first_look: FirstLook,
    /// Must be polled for anything to happen.
    pub driver: ChannelDriver,
    /// What the server logs, when it is a process; readable while it runs.
    pub log: Option<ServerLog>,
}

impl Channel {
    /// A channel whose driver is made of its ends of the two queues.
    pub(crate) fn driven<D: Future<Output = ()> + Send + 'static>(
        log: Option<ServerLog>,
        driver: impl FnOnce(mpsc::Receiver<ChannelCommand>, mpsc::Sender<ChannelEvent>) -> D,
    ) -> Self {
        let (commands, command_queue) = mpsc::channel(QUEUE_LEN);
        let (event_queue, events) = mpsc::channel(QUEUE_LEN);
        Self {
            commands,
            events,
            first_look: FirstLook::default(),
            driver: Box::pin(driver(command_queue, event_queue)),
            log,
        }
    }

    /// The same, whose driver lets this look at messages first.
    pub(crate) fn with_first_look(self, first_look: FirstLook) -> Self {
        Self { first_look, ..self }
    }
}

/// The commands of a transport that has to connect first: they may arrive before it has.
pub(crate) struct CommandInbox {
    commands: mpsc::Receiver<ChannelCommand>,
    waiting: VecDeque<ChannelCommand>,
}

impl CommandInbox {
    pub(crate) fn new(commands: mpsc::Receiver<ChannelCommand>) -> Self {
        Self {
            commands,
            waiting: VecDeque::new(),
        }
    }

    /// The next command; `None` when the end is asked for.
    pub(crate) async fn next(&mut self) -> Option<ChannelCommand> {
        match self.waiting.pop_front() {
            Some(command) => Some(command),
            None => self.commands.recv().await,
        }
    }

    /// Runs what must be done first; `None` when the end is asked for in the meantime.
    pub(crate) async fn while_opening<T>(&mut self, opening: impl Future<Output = T>) -> Option<T> {
        let mut opening = std::pin::pin!(opening);
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return Some(opened),
                command = self.commands.recv(), if self.waiting.len() < QUEUE_LEN => {
                    self.waiting.push_back(command?);
                }
            }
        }
    }
}

impl ChannelEvent {
    /// A message that came on no request's stream.
    pub fn message(bytes: impl Into<Bytes>) -> Self {
        Self::Message {
            bytes: bytes.into(),
            during: None,
        }
    }
}

/// Delivers a message, or the messages of a batch, which came on the stream of `during`. Fails when
/// the channel is about to end.
pub(crate) async fn deliver(
    events: &mpsc::Sender<ChannelEvent>,
    bytes: Bytes,
    during: Option<RequestTag>,
) -> Result<(), mpsc::error::SendError<ChannelEvent>> {
    match envelope::split_batch(&bytes) {
        None => events.send(ChannelEvent::Message { bytes, during }).await,
        Some(parts) => {
            for part in parts {
                let bytes = Bytes::copy_from_slice(part.get().as_bytes());
                events.send(ChannelEvent::Message { bytes, during }).await?;
            }
            Ok(())
        }
    }
}

/// Reports how a channel ended, without waiting for a session that has stopped listening.
pub(crate) async fn report_end(events: &mpsc::Sender<ChannelEvent>, reason: CloseReason) {
    match reason {
        CloseReason::Asked => drop(events.try_send(ChannelEvent::Closed(CloseReason::Asked))),
        reason => drop(events.send(ChannelEvent::Closed(reason)).await),
    }
}
