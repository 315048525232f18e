//! Lines from a terminal, without a thread that would go on reading when nobody wants to know.
//!
//! Owns reading stdin, and hiding what is typed. Only terminals are read here.

use std::io::{self, Stdin, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcsetattr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use toolway_types::text::clean;

use crate::output::Output;

/// The longest line: a terminal itself gives no more at once.
const MAX_LINE: usize = 64 * 1024;

/// The two ends of the conversation.
pub(super) struct Terminal {
    output: Output,
}

/// What came of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Typed(String),
    /// The person ended the input, or the terminal is gone.
    End,
}

impl Terminal {
    pub(super) fn new(output: Output) -> Self {
        Self { output }
    }

    pub(super) fn say(&self, text: &str) {
        self.output.say(text);
    }

    /// Drops what was typed and not read yet.
    pub(super) fn forget_typed(&self) -> io::Result<()> {
        Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
    }

    /// Writes a prompt and waits for a line. May be dropped at any time.
    pub(super) async fn line(&self, prompt: &str, echo: bool) -> Line {
        let _hidden = (!echo).then(Hidden::start);
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(clean(prompt).as_bytes());
        let _ = stderr.flush();
        drop(stderr);
        let read = read_line().await;
        if !echo {
            // Enter was not shown either.
            self.output.say("");
        }
        match read {
            Ok(Some(line)) => Line::Typed(line),
            Ok(None) | Err(_) => Line::End,
        }
    }
}

async fn read_line() -> io::Result<Option<String>> {
    let stdin = AsyncFd::with_interest(io::stdin(), Interest::READABLE)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let mut ready = stdin.readable().await?;
        // The terminal may be shared: what was ready may have been read by another.
        if !is_readable(stdin.get_ref())? {
            ready.clear_ready();
            continue;
        }
        match rustix::io::read(stdin.get_ref(), &mut chunk) {
            Ok(0) => return Ok(None),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(errno) => return Err(errno.into()),
        }
        if bytes.last() == Some(&b'\n') || bytes.len() > MAX_LINE {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

fn is_readable(stdin: &Stdin) -> io::Result<bool> {
    let mut watched = [PollFd::new(stdin, PollFlags::IN)];
    match poll(&mut watched, Some(&Timespec::default())) {
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
