//! Lines from a terminal, without a thread that would take a line when nobody wants to know.
//!
//! Owns reading answers from stdin, that none was typed before its question, and hiding what is
//! typed. Only terminals are read here; whose turn it is, is `desk.rs`.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcsetattr};
use tokio::sync::oneshot;
use toolway_types::text::clean;

use crate::output::Output;
use crate::screen::Screen;

/// The longest line: a terminal itself gives no more at once.
const MAX_LINE: usize = 64 * 1024;

/// The two ends of the conversation.
pub(crate) struct Terminal {
    output: Output,
}

/// What came of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Typed(String),
    /// The person ended the input, or the terminal is gone.
    End,
}

impl Terminal {
    pub(crate) fn new(output: Output) -> Self {
        Self { output }
    }

    /// What rows have to fit.
    pub(crate) fn screen(&self) -> Screen {
        self.output.screen()
    }

    pub(crate) fn say(&self, text: &str) {
        self.output.say(text);
    }

    /// Writes a prompt and waits for a line. May be dropped at any time.
    pub(crate) async fn line(&self, prompt: &str) -> Line {
        // What was typed before the question stood there is no answer to it.
        if forget_typed().is_err() {
            return Line::End;
        }
        // A closed stderr is nobody's problem.
        let _ = io::stderr().write_all(clean(prompt).as_bytes());
        match read_line().await {
            Ok(Some(line)) => Line::Typed(line),
            Ok(None) | Err(_) => Line::End,
        }
    }

    /// The same without showing what is typed.
    pub(crate) async fn hidden_line(&self, prompt: &str) -> Line {
        let _hidden = Hidden::start();
        let line = self.line(prompt).await;
        // Enter was not shown either.
        self.output.say("");
        line
    }
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

async fn read_line() -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        readable().await?;
        // The terminal may be shared: what was there may have been read by another.
        if !poll_stdin(Some(&Timespec::default()))? {
            continue;
        }
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
            // Nobody may wait any more.
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
