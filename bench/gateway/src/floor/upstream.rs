//! A server behind the floor gateway: its process and its two pipes.
//!
//! Owns lines in both directions. Which client a line belongs to is the gateway's.

use std::io;
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::epoll::EventFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::Poll;

/// A line of more bytes is handed over instead of copied.
const LONG: usize = 1 << 16;

/// A line of a server, without its end.
pub enum Line<'a> {
    Short(&'a [u8]),
    Long(Vec<u8>),
}

impl Line<'_> {
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Line::Short(line) => line,
            Line::Long(line) => line,
        }
    }
}

pub struct Upstream {
    _process: Child,
    to: ChildStdin,
    from: ChildStdout,
    token: u64,
    input: Vec<u8>,
    /// Where the next line begins, and how far no end of it was found.
    begin: usize,
    looked: usize,
    output: Vec<u8>,
    is_full: bool,
}

impl Upstream {
    pub fn start(words: &[String], poll: &Poll, token: u64) -> io::Result<Self> {
        let Some((program, rest)) = words.split_first() else {
            return Err(io::Error::other("no command of a server is given"));
        };
        let mut process = Command::new(program)
            .args(rest)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        fcntl_setfl(&to, fcntl_getfl(&to)? | OFlags::NONBLOCK)?;
        fcntl_setfl(&from, fcntl_getfl(&from)? | OFlags::NONBLOCK)?;
        poll.add(&from, token)?;
        poll.add_outlet(&to, token)?;
        Ok(Self {
            _process: process,
            to,
            from,
            token,
            input: Vec::new(),
            begin: 0,
            looked: 0,
            output: Vec::new(),
            is_full: false,
        })
    }

    /// Puts a message into the queue, with another id where it has one.
    pub fn pass_on(&mut self, message: &[u8], id: Option<(Range<usize>, usize)>) {
        let message = message.trim_ascii_end();
        match id {
            Some((id, number)) => {
                self.output.extend_from_slice(&message[..id.start]);
                // Writing to memory cannot fail.
                let _ = io::Write::write_fmt(&mut self.output, format_args!("{number}"));
                self.output.extend_from_slice(&message[id.end..]);
            }
            None => self.output.extend_from_slice(message),
        }
        self.output.push(b'\n');
    }

    /// Writes what the pipe can take.
    pub fn flush(&mut self, poll: &Poll) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let sent = match rustix::io::write(&self.to, &self.output) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        self.output.drain(..sent);
        let is_full = !self.output.is_empty();
        if is_full != self.is_full {
            self.is_full = is_full;
            let wanted = if is_full {
                EventFlags::OUT
            } else {
                EventFlags::empty()
            };
            poll.change(&self.to, self.token, wanted)?;
        }
        Ok(())
    }

    /// Reads what the server said, once.
    pub fn receive(&mut self) -> io::Result<()> {
        if self.begin > 0 {
            self.input.drain(..self.begin);
            self.looked -= self.begin;
            self.begin = 0;
        }
        match super::receive(&self.from, &mut self.input)? {
            Some(0) => Err(io::Error::other("a server ended")),
            _ => Ok(()),
        }
    }

    /// The next whole line.
    pub fn line(&mut self) -> Option<Line<'_>> {
        let Some(end) = memchr::memchr(b'\n', &self.input[self.looked..]) else {
            self.looked = self.input.len();
            return None;
        };
        let (begin, end) = (self.begin, self.looked + end);
        if begin == 0 && end > LONG {
            let rest = self.input.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.input, rest);
            line.truncate(end);
            self.looked = 0;
            return Some(Line::Long(line));
        }
        self.begin = end + 1;
        self.looked = self.begin;
        Some(Line::Short(&self.input[begin..end]))
    }
}
