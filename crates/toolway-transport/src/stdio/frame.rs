//! Lines of a server's stdout: which are messages, which are noise, which are too long.
//!
//! Owns framing. Every byte is looked at a bounded number of times, however it arrives; a line
//! over the cap is skipped as it streams, with its id picked out on the way (REL-11).

use bytes::{Bytes, BytesMut};
use toolway_wire::{Id, envelope, skim::IdSkimmer};

/// How much is read at once, where more of a line is to come: as much as a pipe holds.
const READ: usize = 64 * 1024;

/// How much is read at once otherwise: enough for many small messages, and little enough for many
/// servers that say nothing.
const FIRST_READ: usize = 4 * 1024;

/// With so much room left of what was read before, no more is asked for: a message that is still held
/// would cost the next one a block of its own.
const ENOUGH: usize = 1024;

/// Above this a buffer is given back once its line is through.
const KEEP: usize = 1024 * 1024;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StdoutLine {
    /// Looks like a message.
    Message(Bytes),
    /// Several messages in one line (2025-03-26).
    Batch(Vec<Bytes>),
    /// Other output, such as log lines.
    Noise(Bytes),
    /// Longer than the cap; the id it answers, where readable.
    Oversized(Option<Id>),
}

/// Cuts a stream into lines.
pub(super) struct LineFramer {
    buffer: BytesMut,
    /// Up to here the buffer holds no line break.
    scanned: usize,
    skipping: Option<IdSkimmer>,
    limit: usize,
}

impl LineFramer {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            skipping: None,
            limit,
        }
    }

    /// Where to read into; always has room.
    pub(super) fn room(&mut self) -> &mut BytesMut {
        let left = self.buffer.capacity() - self.buffer.len();
        if !self.buffer.is_empty() {
            // Growing with what is there keeps a long line linear.
            let more = READ.max(self.buffer.len()).min(READ.max(KEEP));
            self.buffer.reserve(more);
        } else if left < ENOUGH {
            self.buffer.reserve(FIRST_READ);
        }
        &mut self.buffer
    }

    /// The next whole line of what was read, empty ones left out.
    pub(super) fn next_line(&mut self) -> Option<StdoutLine> {
        loop {
            let Some(step) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.skip_if_too_long();
                return None;
            };
            let line = self.buffer.split_to(self.scanned + step + 1);
            self.scanned = 0;
            if line.len() > KEEP {
                // The line keeps its memory alive while it is held; the framer does not.
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            let line = line.freeze();
            if let Some(line) = self.classify(&line.slice(..line.len() - 1)) {
                return Some(line);
            }
        }
    }

    /// What is left when the stream has ended: a last line may lack its line break.
    pub(super) fn finish(&mut self) -> Option<StdoutLine> {
        if let Some(line) = self.next_line() {
            return Some(line);
        }
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        self.classify(&rest)
    }

    fn skip_if_too_long(&mut self) {
        if self.buffer.len() > self.limit || self.skipping.is_some() {
            self.skipping.get_or_insert_default().feed(&self.buffer);
            self.scanned = 0;
            if self.buffer.capacity() > KEEP {
                self.buffer = BytesMut::new();
            } else {
                self.buffer.clear();
            }
        }
    }

    fn classify(&mut self, line: &Bytes) -> Option<StdoutLine> {
        if let Some(mut skimmer) = self.skipping.take() {
            skimmer.feed(line);
            return Some(StdoutLine::Oversized(skimmer.response_id()));
        }
        if line.len() > self.limit {
            let mut skimmer = IdSkimmer::new();
            skimmer.feed(line);
            return Some(StdoutLine::Oversized(skimmer.response_id()));
        }
        classify(line)
    }
}

fn classify(line: &Bytes) -> Option<StdoutLine> {
    let start = invisible(line);
    let end = line
        .iter()
        .rposition(|byte| !is_blank(*byte))
        .map_or(start, |last| last + 1);
    if start >= end {
        return None;
    }
    let text = line.slice(start..end);
    // What is noise is kept as it was written.
    let noise = || Some(StdoutLine::Noise(line.slice(..end)));
    let close = match text[0] {
        b'{' => b'}',
        b'[' => b']',
        _ => return noise(),
    };
    // Colours may be switched off again behind the message.
    let Some(last) = memchr::memrchr(close, &text) else {
        return noise();
    };
    if invisible(&text[last + 1..]) != text.len() - last - 1 {
        return noise();
    }
    let body = readable(text.slice(..=last));
    if close == b']' {
        return Some(match envelope::split_batch(&body) {
            Some(parts) if parts.iter().all(|part| is_message(part.get().as_bytes())) => {
                let copy = |text: &str| Bytes::copy_from_slice(text.as_bytes());
                StdoutLine::Batch(parts.iter().map(|part| copy(part.get())).collect())
            }
            _ => return noise(),
        });
    }
    if is_message(&body) {
        Some(StdoutLine::Message(body))
    } else {
        noise()
    }
}

/// Whether an object is meant for us. Loggers write JSON too, so it must name one of the
/// protocol's members; reading it properly is the session's work.
fn is_message(object: &[u8]) -> bool {
    const MEMBERS: [&[u8]; 4] = [b"\"jsonrpc\"", b"\"method\"", b"\"result\"", b"\"error\""];
    if object.starts_with(b"{\"jsonrpc\"") {
        return true;
    }
    object.first() == Some(&b'{')
        && object[1..].iter().find(|byte| !is_blank(**byte)) == Some(&b'"')
        && MEMBERS
            .iter()
            .any(|member| memchr::memmem::find(object, member).is_some())
}

/// The same bytes, with what is not UTF-8 replaced: an answer with one broken character is still
/// an answer, and the call must not hang for it.
fn readable(bytes: Bytes) -> Bytes {
    // Looked at in large steps first; replacing goes byte by byte.
    if std::str::from_utf8(&bytes).is_ok() {
        return bytes;
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

/// How many bytes at the start show nothing: blanks, NUL, byte order marks, terminal sequences.
/// Only such may stand beside a message; visible text in front of one makes the line noise,
/// because a logged text must never pass for an answer.
fn invisible(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        at += match rest {
            [first, ..] if is_blank(*first) => 1,
            [0xEF, 0xBB, 0xBF, ..] => 3,
            [0x1B, b'[', sequence @ ..] => {
                match sequence
                    .iter()
                    .position(|byte| (0x40..=0x7E).contains(byte))
                {
                    Some(end) => end + 3,
                    None => return at,
                }
            }
            [0x1B, b']', sequence @ ..] => match sequence.iter().position(|byte| *byte == 0x07) {
                Some(end) => end + 3,
                None => return at,
            },
            _ => return at,
        };
    }
}

#[cfg(test)]
mod tests;
