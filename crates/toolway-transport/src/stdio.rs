//! A server that is a child process: one message per line on its stdin and stdout.
//!
//! Owns the channel over the pipes: reading, writing, and why it ended. The process itself is in
//! [`process`], lines in [`frame`].

pub(crate) mod descriptors;
mod frame;
pub mod launcher;
#[cfg(target_os = "linux")]
mod pack;
pub(crate) mod pipes;
#[cfg(target_os = "linux")]
mod proc;
pub(crate) mod process;
pub mod shield;
mod stop_sequence;
mod write;

use std::io::ErrorKind;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolway_types::StdioSpec;

use crate::channel::{Channel, ChannelCommand, ChannelEvent, ChannelLimits};
use crate::error::{CloseReason, OpenError};
use crate::first_look::FirstLook;
use crate::server_log::ServerLog;
use crate::woken::Woken;
use frame::{LineFramer, StdoutLine};
use launcher::Launcher;
use pipes::Pipes;
use process::ChildProcess;
use shield::Shield;
use write::WriteEnd;

/// How long to wait for the other signs of an ending after the first one.
const SIGNS_TIMEOUT: Duration = Duration::from_millis(200);

/// How long output that was still in the pipe may take to be read after the process has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts a server.
pub(crate) async fn open(
    spec: &StdioSpec,
    limits: &ChannelLimits,
    shield: &Shield,
    launcher: &Launcher,
) -> Result<Channel, OpenError> {
    let (process, pipes) = ChildProcess::spawn(spec, shield, launcher).await?;
    let (log, limits) = (ServerLog::new(limits.stderr_ring), limits.clone());
    let first_look = FirstLook::default();
    let heard = Heard {
        first_look: first_look.clone(),
        log: log.clone(),
    };
    let channel = Channel::driven(Some(log), |commands, events| {
        drive(process, pipes, commands, events, limits, heard)
    });
    Ok(channel.with_first_look(first_look))
}

/// Where what a server says goes beside the queue.
#[derive(Clone)]
struct Heard {
    first_look: FirstLook,
    log: ServerLog,
}

async fn drive(
    mut process: ChildProcess,
    pipes: Pipes,
    commands: mpsc::Receiver<ChannelCommand>,
    events: mpsc::Sender<ChannelEvent>,
    limits: ChannelLimits,
    heard: Heard,
) {
    let log = heard.log.clone();
    let _followed = CloseLogOnDrop(log.clone());
    let read = read(pipes.stdout, events.clone(), limits.line, heard);
    let write = write::pump(commands, pipes.stdin, limits.write_stall);
    // Each message is news of one of them alone.
    let (mut read, mut write) = (Woken::new(read), Some(Woken::new(write)));
    let mut drain = Woken::new(drain(pipes.stderr, log.clone()));
    let mut seen = EndSigns::default();

    let reason = loop {
        if let Some(reason) = seen.verdict(&log) {
            break reason;
        }
        tokio::select! {
            end = async { write.as_mut()?.await.into() }, if write.is_some() => {
                write = None;
                match end {
                    Some(WriteEnd::Asked) => break CloseReason::Asked,
                    Some(WriteEnd::Stalled) => {
                        break CloseReason::Broken(format!(
                            "the server has not read its input for {} s",
                            limits.write_stall.as_secs_f32()
                        ));
                    }
                    Some(WriteEnd::Failed(error)) => {
                        seen.write_error = Some(error.to_string());
                        seen.give(SIGNS_TIMEOUT);
                    }
                    None => {}
                }
            }
            end = &mut read, if !seen.end_of_stdout => {
                seen.end_of_stdout = true;
                seen.give(SIGNS_TIMEOUT);
                match end {
                    ReadEnd::EndOfStream => {}
                    ReadEnd::NobodyListens => break CloseReason::Asked,
                    ReadEnd::Failed(error) => seen.read_error = Some(error),
                }
            }
            () = &mut drain, if !seen.end_of_stderr => seen.end_of_stderr = true,
            status = process.wait(), if seen.exit.is_none() => {
                // What it leaves behind would hold its pipes open forever.
                process.sweep();
                seen.exit = Some(status);
                seen.give(if seen.end_of_stdout { SIGNS_TIMEOUT } else { DRAIN_TIMEOUT });
            }
            () = async { sleep_until(seen.deadline()).await }, if seen.deadline.is_some() => {
                seen.patience_is_over = true;
            }
        }
    };

    // Closing stdin is the first thing a server notices.
    drop(write);
    if reason == CloseReason::Asked {
        // It may still write, and must not block on a full pipe.
        tokio::select! {
            () = process.stop() => {}
            () = async {
                tokio::join!(async { if !seen.end_of_stdout { read.await; } }, async {
                    if !seen.end_of_stderr { drain.await; }
                });
                std::future::pending::<()>().await;
            } => {}
        }
        // The session may have stopped listening; the end must not wait for it.
        let _ = events.try_send(ChannelEvent::Closed(reason));
    } else {
        drop(read);
        let _ = tokio::join!(events.send(ChannelEvent::Closed(reason)), process.stop());
    }
}

/// Closes the log on drop, so that its followers learn of the end however the driver ends.
struct CloseLogOnDrop(ServerLog);

impl Drop for CloseLogOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What was observed of an ending; the observations arrive in any order.
#[derive(Default)]
struct EndSigns {
    exit: Option<std::io::Result<ExitStatus>>,
    end_of_stdout: bool,
    end_of_stderr: bool,
    read_error: Option<String>,
    write_error: Option<String>,
    deadline: Option<Instant>,
    patience_is_over: bool,
}

impl EndSigns {
    /// Waits at most this long from now on for the other signs.
    fn give(&mut self, patience: Duration) {
        self.deadline = Some(Instant::now() + patience);
    }

    fn deadline(&self) -> Instant {
        self.deadline.unwrap_or_else(Instant::now)
    }

    /// Why it ended, once enough is known to say it well.
    fn verdict(&self, log: &ServerLog) -> Option<CloseReason> {
        let complete = self.exit.is_some() && self.end_of_stdout && self.end_of_stderr;
        if !complete && !self.patience_is_over {
            return None;
        }
        let stderr = log.tail();
        Some(match (&self.exit, &self.read_error, &self.write_error) {
            (Some(Ok(status)), ..) => CloseReason::Exited {
                status: status.to_string(),
                stderr,
            },
            (Some(Err(error)), ..) => CloseReason::Broken(error.to_string()),
            (None, Some(error), _) => CloseReason::Broken(error.clone()),
            (None, None, Some(error)) if !self.end_of_stdout => {
                CloseReason::Broken(format!("the server closed its input: {error}"))
            }
            (None, ..) => CloseReason::EndOfStream { stderr },
        })
    }
}

enum ReadEnd {
    EndOfStream,
    NobodyListens,
    Failed(String),
}

async fn read(
    mut stdout: pipe::Receiver,
    events: mpsc::Sender<ChannelEvent>,
    limit: usize,
    heard: Heard,
) -> ReadEnd {
    let Heard { first_look, log } = heard;
    let mut framer = LineFramer::new(limit);
    loop {
        let count = match stdout.read_buf(framer.room()).await {
            Ok(count) => count,
            Err(error) => return ReadEnd::Failed(error.to_string()),
        };
        while let Some(line) = if count == 0 {
            framer.finish()
        } else {
            framer.next_line()
        } {
            let delivered = match line {
                StdoutLine::Message(bytes) if first_look.takes(&bytes, &events) => Ok(()),
                StdoutLine::Message(bytes) => events.send(ChannelEvent::message(bytes)).await,
                StdoutLine::Batch(messages) => {
                    let mut delivered = Ok(());
                    for message in messages {
                        delivered = events.send(ChannelEvent::message(message)).await;
                    }
                    delivered
                }
                StdoutLine::Oversized(id_hint) => {
                    events
                        .send(ChannelEvent::Oversized { id_hint, limit })
                        .await
                }
                StdoutLine::Noise(bytes) => {
                    log.push_stdout(&bytes);
                    Ok(())
                }
            };
            if delivered.is_err() {
                return ReadEnd::NobodyListens;
            }
        }
        if count == 0 {
            return ReadEnd::EndOfStream;
        }
    }
}

/// Reads a process's stderr to its end.
async fn drain(stderr: pipe::Receiver, log: ServerLog) {
    // An error is an end too: only log lines are lost.
    while stderr.readable().await.is_ok() {
        // Most servers are silent: nothing is kept ready for what they may say.
        let mut buffer = Vec::with_capacity(4 * 1024);
        match stderr.try_read_buf(&mut buffer) {
            Ok(1..) => log.push_stderr(&buffer),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
        }
    }
}
