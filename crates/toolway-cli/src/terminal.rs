//! Lines from a terminal, without a thread that would take a line that is not asked for.
//!
//! Owns reading answers from stdin, that none was typed before its question, and hiding what is
//! typed. Lines are read key by key (`terminal/keys.rs`): the terminal itself would cut them at 4095
//! bytes.

mod keys;

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcsetattr};
use tokio::sync::oneshot;
use toolway_types::text::clean;

use self::keys::Keys;

/// The longest line.
const MAX_LINE: usize = 64 * 1024;

/// What came of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Typed(String),
    /// The user ended the input, or the terminal is gone.
    End,
}

/// Writes a prompt and waits for a line. May be dropped at any time.
pub(crate) async fn line(prompt: &str) -> Line {
    let keys = Keys::start();
    // What was typed before the question is no answer to it.
    if forget_typed().is_err() {
        return Line::End;
    }
    // A closed stderr changes nothing here.
    let _ = io::stderr().write_all(clean(prompt).as_bytes());
    keys.line().await
}

/// The next line, also one that was typed before. May be dropped at any time.
pub(crate) async fn next_line() -> Line {
    Keys::start().line().await
}

/// As [`line`], without showing what is typed.
pub(crate) async fn hidden_line(prompt: &str) -> Line {
    let _hidden = Hidden::start();
    let line = line(prompt).await;
    // Enter was not shown either.
    let _ = io::stderr().write_all(b"\n");
    line
}

/// Drops what was typed and not read yet.
pub(crate) fn forget_typed() -> io::Result<()> {
    Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
}

/// The next line, waited for on this thread. Nothing of what was typed behind it is kept for the
/// next question.
pub(crate) fn wait_for_line() -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        if let ControlFlow::Break(line) = read_more(&mut bytes)? {
            return Ok(line);
        }
    }
}

/// Reads what is there, until it is a line or the end.
fn read_more(bytes: &mut Vec<u8>) -> io::Result<ControlFlow<Option<String>>> {
    let mut chunk = [0; 4096];
    match rustix::io::read(io::stdin(), &mut chunk) {
        Ok(0) => return Ok(ControlFlow::Break(None)),
        Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        Err(Errno::INTR | Errno::AGAIN) => {}
        Err(errno) => return Err(errno.into()),
    }
    let is_whole = bytes.last() == Some(&b'\n') || bytes.len() > MAX_LINE;
    Ok(if is_whole {
        ControlFlow::Break(Some(String::from_utf8_lossy(bytes).into_owned()))
    } else {
        ControlFlow::Continue(())
    })
}

/// Waits for something to read, on a thread that takes nothing: left alone it is harmless, and
/// it ends with the next line or with the program.
async fn readable() -> io::Result<()> {
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let ready = loop {
                match poll_stdin(None) {
                    Ok(false) => {}
                    Ok(true) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            // The receiver may be gone.
            let _ = tell.send(ready);
        })?;
    told.await
        .unwrap_or_else(|lost| Err(io::Error::other(lost)))
}

fn poll_stdin(limit: Option<&Timespec>) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut watched, limit) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// What is typed is not shown until this is dropped.
struct Hidden(Option<Termios>);

impl Hidden {
    fn start() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut hidden) = before.clone() {
            hidden.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &hidden);
        }
        Self(before)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
