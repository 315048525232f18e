//! A line put together from the keys of a terminal.
//!
//! Owns the terminal's modes while a line is read, the keys that edit a line (as the terminal is set
//! up), and echo. The terminal's line discipline would do the same, but cuts lines at 4095 bytes.

use std::io::{self, IsTerminal as _};

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, SpecialCodes, Termios, tcgetattr, tcsetattr,
};

use super::{MAX_LINE, TypedLine, readable};
use crate::streams::Streams;

/// The terminal gives keys until this is dropped.
pub(super) struct Keys<'a> {
    streams: &'a Streams,
    before: Option<Termios>,
    /// Whether it is for us to show what is typed.
    shows: bool,
}

impl<'a> Keys<'a> {
    pub(super) fn start(streams: &'a Streams) -> Self {
        let before = tcgetattr(streams.input()).ok();
        let mut shows = false;
        if let Some(mut modes) = before.clone() {
            // What we cannot show ourselves the terminal goes on to show.
            shows = modes.local_modes.contains(LocalModes::ECHO) && streams.errors().is_terminal();
            modes.local_modes.remove(LocalModes::ICANON);
            if shows {
                modes.local_modes.remove(LocalModes::ECHO);
            }
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(streams.input(), OptionalActions::Now, &modes);
        }
        Self {
            streams,
            before,
            shows,
        }
    }

    /// Reads until Enter. A byte at a time: what comes after it is the next reader's.
    pub(super) async fn line(&self) -> TypedLine {
        let mut typing = Typing::default();
        loop {
            let Ok(Some(key)) = self.key(&mut typing).await else {
                return TypedLine::End;
            };
            let codes = self.before.as_ref().map(|before| &before.special_codes);
            let end = typing.take(key, codes);
            if end.is_some() || typing.bytes.len() > MAX_LINE {
                self.show(&mut typing);
                return end.unwrap_or_else(|| typing.line());
            }
        }
    }

    /// The next byte; shows what was typed before it waits.
    async fn key(&self, typing: &mut Typing) -> io::Result<Option<u8>> {
        let mut byte = [0];
        loop {
            // The terminal may be shared: what was there may have been read by another.
            if !self.streams.await_input(Some(&Timespec::default()))? {
                self.show(typing);
                readable(self.streams).await?;
                continue;
            }
            match rustix::io::read(self.streams.input(), &mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(byte[0])),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn show(&self, typing: &mut Typing) {
        if self.shows {
            // That stderr is closed is no error.
            let _ = self.streams.write_errors(&typing.shown);
        }
        typing.shown.clear();
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(self.streams.input(), OptionalActions::Now, before);
        }
    }
}

/// A line that is being typed.
#[derive(Default)]
struct Typing {
    bytes: Vec<u8>,
    /// What the terminal is still to show of it.
    shown: Vec<u8>,
    /// A key that sends several bytes, such as an arrow, is under way.
    escape: Escape,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    Sequence,
}

impl Typing {
    /// Takes a byte; the line when it is complete.
    fn take(&mut self, byte: u8, codes: Option<&SpecialCodes>) -> Option<TypedLine> {
        let is = |index, usual| byte == usual || codes.is_some_and(|codes| codes[index] == byte);
        let escape = std::mem::take(&mut self.escape);
        // Enter and the like end what was begun, and are what they are.
        if escape != Escape::None && byte >= 0x20 {
            self.escape = match (escape, byte) {
                (Escape::Begun, b'[' | b'O') | (Escape::Sequence, ..0x40) => Escape::Sequence,
                _ => Escape::None,
            };
            return None;
        }
        match byte {
            b'\n' | b'\r' => {
                self.shown.push(b'\n');
                return Some(self.line());
            }
            0x1b => self.escape = Escape::Begun,
            // The code of a key that a terminal does not have.
            0 => {}
            _ if is(SpecialCodeIndex::VEOF, 0x04) => {
                return self.bytes.is_empty().then_some(TypedLine::End);
            }
            _ if is(SpecialCodeIndex::VERASE, 0x7f) || byte == 0x08 => self.erase(),
            _ if is(SpecialCodeIndex::VKILL, 0x15) => {
                while !self.bytes.is_empty() {
                    self.erase();
                }
            }
            _ if is(SpecialCodeIndex::VWERASE, 0x17) => {
                while self.bytes.last().is_some_and(u8::is_ascii_whitespace) {
                    self.erase();
                }
                while self
                    .bytes
                    .last()
                    .is_some_and(|byte| !byte.is_ascii_whitespace())
                {
                    self.erase();
                }
            }
            b'\t' | 0x20.. => {
                self.bytes.push(byte);
                self.shown.push(byte);
            }
            _ => {}
        }
        None
    }

    /// Takes the last character back.
    fn erase(&mut self) {
        let is_inside = |byte: u8| byte & 0xc0 == 0x80;
        while let Some(byte) = self.bytes.pop() {
            if !is_inside(byte) {
                self.shown.extend(b"\x08 \x08");
                return;
            }
        }
    }

    fn line(&self) -> TypedLine {
        TypedLine::Typed(String::from_utf8_lossy(&self.bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> (Option<TypedLine>, String) {
        let mut typing = Typing::default();
        let mut end = None;
        for byte in keys.bytes() {
            end = typing.take(byte, None);
        }
        (end, String::from_utf8(typing.shown).unwrap())
    }

    #[test]
    fn a_line_is_mended_before_it_is_sent() {
        for (keys, line) in [
            ("hello\n", "hello"),
            ("hallo\u{7f}\u{7f}\u{7f}\u{7f}ello\r", "hello"),
            ("\u{e4}\u{1f642}\u{7f}\u{7f}\u{7f}x\n", "x"),
            ("one two  \u{17}three\n", "one three"),
            ("one\u{15}two\n", "two"),
            ("a\u{1b}[Ab\u{1b}[1;5Dc\u{1b}OPd\u{1}\n", "abcd"),
            ("a\u{4}b\n", "ab"),
            ("a\u{1b}\n", "a"),
            ("\n", ""),
        ] {
            assert_eq!(
                typed(keys).0,
                Some(TypedLine::Typed(line.to_owned())),
                "{keys:?}"
            );
        }
        assert_eq!(typed("\u{4}").0, Some(TypedLine::End));
        assert_eq!(typed("ab").0, None);
    }

    #[test]
    fn what_is_taken_back_is_taken_off_the_screen() {
        assert_eq!(typed("ab\u{7f}c\n").1, "ab\u{8} \u{8}c\n");
        assert_eq!(typed("\u{7f}").1, "");
    }
}
