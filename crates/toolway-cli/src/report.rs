//! From an error to what the user reads: one message, one `hint:`, one exit code.
//!
//! Owns the only mapping table from the library's errors to the command line. Commands return a
//! [`Report`]; nothing else prints an error.

mod connecting;
mod hint;
mod json;
mod login;
mod reach;
mod refused;
mod unwritable;

use std::fmt::Write as _;
use std::time::Duration;

use toolway::auth::NotWidened;
use toolway::catalog::KeptOutBy;
use toolway::{CallError, CallFault, Problem, RefusedBy, ToolTarget};
use toolway_auth::logins::LoginsError;
use toolway_auth::vault::VaultError;
use toolway_types::name::as_word;
use toolway_types::{ConnectionState, Diagnosis, FailureKind, Severity, ToolKey, Untrusted};
use toolway_wire::era::method;

use self::hint::time_hint;
pub(crate) use self::hint::{failure_hint, network_hint};
pub(crate) use self::login::login_words;
pub(crate) use self::reach::{ad_hoc, by_flags};
use self::refused::refused_hint;
pub(crate) use self::unwritable::unwritable;
use crate::exit::Exit;

/// An error on its way to the terminal.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// Further lines below the message, such as a server's last words.
    pub(crate) details: Vec<String>,
    pub(crate) hint: Option<String>,
    /// The server that it is about, where more may be known of it than is said here.
    pub(crate) about: Option<About>,
    /// The reader of stdout went away, which is no error of ours.
    pub(crate) stdout_closed: bool,
}

/// What a report about a server leaves open.
#[derive(Debug, Clone)]
pub(crate) enum About {
    /// It only wants a login.
    WantsLogin(String),
    /// It failed before it answered anything.
    Failed(String),
}

/// What every command gives back.
pub(crate) type Outcome = Result<Exit, Report>;

impl Report {
    /// An error with a message only.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            details: Vec::new(),
            hint: None,
            about: None,
            stdout_closed: false,
        }
    }

    /// What was typed makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A file is wrong, or what it was to hold is not there.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, message)
    }

    /// A rule, a policy or a user says no.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// Adds the exact next step.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Takes a better next step, where one is known.
    #[must_use]
    pub(crate) fn better_hint(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Adds lines below the message.
    #[must_use]
    pub(crate) fn details(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(lines);
        self
    }

    /// The text for stderr.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        for line in &self.details {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        toolway_types::text::clean(&text).into_owned()
    }
}

impl From<anyhow::Error> for Report {
    fn from(error: anyhow::Error) -> Self {
        Report::new(Exit::Unexpected, format!("{error:#}"))
            .hint("run it again with `-vv` to see what happened before this")
    }
}

impl From<VaultError> for Report {
    fn from(error: VaultError) -> Self {
        Report::from(&error)
    }
}

impl From<&VaultError> for Report {
    fn from(error: &VaultError) -> Self {
        let exit = match error {
            VaultError::Io { .. } | VaultError::Busy { .. } => Exit::Unexpected,
            _ => Exit::Configuration,
        };
        let hint = match error {
            VaultError::Keychain { .. } | VaultError::NowhereToWrite { .. } => {
                "check the keychain with `toolway doctor`".to_owned()
            }
            VaultError::Corrupt { .. } => "see what is left with `toolway vault list`".to_owned(),
            VaultError::WrongKey { .. } => {
                "see what else is there with `toolway vault list`".to_owned()
            }
            VaultError::Passphrase { .. } => {
                "set `TOOLWAY_VAULT_KEY` to the passphrase that it was saved with".to_owned()
            }
            VaultError::Busy { .. } => "end the other process, then try again".to_owned(),
            VaultError::TooLong { .. } => {
                "keep it in a file of its own, and name that: `${file:/path}`".to_owned()
            }
            VaultError::Io { path, source } => unwritable(path, source.kind()),
        };
        Report::new(exit, error.to_string()).hint(hint)
    }
}

impl From<LoginsError> for Report {
    fn from(error: LoginsError) -> Self {
        Report::from(&error)
    }
}

impl From<&LoginsError> for Report {
    fn from(error: &LoginsError) -> Self {
        match error {
            LoginsError::Vault(error) => Report::from(error),
            LoginsError::Unreadable { .. } => Report::configuration(error.to_string())
                .hint("see which it is with `toolway vault list`"),
        }
    }
}

impl From<std::io::Error> for Report {
    fn from(error: std::io::Error) -> Self {
        let stdout_closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        Report {
            stdout_closed,
            ..Report::from(anyhow::Error::from(error))
        }
    }
}

impl From<Diagnosis> for Report {
    fn from(diagnosis: Diagnosis) -> Self {
        Report::configuration(diagnosis.message)
            .hint("check everything with `toolway doctor`")
            .better_hint(diagnosis.hint)
    }
}

/// One diagnosis as `severity: place: message` with its hint below.
pub(crate) fn render_diagnosis(diagnosis: &Diagnosis) -> String {
    let severity = match diagnosis.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{severity}: {}{}\n", place(diagnosis), diagnosis.message);
    match (&diagnosis.hint, diagnosis.severity) {
        (Some(hint), _) => {
            let _ = writeln!(text, "hint: {hint}");
        }
        (None, Severity::Error) => {
            text.push_str("hint: mend it at that place, then check with `toolway doctor`\n");
        }
        (None, Severity::Warning) => {}
    }
    text
}

/// Where something is wrong, as words before the message.
fn place(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if let Some(origin) = &diagnosis.origin {
        let _ = write!(text, "{origin}");
        if let Some(column) = diagnosis.column {
            let _ = write!(text, ":{column}");
        }
        text.push_str(": ");
    }
    if let Some(server) = &diagnosis.server {
        let _ = write!(text, "server `{server}`: ");
    }
    text
}

impl Report {
    /// A server that is not connected, in whichever state it is.
    pub(crate) fn unavailable(server: &str, state: &ConnectionState) -> Self {
        let word = as_word(server);
        match state {
            ConnectionState::Failed(failure) => {
                let exit = match failure.kind {
                    FailureKind::TimedOut => Exit::TimedOut,
                    FailureKind::Forbidden => Exit::Refused,
                    _ => Exit::Connection,
                };
                let mut report = Report::new(
                    exit,
                    format!("server `{server}` failed: {}", failure.message),
                );
                // What could not even be started has nothing to fetch.
                let was_started =
                    matches!(failure.kind, FailureKind::TimedOut | FailureKind::Closed);
                report.about = was_started.then(|| About::Failed(server.to_owned()));
                report
                    .details(
                        failure
                            .stderr
                            .iter()
                            .map(|line| format!("| {}", line.line())),
                    )
                    .hint(failure_hint(server, failure))
            }
            ConnectionState::NeedsAuth {
                unnamed_scopes: true,
                ..
            } => Report::unnamed_scopes(server),
            ConnectionState::NeedsAuth { .. } => Report::needs_login(server, &[]),
            ConnectionState::Disabled { reason } => {
                Report::refused(format!("server `{server}` cannot be used: {reason}"))
                    .hint(format!("see why with `toolway explain {word}`"))
            }
            ConnectionState::Pending { .. } | ConnectionState::Connected(_) => Report::new(
                Exit::Connection,
                format!("server `{server}` is not connected yet"),
            )
            .hint(format!(
                "try again; see its state with `toolway list`, its entry with `toolway get {word}`"
            )),
        }
    }
}

impl Report {
    /// A server that was not waited for any longer.
    pub(crate) fn late(server: &str, limit: Duration) -> Self {
        let message = format!("server `{server}` has not answered within {limit:?}");
        Report::new(Exit::TimedOut, message).hint(format!(
            "give it longer with `--timeout <seconds>`; what it writes is in `toolway logs {}`",
            as_word(server)
        ))
    }
}

/// What was probably meant, as a question.
pub(crate) fn did_you_mean(names: &[String]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let (last, others) = quoted.split_last()?;
    Some(if others.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", others.join(", "))
    })
}

impl From<CallError> for Report {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        let word = error
            .server()
            .map(|server| as_word(server.as_str()).into_owned());
        let word = word.unwrap_or_default();
        match error {
            CallError::Unknown {
                target,
                suggestions,
            } => {
                let report = Report::usage(format!("no tool `{target}`"));
                let hint = match target {
                    ToolTarget::Key(_) => {
                        format!("see its tools with `toolway tools {word}`")
                    }
                    ToolTarget::Exposed(_) => "see all tools with `toolway tools`".to_owned(),
                };
                report.hint(hint).better_hint(did_you_mean(&suggestions))
            }
            CallError::Ambiguous { candidates, .. } => Report::usage(message).hint(format!(
                "say which one, e.g. `toolway call {}`",
                candidates.first().map_or("", String::as_str)
            )),
            CallError::Unavailable { server, state } => {
                Report::unavailable(server.as_str(), &state)
            }
            CallError::NeedsAuth {
                not_widened: Some(NotWidened::StillRefused),
                ..
            } => Report::new(Exit::NeedsLogin, message).hint(format!(
                "the account may not have that right: ask whoever runs the server, or log in as \
                 somebody else with `toolway login {word}`"
            )),
            CallError::NeedsAuth {
                server,
                not_widened: Some(NotWidened::Unnamed),
                ..
            } => Report::unnamed_scopes(server.as_str()),
            CallError::NeedsAuth {
                server,
                scopes,
                not_widened,
            } => Report::needs_login(server.as_str(), &scopes)
                .details(not_widened.map(|why| why.to_string())),
            CallError::Failed(key, fault) => Report::failed_call(&key, fault, message),
        }
    }
}

impl Report {
    /// A call of a tool that is known, and what went wrong with it.
    fn failed_call(key: &ToolKey, fault: CallFault, message: String) -> Self {
        let word = as_word(key.server.as_str());
        let (exit, hint) = match fault {
            CallFault::LeftOut { by, .. } => {
                let see = format!("`toolway tools {word} --all`");
                let hint = match by {
                    KeptOutBy::Entry => {
                        format!("change the entry, or see what it leaves out with {see}")
                    }
                    KeptOutBy::Cap => {
                        format!("choose with `includeTools` in its entry; see all with {see}")
                    }
                    KeptOutBy::Flaw => {
                        format!("its server has to mend it; see what is left out with {see}")
                    }
                    KeptOutBy::Namesake => {
                        "give one of them another name with `alias` in its entry".to_owned()
                    }
                    KeptOutBy::View => "call it without the profile that hides it".to_owned(),
                };
                (Exit::Usage, hint)
            }
            CallFault::Invalid(problems) => return Report::invalid(key, &problems),
            CallFault::Refused(by) => {
                let report = Report::refused(message).hint(refused_hint(key, &by));
                return match by {
                    RefusedBy::Changed { difference } => report.details(difference.all),
                    _ => report,
                };
            }
            CallFault::TimedOut { limit, .. } => (Exit::TimedOut, time_hint(limit).to_owned()),
            CallFault::Cancelled | CallFault::CancelledByServer => {
                (Exit::TimedOut, "run it again".to_owned())
            }
            CallFault::InputRefused(input) => {
                let hint = if input.as_received().starts_with(method::SAMPLING_CREATE) {
                    "no model answers servers here: call it from a program that offers one"
                } else {
                    "call it in a terminal, or answer with an `Elicitation` hook"
                };
                (Exit::ToolError, hint.to_owned())
            }
            CallFault::TooManyRounds(_) => (
                Exit::ToolError,
                format!("it may be broken: see `toolway get {word}`"),
            ),
            CallFault::Protocol { .. } => (
                Exit::ToolError,
                format!("see what its tools expect with `toolway tools {word} --json`"),
            ),
            CallFault::Malformed(_) | CallFault::Transport { sent: false, .. } => (
                Exit::Connection,
                format!("see what happened with `toolway logs {word}`"),
            ),
            CallFault::Transport { .. } => (
                Exit::Connection,
                format!(
                    "see whether it took effect before you run it again; what happened is in \
                     `toolway logs {word}`"
                ),
            ),
            CallFault::TooLarge { .. } => (
                Exit::ToolError,
                format!("ask for less; see what it takes with `toolway tools {word} --json`"),
            ),
        };
        Report::new(exit, message).hint(hint)
    }

    /// Arguments that do not fit.
    fn invalid(ToolKey { server, tool }: &ToolKey, problems: &[Problem]) -> Self {
        let word = as_word(server.as_str());
        let tool = Untrusted::new(tool);
        let whose = if server.is_built_in() {
            String::new()
        } else {
            format!(" of server `{server}`")
        };
        Report::usage(format!("the arguments do not fit `{tool}`{whose}"))
            .details(
                problems
                    .iter()
                    .map(|problem| match problem.path.trim_start_matches('/') {
                        "" => problem.message.clone(),
                        path => format!("`{path}`: {}", problem.message),
                    }),
            )
            .hint(format!("see its schema with `toolway tools {word} --json`"))
    }
}
