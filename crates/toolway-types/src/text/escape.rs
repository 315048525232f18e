//! Terminal escape sequences: where one begins, where it ends.
//!
//! Owns the grammar of ECMA-48 as terminals read it (CSI, OSC, DCS, SOS, PM, APC and the short
//! `ESC x` forms, with their one-character C1 spellings). Which single characters are hidden is
//! said by [`is_hidden`].
//!
//! A control string (OSC, DCS, …) that never ends loses only its introducer: swallowing the rest
//! of the text would let a server hide what follows from everyone.

use std::iter::Peekable;
use std::str::Chars;

use super::is_hidden;

const ESCAPE: char = '\u{1B}';
const BELL: char = '\u{07}';
const STRING_TERMINATOR: char = '\u{9C}';

/// The text without sequences and hidden characters, and how many characters were taken out.
pub(super) fn strip(text: &str) -> (String, usize) {
    let mut kept = String::with_capacity(text.len());
    let mut removed = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => kept.push(c),
            '\r' => removed += usize::from(rest.peek() != Some(&'\n')),
            ESCAPE => removed += 1 + skip_escape(&mut rest),
            '\u{9B}' => removed += 1 + skip_control_sequence(&mut rest),
            '\u{9D}' => removed += 1 + skip_control_string(&mut rest, ControlStringEnd::AtBellToo),
            '\u{90}' | '\u{98}' | '\u{9E}' | '\u{9F}' => {
                removed += 1 + skip_control_string(&mut rest, ControlStringEnd::AtTerminator);
            }
            c if is_hidden(c) => removed += 1,
            c => kept.push(c),
        }
    }
    (kept, removed)
}

/// What ends a control string.
#[derive(Clone, Copy, PartialEq)]
enum ControlStringEnd {
    /// Only ST.
    AtTerminator,
    /// ST or, as every terminal accepts for OSC, BEL.
    AtBellToo,
}

/// Behind an ESC: skips what belongs to it and says how many characters that was.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) -> usize {
    let Some(&next) = rest.peek() else { return 0 };
    match next {
        '[' => {
            rest.next();
            1 + skip_control_sequence(rest)
        }
        ']' => {
            rest.next();
            1 + skip_control_string(rest, ControlStringEnd::AtBellToo)
        }
        'P' | 'X' | '^' | '_' => {
            rest.next();
            1 + skip_control_string(rest, ControlStringEnd::AtTerminator)
        }
        _ => {
            skip_while(rest, |c| matches!(c, ' '..='/'))
                + skip_one(rest, |c| matches!(c, '0'..='~'))
        }
    }
}

/// Behind a CSI: parameters, intermediates, one final character. A character that fits none of
/// these ends the sequence and is read as text again.
fn skip_control_sequence(rest: &mut Peekable<Chars<'_>>) -> usize {
    skip_while(rest, |c| matches!(c, '0'..='?'))
        + skip_while(rest, |c| matches!(c, ' '..='/'))
        + skip_one(rest, |c| matches!(c, '@'..='~'))
}

/// Behind the introducer of a control string: its content and its end. ESC, CAN, SUB and C1
/// controls abort it, as in terminals; each is left to be read again, so one pass stays linear.
fn skip_control_string(rest: &mut Peekable<Chars<'_>>, ends: ControlStringEnd) -> usize {
    let mut ahead = rest.clone();
    let mut skipped = 0;
    while let Some(&c) = ahead.peek() {
        match c {
            STRING_TERMINATOR => {
                ahead.next();
                *rest = ahead;
                return skipped + 1;
            }
            BELL if ends == ControlStringEnd::AtBellToo => {
                ahead.next();
                *rest = ahead;
                return skipped + 1;
            }
            // `ESC \` is ST: the main loop takes it as a short sequence.
            ESCAPE | '\u{18}' | '\u{1A}' | '\u{80}'..='\u{9F}' => {
                *rest = ahead;
                return skipped;
            }
            _ => {
                ahead.next();
                skipped += 1;
            }
        }
    }
    0
}

fn skip_while(rest: &mut Peekable<Chars<'_>>, belongs: impl Fn(char) -> bool) -> usize {
    let mut skipped = 0;
    while rest.next_if(|c| belongs(*c)).is_some() {
        skipped += 1;
    }
    skipped
}

fn skip_one(rest: &mut Peekable<Chars<'_>>, belongs: impl Fn(char) -> bool) -> usize {
    usize::from(rest.next_if(|c| belongs(*c)).is_some())
}
