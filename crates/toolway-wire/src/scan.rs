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

/// Up to here a string is looked through byte by byte.
const SHORT_STRING: usize = 12;

/// Behind the string that begins here; the end of the text when it does not end.
// Apart, so that the walk over what stands between strings is a short loop wherever it is used.
#[inline(never)]
pub fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    // Most are keys and short values, for which a search costs more to begin than it saves.
    let near = json.get(at..).unwrap_or_default();
    let near = near.get(..SHORT_STRING).unwrap_or(near);
    match near.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        Some(step) if near[step] == b'"' => return at + step + 1,
        Some(step) => at += step,
        None => at += near.len(),
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
    for token in tokens(json, start) {
        match token.byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return token.at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(token.byte, b'"' | b'}' | b']') {
            return token.end;
        }
    }
    json.len()
}

/// The members of an object, key and value as they stand there; none of anything else.
pub fn members(json: &str) -> impl Iterator<Item = (&str, &str)> {
    let bytes = json.as_bytes();
    let mut at = match json.trim_start().strip_prefix('{') {
        Some(inside) => json.len() - inside.len(),
        None => json.len(),
    };
    std::iter::from_fn(move || {
        let key = at + memchr::memchr2(b'"', b'}', bytes.get(at..)?)?;
        if bytes[key] == b'}' {
            at = bytes.len();
            return None;
        }
        let key_end = string_end(bytes, key);
        let mut value = tokens(bytes, key_end);
        let value = value.find(|token| token.byte != b':' && !token.byte.is_ascii_whitespace());
        let value = value.map_or(bytes.len(), |token| token.at);
        at = value_end(bytes, value);
        Some((json.get(key..key_end)?, json.get(value..at)?.trim_end()))
    })
}

/// The value of a member, as it stands there; nothing for `null`. The text is known to be JSON, and no
/// member stands twice in it.
pub fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let is_named = |key: &str| match key.strip_prefix('"').and_then(|key| key.strip_suffix('"')) {
        Some(bare) if memchr::memchr(b'\\', bare.as_bytes()).is_none() => bare == name,
        _ => text(key).is_some_and(|key| key == name),
    };
    let (_, value) = members(json).find(|(key, _)| is_named(key))?;
    (value != "null").then_some(value)
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
mod tests {
    use super::*;

    fn pairs(json: &str) -> Vec<(&str, &str)> {
        members(json).collect()
    }

    #[test]
    fn members_are_given_as_they_stand_there() {
        let json = r#" { "a" : [1, {"b": "}"}] , "c\"": "x\\" ,"d":-1.5 , "e" :{ } ,"f": null } "#;
        assert_eq!(
            pairs(json),
            [
                (r#""a""#, r#"[1, {"b": "}"}]"#),
                (r#""c\"""#, r#""x\\""#),
                (r#""d""#, "-1.5"),
                (r#""e""#, "{ }"),
                (r#""f""#, "null"),
            ]
        );
        for none in ["", "{}", "[1]", "7", r#""{""#, " "] {
            assert_eq!(pairs(none), [], "{none}");
        }
    }

    #[test]
    fn sec_22_a_member_is_told_only_where_nobody_can_read_another() {
        let lone = |json| lone_member(json, "a");
        assert_eq!(lone(r#"{"b":1, "a" : [2] }"#), LoneMember::Is("[2]"));
        assert_eq!(lone(r#"{"a":null}"#), LoneMember::Is("null"));
        assert_eq!(lone(r#"{"b":{"a":1}}"#), LoneMember::Absent);
        assert_eq!(lone("{}"), LoneMember::Absent);
        for unclear in [
            r#"{"a":1,"a":2}"#,
            r#"{"b":1,"b":2,"a":3}"#,
            r#"{"\u0061":1}"#,
            "[1]",
            "7",
        ] {
            assert_eq!(lone(unclear), LoneMember::Unclear, "{unclear}");
        }
        let many: Vec<String> = (0..FEW_KEYS).map(|key| format!("\"k{key}\":0")).collect();
        let many = many.join(",");
        let (few, many) = (format!("{{{many}}}"), format!("{{{many},\"a\":1}}"));
        assert_eq!(lone_member(&few, "a"), LoneMember::Absent);
        assert_eq!(lone_member(&many, "a"), LoneMember::Unclear);
    }

    #[test]
    fn sec_21_a_rare_name_is_missed_only_where_nobody_can_read_it() {
        let name = RareName::new("task");
        for json in [
            r#"{"task":1}"#,
            r#"{"\u0074ask":1}"#,
            r#"{"a":[{"t\u0061sk":1}]}"#,
        ] {
            assert!(name.may_stand_in(json), "{json}");
        }
        for json in ["{}", r#"{"tas":"k","Task":1}"#] {
            assert!(!name.may_stand_in(json), "{json}");
        }
    }

    #[test]
    fn members_are_found_by_name() {
        let json = r#"{"x":"a","\u0061":1,"b":null}"#;
        assert_eq!(member(json, "a"), Some("1"));
        assert_eq!(member(json, "x"), Some("\"a\""));
        assert_eq!(member(json, "b"), None);
        assert_eq!(member(json, "c"), None);
    }

    #[test]
    fn strings_end_where_they_end_however_long_they_are() {
        for length in 0..3 * SHORT_STRING {
            let text = "x".repeat(length);
            for string in [format!("\"{text}\""), format!("\"{text}\\\"{text}\"")] {
                let json = format!("{string},\"y\"");
                assert_eq!(string_end(json.as_bytes(), 0), string.len(), "{json}");
            }
            let cut = format!("\"{text}\\");
            assert_eq!(string_end(cut.as_bytes(), 0), cut.len());
        }
    }

    #[test]
    fn text_that_breaks_off_anywhere_is_survived() {
        let json = r#"{"a": {"b": ["é\\", "\"]"]}, "c": tru"#;
        for end in (0..json.len()).filter(|end| json.is_char_boundary(*end)) {
            let _ = pairs(&json[..end]);
        }
        assert_eq!(pairs(json)[1], (r#""c""#, "tru"));
        assert_eq!(pairs(r#"{"a": "x\"#), [(r#""a""#, r#""x\"#)]);
    }

    #[test]
    fn texts_are_read_with_their_escapes() {
        for (json, read) in [
            (r#""plain""#, Some("plain")),
            (r#""\u00e9\n""#, Some("é\n")),
            (r#""\ud800""#, None),
            ("7", None),
            ("\"", None),
        ] {
            assert_eq!(text(json).as_deref(), read, "{json}");
        }
    }
}
