//! What can go wrong between the host and a server, classified where it happens.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use toolway_types::{CertificateFault, Untrusted};

use crate::credentials::CredentialsError;

/// Why a channel could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The program could not be started.
    #[error("cannot start `{command}`: {}", spawn_failure(source))]
    Spawn {
        /// The program as configured.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The program was not started, because it would have run without its shield.
    #[error("cannot start `{command}` behind the shield: {source}")]
    Shield {
        /// The program as configured.
        command: String,
        /// What went wrong.
        source: ShieldError,
    },
    /// The working directory of the entry does not exist.
    #[error("the working directory `{0}` does not exist")]
    Directory(PathBuf),
    /// What lies where its private directory should be is not ours.
    #[error("its private directory `{}` cannot be used: {source}", path.display())]
    PrivateDirectory {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
    /// An editor's server that is not on this machine: its token must not leave it.
    #[error("an editor's server must be on 127.0.0.1, not on `{0}`")]
    NotThisMachine(String),
    /// An object of the embedding program, which only the program can hand over.
    #[error("a server of type `sdk` is an object that the embedding program hands to the host")]
    NoObject,
}

/// The system's words for a missing program name no file; a script whose interpreter is gone
/// gets the same ones.
fn spawn_failure(source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::NotFound => "no such program, or its interpreter is missing".to_owned(),
        _ => source.to_string(),
    }
}

/// Why a server cannot be shielded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShieldError {
    /// The system refused.
    #[error("the system refuses {step}: {errno}")]
    Refused {
        /// To what.
        step: ShieldStep,
        /// In its words.
        errno: Errno,
    },
    /// A directory cannot be protected.
    #[error("cannot protect `{path}`: {errno}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        errno: Errno,
    },
    /// A file has a second hard link, which cannot be found and protected.
    #[error("cannot protect `{0}`: it has a second name")]
    SecondName(PathBuf),
    /// A process that sets up a shield can be read for a moment, which a copy of this process must
    /// not be.
    #[error("this process is closed to others, and has no launcher to raise a shield in its place")]
    Closed,
    /// Other systems have other means, which are not built yet.
    #[error("only Linux can do it so far")]
    Platform,
}

/// What is asked of the system to raise a shield, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShieldStep {
    /// A user and a mount namespace.
    Namespace,
    /// The same users inside as outside.
    Users,
    /// A mount on a directory or a link, which holds it where it is.
    Hold,
    /// A mount that cannot be written through.
    ReadOnly,
    /// An empty directory in the place of another.
    Hide,
    /// To enter the working directory through the new mounts.
    Enter,
}

impl fmt::Display for ShieldStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Namespace => "a user namespace",
            Self::Users => "to map users into a namespace",
            Self::Hold => "to mount a directory or a link on itself",
            Self::ReadOnly => "a read-only mount",
            Self::Hide => "an empty directory in the place of another",
            Self::Enter => "the working directory behind the shield",
        })
    }
}

/// Why a channel ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// We ended it.
    #[error("the connection was closed by this host")]
    Asked,
    /// The process ended.
    #[error("the server process ended ({status})")]
    Exited {
        /// How, in the system's words: `exit status: 1`, `signal: 9 (SIGKILL)`.
        status: String,
        /// The last lines of its stderr.
        stderr: Vec<Untrusted>,
    },
    /// The other side closed its output.
    #[error("the server closed the connection")]
    EndOfStream {
        /// The last lines of its stderr, when it is a process.
        stderr: Vec<Untrusted>,
    },
    /// Reading or writing failed, or what came is not the protocol.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The connection that all requests share could not be opened, or it broke (`sse`, `ws`).
    #[error("{}", unopened(.0))]
    Failed(#[from] SendFailure),
}

impl CloseReason {
    /// The connection could not be made, or broke, although something may listen there.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        SendFailure::lost(message).into()
    }
}

/// A refusal of the stream itself may mean that the entry names the wrong transport.
fn unopened(failure: &SendFailure) -> String {
    match failure {
        SendFailure::Status {
            status: status @ (400 | 404..=406 | 426),
            ..
        } => format!(
            "the server answers HTTP {status} and opens no stream: its URL is wrong, or its entry needs `\"type\": \"http\"`"
        ),
        failure => failure.to_string(),
    }
}

/// Why one request got no answer, on transports that answer requests one by one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// The peer could not be reached.
    #[error("cannot reach the server: {message}")]
    Unreachable {
        /// Whether nothing listens there at all (connection refused, host unreachable).
        refused: bool,
        /// What the system said.
        message: String,
    },
    /// A certificate stands between us and the peer.
    #[error("{fault} ({})", Untrusted::new(message.as_str()).line())]
    Certificate {
        /// What is wrong with it.
        fault: CertificateFault,
        /// The details; they may quote the certificate.
        message: String,
    },
    /// No answer within the time that a request has.
    #[error("no answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// How long that is.
        after: Duration,
    },
    /// An HTTP status that is not a success.
    #[error("the server answered HTTP {status}{}", meaning(*status))]
    Status {
        /// The status.
        status: u16,
        /// Its `WWW-Authenticate` header.
        www_authenticate: Option<String>,
        /// The body, bounded: it may hold a JSON-RPC error.
        body: bytes::Bytes,
        /// Whether the request carried a session id.
        had_session: bool,
        /// How long the server asks to be left alone (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// The answer is larger than the cap.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The cap in bytes.
        limit: usize,
    },
    /// The answer is neither JSON nor an event stream.
    #[error("the server answered `{}`, which is not MCP", Untrusted::new(content_type.as_str()))]
    NotMcp {
        /// The content type it claimed.
        content_type: String,
    },
    /// The answer is compressed, which was not asked for and is not undone (SEC-30).
    #[error(
        "the server compressed its answer (`{}`), which was not asked for",
        Untrusted::new(encoding.as_str())
    )]
    Encoded {
        /// Its `Content-Encoding`.
        encoding: String,
    },
    /// A redirect that would leave the origin.
    #[error("the server redirects to another origin: `{}`", Untrusted::new(location.as_str()))]
    Redirected {
        /// Where to.
        location: String,
    },
    /// Policy forbids the place where the server leads; nothing was sent there.
    #[error("{message}")]
    Denied {
        /// The place, and which rule forbids it.
        message: String,
    },
    /// The stream ended before the answer.
    #[error("the answer was cut off: {0}")]
    Cut(String),
    /// There are no credentials to send it with; nothing was sent.
    #[error("{0}")]
    Credentials(CredentialsError),
}

impl SendFailure {
    /// The peer could not be reached, although something may listen there.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self::Unreachable {
            refused: false,
            message: message.into(),
        }
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        403 => " (forbidden)",
        404 => " (nothing is there)",
        429 => " (too many requests)",
        502 | 504 => " (what it stands for cannot be reached)",
        503 => " (busy or down)",
        _ => "",
    }
}
