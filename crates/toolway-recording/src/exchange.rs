//! Which messages belong together: a request, what was said before its answer, and the answer.
//!
//! Owns reading them from both sides of a conversation. What a server said outside any request is told
//! with the request before it.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::line::Side;

/// A message, and who said it.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) from: Side,
    pub(crate) message: Box<RawValue>,
}

/// A request of a client's, with all that followed from it.
#[derive(Debug)]
pub(crate) struct RecordedExchange {
    pub(crate) method: String,
    /// Its parameters without `_meta`.
    pub(crate) params: Value,
    /// What the server said before it answered, and after, until the next request.
    pub(crate) said: Vec<Said>,
    /// The answer; none where the recording ends before it.
    pub(crate) answer: Option<RecordedAnswer>,
    /// Its id, as it was written.
    pub(crate) id: String,
    /// The token under which its progress was told.
    pub(crate) progress: Option<Value>,
}

/// Something that a server said of itself.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) message: Box<RawValue>,
    pub(crate) is_before_answer: bool,
    pub(crate) kind: SaidKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaidKind {
    /// How far this request has come.
    Progress,
    Notification,
    /// A question, which the client answers.
    Request,
}

#[derive(Debug)]
pub(crate) enum RecordedAnswer {
    Result(Box<RawValue>),
    Error(Box<RawValue>),
}

/// The parts of any message.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageParts {
    #[serde(default)]
    pub(crate) id: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) error: Option<Box<RawValue>>,
}

/// The parameters without `_meta`, and the token in it.
pub(crate) fn split_params(params: Option<&RawValue>) -> (Value, Option<Value>) {
    let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let mut params: Value = params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let meta = params
        .as_object_mut()
        .and_then(|params| params.remove("_meta"));
    let token = meta.and_then(|meta| meta.get("progressToken").cloned());
    (params, token)
}

/// Puts messages of one connection together, in the order of their requests.
pub(crate) fn exchanges(spoken: Vec<Spoken>) -> Vec<RecordedExchange> {
    let mut found: Vec<RecordedExchange> = Vec::new();
    for Spoken { from, message } in spoken {
        let Ok(envelope) = serde_json::from_str::<MessageParts>(message.get()) else {
            continue;
        };
        match (from, envelope) {
            (
                Side::Client,
                MessageParts {
                    id: Some(id),
                    method: Some(method),
                    params,
                    ..
                },
            ) => {
                let (params, progress) = split_params(params.as_deref());
                found.push(RecordedExchange {
                    method,
                    params,
                    progress,
                    said: Vec::new(),
                    answer: None,
                    id: id.get().to_owned(),
                });
            }
            (
                Side::Server,
                MessageParts {
                    id,
                    method: Some(method),
                    params,
                    ..
                },
            ) => said(
                &mut found,
                message,
                &method,
                id.is_some(),
                params.as_deref(),
            ),
            (
                Side::Server,
                MessageParts {
                    id: Some(id),
                    result,
                    error,
                    ..
                },
            ) => {
                // The last of this id: a client may begin anew.
                let open = found
                    .iter_mut()
                    .rev()
                    .find(|one| one.id == id.get() && one.answer.is_none());
                if let Some(one) = open {
                    one.answer = result
                        .map(RecordedAnswer::Result)
                        .or(error.map(RecordedAnswer::Error));
                }
            }
            // What a client says of itself, and its answers, are its own at a replay too.
            _ => {}
        }
    }
    found
}

/// Gives what a server said to the request that it was about.
fn said(
    found: &mut [RecordedExchange],
    message: Box<RawValue>,
    method: &str,
    is_request: bool,
    params: Option<&RawValue>,
) {
    let mut kind = if is_request {
        SaidKind::Request
    } else {
        SaidKind::Notification
    };
    let mut about = None;
    if method == "notifications/progress" {
        let params: Option<Value> = params.and_then(|it| serde_json::from_str(it.get()).ok());
        let token = params.and_then(|params| params.get("progressToken").cloned());
        kind = SaidKind::Progress;
        about = found
            .iter()
            .rposition(|one| token.is_some() && one.progress == token);
    }
    // Otherwise the request that is worked on; and where none is, the one before.
    let about = about
        .or_else(|| found.iter().rposition(is_worked_on))
        .or(found.len().checked_sub(1));
    if let Some(one) = about.and_then(|place| found.get_mut(place)) {
        let is_before_answer = one.answer.is_none();
        one.said.push(Said {
            message,
            is_before_answer,
            kind,
        });
    }
}

/// Whether a request waits for its answer. One that stays open for news does not.
fn is_worked_on(one: &RecordedExchange) -> bool {
    one.answer.is_none() && one.method != "subscriptions/listen"
}
