//! Why a call has no answer.
//!
//! Owns the one closed list of reasons. A tool that answers `isError` is not among them: that is an
//! answer. Each edge maps these variants once; no code reads the messages.

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;
use toolway_types::{ConnectionState, ServerName, ToolKey, Untrusted, text};

use super::{RefusedBy, ToolTarget};
use crate::json_schema::Problem;

/// Why *we* have no answer to a call. Tool names are [`Untrusted`]: a server chose them.
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
    /// The server offers it, and it is kept out.
    #[error("`{}` of server `{server}` is not offered: {reason}", brief(.tool))]
    LeftOut {
        server: ServerName,
        tool: Untrusted,
        /// Who keeps it out.
        by: KeptOutBy,
        /// Why: which key of the entry, with file and line, or what is wrong with the tool.
        reason: String,
    },
    /// The arguments do not fit the tool's schema.
    #[error("the arguments do not fit `{}` of server `{server}`: {}", brief(.tool), told(.problems))]
    Invalid {
        server: ServerName,
        tool: Untrusted,
        /// What is wrong, and where.
        problems: Vec<Problem>,
    },
    /// It was refused.
    #[error("`{}` of server `{server}` was refused {by}", brief(.tool))]
    Refused {
        server: ServerName,
        tool: Untrusted,
        /// Who.
        by: RefusedBy,
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
    /// No answer in time; the server was told to stop.
    #[error("`{}` of server `{server}` {}", brief(.tool), waited(*.limit, *.after))]
    TimedOut {
        server: ServerName,
        tool: Untrusted,
        /// The time it had.
        after: Duration,
        /// Which of its limits was over.
        limit: TimeLimit,
    },
    /// The host ended the connection while the call ran.
    #[error("the call of `{}` of server `{server}` was cancelled", brief(.tool))]
    Cancelled { server: ServerName, tool: Untrusted },
    /// The call became a task at the server, and the task was cancelled there.
    #[error("server `{server}` cancelled the call of `{}`", brief(.tool))]
    CancelledByServer { server: ServerName, tool: Untrusted },
    /// The server wants input before it answers, and this program cannot give it.
    #[error("server `{server}` needs input for `{}` that nobody here can give: {}", brief(.tool), brief(.input))]
    InputRefused {
        server: ServerName,
        tool: Untrusted,
        /// What it wants, such as `elicitation/create (form)`.
        input: Untrusted,
    },
    /// The server wanted input again and again.
    #[error("server `{server}` asked for input for `{}` {rounds} times without an end", brief(.tool))]
    TooManyRounds {
        server: ServerName,
        tool: Untrusted,
        /// How often it asked.
        rounds: usize,
    },
    /// The server answered with a JSON-RPC error.
    #[error("server `{server}` answered `{}` with error {code}: {}{}", brief(.tool), brief(.message), remarked(.remarks))]
    Protocol {
        server: ServerName,
        tool: Untrusted,
        code: i64,
        /// The server's words.
        message: Untrusted,
        /// What it added.
        data: Option<Box<RawValue>>,
        /// What became of the questions that it asked meanwhile, where that may be why; clean,
        /// each on one line.
        remarks: Vec<String>,
    },
    /// The server answered something that is not a tool's result.
    #[error("server `{server}` answered `{}` with {}", brief(.tool), brief(.what))]
    Malformed {
        server: ServerName,
        tool: Untrusted,
        /// What it was.
        what: Untrusted,
    },
    /// The call or its answer did not get through.
    #[error("the call of `{}` of server `{server}` {}", brief(.tool), lost_text(*.sent, .message))]
    Transport {
        server: ServerName,
        tool: Untrusted,
        /// Why.
        message: Untrusted,
        /// Whether it may have reached the server, and so may have run.
        sent: bool,
    },
    /// Arguments or answer are larger than we carry.
    #[error("the {what} of `{}` of server `{server}` is over {limit} bytes", brief(.tool))]
    TooLarge {
        server: ServerName,
        tool: Untrusted,
        /// Which of the two.
        what: Oversize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl CallError {
    /// The same where this is to be known about the server's questions.
    pub(crate) fn after(mut self, about: Vec<String>) -> Self {
        if let CallError::Protocol { remarks, .. } = &mut self {
            *remarks = about;
        }
        self
    }

    /// The server concerned, where one is known.
    pub fn server(&self) -> Option<&ServerName> {
        match self {
            CallError::Unknown { target, .. } | CallError::Ambiguous { target, .. } => match target
            {
                ToolTarget::Exposed(_) => None,
                ToolTarget::Key(ToolKey { server, .. }) => Some(server),
            },
            CallError::LeftOut { server, .. }
            | CallError::Invalid { server, .. }
            | CallError::Refused { server, .. }
            | CallError::Unavailable { server, .. }
            | CallError::NeedsAuth { server, .. }
            | CallError::TimedOut { server, .. }
            | CallError::Cancelled { server, .. }
            | CallError::CancelledByServer { server, .. }
            | CallError::InputRefused { server, .. }
            | CallError::TooManyRounds { server, .. }
            | CallError::Protocol { server, .. }
            | CallError::Malformed { server, .. }
            | CallError::Transport { server, .. }
            | CallError::TooLarge { server, .. } => Some(server),
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

fn waited(limit: TimeLimit, after: Duration) -> String {
    match limit {
        TimeLimit::Whole => format!("did not answer within {after:?}"),
        TimeLimit::Beginning => format!("did not begin to answer within {after:?}"),
        TimeLimit::Idle => format!("gave no sign of life for {after:?}"),
    }
}

fn lost_text(sent: bool, message: &Untrusted) -> String {
    let why = brief(message);
    if sent {
        format!("was sent, but its answer was lost: {why}; nobody knows whether it ran")
    } else {
        format!("did not get through: {why}")
    }
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

/// The longest piece of a server's words in a message, in characters.
const MAX_BRIEF: usize = 500;

/// A server's words for a message: one line, so that they cannot pass for lines of ours.
pub(crate) fn brief(text: &Untrusted) -> String {
    text::cut(&text.line(), MAX_BRIEF).into_owned()
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

fn remarked(remarks: &[String]) -> String {
    let remarks = remarks.iter().flat_map(|remark| ["; ", remark]);
    remarks.collect()
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
}
