//! What can go wrong between the host and a server, classified where it happens.

use toolway_types::Untrusted;

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
        source: crate::ShieldError,
    },
    /// The working directory of the entry does not exist.
    #[error("the working directory `{0}` does not exist")]
    Directory(std::path::PathBuf),
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
    /// This transport cannot be opened by this build.
    #[error("transport `{0}` is not supported yet")]
    Unsupported(&'static str),
}

/// The system's words for a missing program name no file; a script whose interpreter is gone
/// gets the same ones.
fn spawn_failure(source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::NotFound => "no such program, or its interpreter is missing".to_owned(),
        _ => source.to_string(),
    }
}

/// Why a channel ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// We ended it.
    Asked,
    /// The process ended.
    Exited {
        /// How, in the system's words: `exit status: 1`, `signal: 9 (SIGKILL)`.
        status: String,
        /// The last lines of its stderr.
        stderr: Vec<Untrusted>,
    },
    /// The other side closed its output.
    EndOfStream {
        /// The last lines of its stderr, when it is a process.
        stderr: Vec<Untrusted>,
    },
    /// Reading or writing failed.
    Broken(String),
}

/// Why one request got no answer, on transports that answer requests one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendFailure {
    /// The peer could not be reached.
    Unreachable {
        /// Whether nothing listens there at all (connection refused, host unreachable).
        refused: bool,
        /// What the system said.
        message: String,
    },
    /// No answer within the request's time.
    TimedOut,
    /// An HTTP status that is not a success.
    Status {
        /// The status.
        status: u16,
        /// Its `WWW-Authenticate` header.
        www_authenticate: Option<String>,
        /// The body, bounded: it may hold a JSON-RPC error.
        body: bytes::Bytes,
        /// Whether the request carried a session id.
        had_session: bool,
    },
    /// The answer is larger than the cap.
    TooLarge {
        /// The cap in bytes.
        limit: usize,
    },
    /// The answer is neither JSON nor an event stream.
    NotMcp {
        /// The content type it claimed.
        content_type: String,
    },
    /// A redirect that would leave the origin.
    Redirected {
        /// Where to.
        location: String,
    },
    /// The stream ended before the answer.
    Cut(String),
}
