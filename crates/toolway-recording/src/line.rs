//! One line of a recording.
//!
//! Owns its members, which `docs/recording.md` describes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What stands in the place of a secret. It is the journal's mark.
pub const MARK: &str = "[redacted]";

/// The version of the format.
pub(crate) const VERSION: u32 = 1;

/// Begins a run's part of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Always `recording`.
    pub(crate) toolway: String,
    pub(crate) version: u32,
    /// The version of the program.
    pub(crate) by: String,
    /// When it began, in UTC.
    pub(crate) time: String,
}

/// Who spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Whoever uses the server.
    Client,
    /// The server.
    Server,
}

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedLine<'a> {
    pub(crate) server: &'a str,
    /// One conversation from its handshake to its end.
    pub(crate) connection: &'a str,
    pub(crate) from: Side,
    /// Milliseconds since the run began.
    pub(crate) ms: u64,
    /// As it was said, but for secrets.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<&'a RawValue>,
    /// Why it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<&'a str>,
}
