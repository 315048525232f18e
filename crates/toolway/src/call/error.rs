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
pub enum CallError {
    /// No server offers such a tool.
    #[error("no tool `{target}`{}", Suggest(.suggestions))]
    Unknown {
        /// What was asked for.
        target: ToolTarget,
        /// The nearest names there are, as models see them: several when they are equally near.
        suggestions: Vec<String>,
    },
    /// More than one tool answers to the name.
    #[error("`{target}` could be any of {}", QuotedNames(.candidates))]
    Ambiguous {
        /// What was asked for.
        target: ToolTarget,
        /// The exposed names of all that match, each of which is unambiguous.
        candidates: Vec<String>,
    },
    /// The server offers it, and it is kept out.
    #[error("`{}` of server `{server}` is not offered: {reason}", brief(.tool))]
    LeftOut {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// Who keeps it out.
        by: KeptOutBy,
        /// Why: which key of the entry, with file and line, or what is wrong with the tool.
        reason: String,
    },
    /// The arguments do not fit the tool's schema.
    #[error("the arguments do not fit `{}` of server `{server}`: {}", brief(.tool), Problems(.problems))]
    Invalid {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// What is wrong, and where.
        problems: Vec<Problem>,
    },
    /// It was refused.
    #[error("`{}` of server `{server}` was refused {by}", brief(.tool))]
    Refused {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// Who.
        by: RefusedBy,
    },
    /// The server has no open connection.
    #[error("server `{server}` is {}", StateText(.state))]
    Unavailable {
        /// The server.
        server: ServerName,
        /// What it has instead.
        state: ConnectionState,
    },
    /// The server wants a login first.
    #[error("server `{server}` needs a login{}{}", WithScopes(.scopes), StepUpText(.not_widened.as_ref()))]
    NeedsAuth {
        /// The server.
        server: ServerName,
        /// What the login has to reach, where the server says so: a wider one than there is.
        scopes: Vec<String>,
        /// Why there is no such login although one was tried for in the middle of the call.
        not_widened: Option<NotWidened>,
    },
    /// No answer in time; the server was told to stop.
    #[error("`{}` of server `{server}` {}", brief(.tool), Waited(.limit, .after))]
    TimedOut {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// The time it had.
        after: Duration,
        /// Which of its limits was over.
        limit: TimeLimit,
    },
    /// The host ended the connection while the call ran.
    #[error("the call of `{}` of server `{server}` was cancelled", brief(.tool))]
    Cancelled {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
    },
    /// The call became a task at the server, and the task was cancelled there.
    #[error("server `{server}` cancelled the call of `{}`", brief(.tool))]
    CancelledByServer {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
    },
    /// The server wants input before it answers, and this program cannot give it.
    #[error("server `{server}` needs input for `{}` that nobody here can give: {}", brief(.tool), brief(.input))]
    InputRefused {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// What it wants, such as `elicitation/create (form)`.
        input: Untrusted,
    },
    /// The server wanted input again and again.
    #[error("server `{server}` asked for input for `{}` {rounds} times without an end", brief(.tool))]
    TooManyRounds {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// How often it asked.
        rounds: usize,
    },
    /// The server answered with a JSON-RPC error.
    #[error("server `{server}` answered `{}` with error {code}: {}{}", brief(.tool), brief(.message), Remarked(.remarks))]
    Protocol {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// The code.
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
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// What it was.
        what: Untrusted,
    },
    /// The call or its answer did not get through.
    #[error("the call of `{}` of server `{server}` {}", brief(.tool), LostText(*.sent, .message))]
    Transport {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: Untrusted,
        /// Why.
        message: Untrusted,
        /// Whether it may have reached the server, and so may have run.
        sent: bool,
    },
    /// Arguments or answer are larger than we carry.
    #[error("the {what} of `{}` of server `{server}` is over {limit} bytes", brief(.tool))]
    TooLarge {
        /// The server.
        server: ServerName,
        /// The tool.
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

struct Waited<'a>(&'a TimeLimit, &'a Duration);

impl fmt::Display for Waited<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TimeLimit::Whole => write!(formatter, "did not answer within {:?}", self.1),
            TimeLimit::Beginning => {
                write!(formatter, "did not begin to answer within {:?}", self.1)
            }
            TimeLimit::Idle => write!(formatter, "gave no sign of life for {:?}", self.1),
        }
    }
}

struct LostText<'a>(bool, &'a Untrusted);

impl fmt::Display for LostText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = brief(self.1);
        if self.0 {
            write!(
                formatter,
                "was sent, but its answer was lost: {why}; nobody knows whether it ran"
            )
        } else {
            write!(formatter, "did not get through: {why}")
        }
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

struct StateText<'a>(&'a ConnectionState);

impl fmt::Display for StateText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.0.as_str();
        match self.0 {
            ConnectionState::Failed(failure) => write!(formatter, "{word}: {}", failure.message),
            ConnectionState::Disabled { reason } => write!(formatter, "{word}: {reason}"),
            ConnectionState::Pending { .. }
            | ConnectionState::Connected(_)
            | ConnectionState::NeedsAuth { .. } => formatter.write_str(word),
        }
    }
}

struct WithScopes<'a>(&'a [String]);

impl fmt::Display for WithScopes<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let scopes = self.0.join(" ");
        write!(
            formatter,
            " that reaches `{}`",
            text::cut(&scopes, MAX_BRIEF)
        )
    }
}

struct StepUpText<'a>(Option<&'a NotWidened>);

impl fmt::Display for StepUpText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(why) => write!(formatter, ": {why}"),
            None => Ok(()),
        }
    }
}

struct Remarked<'a>(&'a [String]);

impl fmt::Display for Remarked<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for remark in self.0 {
            write!(formatter, "; {remark}")?;
        }
        Ok(())
    }
}

struct Suggest<'a>(&'a [String]);

impl fmt::Display for Suggest<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [name] => write!(formatter, "; did you mean `{name}`?"),
            [names @ .., last] => {
                write!(
                    formatter,
                    "; did you mean {} or `{last}`?",
                    QuotedNames(names)
                )
            }
        }
    }
}

struct QuotedNames<'a>(&'a [String]);

impl fmt::Display for QuotedNames<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            write!(formatter, "{}`{name}`", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct Problems<'a>(&'a [Problem]);

impl fmt::Display for Problems<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let path = if problem.path.is_empty() {
                "/"
            } else {
                &problem.path
            };
            let lead = if index == 0 { "" } else { "; " };
            write!(formatter, "{lead}`{path}`: {}", problem.message)?;
        }
        Ok(())
    }
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
