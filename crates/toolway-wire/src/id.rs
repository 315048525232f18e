//! JSON-RPC ids, tolerant of servers that change their type on the way back.
//!
//! Owns reading and writing an id; which ids are in flight is the session's business.

use std::fmt;

use serde_json::value::RawValue;

use crate::members::write_string;

/// The largest integer a JSON number survives in every implementation (2^53).
const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

/// An id as it stood on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A number; a float without a fraction counts as one.
    Number(i64),
    /// A string.
    Text(String),
}

impl Id {
    /// Reads an id: `Ok(None)` for `null`, `Err` for anything that cannot be one.
    pub fn read(raw: &RawValue) -> Result<Option<Self>, NotAnId> {
        Self::of_text(raw.get())
    }

    /// The same of the text of a JSON value.
    pub(crate) fn of_text(text: &str) -> Result<Option<Self>, NotAnId> {
        match text.as_bytes().first() {
            Some(b'n') => Ok(None),
            Some(b'"') => serde_json::from_str(text)
                .map(|t| Some(Self::Text(t)))
                .map_err(|_| NotAnId),
            Some(b'-' | b'0'..=b'9') => number(text).map(Some).ok_or(NotAnId),
            _ => Err(NotAnId),
        }
    }

    /// Which of our own ids this is: ours are unsigned numbers, and some servers send them back
    /// as `"7"` or `7.0`.
    pub fn as_ours(&self) -> Option<u64> {
        match self {
            Id::Number(number) => u64::try_from(*number).ok(),
            // Only the one spelling we could have sent: "+7" or "007" is not ours.
            Id::Text(text) => text
                .parse()
                .ok()
                .filter(|number: &u64| number.to_string() == *text),
        }
    }

    /// Appends the id as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            // Memory takes all that is written, and without a text of its own.
            Id::Number(number) => drop(serde_json::to_writer(out, number)),
            Id::Text(text) => write_string(out, text),
        }
    }
}

fn number(text: &str) -> Option<Id> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(Id::Number(number));
    }
    let float: f64 = text.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and within 2^53"
    )]
    (float.fract() == 0.0 && float.abs() <= MAX_SAFE).then_some(Id::Number(float as i64))
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => number.fmt(formatter),
            Id::Text(text) => write!(formatter, "{text:?}"),
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        // Beyond i64 a number would change its value; its text does not.
        i64::try_from(number).map_or_else(|_| Id::Text(number.to_string()), Id::Number)
    }
}

/// The value cannot be an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id is neither a string nor an integer")]
pub struct NotAnId;
