//! Checks on raw JSON text that a parser alone does not make: depth and doubled keys.
//!
//! Owns two linear scans. `serde_json` skips raw values without counting their depth, and takes
//! the last of two equal keys, where another reader may take the first (SEC-22).

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// The deepest nesting of objects and arrays that is accepted (SEC-30).
pub const MAX_DEPTH: usize = 64;

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

/// The first key that stands twice in one object, at any depth.
pub fn doubled_key(raw: &RawValue) -> Option<String> {
    let mut found = None;
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    // An error here is the doubled key: the text itself is known to be JSON.
    let _ = Unique { found: &mut found }.deserialize(&mut deserializer);
    found
}

/// A string key, borrowed where it has no escapes.
#[derive(Deserialize, PartialEq, Eq, Hash)]
#[serde(transparent)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

struct Unique<'f> {
    found: &'f mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON without doubled keys")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items
            .next_element_seed(Unique {
                found: &mut *self.found,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(Key(key)) = members.next_key::<Key<'de>>()? {
            if seen.contains(&key) {
                *self.found = Some(key.into_owned());
                return Err(de::Error::custom("doubled key"));
            }
            seen.insert(key);
            members.next_value_seed(Unique {
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }
}
