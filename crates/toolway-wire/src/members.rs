//! The members of a JSON object, in order, values untouched.
//!
//! Owns the one reader that typed views and `_meta` share, and writing their keys. Keys match by exact case (SEC-21) and
//! a doubled key refuses the object (SEC-22), so nothing is decided on a value another reader
//! would not see.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::scan::JsonKey;

/// Up to here comparing with every earlier key is cheaper than hashing.
const SMALL: usize = 16;

/// Up to here a string is looked through before it is written.
const SHORT: usize = 64;

pub(crate) struct RawMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawMembers<'a> {
    /// Reads an object.
    pub(crate) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// A member, `null` included.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    }

    /// A member that is not `null`.
    pub(crate) fn value(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    /// A member's own copy.
    pub(crate) fn owned(&self, name: &str) -> Option<Box<RawValue>> {
        self.value(name).map(ToOwned::to_owned)
    }

    /// Every member in order, `null` included.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (&**key, *value))
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: &u8| !matches!(byte, 0..=0x1F | b'"' | b'\\');
    if text.len() <= SHORT && text.as_bytes().iter().all(is_plain) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    // Memory takes all that is written, and every text is a JSON string.
    let _ = serde_json::to_writer(out, text);
}

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = RawMembers<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawMembers<'de>, A::Error> {
        let mut members: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
        let mut many = HashSet::new();
        while let Some((JsonKey(key), value)) = map.next_entry::<JsonKey<'de>, &'de RawValue>()? {
            if members.len() == SMALL {
                many.extend(members.iter().map(|(key, _)| key.clone()));
            }
            let twice = if members.len() < SMALL {
                members.iter().any(|(earlier, _)| *earlier == key)
            } else {
                !many.insert(key.clone())
            };
            if twice {
                return Err(de::Error::custom(format_args!(
                    "the member `{key}` stands twice"
                )));
            }
            members.push((key, value));
        }
        Ok(RawMembers(members))
    }
}
