//! WebSocket, subprotocol `mcp`: one text frame is one message.
//!
//! Owns the channel: two loops over one connection, pings, and the closing handshake. How the
//! connection comes about is in [`handshake`], what travels on it in [`frame`].

mod frame;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split as split_socket,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, timeout};
use toolway_types::{RemoteSpec, Untrusted, request_url};

use crate::channel::{
    Channel, ChannelCommand, ChannelEvent, ChannelLimits, CommandInbox, report_end,
};
use crate::client::dial::DialedStream;
use crate::error::{CloseReason, OpenError, SendFailure};
use crate::http::endpoint::{channel_credentials, configured};
use crate::options::OpenOptions;
use frame::{FrameDecoder, IncomingFrame};

/// How long the closing handshake may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How many pongs may be queued; further pings go unanswered.
const PONGS: usize = 8;

/// A normal end (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;
/// The server goes away.
const GOING_AWAY: u16 = 1001;
/// The server broke the protocol.
const PROTOCOL_ERROR: u16 = 1002;

/// Opens a channel. The connection is made as soon as the driver runs.
pub(crate) fn open(spec: &RemoteSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    let url = request_url(&spec.url);
    let dialer = options.client.dialer(spec, &url)?;
    let configured = configured(spec)?;
    let credentials = channel_credentials(&url, options);
    let limits = options.limits.clone();
    Ok(Channel::driven(None, |commands, events| async move {
        let mut inbox = CommandInbox::new(commands);
        let after = limits.first_byte;
        let shaking = handshake::connect(&dialer, &url, &configured, &credentials);
        let reason = match inbox.while_opening(timeout(after, shaking)).await {
            None => CloseReason::Asked,
            Some(Err(_)) => CloseReason::lost(SendFailure::TimedOut { after }.to_string()),
            Some(Ok(Err(reason))) => reason,
            Some(Ok(Ok(socket))) => run(socket, inbox, &events, &limits).await,
        };
        report_end(&events, reason).await;
    }))
}

/// Carries messages both ways until one side ends.
async fn run(
    socket: DialedStream,
    mut inbox: CommandInbox,
    events: &mpsc::Sender<ChannelEvent>,
    limits: &ChannelLimits,
) -> CloseReason {
    let (reader, writer) = split_socket(socket);
    let (pongs, due) = mpsc::channel(PONGS);
    let mut upward = FrameReader {
        reader,
        decoder: FrameDecoder::new(limits.websocket_message),
        pongs,
        patience: limits.ping * 2,
        limit: limits.websocket_message,
    };
    let mut downward = FrameWriter {
        writer,
        due,
        patience: limits.write_stall,
    };
    let reason = tokio::select! {
        biased;
        reason = upward.carry(events) => reason,
        reason = downward.carry(&mut inbox, limits.ping) => reason,
    };
    let code = match &reason {
        CloseReason::Failed(_) => return reason,
        CloseReason::Broken(_) => PROTOCOL_ERROR,
        _ => NORMAL,
    };
    let _ = timeout(CLOSE_TIMEOUT, async {
        downward.say(frame::close(code)).await.ok();
        if reason == CloseReason::Asked {
            upward.drain().await;
        }
        downward.writer.shutdown().await.ok();
    })
    .await;
    reason
}

/// From the server to us.
struct FrameReader {
    reader: ReadHalf<DialedStream>,
    decoder: FrameDecoder,
    pongs: mpsc::Sender<Bytes>,
    /// Without any byte for this long, after two pings, the server is gone.
    patience: Duration,
    limit: usize,
}

impl FrameReader {
    async fn carry(&mut self, events: &mpsc::Sender<ChannelEvent>) -> CloseReason {
        loop {
            let event = match self.next().await {
                Ok(IncomingFrame::Message(message)) => ChannelEvent::message(message),
                Ok(IncomingFrame::Oversized(id_hint)) => ChannelEvent::Oversized {
                    id_hint,
                    limit: self.limit,
                },
                Ok(IncomingFrame::Ping(payload)) => {
                    let _ = self.pongs.try_send(payload);
                    continue;
                }
                Ok(IncomingFrame::Pong) => continue,
                Ok(IncomingFrame::Close { code, reason }) => return close_reason(code, &reason),
                Err(reason) => return reason,
            };
            // A closed receiver means that the channel is about to end.
            if events.send(event).await.is_err() {
                return CloseReason::Asked;
            }
        }
    }

    async fn next(&mut self) -> Result<IncomingFrame, CloseReason> {
        loop {
            match self.decoder.next() {
                Ok(Some(incoming)) => return Ok(incoming),
                Ok(None) => {}
                Err(violation) => return Err(CloseReason::Broken(violation.to_string())),
            }
            let reading = self.reader.read_buf(self.decoder.buffer());
            match timeout(self.patience, reading).await {
                Ok(Ok(0)) => return Err(CloseReason::lost("it ended without a goodbye")),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(CloseReason::lost(error.to_string())),
                Err(_) => {
                    let seconds = self.patience.as_secs_f32();
                    let message = format!("no sign of life for {seconds} s");
                    return Err(CloseReason::lost(message));
                }
            }
        }
    }

    /// Waits for the server's close frame and discards everything else.
    async fn drain(&mut self) {
        while !matches!(self.next().await, Ok(IncomingFrame::Close { .. }) | Err(_)) {}
    }
}

/// From us to the server.
struct FrameWriter {
    writer: WriteHalf<DialedStream>,
    due: mpsc::Receiver<Bytes>,
    patience: Duration,
}

impl FrameWriter {
    async fn carry(&mut self, inbox: &mut CommandInbox, every: Duration) -> CloseReason {
        let mut pings = interval_at(Instant::now() + every, every);
        loop {
            let frame = tokio::select! {
                command = inbox.next() => match command {
                    Some(ChannelCommand::Send(outgoing)) => frame::text(outgoing.bytes),
                    // Its answer would come on the connection that all share: nothing to close.
                    Some(ChannelCommand::Abandon(_)) => continue,
                    None => return CloseReason::Asked,
                },
                Some(payload) = self.due.recv() => frame::pong(payload),
                _ = pings.tick() => frame::ping(),
            };
            if let Err(reason) = self.say(frame).await {
                return reason;
            }
        }
    }

    async fn say(&mut self, frame: Result<Vec<u8>, getrandom::Error>) -> Result<(), CloseReason> {
        let frame = frame.map_err(|error| CloseReason::Broken(error.to_string()))?;
        let writing = async {
            self.writer.write_all(&frame).await?;
            self.writer.flush().await
        };
        match timeout(self.patience, writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(CloseReason::lost(error.to_string())),
            Err(_) => Err(CloseReason::lost(format!(
                "the server has not read for {} s",
                self.patience.as_secs_f32()
            ))),
        }
    }
}

/// What the server's close frame means.
fn close_reason(code: Option<u16>, reason: &str) -> CloseReason {
    let meaning = match code {
        None | Some(NORMAL | GOING_AWAY) => {
            return CloseReason::EndOfStream { stderr: Vec::new() };
        }
        Some(PROTOCOL_ERROR) => "protocol error",
        Some(1003) => "data it cannot take",
        Some(1007) => "invalid data",
        Some(1008) => "against its policy",
        Some(1009) => "message too large",
        Some(1011) => "internal error",
        Some(1012) => "restarting",
        Some(1013) => "try again later",
        Some(_) => "for a reason of its own",
    };
    let code = code.unwrap_or_default();
    let mut message = format!("the server closed it with code {code} ({meaning})");
    let reason = Untrusted::new(reason).line().to_string();
    if !reason.is_empty() {
        message = format!("{message}: {reason}");
    }
    CloseReason::Broken(message)
}
