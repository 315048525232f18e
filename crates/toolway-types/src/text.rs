//! Text that came from a server.
//!
//! Owns the cleaning of everything a server says before a person or a model sees it (SEC-35), the
//! cut at a length, and the type that cannot be displayed uncleaned. Terminal escape sequences are
//! recognised in `text/escape.rs`; what a person is shown where they decide is `text/legible.rs`, and
//! how two texts differ `text/difference.rs`.
//! Does not own: which field is cut where, or whether a result for a model is cleaned; those are
//! the catalogue's and the dispatch line's decisions.
//!
//! Invariants: [`clean`] never panics, is idempotent, never makes text longer than NFC does, and
//! its output holds no hidden character but `\n` and `\t`. No introducer of an escape sequence
//! survives one pass, so what is left cannot join into a new sequence.

mod difference;
mod escape;
mod legible;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde_json::{Map, Value};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

pub use self::difference::{LineChange, differences, unified};
pub use self::legible::{LINE_BREAK, TextKind, counted, legible, legible_within, mark};

/// What stands at the end of text that [`cut`] shortened.
pub const TRUNCATED: &str = "… [truncated]";

/// Whether a character is invisible or steers the terminal or the direction of text.
///
/// These are the control characters, the line and paragraph separators, the interlinear
/// annotation marks and everything that Unicode calls default-ignorable: zero-width and bidi
/// marks, fillers, variation selectors and the tag block.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control(); // Nearly every character that is asked about.
    }
    c.is_control()
        || matches!(
            c,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{061C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Removes what a user cannot see, and brings the rest into NFC.
///
/// Whole terminal sequences go, not only their first byte; `\n` and `\t` stay, and `\r\n` becomes
/// `\n`. Text that is clean already is borrowed; plain ASCII is found clean without a table.
pub fn clean(text: &str) -> Cow<'_, str> {
    clean_counted(text).0
}

/// As [`clean`], with the number of characters that were removed. The `\r` of a line end is not
/// counted, since it hides nothing.
pub fn clean_counted(text: &str) -> (Cow<'_, str>, usize) {
    if is_clean(text) {
        return (Cow::Borrowed(text), 0);
    }
    let (visible, removed) = escape::strip(text);
    let composed = match is_nfc_quick(visible.chars()) {
        IsNormalized::Yes => visible,
        // "Maybe" needs the real composition as well: the quick check cannot decide it.
        IsNormalized::No | IsNormalized::Maybe => visible.nfc().collect(),
    };
    (Cow::Owned(composed), removed)
}

/// As [`clean`], for a place that shows one line: every run of line ends and tabs, with the
/// spaces around it, becomes one space, and the edges are trimmed.
pub fn clean_line(text: &str) -> Cow<'_, str> {
    let cleaned = clean(text);
    if !cleaned.contains(['\n', '\t']) && cleaned.trim() == cleaned {
        return cleaned;
    }
    let mut line = String::with_capacity(cleaned.len());
    for part in cleaned
        .split(['\n', '\t'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
    }
    Cow::Owned(line)
}

/// The text with everything invisible spelled out, for places where a user decides about it: what
/// cleaning would take away, they would approve unseen.
pub fn spelled_out(text: &str) -> String {
    // Nearly all paths are this, and it takes no look at each character.
    if text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        return text.to_owned();
    }
    let mut spelled = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            let _ = write!(spelled, "\\u{{{:04X}}}", c as u32);
        } else {
            spelled.push(c);
        }
    }
    spelled
}

/// Cleans every string and every key of a JSON value; also says how many characters went.
///
/// Two keys may become one by cleaning. The key that was clean from the start wins, else the
/// first: a disguised key must not replace an honest one.
pub fn clean_json(value: &Value) -> (Value, usize) {
    let mut removed = 0;
    let cleaned = clean_value(value, &mut removed);
    (cleaned, removed)
}

fn clean_value(value: &Value, removed: &mut usize) -> Value {
    match value {
        Value::String(text) => {
            let (text, count) = clean_counted(text);
            *removed += count;
            Value::String(text.into_owned())
        }
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| clean_value(item, removed))
                .collect(),
        ),
        Value::Object(members) => {
            let mut cleaned = Map::with_capacity(members.len());
            for (name, member) in members {
                let (key, count) = clean_counted(name);
                let disguised = key != name.as_str()
                    && (members.contains_key(key.as_ref()) || cleaned.contains_key(key.as_ref()));
                if disguised {
                    *removed += name.chars().count();
                    continue;
                }
                *removed += count;
                cleaned.insert(key.into_owned(), clean_value(member, removed));
            }
            Value::Object(cleaned)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Shortens text to at most `max_chars` characters, the last of which then are [`TRUNCATED`].
///
/// A limit too small for the marker gives the bare beginning, so that the limit always holds.
pub fn cut(text: &str, max_chars: usize) -> Cow<'_, str> {
    // A character takes at least one byte: short text needs no counting.
    if text.len() <= max_chars || text.char_indices().nth(max_chars).is_none() {
        return Cow::Borrowed(text);
    }
    let marker = TRUNCATED.chars().count();
    let (keep, marker) = match max_chars.checked_sub(marker) {
        Some(keep) => (keep, TRUNCATED),
        None => (max_chars, ""),
    };
    let end = text
        .char_indices()
        .nth(keep)
        .map_or(text.len(), |(index, _)| index);
    Cow::Owned(format!("{}{marker}", &text[..end]))
}

/// One form for all names that differ only by case or by composition (SEC-13), for comparing.
/// Hidden characters stay: they are part of a name as given.
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // Lower-casing can undo a composition, hence the second pass. It writes a sigma by what
    // follows, which a pattern does not know: one form for both.
    name.nfc()
        .collect::<String>()
        .to_lowercase()
        .replace('ς', "σ")
        .nfc()
        .collect()
}

/// A name with letters and their marks apart, for comparing with what was replaced letter by letter.
pub fn decomposed(name: &str) -> String {
    name.nfd().collect()
}

fn is_clean(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    text.bytes().all(plain)
        || (text
            .chars()
            .all(|c| matches!(c, '\n' | '\t') || !is_hidden(c))
            && is_nfc_quick(text.chars()) == IsNormalized::Yes)
}

/// Text from outside. `Display` shows it cleaned; the original is reached only by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Untrusted(String);

impl Untrusted {
    /// Wraps text as received.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as received, for forwarding and comparing, never for showing.
    pub fn as_received(&self) -> &str {
        &self.0
    }

    /// The text cleaned, on one line.
    pub fn line(&self) -> Cow<'_, str> {
        clean_line(&self.0)
    }

    /// The text cleaned, then cut at `max_chars` characters.
    pub fn cut(&self, max_chars: usize) -> Cow<'_, str> {
        match clean(&self.0) {
            Cow::Borrowed(text) => cut(text, max_chars),
            Cow::Owned(text) => Cow::Owned(cut(&text, max_chars).into_owned()),
        }
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&clean(&self.0))
    }
}
