//! Checks on raw JSON text that a parser alone does not make: depth and doubled keys.
//!
//! Owns two linear scans. `serde_json` skips raw values without counting their depth, and takes
//! the last of two equal keys, where another reader may take the first (SEC-22).

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, Visitor};
use toolway_types::limits;

/// The deepest nesting of objects and arrays that is accepted (SEC-30).
pub const MAX_DEPTH: usize = limits::message::JSON_DEPTH;

/// Whether no value in `json` nests deeper than [`MAX_DEPTH`]. Text inside strings is skipped
/// whole, so a large text result costs little.
pub fn is_shallow(json: &[u8]) -> bool {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at + 1),
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    true
}

/// The index of the quote that closes the string whose content starts at `at`.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(step) = json
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += step;
        if json[at] == b'"' {
            return at;
        }
        at += 2;
    }
    json.len()
}

/// The first key that stands twice in one object, at any depth. The text is known to be JSON.
///
/// A walk over the text and not a parser: what a parser refuses (a number out of range, half a
/// surrogate pair) would end its search, and what doubles behind it would go unseen.
pub fn doubled_key(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    // The keys of every object that is open; an array has none.
    let mut open: Vec<Option<HashSet<Cow<'_, [u8]>>>> = Vec::new();
    let mut is_key = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = string_end(bytes, at + 1);
                if std::mem::take(&mut is_key)
                    && let Some(Some(keys)) = open.last_mut()
                {
                    let key = spelled_out(json.get(at..=end).unwrap_or_default());
                    if !keys.insert(key.clone()) {
                        return Some(String::from_utf8_lossy(&key).into_owned());
                    }
                }
                at = end;
            }
            b'{' => {
                open.push(Some(HashSet::new()));
                is_key = true;
            }
            b'[' => {
                open.push(None);
                is_key = false;
            }
            b'}' | b']' => {
                open.pop();
                is_key = false;
            }
            b',' => is_key = matches!(open.last(), Some(Some(_))),
            _ => {}
        }
        at += 1;
    }
    None
}

/// A string's content without escapes. Half a surrogate pair stays what it is.
fn spelled_out(string: &str) -> Cow<'_, [u8]> {
    struct StringContent;

    impl Visitor<'_> for StringContent {
        type Value = Vec<u8>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a string")
        }

        fn visit_bytes<E>(self, content: &[u8]) -> Result<Vec<u8>, E> {
            Ok(content.to_owned())
        }
    }

    let raw = string.as_bytes();
    if memchr::memchr(b'\\', raw).is_none() {
        return Cow::Borrowed(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default());
    }
    serde_json::Deserializer::from_str(string)
        .deserialize_bytes(StringContent)
        .map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// A string key, borrowed where it has no escapes.
#[derive(Deserialize, PartialEq, Eq, Hash)]
#[serde(transparent)]
pub(crate) struct JsonKey<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);
