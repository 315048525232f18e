//! JSON as it was received: a slice of the message that it came in.
//!
//! Owns that the bytes are one JSON value and stay what they were. Passing one on copies nothing;
//! reading it is for the views. It keeps the whole message alive, so what is kept for long is
//! copied first.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::members::RawMembers;
use crate::scan;

/// One JSON value, as the bytes that it came in. Clones share them.
#[derive(Clone)]
pub struct RawJson {
    text: ByteString,
    /// Whether it was seen that no member stands twice in any object of it.
    is_unambiguous: bool,
}

/// Members of an object: their names, and what stands there.
pub(crate) type NamedParts<'a> = Vec<(Cow<'a, str>, RawJson)>;

impl RawJson {
    /// Takes bytes that are one JSON value; white space around it is left out.
    pub fn read(bytes: &Bytes) -> Result<Self, serde_json::Error> {
        let value: &RawValue = serde_json::from_slice(bytes)?;
        Ok(Self::part_of(bytes, value))
    }

    /// The part of a message that was borrowed from it, without a copy.
    pub fn part_of(message: &Bytes, part: &RawValue) -> Self {
        let part = part.get();
        let range = place_in(message, part);
        let own = range.and_then(|range| ByteString::try_from(message.slice(range)).ok());
        // It may be of another message.
        Self::of(own.unwrap_or_else(|| part.into()))
    }

    /// What stands there in a message, which is one value, without a copy. Whether no member stands
    /// twice in it is said by whoever has looked.
    pub(crate) fn part_at(message: &ByteString, part: &str, is_unambiguous: bool) -> Self {
        Self {
            is_unambiguous,
            ..Self::of(sliced(message, part))
        }
    }

    /// What stands there in this value, which is one value itself, without a copy.
    pub(crate) fn slice(&self, part: &str) -> Self {
        Self::part_at(&self.text, part, self.is_unambiguous)
    }

    /// The members of an object, in order.
    pub(crate) fn members(&self) -> Result<NamedParts<'_>, serde_json::Error> {
        let text = self.get();
        if self.is_unambiguous
            && text.starts_with('{')
            && let Some(members) = self.walked(text)
        {
            return Ok(members);
        }
        Ok(RawMembers::read(text)?
            .into_entries()
            .map(|(key, value)| (key, self.slice(value.get())))
            .collect())
    }

    /// The members of a member of an object; nothing where that is absent or `null`.
    pub(crate) fn members_of(
        &self,
        name: &str,
    ) -> Option<Result<NamedParts<'_>, serde_json::Error>> {
        let json = self.get();
        if self.is_unambiguous {
            // Where it ends is found on the way.
            let value = scan::member_begin(json, name)?;
            if value.starts_with('{')
                && let Some(members) = self.walked(value)
            {
                return Some(Ok(members));
            }
        }
        let value = self.slice(scan::member(json, name)?);
        let owned = |(key, value): (Cow<'_, str>, Self)| (Cow::Owned(key.into_owned()), value);
        let members = value.members();
        Some(members.map(|members| members.into_iter().map(owned).collect()))
    }

    /// The members of an object at the beginning of this part; nothing where a name takes a parser.
    fn walked<'a>(&self, part: &'a str) -> Option<NamedParts<'a>> {
        let named = |(key, value)| Some((scan::text(key)?, self.slice(value)));
        scan::members(part).map(named).collect()
    }

    /// The part of a message in which no member stands twice, at any depth: whoever calls this has
    /// looked.
    pub(crate) fn unambiguous_part_of(message: &Bytes, part: &RawValue) -> Self {
        Self {
            is_unambiguous: true,
            ..Self::part_of(message, part)
        }
    }

    fn of(text: ByteString) -> Self {
        Self {
            text,
            is_unambiguous: false,
        }
    }

    /// The first member that stands twice, at any depth; then two readers could see different things
    /// (SEC-22). Looked for once.
    pub fn doubled_member(&self) -> Option<String> {
        if self.is_unambiguous {
            return None;
        }
        scan::doubled_key(self.get())
    }

    /// The same bytes in a place of their own, which keeps no message alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            text: self.get().into(),
            is_unambiguous: self.is_unambiguous,
        }
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        &self.text
    }

    /// The same for what serialises raw values.
    pub fn as_raw(&self) -> &RawValue {
        serde_json::from_str(self.get()).unwrap_or(RawValue::NULL)
    }

    /// The same as bytes.
    pub fn bytes(&self) -> &Bytes {
        self.text.as_bytes()
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Never: no JSON value is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// The same bytes, whatever is known of them.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RawJson {}

impl From<RawJson> for Bytes {
    fn from(json: RawJson) -> Self {
        json.text.into_bytes()
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(value: Box<RawValue>) -> Self {
        let text: Box<str> = value.into();
        Self::of(String::from(text).into())
    }
}

impl From<&RawValue> for RawJson {
    fn from(value: &RawValue) -> Self {
        Self::of(value.get().into())
    }
}

impl Default for RawJson {
    /// `null`.
    fn default() -> Self {
        Self::of(ByteString::from_static("null"))
    }
}

/// Where `part` stands in `message`, if it was borrowed from it.
fn place_in(message: &[u8], part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(message.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= message.len()).then_some(start..end)
}

fn sliced(message: &ByteString, part: &str) -> ByteString {
    match place_in(message.as_bytes(), part) {
        Some(_) => message.slice_ref(part),
        // It is of another message.
        None => part.into(),
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_raw().serialize(serializer)
    }
}

/// What views read: JSON text, however it is held.
pub trait JsonText {
    /// The text.
    fn json(&self) -> &str;
}

impl JsonText for RawJson {
    fn json(&self) -> &str {
        self.get()
    }
}

impl JsonText for RawValue {
    fn json(&self) -> &str {
        self.get()
    }
}

impl JsonText for Box<RawValue> {
    fn json(&self) -> &str {
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_message_is_not_copied() {
        let message = Bytes::from_static(br#"{"id":1,"result":{"n": 1e400, "a":[ ]}}"#);
        let whole: std::collections::BTreeMap<String, &RawValue> =
            serde_json::from_slice(&message).expect("an object");
        let part = RawJson::part_of(&message, whole["result"]);
        assert_eq!(part.get(), r#"{"n": 1e400, "a":[ ]}"#);
        assert!(message.as_ptr_range().contains(&part.bytes().as_ptr()));
        let apart = part.detached();
        assert_eq!(apart, part);
        assert!(!message.as_ptr_range().contains(&apart.bytes().as_ptr()));
    }

    #[test]
    fn what_is_not_of_a_message_is_copied() {
        let message = Bytes::from_static(b"{}");
        let other = RawValue::from_string("[1, 2]".to_owned()).expect("JSON");
        assert_eq!(RawJson::part_of(&message, &other).get(), "[1, 2]");
    }

    #[test]
    fn only_one_whole_value_is_taken() {
        let read = |text: &'static str| RawJson::read(&Bytes::from_static(text.as_bytes()));
        assert_eq!(read(" {\"a\" :1}\n").expect("JSON").get(), "{\"a\" :1}");
        for broken in ["", "{", "1 2", "{\"a\"}", "\u{1}"] {
            assert!(read(broken).is_err(), "{broken}");
        }
        assert!(RawJson::read(&Bytes::from_static(b"\"\xff\"")).is_err());
    }

    #[test]
    fn it_is_written_as_it_stands() {
        let json = RawJson::read(&Bytes::from_static(
            br#"{"n":123456789012345678901234567890}"#,
        ));
        let written = serde_json::to_string(&[json.expect("JSON")]).expect("JSON");
        assert_eq!(written, r#"[{"n":123456789012345678901234567890}]"#);
    }
}
