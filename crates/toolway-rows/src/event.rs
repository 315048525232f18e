//! What happens to a host, one line each.
//!
//! Owns the shapes. Which events of a host are worth a line is `toolway::rows`.

use serde::{Deserialize, Serialize};
use toolway_types::ServerName;

use crate::{CallRow, QuestionRow, Word};

/// A change, and when it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// When, in UTC.
    pub time: String,
    /// What changed.
    #[serde(flatten)]
    pub change: HostChange,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum HostChange {
    /// Where a server stands: at the start, and whenever that changes.
    State(Box<StateRow>),
    /// What a new configuration did.
    Reload {
        /// New, or allowed to connect now.
        started: Vec<ServerName>,
        /// Gone, or not allowed to connect any more.
        stopped: Vec<ServerName>,
        /// Defined in another way.
        replaced: Vec<ServerName>,
    },
    /// Something worth a line that changes nothing.
    Notice {
        /// The server that it is about.
        server: ServerName,
        /// The line.
        message: String,
    },
    /// The content of a resource changed.
    Resource {
        /// Its server.
        server: ServerName,
        /// Its address, as the server wrote it.
        uri: String,
    },
    /// A person is asked.
    Question(Box<QuestionRow>),
    /// A question waits no longer.
    Answered {
        /// Its id.
        question: String,
        /// `answered`, `expired` or `withdrawn`.
        answer: Word,
    },
    /// A server logged a line, or something is to be said of its connection.
    Log {
        /// The server.
        server: ServerName,
        /// The line, clean and without secrets.
        line: String,
    },
    /// A login came or went, or is wanted.
    Login {
        /// The server.
        server: ServerName,
        /// `wanted`, `logged-in` or `logged-out`.
        login: Word,
    },
    /// A call began, came further, or ended.
    Call(Box<CallRow>),
}

/// Where a server stands. Absent values are null, where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateRow {
    /// Its name.
    pub server: ServerName,
    /// `pending`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub state: Word,
    /// Whether it rests: it connects when it is needed; absent where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resting: bool,
    /// Which attempt is under way.
    pub attempt: Option<u32>,
    /// What went wrong, last time or for good.
    pub error: Option<String>,
    /// Why it may not connect.
    pub reason: Option<String>,
    /// Which protocol it speaks.
    pub protocol_version: Option<String>,
    /// How many tools it offers.
    pub tools: Option<usize>,
    /// How many resources.
    pub resources: Option<usize>,
    /// How many prompts.
    pub prompts: Option<usize>,
}
