//! What stands in a line of the audit.
//!
//! Owns its fields and the one table from what became of a call to the words written down. The
//! words are an interface: other programs read them.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolway_types::{Untrusted, text};

use crate::call::{CallError, RefusedBy, ToolOutcome, ToolRequest, ToolTarget};
use crate::catalog::CatalogTool;
use crate::dispatch::permission::Grant;
use crate::journal::timestamp;

/// The longest name that is written down whole.
const MAX_NAME: usize = 256;

/// One line.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// A call.
    Call(Box<Record>),
    /// Calls that could not be written down before this line.
    Lost {
        /// When this was found out.
        time: String,
        /// How many.
        lost: u64,
    },
}

impl Line {
    /// Reads one line; none when it is not ours.
    pub(super) fn parse(text: &str) -> Option<Line> {
        #[derive(Deserialize)]
        struct Lost {
            time: String,
            lost: u64,
        }
        // Not left to serde's guessing, which cannot keep arguments as they were written.
        if let Ok(record) = serde_json::from_str(text) {
            return Some(Line::Call(record));
        }
        let Lost { time, lost } = serde_json::from_str(text).ok()?;
        Some(Line::Lost { time, lost })
    }
}

/// One call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// When it was asked for, in UTC.
    pub time: String,
    /// The process that asked.
    pub process: u32,
    /// Who asked, as far as the embedding program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The server, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's own name; what was asked for when no tool answers to it.
    pub tool: String,
    /// Whether it was let run; absent when it never came to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Who decided that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// How the tool's definition differed from the one that was permitted before, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
    /// How long it took, waiting for the server and for people included.
    pub milliseconds: u64,
    /// The size of its arguments in bytes.
    pub sent: usize,
    /// The size of the answer in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<usize>,
    /// What became of it.
    pub outcome: End,
    /// The code of a JSON-RPC error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Its arguments, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// Its result, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
}

/// Whether a call was let run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It was.
    Allowed,
    /// It was not.
    Refused,
}

/// Who decided whether a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum By {
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
    /// The mode.
    Mode,
    /// The person who typed the call.
    Typed,
    /// The person who was asked.
    Person,
    /// The person who was asked before, for as long as the program runs.
    Session,
    /// Nobody: the tool's definition changed, and no person has looked at it.
    Changed,
    /// Nobody has to: a tool of the host's own that does no harm.
    BuiltIn,
    /// Nobody: a person had to be asked, and there was none.
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
pub enum End {
    /// The tool answered.
    Answered,
    /// The tool answered that it failed.
    ToolError,
    /// No such tool, or more than one.
    Unknown,
    /// The arguments do not fit.
    Invalid,
    /// Somebody or something said no.
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

impl End {
    /// Every one, in the order of the help.
    pub const ALL: [End; 10] = [
        End::Answered,
        End::ToolError,
        End::Unknown,
        End::Invalid,
        End::Refused,
        End::Unavailable,
        End::NeedsAuth,
        End::TimedOut,
        End::Cancelled,
        End::Failed,
    ];

    /// The word in a line.
    pub fn as_str(self) -> &'static str {
        match self {
            End::Answered => "answered",
            End::ToolError => "tool-error",
            End::Unknown => "unknown",
            End::Invalid => "invalid",
            End::Refused => "refused",
            End::Unavailable => "unavailable",
            End::NeedsAuth => "needs-auth",
            End::TimedOut => "timed-out",
            End::Cancelled => "cancelled",
            End::Failed => "failed",
        }
    }
}

impl Record {
    /// What is known when a call is asked for.
    pub(super) fn of(request: &ToolRequest, who: Option<&str>) -> Self {
        let (server, tool) = match &request.target {
            ToolTarget::Exposed(name) => (None, name),
            ToolTarget::Key(key) => (Some(key.server.as_str().to_owned()), &key.tool),
        };
        Self {
            time: timestamp(SystemTime::now()),
            process: std::process::id(),
            who: who.map(shown),
            server,
            tool: shown(tool),
            decision: None,
            by: None,
            changed: None,
            milliseconds: 0,
            sent: serde_json::to_string(&request.arguments).map_or(0, |text| text.len()),
            received: None,
            outcome: End::Cancelled,
            code: None,
            arguments: None,
            result: None,
        }
    }

    pub(super) fn resolved(&mut self, tool: &CatalogTool) {
        self.server = Some(tool.key.server.as_str().to_owned());
        self.tool = shown(&tool.key.tool);
    }

    pub(super) fn granted(&mut self, grant: &Grant) {
        self.decision = Some(Decision::Allowed);
        self.by = Some(match grant {
            Grant::Rule { rule, origin } => By::Rule {
                rule: rule.clone(),
                origin: origin.to_string(),
            },
            Grant::Hook { title, origin } => By::Hook {
                hook: title.clone(),
                origin: origin.to_string(),
            },
            Grant::Mode => By::Mode,
            Grant::Typed => By::Typed,
            Grant::Person => By::Person,
            Grant::Session => By::Session,
            Grant::BuiltIn => By::BuiltIn,
        });
    }

    pub(super) fn abandoned(&mut self, took: Duration) {
        self.outcome = End::Cancelled;
        self.milliseconds = millis(took);
    }

    pub(super) fn ended(&mut self, outcome: &Result<ToolOutcome, CallError>, took: Duration) {
        self.milliseconds = millis(took);
        let error = match outcome {
            Ok(outcome) => {
                self.received = Some(outcome.raw.get().len());
                self.outcome = if outcome.is_error {
                    End::ToolError
                } else {
                    End::Answered
                };
                return;
            }
            Err(error) => error,
        };
        if let Some(server) = error.server() {
            self.server = Some(server.as_str().to_owned());
        }
        self.outcome = match error {
            CallError::Unknown { .. } | CallError::Ambiguous { .. } | CallError::LeftOut { .. } => {
                End::Unknown
            }
            CallError::Invalid { .. } => End::Invalid,
            CallError::Refused { by, .. } => {
                self.decision = Some(Decision::Refused);
                self.by = Some(refuser(by));
                End::Refused
            }
            CallError::Unavailable { .. } => End::Unavailable,
            CallError::NeedsAuth { .. } => End::NeedsAuth,
            CallError::TimedOut { .. } => End::TimedOut,
            CallError::Cancelled { .. } | CallError::CancelledByServer { .. } => End::Cancelled,
            CallError::Protocol { code, .. } => {
                self.code = Some(*code);
                End::Failed
            }
            CallError::InputRefused { .. }
            | CallError::TooManyRounds { .. }
            | CallError::Malformed { .. }
            | CallError::Transport { .. }
            | CallError::TooLarge { .. } => End::Failed,
        };
    }
}

fn refuser(by: &RefusedBy) -> By {
    match by {
        RefusedBy::Rule { rule, origin } => By::Rule {
            rule: rule.clone(),
            origin: origin.to_string(),
        },
        RefusedBy::Unreadable { origin } => By::Unreadable {
            origin: origin.to_string(),
        },
        RefusedBy::Hook { origin, title, .. } | RefusedBy::NobodyForHook { origin, title, .. } => {
            By::Hook {
                hook: title.to_string(),
                origin: origin.to_string(),
            }
        }
        RefusedBy::Person { .. } => By::Person,
        RefusedBy::Changed { .. } => By::Changed,
        RefusedBy::NobodyToAsk { .. } => By::Nobody,
    }
}

/// A name as it is written down: cleaned, because terminals show the file.
fn shown(name: &str) -> String {
    text::cut(&Untrusted::new(name).line(), MAX_NAME).into_owned()
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
