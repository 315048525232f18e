//! Send: the permitted call goes to its server, and the server's bytes come back.
//!
//! Owns the shape of `tools/call`, which time limit holds, and the one table from what can go
//! wrong on the way to a [`CallError`]. Does not own ids, deadlines or cancellation: those are
//! the line's, and dropping the future here drops the request there.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use toolway_transport::{CloseReason, SendFailure};
use toolway_types::{ServerName, ToolKey, Untrusted};
use toolway_wire::{RpcError, view};

use super::permission::PermittedCall;
use crate::call::{CallError, CallOptions, Oversize, ProgressSink};
use crate::error::{closed_for_login, wants_login};

/// An open way to one server: a session, as far as a call is concerned.
pub trait Line: Send + Sync {
    /// Sends one request and waits for its result. Dropping the future cancels the request and
    /// tells the server.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Box<RawValue>,
        options: SendOptions<'a>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, SendError>>;

    /// The longest a call may take by the server's own entry.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// Where lines come from: the host's connections.
pub trait Lines: Send + Sync {
    /// The line of one server, or why there is none.
    fn line(&self, server: &ServerName) -> Result<Arc<dyn Line>, CallError>;
}

/// The conditions of one request.
#[derive(Clone)]
pub struct SendOptions<'a> {
    /// The longest it may take.
    pub timeout: Duration,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
    /// The tool called, as its server described it: its schema may ask for arguments to be
    /// mirrored into headers.
    pub tool: Option<&'a view::Tool>,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum SendError {
    /// No answer in time.
    TimedOut,
    /// The channel ended first.
    Closed(CloseReason),
    /// The server answered with an error.
    Rpc(RpcError),
    /// The transport could not deliver it, or got no proper answer to it.
    Send(SendFailure),
    /// The answer is not the protocol.
    Malformed(String),
}

/// A server's answer to a permitted call, unread.
#[derive(Debug)]
pub struct RawResult {
    call: PermittedCall,
    result: Box<RawValue>,
}

impl RawResult {
    pub(super) fn into_parts(self) -> (PermittedCall, Box<RawValue>) {
        (self.call, self.result)
    }
}

#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

/// Sends the call to its server.
///
/// It takes a [`PermittedCall`] and nothing else, so a call that nobody permitted cannot be sent:
///
/// ```compile_fail,E0308
/// use toolway::dispatch::{hooks::HookedCall, send};
/// use toolway::{CallOptions, Consent};
///
/// async fn rush(call: HookedCall, lines: &dyn send::Lines) {
///     let options = CallOptions::new(Consent::Typed);
///     let _ = send::send(call, lines, &options, std::time::Duration::from_secs(1)).await;
/// }
/// ```
///
/// The same with a permitted call compiles:
///
/// ```
/// use toolway::dispatch::{permission::PermittedCall, send};
/// use toolway::{CallOptions, Consent};
///
/// async fn proceed(call: PermittedCall, lines: &dyn send::Lines) {
///     let options = CallOptions::new(Consent::Typed);
///     let _ = send::send(call, lines, &options, std::time::Duration::from_secs(1)).await;
/// }
/// ```
pub async fn send(
    call: PermittedCall,
    lines: &dyn Lines,
    options: &CallOptions,
    general_timeout: Duration,
) -> Result<RawResult, CallError> {
    let key = &call.tool().key;
    let line = lines.line(&key.server)?;
    let timeout = options
        .timeout
        .or_else(|| line.timeout())
        .unwrap_or(general_timeout);
    let params = Params {
        name: &key.tool,
        arguments: call.arguments(),
    };
    let params = to_raw_value(&params).map_err(|error| CallError::Transport {
        server: key.server.clone(),
        tool: Untrusted::new(&key.tool),
        message: Untrusted::new(error.to_string()),
    })?;
    let send_options = SendOptions {
        timeout,
        progress: options.progress.clone(),
        tool: Some(call.tool().received()),
    };
    let answer = line.request("tools/call", params, send_options).await;
    match answer {
        Ok(result) => Ok(RawResult { call, result }),
        Err(error) => Err(explain(error, key, timeout)),
    }
}

/// The one mapping from what happened on the line to what the caller is told.
fn explain(error: SendError, key: &ToolKey, after: Duration) -> CallError {
    let server = key.server.clone();
    let tool = Untrusted::new(&key.tool);
    let lost = |message: String| CallError::Transport {
        server: server.clone(),
        tool: tool.clone(),
        message: Untrusted::new(message),
    };
    match error {
        SendError::TimedOut | SendError::Send(SendFailure::TimedOut) => CallError::TimedOut {
            server,
            tool,
            after,
        },
        SendError::Closed(CloseReason::Asked) => CallError::Cancelled { server, tool },
        SendError::Closed(CloseReason::Exited { status, .. }) => {
            lost(format!("its process ended ({status})"))
        }
        SendError::Closed(CloseReason::EndOfStream { .. }) => {
            lost("the server closed the connection".to_owned())
        }
        SendError::Closed(reason) if closed_for_login(&reason) => CallError::NeedsAuth { server },
        SendError::Closed(
            CloseReason::Broken(message) | CloseReason::Unreachable { message, .. },
        )
        | SendError::Send(SendFailure::Cut(message) | SendFailure::Unreachable { message, .. }) => {
            lost(message)
        }
        SendError::Rpc(RpcError {
            code,
            message,
            data,
        }) => CallError::Protocol {
            server,
            tool,
            code,
            message: Untrusted::new(message),
            data,
        },
        SendError::Malformed(what) => CallError::Malformed {
            server,
            tool,
            what: Untrusted::new(what),
        },
        SendError::Send(SendFailure::TooLarge { limit }) => CallError::TooLarge {
            server,
            tool,
            what: Oversize::Answer,
            limit,
        },
        SendError::Send(failure) if wants_login(&failure) => CallError::NeedsAuth { server },
        SendError::Closed(CloseReason::Refused { status, .. })
        | SendError::Send(SendFailure::Status { status, .. }) => {
            lost(format!("HTTP status {status}"))
        }
        SendError::Send(SendFailure::NotMcp { content_type }) => {
            let what = Untrusted::new(format!("content of type `{content_type}`"));
            CallError::Malformed { server, tool, what }
        }
        SendError::Send(SendFailure::Encoded { encoding }) => {
            let what = Untrusted::new(format!("content compressed with `{encoding}`"));
            CallError::Malformed { server, tool, what }
        }
        SendError::Send(SendFailure::Redirected { location }) => {
            lost(format!("redirected to another origin (`{location}`)"))
        }
    }
}
