//! Writing to a server's stdin without ever being held up by it for good (REL-07).

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::channel::ChannelCommand;

/// Messages up to this size that wait together leave together.
const BATCH: usize = 32 * 1024;

/// How often a blocked write checks whether it is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// Why writing ended.
pub(super) enum WriteEnd {
    /// All command senders are gone.
    Asked,
    /// The server does not read.
    Stalled,
    /// The pipe is gone.
    Failed(io::Error),
}

/// Writes until the command queue closes; dropping the pipe then closes the server's stdin.
pub(super) async fn pump(
    mut commands: mpsc::Receiver<ChannelCommand>,
    mut stdin: pipe::Sender,
    stall: Duration,
) -> WriteEnd {
    let mut waiting: Option<Bytes> = None;
    loop {
        let first = match waiting.take() {
            Some(bytes) => bytes,
            None => match commands.recv().await {
                Some(command) => match payload(command) {
                    Some(bytes) => bytes,
                    None => continue,
                },
                None => return WriteEnd::Asked,
            },
        };
        let mut batch = BytesMut::new();
        if first.len() <= BATCH {
            while let Ok(command) = commands.try_recv() {
                let Some(next) = payload(command) else {
                    continue;
                };
                if batch.is_empty() {
                    batch.extend_from_slice(&first);
                }
                if batch.len() + next.len() > BATCH {
                    waiting = Some(next);
                    break;
                }
                batch.extend_from_slice(b"\n");
                batch.extend_from_slice(&next);
            }
        }
        let bytes = if batch.is_empty() {
            first
        } else {
            batch.freeze()
        };
        if let Err(end) = write(&mut stdin, bytes, &commands, stall).await {
            return end;
        }
    }
}

/// Pipes have no requests of their own to abandon.
fn payload(command: ChannelCommand) -> Option<Bytes> {
    match command {
        ChannelCommand::Send(outgoing) => Some(outgoing.bytes),
        ChannelCommand::Abandon(_) => None,
    }
}

async fn write(
    stdin: &mut pipe::Sender,
    bytes: Bytes,
    commands: &mpsc::Receiver<ChannelCommand>,
    stall: Duration,
) -> Result<(), WriteEnd> {
    // Message and line break in one system call.
    let mut rest = bytes.chain(&b"\n"[..]);
    let mut moved = Instant::now();
    while rest.has_remaining() {
        match timeout(TICK.min(stall), stdin.write_buf(&mut rest)).await {
            Ok(Ok(0)) => return Err(WriteEnd::Failed(io::ErrorKind::WriteZero.into())),
            Ok(Ok(_)) => moved = Instant::now(),
            Ok(Err(error)) => return Err(WriteEnd::Failed(error)),
            Err(_) if commands.is_closed() => return Err(WriteEnd::Asked),
            Err(_) if moved.elapsed() >= stall => return Err(WriteEnd::Stalled),
            Err(_) => {}
        }
    }
    Ok(())
}
