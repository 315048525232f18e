//! What a server wrote, and what was said to it.

use serde::{Deserialize, Serialize};

use crate::Word;

/// One line of a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRow {
    /// When, in UTC.
    pub time: String,
    /// The process that wrote it down.
    pub process: u32,
    /// `sent`, `received`, `stderr` or `note`.
    pub kind: Word,
    /// The line.
    pub text: String,
}
