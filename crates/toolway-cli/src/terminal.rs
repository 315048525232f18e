//! Lines from a terminal, without a thread that would take a line that is not asked for.
//!
//! Owns reading answers from stdin, that none was typed before its question, and hiding what is
//! typed. Lines are read key by key (`terminal/keys.rs`): the terminal itself would cut them at 4095
//! bytes.

mod keys;

use std::io;
use std::ops::ControlFlow;

use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcsetattr};
use tokio::sync::oneshot;
use toolway_types::text::clean;

use self::keys::Keys;
use crate::streams::Streams;

/// The longest line.
const MAX_LINE: usize = 64 * 1024;

/// What came of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedLine {
    Typed(String),
    /// The user ended the input, or the terminal is gone.
    End,
}

/// Lines from the terminal of one run.
#[derive(Clone, Copy)]
pub(crate) struct Terminal<'a> {
    streams: &'a Streams,
}

impl<'a> Terminal<'a> {
    /// On these streams.
    pub(crate) fn on(streams: &'a Streams) -> Self {
        Self { streams }
    }

    /// Writes a prompt and waits for a line. May be dropped at any time.
    pub(crate) async fn line(self, prompt: &str) -> TypedLine {
        let keys = Keys::start(self.streams);
        // What was typed before the question is no answer to it.
        if self.forget_typed().is_err() {
            return TypedLine::End;
        }
        // A closed stderr changes nothing here.
        let _ = self.streams.write_errors(clean(prompt).as_bytes());
        keys.line().await
    }

    /// The next line, also one that was typed before. May be dropped at any time.
    pub(crate) async fn next_line(self) -> TypedLine {
        Keys::start(self.streams).line().await
    }

    /// As [`Terminal::line`], without showing what is typed.
    pub(crate) async fn hidden_line(self, prompt: &str) -> TypedLine {
        let _hidden = Hidden::start(self.streams);
        let line = self.line(prompt).await;
        // Enter was not shown either.
        let _ = self.streams.write_errors(b"\n");
        line
    }

    /// Drops what was typed and not read yet.
    pub(crate) fn forget_typed(self) -> io::Result<()> {
        Ok(tcflush(self.streams.input(), QueueSelector::IFlush)?)
    }

    /// The next line, waited for on this thread. Nothing of what was typed behind it is kept for the
    /// next question.
    pub(crate) fn wait_for_line(self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        loop {
            if let ControlFlow::Break(line) = self.read_more(&mut bytes)? {
                return Ok(line);
            }
        }
    }

    /// The next line of what is no terminal; what stands behind it is left to the next reader.
    pub(crate) fn piped_line(self) -> io::Result<Option<String>> {
        if !self.streams.are_given() {
            let mut line = String::new();
            return Ok((io::stdin().read_line(&mut line)? > 0).then_some(line));
        }
        let mut bytes = Vec::new();
        let mut byte = [0];
        while bytes.last() != Some(&b'\n') && bytes.len() <= MAX_LINE {
            if self.streams.read_input(&mut byte)? == 0 {
                break;
            }
            bytes.push(byte[0]);
        }
        Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Reads what is there, until it is a line or the end.
    fn read_more(self, bytes: &mut Vec<u8>) -> io::Result<ControlFlow<Option<String>>> {
        let mut chunk = [0; 4096];
        match self.streams.read_input(&mut chunk)? {
            0 => return Ok(ControlFlow::Break(None)),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
        let is_whole = bytes.last() == Some(&b'\n') || bytes.len() > MAX_LINE;
        Ok(if is_whole {
            ControlFlow::Break(Some(String::from_utf8_lossy(bytes).into_owned()))
        } else {
            ControlFlow::Continue(())
        })
    }
}

/// Waits for something to read, on a thread that takes nothing: left alone it is harmless, and
/// it ends with the next line, or with the program whose terminal it is.
async fn readable(streams: &Streams) -> io::Result<()> {
    let (tell, told) = oneshot::channel();
    let streams = streams.clone();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            // The receiver may be gone.
            let _ = tell.send(streams.await_input(None).map(drop));
        })?;
    told.await
        .unwrap_or_else(|lost| Err(io::Error::other(lost)))
}

/// What is typed is not shown until this is dropped.
struct Hidden<'a> {
    streams: &'a Streams,
    before: Option<Termios>,
}

impl<'a> Hidden<'a> {
    fn start(streams: &'a Streams) -> Self {
        let before = tcgetattr(streams.input()).ok();
        if let Some(mut hidden) = before.clone() {
            hidden.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(streams.input(), OptionalActions::Now, &hidden);
        }
        Self { streams, before }
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(self.streams.input(), OptionalActions::Now, before);
        }
    }
}
