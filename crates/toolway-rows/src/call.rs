//! Calls, as they are written down: the lines of the audit.
//!
//! Owns their fields and words. How a call comes to them is `toolway::audit`'s.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// One line.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum AuditLine {
    /// A call.
    Call(Box<CallRecord>),
    /// Calls that could not be written down before this line.
    Lost {
        /// When this was found out.
        time: String,
        /// How many.
        lost: u64,
    },
}

impl<'de> Deserialize<'de> for AuditLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct LostLine {
            time: String,
            lost: u64,
        }
        // Not left to serde's guessing, which cannot keep arguments as they were written.
        let line = Box::<RawValue>::deserialize(deserializer)?;
        if let Ok(record) = serde_json::from_str(line.get()) {
            return Ok(AuditLine::Call(record));
        }
        let LostLine { time, lost } = serde_json::from_str(line.get()).map_err(D::Error::custom)?;
        Ok(AuditLine::Lost { time, lost })
    }
}

/// One call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallRecord {
    /// When it was asked for, in UTC.
    pub time: String,
    /// The process that asked.
    pub process: u32,
    /// Who asked, as far as the embedding program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The same more exactly, where it is not the host's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Box<RecordedCaller>>,
    /// The server, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's own name; what was asked for when no tool answers to it.
    pub tool: String,
    /// Whether it was let run; absent when it never came to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RecordedDecision>,
    /// Who decided that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<DecidedBy>,
    /// How the tool's definition differed from the one that was permitted before, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
    /// What the classifier said, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classified: Option<RecordedClassification>,
    /// The hook that wrote the arguments, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten_by: Option<ActingHook>,
    /// The hook that put something in the place of the answer, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<ActingHook>,
    /// How long it took, waiting for the server and for people included.
    pub milliseconds: u64,
    /// The size of its arguments in bytes: of those that were sent, or, where nothing was, of
    /// those that were asked for.
    pub sent: usize,
    /// The size of the server's answer in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<usize>,
    /// What became of it.
    pub outcome: CallEnd,
    /// The code of a JSON-RPC error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Its arguments, the same ones, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The server's result, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCaller {
    /// What tells it from other callers.
    pub id: String,
    /// `person`, `agent`, `client` or `hook`.
    pub kind: String,
    /// For whom it acts.
    pub principal: String,
}

/// What a classifier said of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedClassification {
    /// What it is called: its program, its tool or its function.
    pub classifier: String,
    /// Where it stands.
    pub origin: String,
    /// `allow`, `ask`, `deny`, or `failed`, which asks.
    pub verdict: String,
    /// Why, in its own words, or what went wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A hook that changed what a call says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActingHook {
    /// What it is called: its program, its tool or its function.
    pub hook: String,
    /// Where it stands.
    pub origin: String,
}

/// Whether a call was let run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedDecision {
    /// It was.
    Allowed,
    /// It was not.
    Refused,
}

/// Who decided whether a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DecidedBy {
    /// A rule.
    Rule {
        /// As written.
        rule: String,
        /// Where it stands.
        origin: String,
    },
    /// A hook.
    Hook {
        /// What it is called: its program or its tool.
        hook: String,
        /// Where it stands.
        origin: String,
    },
    /// The classifier.
    Classifier {
        /// What it is called: its program, its tool or its function.
        classifier: String,
        /// Where it stands.
        origin: String,
    },
    /// The mode.
    Mode,
    /// The person who typed the call.
    Typed,
    /// The caller, a host that asks its own person.
    Caller,
    /// The person who was asked.
    Person,
    /// The person who was asked before, for as long as the program runs.
    Session,
    /// No one: the tool's definition changed, and no user has seen the change.
    Changed,
    /// No decision is needed: a tool of the host's own that does no harm.
    BuiltIn,
    /// No one: a user had to be asked, and there was none.
    Nobody,
    /// A settings file that cannot be read.
    Unreadable {
        /// Where.
        origin: String,
    },
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallEnd {
    /// The tool answered.
    Answered,
    /// The tool answered that it failed.
    ToolError,
    /// No such tool, or more than one.
    Unknown,
    /// The arguments do not fit.
    Invalid,
    /// It was refused.
    Refused,
    /// The server is not connected.
    Unavailable,
    /// The server wants a login first.
    NeedsAuth,
    /// No answer in time.
    TimedOut,
    /// The caller, the host or the server gave it up.
    Cancelled,
    /// The server, or the way to it, failed.
    Failed,
}

impl CallEnd {
    /// Of a call that was answered.
    pub fn of_answer(is_error: bool) -> Self {
        if is_error {
            Self::ToolError
        } else {
            Self::Answered
        }
    }
}

impl CallEnd {
    /// Every one, in the order of the help.
    pub const ALL: [CallEnd; 10] = [
        CallEnd::Answered,
        CallEnd::ToolError,
        CallEnd::Unknown,
        CallEnd::Invalid,
        CallEnd::Refused,
        CallEnd::Unavailable,
        CallEnd::NeedsAuth,
        CallEnd::TimedOut,
        CallEnd::Cancelled,
        CallEnd::Failed,
    ];

    /// The word in a line.
    pub fn as_str(self) -> &'static str {
        match self {
            CallEnd::Answered => "answered",
            CallEnd::ToolError => "tool-error",
            CallEnd::Unknown => "unknown",
            CallEnd::Invalid => "invalid",
            CallEnd::Refused => "refused",
            CallEnd::Unavailable => "unavailable",
            CallEnd::NeedsAuth => "needs-auth",
            CallEnd::TimedOut => "timed-out",
            CallEnd::Cancelled => "cancelled",
            CallEnd::Failed => "failed",
        }
    }
}
