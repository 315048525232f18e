//! Why a request of a program has no answer.
//!
//! Owns the codes, and the one word in `data.reason` that a program can compare.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway::types::ServerName;
use toolway::{AgentError, CallError, CallFault, RefusedBy, ServerObstacle};
use toolway_wire::{RpcError, error};

use crate::conversation::Answer;

const REFUSED: i64 = -32_001;
const UNAVAILABLE: i64 = -32_002;
const NEEDS_AUTH: i64 = -32_003;
const TIMED_OUT: i64 = -32_004;
const CANCELLED: i64 = -32_005;
const IN_DOUBT: i64 = -32_006;

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct ControlError {
    code: i64,
    message: String,
    data: Map<String, Value>,
}

impl ControlError {
    fn new(code: i64, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Map::from_iter([("reason".to_owned(), reason.into())]),
        }
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// The parameters do not fit.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(error::INVALID_PARAMS, "invalid", message)
    }

    /// No server has this name.
    pub(super) fn unknown_server(name: &str) -> Self {
        let name = toolway::types::text::clean_line(name);
        let message = format!("no server `{name}`");
        Self::new(error::INVALID_PARAMS, "unknown-server", message)
    }

    /// No agent has this name.
    pub(super) fn unknown_agent(name: &str) -> Self {
        let name = toolway::types::text::clean_line(name);
        let message = format!("no agent `{name}`");
        Self::new(error::INVALID_PARAMS, "unknown-agent", message)
    }

    /// A login came to nothing.
    pub(super) fn login(server: &str, why: &str) -> Self {
        let server = toolway::types::text::clean_line(server);
        let message = format!("no login to server `{server}`: {why}");
        Self::new(NEEDS_AUTH, "needs-auth", message).with("server", &*server)
    }

    /// Why an owner's request has no answer, in the words of this protocol.
    pub(super) fn of_owner(error: RpcError) -> Self {
        let data = error.data.as_deref().map_or("{}", RawValue::get);
        let data: Map<String, Value> = serde_json::from_str(data).unwrap_or_default();
        let reason = match data.get("reason").and_then(Value::as_str) {
            Some("unknown") => "unknown-question",
            Some(reason) => reason,
            None => "invalid",
        };
        Self::new(error.code, reason, error.message)
    }

    /// `toolway/initialize` was not sent, or a second time.
    pub(super) fn not_initialized(message: &str) -> Self {
        Self::new(error::INVALID_REQUEST, "not-initialized", message)
    }

    /// The server is not there, whatever it is that it is.
    pub(super) fn unavailable(message: impl Into<String>, state: &str) -> Self {
        Self::new(UNAVAILABLE, "unavailable", message).with("state", state)
    }

    /// The program took the request back.
    pub(super) fn cancelled() -> Self {
        Self::new(CANCELLED, "cancelled", "the request was taken back")
    }

    /// There is no such method.
    pub(super) fn no_method(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        let method = toolway::types::text::clean_line(&method);
        Self::new(
            error::METHOD_NOT_FOUND,
            "unknown-method",
            format!("method not found: {method}"),
        )
    }

    /// Something here failed.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(error::INTERNAL_ERROR, "internal", message)
    }

    /// As it is sent.
    pub(super) fn into_rpc(self) -> RpcError {
        let mut error = RpcError::new(self.code, self.message);
        error.data = to_raw_value(&self.data).ok();
        error
    }
}

impl From<ControlError> for Answer {
    fn from(error: ControlError) -> Self {
        error.into_rpc().into()
    }
}

impl From<AgentError> for ControlError {
    fn from(failure: AgentError) -> Self {
        let message = failure.to_string();
        let obstacle = |(server, why): &(ServerName, ServerObstacle)| json!({ "server": server, "why": why.to_string() });
        let obstacles: Vec<_> = failure.obstacles.iter().map(obstacle).collect();
        Self::unavailable(message, "missing").with("obstacles", obstacles)
    }
}

impl From<CallError> for ControlError {
    fn from(failure: CallError) -> Self {
        let message = failure.to_string();
        match failure {
            CallError::Unknown { suggestions, .. } => {
                Self::new(error::INVALID_PARAMS, "unknown-tool", message)
                    .with("suggestions", suggestions)
            }
            CallError::Ambiguous { candidates, .. } => {
                Self::invalid(message).with("candidates", candidates)
            }
            CallError::Unavailable { server, state } => {
                Self::unavailable(message, state.as_str()).with("server", server.as_str())
            }
            CallError::NeedsAuth { server, scopes, .. } => {
                let hint =
                    format!("log in with `toolway/servers/login`, or `toolway login {server}`");
                Self::new(NEEDS_AUTH, "needs-auth", message)
                    .with("server", server.as_str())
                    .with("scopes", scopes)
                    .with("hint", hint)
            }
            CallError::Failed(_, fault) => of_fault(fault, message),
        }
    }
}

fn of_fault(fault: CallFault, message: String) -> ControlError {
    match fault {
        CallFault::LeftOut { .. } => {
            ControlError::new(REFUSED, "refused", message).with("by", "entry")
        }
        CallFault::Invalid(problems) => {
            let problem = |it: &toolway::Problem| json!({ "path": it.path, "message": it.message });
            let problems: Vec<_> = problems.iter().map(problem).collect();
            ControlError::invalid(message).with("problems", problems)
        }
        CallFault::Refused(by) => {
            ControlError::new(REFUSED, "refused", message).with("by", refuser(&by))
        }
        CallFault::InputRefused(_) | CallFault::TooManyRounds(_) => {
            ControlError::new(REFUSED, "refused", message).with("by", "nobody")
        }
        CallFault::TimedOut { .. } => ControlError::new(TIMED_OUT, "timed-out", message),
        CallFault::CancelledByServer => ControlError::new(CANCELLED, "cancelled", message),
        CallFault::Cancelled | CallFault::Transport { sent: true, .. } => {
            ControlError::new(IN_DOUBT, "in-doubt", message)
        }
        CallFault::Transport { sent: false, .. } => ControlError::unavailable(message, "failed"),
        CallFault::Protocol {
            code,
            message,
            data,
            ..
        } => {
            let data = data.and_then(|data| serde_json::from_str::<Value>(data.get()).ok());
            let words = message.as_received();
            let error = ControlError::new(code, "server", words);
            match data {
                Some(data) => error.with("data", data),
                None => error,
            }
        }
        CallFault::Malformed(_) | CallFault::TooLarge { .. } => {
            ControlError::new(error::INTERNAL_ERROR, "server", message)
        }
    }
}

/// Who refused, in one word.
fn refuser(by: &RefusedBy) -> &'static str {
    match by {
        RefusedBy::Rule { .. } => "rule",
        RefusedBy::Unreadable { .. } => "policy",
        RefusedBy::Hook { .. } => "hook",
        RefusedBy::Classifier { .. } => "classifier",
        RefusedBy::Person { .. } => "person",
        RefusedBy::Changed { .. } => "changed",
        RefusedBy::Withdrawn => "withdrawn",
        RefusedBy::NobodyForHook { .. }
        | RefusedBy::NobodyForClassifier { .. }
        | RefusedBy::NobodyAnswered
        | RefusedBy::NobodyToAsk { .. }
        | RefusedBy::NobodyForBrought { .. } => "nobody",
    }
}
