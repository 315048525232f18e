//! JSON-RPC errors and the codes both eras know.
//!
//! Owns the shape; what a code means for a call is decided by the session.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient;
use crate::members::RawMembers;

/// Not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Not a JSON-RPC request.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit; in the modern era also "no such resource".
pub const INVALID_PARAMS: i64 = -32602;
/// The peer broke.
pub const INTERNAL_ERROR: i64 = -32603;
/// Session not found, by a convention of one SDK: a hint, never proof.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// Legacy: no such resource.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// Modern: headers and body disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// Modern: the request needs a capability the client did not declare.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// Modern: the server does not speak the version; `data.supported` names those it does.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// Legacy: a URL must be visited first.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The `error` of an answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What the server said, as received.
    pub message: String,
    /// Anything more, untouched.
    pub data: Option<Box<RawValue>>,
}

/// Raw JSON is compared by its text.
impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
            && self.message == other.message
            && self.data.as_ref().map(|data| data.get())
                == other.data.as_ref().map(|data| data.get())
    }
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Reads an `error` member. Never fails: whatever stands there means that the call failed,
    /// and a malformed error must not turn into a call that hangs.
    pub fn read(raw: &RawValue) -> Self {
        let Ok(wire) = RawMembers::read(raw.get()) else {
            return Self::new(INTERNAL_ERROR, lenient::text(raw));
        };
        Self {
            code: wire
                .value("code")
                .and_then(lenient::integer)
                .unwrap_or(INTERNAL_ERROR),
            message: wire.value("message").map(lenient::text).unwrap_or_default(),
            data: wire.owned("data"),
        }
    }

    /// The versions a modern server says it supports (`data.supported` of -32022).
    pub fn supported_versions(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Data {
            supported: Vec<String>,
        }
        self.data
            .as_ref()
            .filter(|_| self.code == UNSUPPORTED_PROTOCOL_VERSION)
            .and_then(|data| serde_json::from_str::<Data>(data.get()).ok())
            .map(|data| data.supported)
            .unwrap_or_default()
    }
}
