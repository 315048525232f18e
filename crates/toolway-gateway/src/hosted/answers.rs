//! What a client is answered: results between the eras, and the one table from what went wrong to
//! what a client is told.
//!
//! Owns what differs between the eras in a result; all else stays the bytes that it came in.

use bytes::Bytes;
use serde_json::json;
use serde_json::value::to_raw_value;
use toolway::toolway_rows::CallEnd;
use toolway::types::Era;
use toolway::{CallError, CallFault, RawJson};
use toolway_wire::edit::{self, Replacement};
use toolway_wire::view::ResultType;
use toolway_wire::{RpcError, error};

use crate::conversation::Answer;

/// The members of a complete modern result, followed by a comma.
const COMPLETE: Bytes = Bytes::from_static(b"\"resultType\":\"complete\",");

/// The same of one that may be kept, but not for any time.
const COMPLETE_UNKEPT: Bytes =
    Bytes::from_static(b"\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",");

/// The same of one that says who may keep it, or for how long, and not both.
const COMPLETE_TIMED: Bytes = Bytes::from_static(b"\"resultType\":\"complete\",\"ttlMs\":0,");
const COMPLETE_SCOPED: Bytes =
    Bytes::from_static(b"\"resultType\":\"complete\",\"cacheScope\":\"private\",");

/// The members that only modern results have.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Which results say for how long they may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// This one does not.
    Unsaid,
    /// This one does.
    Said,
}

/// A complete result of a server of one era for a client of another.
pub(super) fn complete(result: RawJson, from: Era, to: Era, caching: Caching) -> Answer {
    match (from, to) {
        (Era::Legacy, Era::Legacy) => Answer::result(result),
        (_, Era::Modern) if has_member(&result, "resultType") => Answer::result(result),
        (_, Era::Modern) => {
            let has = |name| caching == Caching::Unsaid || has_member(&result, name);
            // No member stands twice: two readers would take different ones.
            let added = match (has("ttlMs"), has("cacheScope")) {
                (true, true) => COMPLETE,
                (true, false) => COMPLETE_SCOPED,
                (false, true) => COMPLETE_TIMED,
                (false, false) => COMPLETE_UNKEPT,
            };
            Answer::with_members(added, result)
        }
        (Era::Modern, Era::Legacy) => Answer::result(without_modern(&result)),
    }
}

/// A result that is ours to say.
pub(super) fn own(result: &serde_json::Value, era: Era) -> Answer {
    let result = to_raw_value(result).map(RawJson::from).unwrap_or_default();
    complete(result, Era::Legacy, era, Caching::Unsaid)
}

fn has_member(result: &RawJson, name: &str) -> bool {
    let mut members = toolway_wire::scan::members(result.get());
    members.any(|(key, _)| toolway_wire::scan::text(key).is_some_and(|key| key == name))
}

fn without_modern(result: &RawJson) -> RawJson {
    if !MODERN_MEMBERS.iter().any(|name| has_member(result, name)) {
        return result.clone();
    }
    let mut out = Vec::with_capacity(result.len());
    edit::rewrite(result.get(), &mut out, |name| {
        if MODERN_MEMBERS.contains(&name) {
            Replacement::Json(None)
        } else {
            Replacement::Kept
        }
    });
    RawJson::read(&out.into()).unwrap_or_else(|_| result.clone())
}

/// The era of a result by itself: every modern one says what kind it is.
pub(super) fn era_of_result(result: &RawJson) -> Era {
    if has_member(result, "resultType") {
        Era::Modern
    } else {
        Era::Legacy
    }
}

/// What kind of result a server gave.
pub(super) fn kind(result: &RawJson) -> ResultType {
    ResultType::peek(result).unwrap_or(ResultType::Complete)
}

/// What a client is told of a call of a tool that has no answer. What a model could mend, or should
/// know of, is a result that says so, which clients show to it; a server's own error stays that.
pub(super) fn failed_call(failure: &CallError, era: Era) -> Answer {
    if let Some(error) = rpc(failure) {
        return error.into();
    }
    let words = failure.to_string();
    let result = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    own(&result, era)
}

/// What a client is told of another request that has no answer.
pub(super) fn failed(failure: &CallError) -> Answer {
    if let Some(error) = rpc(failure) {
        return error.into();
    }
    let code = match failure {
        CallError::Failed(_, CallFault::Invalid(_)) => error::INVALID_PARAMS,
        _ => error::INTERNAL_ERROR,
    };
    RpcError::new(code, failure.to_string()).into()
}

/// What is an error of the protocol.
fn rpc(failure: &CallError) -> Option<RpcError> {
    match failure {
        CallError::Unknown { .. } | CallError::Ambiguous { .. } => {
            Some(RpcError::new(error::INVALID_PARAMS, failure.to_string()))
        }
        CallError::Failed(
            _,
            CallFault::Protocol {
                code,
                message,
                data,
                ..
            },
        ) => Some(RpcError {
            code: *code,
            message: message.as_received().to_owned(),
            data: data.clone(),
        }),
        _ => None,
    }
}

/// How a call without an answer is counted.
pub(super) fn end_of(failure: &CallError) -> CallEnd {
    match failure {
        CallError::Unknown { .. } | CallError::Ambiguous { .. } => CallEnd::Unknown,
        CallError::Unavailable { .. } => CallEnd::Unavailable,
        CallError::NeedsAuth { .. } => CallEnd::NeedsAuth,
        CallError::Failed(_, fault) => match fault {
            CallFault::Invalid(_) => CallEnd::Invalid,
            CallFault::Refused(_) | CallFault::LeftOut { .. } => CallEnd::Refused,
            CallFault::TimedOut { .. } => CallEnd::TimedOut,
            CallFault::Cancelled | CallFault::CancelledByServer => CallEnd::Cancelled,
            _ => CallEnd::Failed,
        },
    }
}

/// No such method.
pub(super) fn no_method(method: &str) -> Answer {
    let name: String = method.chars().take(100).collect();
    let message = format!(
        "method not found: {}",
        toolway::types::text::clean_line(&name)
    );
    RpcError::new(error::METHOD_NOT_FOUND, message).into()
}

/// Parameters that do not fit.
pub(super) fn invalid(message: impl Into<String>) -> Answer {
    RpcError::new(error::INVALID_PARAMS, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_22_a_modern_answer_has_each_member_once() {
        for result in [
            "{}",
            r#"{"ttlMs":5}"#,
            r#"{"cacheScope":"public"}"#,
            r#"{"ttlMs":5,"cacheScope":"public"}"#,
            r#"{"cache\u0053cope":"public"}"#,
            r#"{"resultType":"complete","cacheScope":"public"}"#,
        ] {
            for caching in [Caching::Said, Caching::Unsaid] {
                let read = RawJson::read(&result.to_owned().into()).unwrap();
                let answer = complete(read, Era::Legacy, Era::Modern, caching);
                let message = answer.message(&toolway_wire::Id::Text("a".to_owned()));
                let message = std::str::from_utf8(&message).unwrap();
                assert_eq!(toolway_wire::scan::doubled_key(message), None, "{message}");
                assert!(message.contains("resultType"), "{message}");
            }
        }
    }
}
