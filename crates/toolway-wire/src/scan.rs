//! JSON text read without a parser: its tokens, the members of an object, and two checks that a
//! parser alone does not make.
//!
//! Owns where strings and values end, also in text that breaks off. `serde_json` skips raw values
//! without counting their depth, and takes the last of two equal keys, where another reader may
//! take the first (SEC-22).

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer as _, Visitor};
use toolway_types::limits;

/// The deepest nesting of objects and arrays that is accepted (SEC-30).
pub const MAX_DEPTH: usize = limits::message::JSON_DEPTH;

/// A string, or one byte between strings.
#[derive(Debug, Clone, Copy)]
pub struct JsonToken {
    /// Where it begins.
    pub at: usize,
    /// Behind it.
    pub end: usize,
    /// Its first byte.
    pub byte: u8,
}

/// The tokens from a place between strings on. Text inside strings is skipped whole, so a large
/// one costs little.
#[inline]
pub fn tokens(json: &[u8], from: usize) -> impl Iterator<Item = JsonToken> {
    let mut next = from;
    std::iter::from_fn(move || {
        let at = next;
        let byte = *json.get(at)?;
        next = if byte == b'"' {
            string_end(json, at)
        } else {
            at + 1
        };
        let end = next;
        Some(JsonToken { at, end, byte })
    })
}

/// So many times eight bytes of a string are looked at before a search is begun, which costs more to
/// begin than it saves: most strings are keys and short values.
const NEAR: usize = 8;

/// The bytes of a word that are this one: the lowest marked bit is in the first of them.
const fn places_of(word: u64, byte: u8) -> u64 {
    let others = word ^ (EACH * byte as u64);
    others.wrapping_sub(EACH) & !others & HIGHEST
}

/// One in each byte, and the highest bit of each.
const EACH: u64 = u64::MAX / 0xFF;
const HIGHEST: u64 = EACH << 7;

/// How many bytes of a string are certain to mean nothing: neither its end nor an escape, nor, as far
/// as `is_strict` asks for that, a control character. It looks no further than the first few words.
#[inline]
pub(crate) fn plain_run(text: &[u8], is_strict: bool) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    let mut run = 0;
    for word in words.iter().take(NEAR) {
        let word = u64::from_le_bytes(*word);
        let mut marks = places_of(word, b'"') | places_of(word, b'\\');
        if is_strict {
            marks |= word.wrapping_sub(EACH * 0x20) & !word & HIGHEST;
        }
        if marks != 0 {
            return run + marks.trailing_zeros() as usize / 8;
        }
        run += 8;
    }
    if words.len() >= NEAR {
        return run;
    }
    let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\') || is_strict && *byte < 0x20;
    run + rest.iter().position(is_mark).unwrap_or(rest.len())
}

/// Behind the string that begins here; the end of the text when it does not end.
// Apart, so that the walk over what stands between strings is a short loop wherever it is used.
#[inline(never)]
pub fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    at += plain_run(json.get(at..).unwrap_or_default(), false);
    if json.get(at) == Some(&b'"') {
        return at + 1;
    }
    while let Some(step) = json
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += step;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

/// Behind the value that begins here; the end of the text when it does not end.
pub fn value_end(json: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at = string_end(json, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    json.len()
}

/// The members of an object, key and value as they stand there; none of anything else. What follows
/// behind the object is not looked at.
pub fn members(json: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut walk = MemberWalk::of(json);
    std::iter::from_fn(move || {
        let (key, value) = walk.key()?;
        Some((key, walk.value(value)?))
    })
}

/// A walk over the members of an object.
struct MemberWalk<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> MemberWalk<'a> {
    fn of(json: &'a str) -> Self {
        let at = match json.trim_start().strip_prefix('{') {
            Some(inside) => json.len() - inside.len(),
            None => json.len(),
        };
        Self { json, at }
    }

    /// The next key, and where its value begins.
    fn key(&mut self) -> Option<(&'a str, usize)> {
        let bytes = self.json.as_bytes();
        let is_next = |byte: &u8| matches!(byte, b'"' | b'}');
        let key = self.at + bytes.get(self.at..)?.iter().position(is_next)?;
        if bytes[key] == b'}' {
            self.at = bytes.len();
            return None;
        }
        let key_end = string_end(bytes, key);
        let is_value = |byte: &u8| *byte != b':' && !byte.is_ascii_whitespace();
        let value = bytes.get(key_end..)?.iter().position(is_value);
        let value = value.map_or(bytes.len(), |step| key_end + step);
        Some((self.json.get(key..key_end)?, value))
    }

    /// The value that begins there; the walk goes on behind it.
    fn value(&mut self, begin: usize) -> Option<&'a str> {
        self.at = value_end(self.json.as_bytes(), begin);
        Some(self.json.get(begin..self.at)?.trim_end())
    }
}

/// Whether a key, as it stands there, is this name.
fn is_named(key: &str, name: &str) -> bool {
    match key.strip_prefix('"').and_then(|key| key.strip_suffix('"')) {
        Some(bare) if memchr::memchr(b'\\', bare.as_bytes()).is_none() => bare == name,
        _ => text(key).is_some_and(|key| key == name),
    }
}

/// The value of a member, as it stands there; nothing for `null`. The text is known to be JSON, and no
/// member stands twice in it.
pub fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = members(json).find(|(key, _)| is_named(key, name))?;
    (value != "null").then_some(value)
}

/// The same value and all that follows it: its end is not looked for.
pub(crate) fn member_begin<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let mut walk = MemberWalk::of(json);
    loop {
        let (key, begin) = walk.key()?;
        if is_named(key, name) {
            let value = json.get(begin..)?;
            return (!value.starts_with("null")).then_some(value);
        }
        walk.value(begin)?;
    }
}

/// The name of a member that is looked for in every message and stands in few.
pub struct RareName {
    name: &'static str,
    finder: OnceLock<memmem::Finder<'static>>,
}

impl RareName {
    /// The name as it is, without quotation marks.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            finder: OnceLock::new(),
        }
    }

    /// False where it is certain that no member at any depth is called so: the name stands nowhere, and
    /// nothing is written with escapes. Far cheaper than a walk.
    pub fn may_stand_in(&self, json: &str) -> bool {
        let finder = self.finder.get_or_init(|| memmem::Finder::new(self.name));
        let json = json.as_bytes();
        finder.find(json).is_some() || memchr::memchr(b'\\', json).is_some()
    }
}

/// What a walk over an object can say of one of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoneMember<'a> {
    /// Its value, `null` included.
    Is(&'a str),
    /// There is none of this name.
    Absent,
    /// It takes a closer look: many members, one that stands twice, escapes in names, another value.
    Unclear,
}

/// A member of an object in which no member stands twice.
pub(crate) fn lone_member<'a>(json: &'a str, name: &str) -> LoneMember<'a> {
    if !json.starts_with('{') {
        return LoneMember::Unclear;
    }
    let mut keys = [""; FEW_KEYS];
    let mut found = LoneMember::Absent;
    for (place, (key, value)) in members(json).enumerate() {
        let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
        let (Some(bare), Some(earlier)) = (bare, keys.get(..place)) else {
            return LoneMember::Unclear;
        };
        if bare.contains('\\') || earlier.contains(&bare) {
            return LoneMember::Unclear;
        }
        if bare == name {
            found = LoneMember::Is(value);
        }
        match keys.get_mut(place) {
            Some(slot) => *slot = bare,
            None => return LoneMember::Unclear,
        }
    }
    found
}

/// What a string says, borrowed where it has no escapes; nothing of what is no string.
pub fn text(json: &str) -> Option<Cow<'_, str>> {
    let bare = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', bare.as_bytes()).is_none() {
        return Some(Cow::Borrowed(bare));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Whether no value in `json` nests deeper than [`MAX_DEPTH`].
pub fn is_shallow(json: &[u8]) -> bool {
    let begun = memchr::memchr2_iter(b'{', b'[', json);
    if begun.take(MAX_DEPTH + 1).count() <= MAX_DEPTH {
        return true;
    }
    let mut depth = 0usize;
    for token in tokens(json, 0) {
        match token.byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// The first key that stands twice in one object, at any depth. The text is known to be JSON.
///
/// A walk over the text and not a parser: what a parser refuses (a number out of range, half a
/// surrogate pair) would end its search, and what doubles behind it would go unseen.
pub fn doubled_key(json: &str) -> Option<String> {
    let mut open: Vec<OpenValue<'_>> = Vec::new();
    // The keys of all open objects, those of the innermost last.
    let mut keys: Vec<Cow<'_, [u8]>> = Vec::new();
    let mut is_key = false;
    for token in tokens(json.as_bytes(), 0) {
        match token.byte {
            b'"' => {
                if std::mem::take(&mut is_key)
                    && let Some(OpenValue::Object { first, many }) = open.last_mut()
                {
                    let key = spelled_out(json.get(token.at..token.end).unwrap_or_default());
                    let earlier = keys.get(*first..).unwrap_or_default();
                    if earlier.len() == FEW_KEYS {
                        many.extend(earlier.iter().cloned());
                    }
                    let is_doubled = if earlier.len() < FEW_KEYS {
                        earlier.contains(&key)
                    } else {
                        !many.insert(key.clone())
                    };
                    if is_doubled {
                        return Some(String::from_utf8_lossy(&key).into_owned());
                    }
                    keys.push(key);
                }
            }
            b'{' => {
                open.push(OpenValue::Object {
                    first: keys.len(),
                    many: HashSet::new(),
                });
                is_key = true;
            }
            b'[' => {
                open.push(OpenValue::Array);
                is_key = false;
            }
            b'}' | b']' => {
                if let Some(OpenValue::Object { first, .. }) = open.pop() {
                    keys.truncate(first);
                }
                is_key = false;
            }
            b',' => is_key = matches!(open.last(), Some(OpenValue::Object { .. })),
            _ => {}
        }
    }
    None
}

/// Up to here comparing with every earlier key is cheaper than hashing.
const FEW_KEYS: usize = 16;

/// A value whose end was not reached yet.
enum OpenValue<'a> {
    Array,
    Object {
        /// Where its keys begin among those of all open objects.
        first: usize,
        /// The same keys, once there are more than a few.
        many: HashSet<Cow<'a, [u8]>>,
    },
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

#[cfg(test)]
mod tests;
