//! Taking secrets out of text.
//!
//! Owns the search: for values that are known to be secret, however JSON or a URL spells them,
//! and for what stands behind a name that speaks of a secret (`"access_token": …`). JSON inside a
//! JSON string is looked into as well. Does not own which values of a definition are secret
//! (`secrets.rs`), nor which names say so (`toolway_types::secret::parts`).
//!
//! Nothing here can know a secret that a server made up and gave a harmless name. The file is for
//! its owner only for that reason.

use std::borrow::Cow;

use toolway_types::Secret;
pub(super) use toolway_types::secret::parts::{MARK, speaks_of_a_secret};
use toolway_types::secret::parts::{of_assignments, of_bearers, without};
use toolway_types::text::clean;
use toolway_wire::scan::{string_end, value_end};

/// A shorter value is no secret that redaction could keep: marking it would show it.
pub(super) const SHORTEST: usize = 4;

/// How deep JSON inside strings is looked into.
const DEEPEST: u32 = 3;

/// Knows what must not be shown.
pub(crate) struct Redactor {
    /// The spellings of all secrets, longest first: one may be the beginning of another.
    needles: Vec<String>,
    longest: usize,
}

impl Redactor {
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let mut needles: Vec<String> = secrets
            .iter()
            .map(Secret::expose)
            .filter(|value| value.len() >= SHORTEST)
            .flat_map(spellings)
            .collect();
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        let longest = needles.first().map_or(0, String::len);
        Self { needles, longest }
    }

    /// The length of the longest spelling of a secret.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The text without the values that are known.
    pub(crate) fn values(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for needle in &self.needles {
            if text.contains(needle.as_str()) {
                text = text.replace(needle.as_str(), MARK);
            }
        }
        text
    }

    /// Text that a server logged, without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let text = self.values(text);
        let text = without(&text, of_bearers(&text), |_| false);
        without(&text, of_assignments(&text), |_| false)
    }

    /// A message without secrets; `cut` says that it goes on behind this. What is no JSON is
    /// treated as text.
    pub(super) fn json(&self, text: &str, cut: bool) -> String {
        let mut shown = String::with_capacity(text.len());
        self.scan(text, cut, 0, &mut shown);
        shown
    }

    /// A message without secrets, and otherwise byte for byte as it is. What stands under a name that
    /// speaks of a secret goes where it is text or a list of texts; a schema of such a member stays.
    pub(crate) fn kept(&self, text: &str) -> String {
        self.kept_at(text, 0)
    }

    fn kept_at(&self, text: &str, depth: u32) -> String {
        let mut kept = String::with_capacity(text.len());
        let bytes = text.as_bytes();
        let (mut at, mut copied, mut secret_until) = (0, 0, 0);
        while let Some(step) = bytes[at..].iter().position(|byte| *byte == b'"') {
            let start = at + step;
            let end = string_end(bytes, start);
            if end < start + 2 || bytes[end - 1] != b'"' {
                break;
            }
            let string = decode(&text[start..end], true);
            let spaces = bytes[end..]
                .iter()
                .take_while(|it| it.is_ascii_whitespace());
            let colon = end + spaces.count();
            let is_name = bytes.get(colon) == Some(&b':');
            let redacted = if is_name {
                self.values(&string)
            } else if start < secret_until {
                MARK.to_owned()
            } else {
                self.string_kept(&string, depth)
            };
            if is_name && speaks_of_a_secret(&clean(&string)) {
                let (value, after) = value_span(bytes, colon + 1);
                let holds_text = bytes.get(value) == Some(&b'"')
                    || (bytes.get(value) == Some(&b'[') && !text[value..after].contains('{'));
                if holds_text {
                    secret_until = after;
                }
            }
            if redacted != *string {
                kept.push_str(&text[copied..start]);
                encode(&redacted, true, &mut kept);
                copied = end;
            }
            at = end;
        }
        kept.push_str(&text[copied..]);
        kept
    }

    /// A text of a message without secrets; one that is JSON keeps its shape.
    fn string_kept(&self, text: &str, depth: u32) -> String {
        let is_json = depth < DEEPEST
            && text.contains('"')
            && text.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if is_json {
            self.kept_at(text, depth + 1)
        } else {
            self.text(text)
        }
    }

    /// Whether any of the known values still stands there.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let mut needles = self.needles.iter();
        needles.any(|needle| text.contains(needle.as_str()))
    }

    /// Copies JSON: strings are decoded, looked at and encoded again, and the values of secret
    /// members replaced, whatever they are.
    fn scan(&self, text: &str, cut: bool, depth: u32, shown: &mut String) {
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut copied = 0;
        while let Some(step) = bytes[at..].iter().position(|byte| *byte == b'"') {
            at += step;
            self.between(&text[copied..at], shown);
            let end = string_end(bytes, at);
            let whole = end > at + 1 && bytes[end - 1] == b'"' && !ends_escaped(&bytes[at..end]);
            let string = decode(&text[at..end], whole);
            let colon = end
                + bytes[end..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_whitespace())
                    .count();
            if bytes.get(colon) == Some(&b':') {
                encode(&self.values(&clean(&string)), true, shown);
                shown.push_str(&text[end..=colon]);
                at = colon + 1;
                if speaks_of_a_secret(&clean(&string)) {
                    let (value, after) = value_span(bytes, at);
                    shown.push_str(&text[at..value]);
                    // `null` and `true` are no secrets and say something.
                    if matches!(&text[value..after], "null" | "true" | "false" | "") {
                        shown.push_str(&text[value..after]);
                    } else {
                        encode(MARK, true, shown);
                    }
                    at = after;
                }
            } else {
                let open_end = cut && !whole;
                let mut inner = self.string(&clean(&string), open_end, depth);
                if open_end {
                    // A secret may have been cut in two.
                    let kept = inner.len().saturating_sub(self.longest);
                    inner.truncate(inner.floor_char_boundary(kept));
                }
                encode(&inner, whole, shown);
                at = end;
            }
            copied = at;
        }
        self.between(&text[copied..], shown);
    }

    /// What stands outside strings: nearly always a comma or a brace.
    fn between(&self, text: &str, shown: &mut String) {
        if text.len() < SHORTEST {
            shown.push_str(text);
        } else {
            shown.push_str(&self.text(text));
        }
    }

    fn string(&self, text: &str, cut: bool, depth: u32) -> String {
        if depth < DEEPEST && text.contains('"') && text.trim_start().starts_with(['{', '[']) {
            let mut inner = String::with_capacity(text.len());
            self.scan(text, cut, depth + 1, &mut inner);
            return self.text(&inner);
        }
        self.text(text)
    }
}

/// The ways a value is written: as it is, in JSON, in a URL.
fn spellings(value: &str) -> Vec<String> {
    let mut spellings = vec![value.to_owned()];
    let mut quoted = String::new();
    encode(value, true, &mut quoted);
    spellings.push(quoted[1..quoted.len() - 1].to_owned());
    let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    spellings.push(encoded.replace('+', "%20"));
    spellings.push(encoded);
    // What is shown was cleaned.
    spellings.push(clean(value).into_owned());
    spellings.retain(|spelling| spelling.len() >= SHORTEST);
    spellings
}

/// Whether the last quote of an opened string belongs to it.
fn ends_escaped(string: &[u8]) -> bool {
    let before = &string[..string.len() - 1];
    before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

fn decode(quoted: &str, whole: bool) -> Cow<'_, str> {
    let bare = &quoted[1..quoted.len() - usize::from(whole)];
    if !bare.contains('\\') {
        return Cow::Borrowed(bare);
    }
    // A cut string may end in half an escape, and servers write escapes that mean nothing: then
    // as much as can be decoded, and the rest as it stands.
    let mut end = bare.len();
    for _ in 0..12 {
        let quoted = format!("\"{}\"", &bare[..end]);
        if let Ok(text) = serde_json::from_str::<String>(&quoted) {
            return Cow::Owned(text);
        }
        end = bare.floor_char_boundary(end.saturating_sub(1));
    }
    Cow::Borrowed(bare)
}

fn encode(text: &str, whole: bool, shown: &mut String) {
    let quoted = serde_json::Value::from(text).to_string();
    shown.push_str(if whole {
        &quoted
    } else {
        &quoted[..quoted.len() - 1]
    });
}

/// Where the value behind a colon begins and ends.
fn value_span(bytes: &[u8], from: usize) -> (usize, usize) {
    let start = from
        + bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
    (start, value_end(bytes, start))
}

#[cfg(test)]
mod tests;
