//! Calls that run, in the background or not, and those that wait to be collected.
//!
//! A call that has ended is `call.rs`'s, as it is written down.

use serde::{Deserialize, Serialize};
use toolway_types::ServerName;

use crate::{CallEnd, CallerRow, Word};

/// Calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallListing {
    /// In the order in which they began.
    pub calls: Vec<CallRow>,
}

/// One call. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// By which it is collected and cancelled; null when only its caller can do that.
    pub id: Option<String>,
    /// The server; null when the tool was named as models see it.
    pub server: Option<ServerName>,
    /// The tool.
    pub tool: String,
    /// Who asked for it.
    pub caller: CallerRow,
    /// Whether it runs though nobody waits for it.
    pub background: bool,
    /// `running` or `finished`.
    pub stage: Word,
    /// How long it has run, or ran.
    pub milliseconds: u64,
    /// The newest word of the server.
    pub progress: Option<ProgressRow>,
    /// What became of it, where it has ended and that is known.
    pub outcome: Option<CallEnd>,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressRow {
    /// A number that grows.
    pub progress: f64,
    /// What it grows towards, where the server knows.
    pub total: Option<f64>,
    /// What the server says it is doing.
    pub message: Option<String>,
}
