//! Headers helpers: a program that an entry names, whose output becomes headers.
//!
//! Owns running it (no shell, its own environment, ten seconds, 64 KiB), what of its output is a
//! header, and the credentials made of it: run once for each connection, once more when the server
//! refuses what it printed. Nothing it prints is ever shown, in a message, a log or a `Debug`.
//! Does not own: whether it may run. Only an admitted server's definition reaches this place.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::Mutex;
use toolway_transport::credentials::{
    CredentialHeaders, CredentialRefusal, CredentialRequest, Credentials, CredentialsError,
    RetryDecision, is_protected,
};
use toolway_transport::program::{self, Invocation, ProgramError, ProgramLimits, ProgramRun};
use toolway_transport::{OpenError, OpenOptions};
use toolway_types::{HeadersHelper, Secret, ServerName, limits};
use toolway_wire::scan;
use url::Url;

#[cfg(test)]
mod tests;

/// The longest it may take.
pub const TIME: Duration = limits::login::HELPER_TIME;

/// The most it may print, in bytes.
pub const MAX_OUTPUT: usize = limits::login::HELPER_OUTPUT;

/// The variables that say for which server it runs; the later names are what helpers written for
/// another host read.
const NAMES: [&str; 2] = ["TOOLWAY_SERVER_NAME", "CLAUDE_CODE_MCP_SERVER_NAME"];
const URLS: [&str; 2] = ["TOOLWAY_SERVER_URL", "CLAUDE_CODE_MCP_SERVER_URL"];

/// Receives the headers that are about to be sent, so that logs can redact their values.
pub type RedactHeaders = Box<dyn Fn(&[(String, Secret)]) + Send + Sync>;

/// Why a helper gave no headers. No message repeats what it printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the headers helper `{command}` {why}")]
pub struct HelperError {
    /// Its command line, as written.
    pub command: String,
    /// What went wrong.
    pub why: HelperFault,
}

/// What went wrong with a helper.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelperFault {
    /// It was not started.
    #[error("was not started: {0}")]
    NotStarted(String),
    /// It did not end.
    #[error("did not end within {} s and was killed", .0.as_secs())]
    TimedOut(Duration),
    /// It printed too much.
    #[error("printed more than {0} bytes and was killed")]
    TooMuch(usize),
    /// It ended badly.
    #[error("ended with {0}; run it by hand to see why")]
    Failed(String),
    /// What it printed is no object of strings.
    #[error("printed {0}, not a JSON object whose values are strings")]
    NotHeaders(&'static str),
    /// What it printed names a header that cannot be one.
    #[error("printed a header whose name is not valid")]
    BadName,
    /// A header's value would become two, or cannot be sent.
    #[error(
        "printed a value for `{0}` that a header cannot have (a line break or a control character)"
    )]
    BadValue(HeaderName),
    /// Two spellings of one name.
    #[error("printed `{0}` twice")]
    Doubled(HeaderName),
}

/// The headers helper of one server.
pub struct HelperRunner {
    server: ServerName,
    url: Url,
    definition: HeadersHelper,
    open: OpenOptions,
    time: Duration,
}

impl HelperRunner {
    /// The helper of a server; `open` says how processes are started.
    pub fn new(server: ServerName, url: Url, definition: HeadersHelper, open: OpenOptions) -> Self {
        Self {
            server,
            url,
            definition,
            open,
            time: TIME,
        }
    }

    /// Runs it once.
    pub async fn run(&self) -> Result<HeaderMap, HelperError> {
        let printed = self.printed().await;
        printed
            .and_then(|output| headers(&output))
            .map_err(|why| HelperError {
                command: self.definition.command.clone(),
                why,
            })
    }

    async fn printed(&self) -> Result<Vec<u8>, HelperFault> {
        let process = self.definition.process.clone();
        let mut env = process.env;
        let name = NAMES.map(|name| (name, self.server.as_str()));
        let url = URLS.map(|name| (name, self.url.as_str()));
        for (name, value) in name.into_iter().chain(url) {
            env.insert(name.to_owned(), Secret::new(value));
        }
        let program = ProgramRun {
            invocation: match process.program {
                Some(file) => Invocation::Checked {
                    file,
                    program: process.command,
                    args: process.args,
                },
                None => Invocation::Words {
                    program: process.command,
                    args: process.args,
                },
            },
            stdin: Vec::new(),
            inherited: process.inherited,
            env,
            cwd: process.cwd,
            shield: process.shield,
            limits: ProgramLimits {
                time: self.time,
                stdout: MAX_OUTPUT,
                stderr: 0,
            },
        };
        match program::run(program, &self.open).await {
            Ok(finished) if finished.status.success() => Ok(finished.stdout),
            Ok(finished) => Err(HelperFault::Failed(ending(finished.status))),
            Err(ProgramError::TimedOut { after }) => Err(HelperFault::TimedOut(after)),
            Err(ProgramError::TooMuch { limit }) => Err(HelperFault::TooMuch(limit)),
            Err(ProgramError::Start(error)) => Err(HelperFault::NotStarted(unstarted(&error))),
            Err(ProgramError::Lost(error)) => Err(HelperFault::Failed(error.to_string())),
        }
    }
}

impl fmt::Debug for HelperRunner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HelperRunner")
            .field("server", &self.server)
            .field("command", &self.definition.command)
            .finish_non_exhaustive()
    }
}

/// The program's expanded path and arguments may hold what a variable held.
fn unstarted(error: &OpenError) -> String {
    match error {
        OpenError::Spawn { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            "no such program, or its interpreter is missing".to_owned()
        }
        OpenError::Spawn { source, .. } => source.to_string(),
        OpenError::Shield { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

/// What was printed, as headers; those that belong to the protocol are left out.
fn headers(output: &[u8]) -> Result<HeaderMap, HelperFault> {
    let text = std::str::from_utf8(output).map_err(|_| HelperFault::NotHeaders("no text"))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(HelperFault::NotHeaders("nothing"));
    }
    let printed: Value =
        serde_json::from_str(text).map_err(|_| HelperFault::NotHeaders("no JSON"))?;
    let Value::Object(printed) = printed else {
        return Err(HelperFault::NotHeaders("another kind of JSON"));
    };
    if scan::doubled_key(text).is_some() {
        return Err(HelperFault::NotHeaders("an object with a doubled key"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &printed {
        let name = HeaderName::try_from(name).map_err(|_| HelperFault::BadName)?;
        let Value::String(value) = value else {
            return Err(HelperFault::NotHeaders("a value that is no string"));
        };
        let Ok(mut value) = HeaderValue::from_str(value) else {
            return Err(HelperFault::BadValue(name));
        };
        value.set_sensitive(true);
        if is_protected(name.as_str()) {
            tracing::warn!(header = %name, "a headers helper sets a header of the protocol: left out");
            continue;
        }
        if headers.insert(name.clone(), value).is_some() {
            return Err(HelperFault::Doubled(name));
        }
    }
    Ok(headers)
}

/// The credentials that a helper gives one connection.
pub struct HelperCredentials {
    helper: HelperRunner,
    keep_back: RedactHeaders,
    /// What the last run gave. Locked while it runs: all who want headers share one run.
    last: Mutex<Option<Result<HeaderMap, HelperError>>>,
}

impl HelperCredentials {
    /// Nothing runs before the first request.
    pub fn new(helper: HelperRunner, keep_back: RedactHeaders) -> Self {
        Self {
            helper,
            keep_back,
            last: Mutex::new(None),
        }
    }

    async fn run(&self) -> Result<HeaderMap, HelperError> {
        let headers = self.helper.run().await?;
        let listed: Vec<(String, Secret)> = headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.as_str().to_owned(), Secret::new(value))
            })
            .collect();
        (self.keep_back)(&listed);
        Ok(headers)
    }
}

impl fmt::Debug for HelperCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("HelperCredentials")
            .field(&self.helper)
            .finish()
    }
}

impl Credentials for HelperCredentials {
    fn present<'a>(
        &'a self,
        _request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<CredentialHeaders, CredentialsError>> {
        async move {
            let mut last = self.last.lock().await;
            // A failure is reported once; the next caller runs it again.
            let outcome = match last.take() {
                Some(outcome) => outcome,
                None => self.run().await,
            };
            let headers = outcome.map_err(|error| CredentialsError::Broken(error.to_string()))?;
            *last = Some(Ok(headers.clone()));
            Ok(CredentialHeaders::new(headers))
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        presented: &'a CredentialHeaders,
        _refusal: CredentialRefusal<'a>,
    ) -> BoxFuture<'a, RetryDecision> {
        async move {
            let mut last = self.last.lock().await;
            let is_newest = match &*last {
                Some(Ok(headers)) => headers == presented.headers(),
                // It is to be run anyway, or has failed since.
                Some(Err(_)) | None => false,
            };
            if is_newest {
                // Emptied first: a run that is given up half-way must not leave what was refused.
                *last = None;
                *last = Some(self.run().await);
            }
            RetryDecision::Again
        }
        .boxed()
    }
}
