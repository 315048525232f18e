//! A server object inside the program, linked by two queues.
//!
//! Owns the pair. Messages pass through queues, so nothing is ever delivered on the sender's
//! stack; the end of either side reaches the other once.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::channel::{Channel, ChannelCommand, ChannelEvent, QUEUE_LEN, report_end};
use crate::error::CloseReason;

/// The server's side. Dropping it ends the channel.
#[derive(Debug)]
pub struct ServerEnd {
    /// Messages from the client; ends when the client is gone.
    pub incoming: mpsc::Receiver<Bytes>,
    /// Messages to the client.
    pub outgoing: mpsc::Sender<Bytes>,
}

/// A linked pair.
pub fn pair() -> (Channel, ServerEnd) {
    let (to_server, incoming) = mpsc::channel(QUEUE_LEN);
    let (outgoing, from_server) = mpsc::channel(QUEUE_LEN);
    let channel = Channel::driven(None, |commands, events| {
        drive(commands, to_server, from_server, events)
    });
    (channel, ServerEnd { incoming, outgoing })
}

async fn drive(
    commands: mpsc::Receiver<ChannelCommand>,
    to_server: mpsc::Sender<Bytes>,
    from_server: mpsc::Receiver<Bytes>,
    events: mpsc::Sender<ChannelEvent>,
) {
    // Two loops side by side: a full queue in one direction must not hold up the other.
    let reason = tokio::select! {
        biased;
        reason = carry_up(from_server, &events) => reason,
        reason = carry_down(commands, to_server, &events) => reason,
    };
    report_end(&events, reason).await;
}

async fn carry_down(
    mut commands: mpsc::Receiver<ChannelCommand>,
    to_server: mpsc::Sender<Bytes>,
    events: &mpsc::Sender<ChannelEvent>,
) -> CloseReason {
    while let Some(command) = commands.recv().await {
        let ChannelCommand::Send(outgoing) = command else {
            continue;
        };
        // A server that does not read must not hold up a client that has stopped listening.
        let sent = tokio::select! {
            biased;
            sent = to_server.send(outgoing.bytes) => sent,
            () = events.closed() => return CloseReason::Asked,
        };
        if sent.is_err() {
            return CloseReason::EndOfStream { stderr: Vec::new() };
        }
    }
    CloseReason::Asked
}

async fn carry_up(
    mut from_server: mpsc::Receiver<Bytes>,
    events: &mpsc::Sender<ChannelEvent>,
) -> CloseReason {
    while let Some(message) = from_server.recv().await {
        if events.send(ChannelEvent::message(message)).await.is_err() {
            return CloseReason::Asked;
        }
    }
    CloseReason::EndOfStream { stderr: Vec::new() }
}
