//! What the gateway itself refuses, and the one table from there to JSON-RPC and HTTP.
//!
//! Owns codes and statuses. What a service answers is the service's; its errors only get their
//! HTTP status here.

use std::net::SocketAddr;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use serde_json::value::to_raw_value;
use toolway_types::Era;
use toolway_wire::envelope::{self, EnvelopeError};
use toolway_wire::error as code;
use toolway_wire::{Id, ParamsError, RpcError, era};

/// Why serving could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is reachable from other machines, and something is missing for that (SEC-10).
    #[error(
        "refusing to listen on `{address}`: other machines can reach it, so it needs {missing}"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
        /// What it needs.
        missing: &'static str,
    },
    /// A proxy brings requests of others, and nobody is asked who they are (SEC-10).
    #[error("refusing to listen on `{0}` behind a proxy: what it passes on needs authentication")]
    OpenBehindProxy(SocketAddr),
    /// A name by which clients would call us is none.
    #[error("`{0}` is no name of a host")]
    HostName(String),
    /// There is no certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refused the address.
    #[error("cannot listen on `{address}`: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {why}")]
    Unreadable {
        /// Which.
        path: String,
        /// What went wrong.
        why: String,
    },
    /// The file has no certificate.
    #[error("`{path}` has no certificate in PEM form")]
    NoCertificate {
        /// Which.
        path: String,
    },
    /// Both cannot be used together.
    #[error("the certificate in `{certificate}` cannot be used with the key in `{key}`: {why}")]
    Unusable {
        /// The file of the certificate.
        certificate: String,
        /// The file of the key.
        key: String,
        /// What is wrong.
        why: String,
    },
}

/// Too much is under way; no revision gives this a code.
const BUSY: i64 = -32000;

/// Why a message was answered without being served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestRefusal {
    #[error("{0}")]
    Unreadable(EnvelopeError),
    #[error("{0}")]
    NotRpc(EnvelopeError),
    #[error("a request with this id is already under way")]
    DuplicateId,
    #[error("the message is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body could not be read")]
    Cut,
    #[error("too many large messages are under way; try again when some are answered")]
    Crowded,
    #[error("batches are not taken: send each message in a request of its own")]
    Batch,
    #[error("too many {what} are open; try again when some have ended")]
    TooMany { what: &'static str },
    #[error("there is no room for another session; try again later")]
    NoRoom,
    #[error("there is no such endpoint")]
    NoEndpoint,
    #[error("there is no such session; begin a new one with `initialize`")]
    NoSession,
    #[error("the header `Mcp-Session-Id` is missing; begin a session with `initialize`")]
    SessionMissing,
    #[error("something went wrong here")]
    Internal,
    #[error("`_meta` has no `io.modelcontextprotocol/protocolVersion`")]
    NoMeta,
    #[error("protocol version `{requested}` is not supported")]
    Version { requested: String },
    #[error("the header `{header}` is missing")]
    HeaderMissing { header: &'static str },
    #[error("the header `{header}` does not match the body")]
    HeaderMismatch { header: &'static str },
    #[error("`_meta` has no `io.modelcontextprotocol/clientCapabilities`")]
    NoCapabilities,
    #[error("{0}")]
    Params(ParamsError),
}

impl From<EnvelopeError> for RequestRefusal {
    fn from(error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::Id | EnvelopeError::NotRpc => Self::NotRpc(error),
            // A doubled member or a bottomless nest is refused as unreadable (SEC-22).
            _ => Self::Unreadable(error),
        }
    }
}

impl RequestRefusal {
    /// The table.
    fn row(&self) -> (i64, StatusCode) {
        match self {
            Self::Unreadable(_) => (code::PARSE_ERROR, StatusCode::BAD_REQUEST),
            Self::NotRpc(_)
            | Self::DuplicateId
            | Self::Cut
            | Self::Batch
            | Self::SessionMissing => (code::INVALID_REQUEST, StatusCode::BAD_REQUEST),
            Self::TooMany { .. } => (BUSY, StatusCode::TOO_MANY_REQUESTS),
            Self::NoEndpoint => (code::INVALID_REQUEST, StatusCode::NOT_FOUND),
            Self::NoSession => (code::SESSION_NOT_FOUND, StatusCode::NOT_FOUND),
            Self::NoRoom => (BUSY, StatusCode::SERVICE_UNAVAILABLE),
            Self::Internal => (code::INTERNAL_ERROR, StatusCode::INTERNAL_SERVER_ERROR),
            Self::TooLarge { .. } => (code::INVALID_REQUEST, StatusCode::PAYLOAD_TOO_LARGE),
            Self::TooSlow => (code::INVALID_REQUEST, StatusCode::REQUEST_TIMEOUT),
            Self::Crowded => (code::INTERNAL_ERROR, StatusCode::SERVICE_UNAVAILABLE),
            Self::NoMeta | Self::NoCapabilities | Self::Params(_) => {
                (code::INVALID_PARAMS, StatusCode::BAD_REQUEST)
            }
            Self::Version { .. } => (code::UNSUPPORTED_PROTOCOL_VERSION, StatusCode::BAD_REQUEST),
            Self::HeaderMissing { .. } | Self::HeaderMismatch { .. } => {
                (code::HEADER_MISMATCH, StatusCode::BAD_REQUEST)
            }
        }
    }

    /// After how many seconds to try again, where that may help.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Crowded | Self::TooMany { .. } => Some(1),
            Self::NoRoom => Some(10),
            _ => None,
        }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.row().1
    }

    /// The JSON-RPC answer.
    pub(crate) fn answer(&self, id: Option<&Id>) -> Bytes {
        let mut error = RpcError::new(self.row().0, self.to_string());
        if let Self::Version { requested } = self {
            // Those that a request can say of itself; `initialize` settles the others.
            let supported = era::MODERN_VERSIONS;
            error.data =
                to_raw_value(&json!({ "supported": supported, "requested": requested })).ok();
        }
        envelope::error_response(id, &error)
    }
}

/// The status of an answer that a service gave. The legacy era says errors only in the body; the
/// modern one also says in the status what a proxy on the way should see.
pub(crate) fn status_of(era: Era, error: Option<&RpcError>) -> StatusCode {
    let Some(error) = error else {
        return StatusCode::OK;
    };
    match (era, error.code) {
        (_, code::PARSE_ERROR | code::INVALID_REQUEST)
        | (
            Era::Modern,
            code::INVALID_PARAMS
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION,
        ) => StatusCode::BAD_REQUEST,
        (Era::Modern, code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modern_era_says_errors_in_the_status_and_the_legacy_one_in_the_body() {
        let error = |code| RpcError::new(code, "x");
        let statuses = |code| {
            [Era::Legacy, Era::Modern].map(|era| status_of(era, Some(&error(code))).as_u16())
        };
        assert_eq!(statuses(-32700), [400, 400]);
        assert_eq!(statuses(-32600), [400, 400]);
        assert_eq!(statuses(-32601), [200, 404]);
        assert_eq!(statuses(-32602), [200, 400]);
        assert_eq!(statuses(-32020), [200, 400]);
        assert_eq!(statuses(-32021), [200, 400]);
        assert_eq!(statuses(-32022), [200, 400]);
        assert_eq!(statuses(-32603), [200, 200]);
    }

    #[test]
    fn an_unsupported_version_is_answered_with_those_supported() {
        let refusal = RequestRefusal::Version {
            requested: "1999-01-01".to_owned(),
        };
        let answer: serde_json::Value =
            serde_json::from_slice(&refusal.answer(Some(&Id::Number(4)))).unwrap();
        assert_eq!(answer["id"], 4);
        assert_eq!(answer["error"]["data"]["requested"], "1999-01-01");
        assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));
    }
}
