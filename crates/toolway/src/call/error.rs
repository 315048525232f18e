//! Why a call has no answer.
//!
//! Owns the one closed list of reasons. A tool that answers `isError` is not among them: that is an
//! answer. Each edge maps these variants once; no code reads the messages.

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;
use toolway_types::{ConnectionState, ServerName, ToolKey, Untrusted, text};

use super::brief::{MAX_BRIEF, brief};
use super::{RefusedBy, ToolTarget};
use crate::json_schema::Problem;

/// Why *we* have no answer to a call.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field that says what it is has no comment")]
pub enum CallError {
    /// No server offers such a tool.
    #[error("no tool `{target}`{}", suggest(.suggestions))]
    Unknown {
        /// What was asked for.
        target: ToolTarget,
        /// The nearest names there are, as models see them: several when they are equally near.
        suggestions: Vec<String>,
    },
    /// More than one tool answers to the name.
    #[error("`{target}` could be any of {}", quoted(.candidates))]
    Ambiguous {
        /// What was asked for.
        target: ToolTarget,
        /// The exposed names of all that match, each of which is unambiguous.
        candidates: Vec<String>,
    },
    /// The server has no open connection.
    #[error("server `{server}` is {}", state_text(.state))]
    Unavailable {
        server: ServerName,
        /// What it has instead.
        state: ConnectionState,
    },
    /// The server wants a login first.
    #[error("server `{server}` needs a login{}{}", with_scopes(.scopes), after_step_up(.not_widened.as_ref()))]
    NeedsAuth {
        server: ServerName,
        /// What the login has to reach, where the server says so: a wider one than there is.
        scopes: Vec<String>,
        /// Why there is no such login although one was tried for in the middle of the call.
        not_widened: Option<NotWidened>,
    },
    /// The tool is known, and this is wrong. What a server was asked for instead of a tool, such
    /// as the URI of a resource, stands in its place.
    #[error("{}", .1.message(.0))]
    Failed(ToolKey, CallFault),
}

/// What went wrong with a call of a tool that is known.
#[derive(Debug)]
#[expect(missing_docs, reason = "a field that says what it is has no comment")]
pub enum CallFault {
    /// The server offers it, and it is kept out.
    LeftOut {
        /// Who keeps it out.
        by: KeptOutBy,
        /// Why: which key of the entry, with file and line, or what is wrong with the tool.
        reason: String,
    },
    /// The arguments do not fit the tool's schema: what is wrong, and where.
    Invalid(Vec<Problem>),
    /// It was refused.
    Refused(RefusedBy),
    /// No answer in time; the server was told to stop.
    TimedOut {
        /// The time it had.
        after: Duration,
        /// Which of its limits was over.
        limit: TimeLimit,
    },
    /// The host ended the connection while the call ran.
    Cancelled,
    /// The call became a task at the server, and the task was cancelled there.
    CancelledByServer,
    /// The server wants input before it answers, and this program cannot give it: such as
    /// `elicitation/create (form)`.
    InputRefused(Untrusted),
    /// The server wanted input again and again, so often.
    TooManyRounds(usize),
    /// The server answered with a JSON-RPC error.
    Protocol {
        code: i64,
        /// The server's words.
        message: Untrusted,
        /// What it added.
        data: Option<Box<RawValue>>,
        /// What became of the questions that it asked meanwhile, where that may be why; clean,
        /// each on one line.
        remarks: Vec<String>,
    },
    /// The server answered this, which is not a tool's result.
    Malformed(Untrusted),
    /// The call or its answer did not get through.
    Transport {
        /// Why.
        message: Untrusted,
        /// Whether it may have reached the server, and so may have run.
        sent: bool,
    },
    /// Arguments or answer are larger than we carry.
    TooLarge {
        /// Which of the two.
        what: Oversize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl CallError {
    /// A server did not answer within the time for the whole.
    pub(crate) fn timed_out(server: &ServerName, tool: &str, after: Duration) -> Self {
        let limit = TimeLimit::Whole;
        Self::Failed(
            ToolKey::new(server.clone(), tool),
            CallFault::TimedOut { after, limit },
        )
    }

    /// The server concerned, where one is known.
    pub fn server(&self) -> Option<&ServerName> {
        match self {
            Self::Unknown { target, .. } | Self::Ambiguous { target, .. } => match target {
                ToolTarget::Exposed(_) => None,
                ToolTarget::Key(key) => Some(&key.server),
            },
            Self::Unavailable { server, .. } | Self::NeedsAuth { server, .. } => Some(server),
            Self::Failed(key, _) => Some(&key.server),
        }
    }
}

impl CallFault {
    /// The same for people. Servers choose the names of their tools, so those are cleaned.
    fn message(&self, ToolKey { server, tool }: &ToolKey) -> String {
        let tool = format!("`{}`", brief(&Untrusted::new(tool)));
        let server = format!("server `{server}`");
        let whose = format!("{tool} of {server}");
        match self {
            Self::LeftOut { reason, .. } => format!("{whose} is not offered: {reason}"),
            Self::Invalid(problems) => {
                format!("the arguments do not fit {whose}: {}", told(problems))
            }
            Self::Refused(by) => format!("{whose} was refused {by}"),
            Self::TimedOut { after, limit } => match limit {
                TimeLimit::Whole => format!("{whose} did not answer within {after:?}"),
                TimeLimit::Beginning => format!("{whose} did not begin to answer within {after:?}"),
                TimeLimit::Idle => format!("{whose} gave no sign of life for {after:?}"),
            },
            Self::Cancelled => format!("the call of {whose} was cancelled"),
            Self::CancelledByServer => format!("{server} cancelled the call of {tool}"),
            Self::InputRefused(input) => {
                let input = brief(input);
                format!("{server} needs input for {tool} that nobody here can give: {input}")
            }
            Self::TooManyRounds(rounds) => {
                format!("{server} asked for input for {tool} {rounds} times without an end")
            }
            Self::Protocol {
                code,
                message,
                remarks,
                ..
            } => {
                let remarks: String = remarks.iter().flat_map(|it| ["; ", it]).collect();
                let message = brief(message);
                format!("{server} answered {tool} with error {code}: {message}{remarks}")
            }
            Self::Malformed(what) => format!("{server} answered {tool} with {}", brief(what)),
            Self::Transport { message, sent } => {
                let why = brief(message);
                if *sent {
                    format!(
                        "the call of {whose} was sent, but its answer was lost: {why}; nobody \
                         knows whether it ran"
                    )
                } else {
                    format!("the call of {whose} did not get through: {why}")
                }
            }
            Self::TooLarge { what, limit } => {
                format!("the {what} of {whose} went over the limit of {limit} bytes")
            }
        }
    }
}

/// The limits on a call's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// On the whole of it.
    Whole,
    /// On silence: without an answer and without progress.
    Idle,
    /// On the beginning of an answer, over HTTP.
    Beginning,
}

/// Which side of a call is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oversize {
    /// What was to be sent.
    Arguments,
    /// What came back.
    Answer,
}

impl fmt::Display for Oversize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Oversize::Arguments => "arguments",
            Oversize::Answer => "answer",
        })
    }
}

fn state_text(state: &ConnectionState) -> String {
    let word = state.as_str();
    match state {
        ConnectionState::Failed(failure) => format!("{word}: {}", failure.message),
        ConnectionState::Disabled { reason } => format!("{word}: {reason}"),
        ConnectionState::Pending { .. }
        | ConnectionState::Connected(_)
        | ConnectionState::NeedsAuth { .. } => word.to_owned(),
    }
}

fn with_scopes(scopes: &[String]) -> String {
    if scopes.is_empty() {
        return String::new();
    }
    let scopes = scopes.join(" ");
    format!(" that reaches `{}`", text::cut(&scopes, MAX_BRIEF))
}

fn after_step_up(why: Option<&NotWidened>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

fn suggest(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("; did you mean `{name}`?"),
        [names @ .., last] => format!("; did you mean {} or `{last}`?", quoted(names)),
    }
}

fn quoted(names: &[String]) -> String {
    format!("`{}`", names.join("`, `"))
}

fn told(problems: &[Problem]) -> String {
    let told = problems
        .iter()
        .map(|Problem { path, message }| match path.as_str() {
            "" => format!("`/`: {message}"),
            path => format!("`{path}`: {message}"),
        });
    told.collect::<Vec<_>>().join("; ")
}

/// Why a login has not enough scopes although getting more was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotWidened {
    /// The person, or a hook, did not agree.
    Declined,
    /// They agreed, and it failed.
    Failed(String),
    /// It was widened, and the server refuses still.
    StillRefused,
    /// The server did not say which scopes it wants.
    Unnamed,
}

impl fmt::Display for NotWidened {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined => formatter.write_str("nobody agreed to one just now"),
            Self::Failed(why) => write!(formatter, "one was begun and failed: {why}"),
            Self::StillRefused => {
                formatter.write_str("one was asked for and granted, and the server refuses still")
            }
            Self::Unnamed => formatter
                .write_str("one that reaches further, and the server did not say which scopes"),
        }
    }
}

/// Who keeps a tool out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptOutBy {
    /// Its server's entry.
    Entry,
    /// Its server, which lists more tools than are used.
    Cap,
    /// The tool itself, which cannot be offered as it is.
    Flaw,
    /// Another tool, which would be shown under the same name.
    Namesake,
    /// The caller's view, which does not have it. Whoever asks hears that there is no such tool.
    View,
}
