//! A string that must not be shown.
//!
//! Owns the one type for values that may hold a credential: environment values, header values,
//! tokens. It has no `Display`, its `Debug` is a fixed word, and it does not serialise, so a
//! secret reaches an output only through an explicit [`Secret::expose`]. Which parts of other text
//! are secrets is `secret/parts.rs`.

pub mod parts;

use std::fmt;

/// A value that may be a credential.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself. Every call of this is a place where a secret leaves its type.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}
