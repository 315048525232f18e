//! Why a request has no answer, and why a server has no connection.
//!
//! Owns the errors of the session and of the handshake. What a *call* can end with is
//! `dispatch`'s; what a transport can report is `toolway-transport`'s.

use std::time::Duration;

use toolway_auth::challenge;
use toolway_auth::references::ReferenceError;
use toolway_transport::{CloseReason, CredentialsError, OpenError, SendFailure};
use toolway_types::{ConnectionState, Failure, FailureKind, ServerName, Untrusted};
use toolway_wire::{RawJson, RpcError};

use crate::call::NotWidened;

/// What a request came to: the result of the server, unread.
pub type RequestResult = Result<RawJson, RequestError>;

/// Why one request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestError {
    /// The time for it is over; the server was told that it is cancelled.
    #[error("no answer in time")]
    TimedOut,
    /// Nothing was heard of it for too long; the server was told that it is cancelled.
    #[error("no sign of life for {after:?}")]
    Idle {
        /// How long.
        after: Duration,
    },
    /// The channel ended before the answer came.
    #[error("{0}")]
    Closed(CloseReason),
    /// The server answered with an error.
    #[error("the server answered error {}: {}", .0.code, Untrusted::new(&*.0.message))]
    Rpc(RpcError),
    /// The transport could not deliver the request or its answer.
    #[error("{0}")]
    Send(SendFailure),
    /// The answer, or what should have been sent, is not the protocol.
    #[error("{0}")]
    Malformed(String),
    /// The server wants something before it answers that this program does not offer.
    #[error("the server asks for more input, which this program does not offer: {input}")]
    InputRefused {
        /// What it wants, such as `elicitation/create (form)`.
        input: Untrusted,
    },
    /// The server kept asking for more input.
    #[error("the server asked for more input {rounds} times in a row")]
    TooManyRounds {
        /// How often it was asked.
        rounds: usize,
    },
    /// The call became a task, and the task was cancelled.
    #[error("the server cancelled the task that the call had become")]
    TaskCancelled,
    /// Nothing was sent: the server is not connected, and will not be by waiting.
    #[error("the server is {}", .0.as_str())]
    Unavailable(ConnectionState),
    /// The login does not reach far enough, and was not made to.
    #[error("the login does not reach far enough: {why}")]
    NotWidened {
        /// What the server wants.
        challenge: Untrusted,
        /// Why not.
        why: NotWidened,
    },
}

impl RequestError {
    /// What the transport says of it, or of the connection that all requests share.
    pub(crate) fn transport_failure(&self) -> Option<&SendFailure> {
        match self {
            Self::Send(failure) | Self::Closed(CloseReason::Failed(failure)) => Some(failure),
            _ => None,
        }
    }
}

/// Why a server could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The channel could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The configuration names a server object that the embedding program did not hand over.
    #[error("no server object of this name was given to the host")]
    NoServerObject,
    /// A secret that its entry names is not there.
    #[error(transparent)]
    Secret(#[from] ReferenceError),
    /// The server wants a login.
    #[error("the server asks for a login")]
    NeedsAuth {
        /// Its `WWW-Authenticate` header, as received.
        challenge: Option<Untrusted>,
    },
    /// It answered a revision that this build does not speak.
    #[error("the server speaks protocol {}, which is not supported", quoted(.offered))]
    Version {
        /// What it offers.
        offered: Vec<Untrusted>,
    },
    /// Its endpoint knows neither era of Streamable HTTP. Servers of the transport before it do
    /// that.
    #[error("the server answers HTTP {status} to `initialize`{}: its URL is wrong", not_older(.older.as_deref()))]
    NotStreamable {
        /// What it answered.
        status: u16,
        /// Why it is none of the transport before it either, where that was tried.
        older: Option<String>,
    },
    /// A step of the handshake got no usable answer.
    #[error("{}", describe_step(method, source))]
    Request {
        /// The method.
        method: &'static str,
        /// Why there is no answer.
        source: RequestError,
    },
    /// Everything together took too long.
    #[error("not connected after {} s: {waiting_for}", .after.as_secs_f32())]
    TimedOut {
        /// The limit.
        after: Duration,
        /// The step that did not end.
        waiting_for: &'static str,
    },
    /// The login had to be renewed first, and who renews it did not answer.
    #[error(
        "the login of `{server}` cannot be renewed now: its authorization server {issuer} did not answer within {} s",
        .after.as_secs_f32()
    )]
    NotRenewed {
        /// The server.
        server: ServerName,
        /// Who.
        issuer: Untrusted,
        /// The limit.
        after: Duration,
    },
    /// The host is shutting down.
    #[error("stopped")]
    Stopped,
}

/// Whether an answer asks for a login, or for one that reaches further. The one place that
/// decides it; what the challenge says is read by `toolway-auth`.
pub(crate) fn wants_login(failure: &SendFailure) -> bool {
    match failure {
        SendFailure::Status {
            status,
            www_authenticate,
            ..
        } => challenge::need(*status, www_authenticate.as_deref()).is_some(),
        SendFailure::Credentials(error) => matches!(error, CredentialsError::Login(_)),
        _ => false,
    }
}

/// The scopes that a challenge asks for.
pub(crate) fn scopes_in(challenge: &Untrusted) -> Vec<String> {
    let bearer = challenge::bearer(challenge.as_received());
    bearer.map(|bearer| bearer.scopes).unwrap_or_default()
}

impl ConnectError {
    /// A step of the handshake that failed.
    pub(crate) fn request(method: &'static str, source: RequestError) -> Self {
        match source {
            RequestError::Send(failure) | RequestError::Closed(CloseReason::Failed(failure))
                if wants_login(&failure) =>
            {
                Self::NeedsAuth {
                    challenge: match failure {
                        SendFailure::Status {
                            www_authenticate, ..
                        } => www_authenticate.map(Untrusted::new),
                        _ => None,
                    },
                }
            }
            source => Self::Request { method, source },
        }
    }

    /// Whether the server said that something is forbidden, and nothing else.
    pub(crate) fn is_forbidden(&self) -> bool {
        let status = self.transport_failure();
        matches!(status, Some(SendFailure::Status { status: 403, .. }))
    }

    /// What the transport says of it.
    pub(crate) fn transport_failure(&self) -> Option<&SendFailure> {
        match self {
            Self::Request { source, .. } => source.transport_failure(),
            _ => None,
        }
    }

    /// The same for people; `stderr` is what is known from elsewhere.
    pub(crate) fn to_failure(&self, stderr: Vec<Untrusted>) -> Failure {
        let kind = match self {
            Self::Open(OpenError::Client(_) | OpenError::NotThisMachine(_)) => {
                FailureKind::Unreachable
            }
            Self::Open(_) | Self::NoServerObject => FailureKind::Spawn,
            Self::Secret(error) => FailureKind::Secret(error.kind),
            Self::TimedOut { .. } => FailureKind::TimedOut,
            Self::NotRenewed { .. } => FailureKind::Credentials,
            Self::NeedsAuth { .. } | Self::Version { .. } | Self::NotStreamable { .. } => {
                FailureKind::Protocol
            }
            Self::Stopped => FailureKind::Closed,
            Self::Request { source, .. } => match source {
                RequestError::TimedOut | RequestError::Idle { .. } => FailureKind::TimedOut,
                RequestError::Closed(reason) => kind_of(reason),
                RequestError::Send(failure) => kind_of_failure(failure),
                RequestError::Rpc(_)
                | RequestError::Malformed(_)
                | RequestError::InputRefused { .. }
                | RequestError::TooManyRounds { .. }
                | RequestError::TaskCancelled
                | RequestError::Unavailable(_)
                | RequestError::NotWidened { .. } => FailureKind::Protocol,
            },
        };
        let stderr = match self {
            Self::Request {
                source: RequestError::Closed(reason),
                ..
            } => Some(stderr_of(reason))
                .filter(|lines| !lines.is_empty())
                .unwrap_or(stderr),
            _ => stderr,
        };
        Failure {
            kind,
            message: self.to_string(),
            stderr,
        }
    }
}

/// The failure of a connection that stood and then ended.
pub(crate) fn lost(reason: &CloseReason) -> Failure {
    Failure {
        kind: kind_of(reason),
        message: reason.to_string(),
        stderr: stderr_of(reason),
    }
}

fn kind_of(reason: &CloseReason) -> FailureKind {
    match reason {
        CloseReason::Failed(failure) => kind_of_failure(failure),
        CloseReason::Asked
        | CloseReason::Exited { .. }
        | CloseReason::EndOfStream { .. }
        | CloseReason::Broken(_) => FailureKind::Closed,
    }
}

fn kind_of_failure(failure: &SendFailure) -> FailureKind {
    match failure {
        SendFailure::TimedOut { .. } => FailureKind::TimedOut,
        SendFailure::Certificate { fault, .. } => FailureKind::Certificate(*fault),
        SendFailure::Credentials(_) => FailureKind::Credentials,
        SendFailure::Denied { .. } => FailureKind::Forbidden,
        SendFailure::Unreachable { .. }
        | SendFailure::Cut(_)
        | SendFailure::Status {
            status: 429 | 500..,
            ..
        } => FailureKind::Unreachable,
        _ => FailureKind::Protocol,
    }
}

fn stderr_of(reason: &CloseReason) -> Vec<Untrusted> {
    match reason {
        CloseReason::Exited { stderr, .. } | CloseReason::EndOfStream { stderr } => stderr.clone(),
        CloseReason::Asked | CloseReason::Broken(_) | CloseReason::Failed(_) => Vec::new(),
    }
}

fn not_older(why: Option<&str>) -> String {
    match why {
        Some(why) => format!(", and is no old HTTP+SSE server either ({why})"),
        None => String::new(),
    }
}

/// Where the channel failed, the step does not matter.
fn describe_step(method: &str, source: &RequestError) -> String {
    match source {
        RequestError::Closed(_) | RequestError::Send(_) => source.to_string(),
        _ => format!("`{method}`: {source}"),
    }
}

fn quoted(versions: &[Untrusted]) -> String {
    if versions.is_empty() {
        return "of an unnamed revision".to_owned();
    }
    versions
        .iter()
        .map(|version| format!("`{version}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether a challenge asks for a login that reaches further.
pub(crate) fn is_short(challenge: Option<&str>) -> bool {
    let bearer = challenge.and_then(challenge::bearer);
    bearer.is_some_and(|bearer| bearer.error == Some(challenge::BearerError::InsufficientScope))
}
