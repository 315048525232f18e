//! The legacy era: the handshake (`initialize`, then `notifications/initialized`), and its
//! requests.
//!
//! Owns what a legacy client says about itself, reading what the server answers, the form of
//! requests, and cancelling a task at the server. When it is used is decided in `probe.rs`.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway_transport::AnswerTimeout;
use toolway_types::{Era, ServerFacts, Untrusted};
use toolway_wire::era::{LATEST_LEGACY, LEGACY_VERSIONS, method};
use toolway_wire::meta::RequestMeta;
use toolway_wire::view::task::created;
use toolway_wire::{RawJson, TraceContext, envelope, headers};
use tracing::debug;

use super::correlator::{Correlator, Deadline, Farewell, LateAnswerHandler, RequestExchange};
use super::{ClientInfo, MAX_GREETING, Session, SessionInner, TASK_CALLS, facts};
use crate::call::ProgressSink;
use crate::error::{ConnectError, RequestError, RequestResult};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    server_info: Value,
    // Any JSON: a server whose `instructions` are no string still connects.
    #[serde(default)]
    instructions: Value,
}

/// Sends `initialize` and waits for the answer. Never cancelled: the protocol forbids it.
pub(super) async fn initialize(
    correlator: &Correlator,
    client: &ClientInfo,
    timeout: Duration,
) -> RequestResult {
    let params = to_raw_value(&json!({
        "protocolVersion": LATEST_LEGACY,
        "capabilities": correlator.reception().legacy_capabilities(),
        "clientInfo": &client.info,
    }))
    .map_err(|error| RequestError::Malformed(error.to_string()))?;
    let id = correlator.reserve();
    correlator
        .request(RequestExchange {
            id,
            bytes: envelope::request(id, method::INITIALIZE, &params),
            headers: Vec::new(),
            // Connecting has a limit of its own.
            deadline: Deadline::new(timeout, None).with_answer_timeout(AnswerTimeout::BySender),
            progress: None,
            farewell: Farewell::Silent,
            late: None,
            origin: None,
        })
        .await
}

/// Reads the answer to `initialize` and tells the server that the handshake is done.
pub(super) async fn settle(
    correlator: &Correlator,
    answer: &RawJson,
) -> Result<ServerFacts, ConnectError> {
    let malformed =
        |problem| ConnectError::request(method::INITIALIZE, RequestError::Malformed(problem));
    if answer.get().len() > MAX_GREETING {
        let problem = format!("the answer is larger than {MAX_GREETING} bytes");
        return Err(malformed(problem));
    }
    let result: InitializeResult = serde_json::from_str(answer.get())
        .map_err(|error| malformed(format!("the answer is not an initialize result: {error}")))?;
    if !LEGACY_VERSIONS.contains(&result.protocol_version.as_str()) {
        let offered = vec![Untrusted::new(result.protocol_version)];
        return Err(ConnectError::Version { offered });
    }
    let headers = headers::legacy(&result.protocol_version);
    correlator.reception().settle(Era::Legacy, headers.clone());
    correlator
        .notify(envelope::notification(method::INITIALIZED, None), headers)
        .await
        .map_err(|error| ConnectError::request(method::INITIALIZED, error))?;
    Ok(facts(
        Era::Legacy,
        result.protocol_version,
        result.server_info,
        result.capabilities,
        &result.instructions,
    ))
}

/// Sends a request and gives its result.
pub(super) async fn request(
    session: &Session,
    method: &str,
    params: &RawValue,
    deadline: Deadline,
    progress: Option<ProgressSink>,
) -> RequestResult {
    let SessionInner {
        correlator,
        version_header,
        ..
    } = &*session.inner;
    let id = correlator.reserve();
    let makes_tasks = method == method::TOOLS_CALL && session.offers_tasks(TASK_CALLS);
    let bytes = if progress.is_some() || deadline.wants_signs_of_life() {
        let meta = RequestMeta::new().with_progress_token(id);
        let bytes = meta.request(id, method, params);
        bytes.map_err(|error| RequestError::Malformed(error.to_string()))?
    } else {
        envelope::request(id, method, params)
    };
    let mut headers = version_header.clone();
    if let Some(origin) = &session.origin {
        origin.note_sent(id, &session.facts().protocol_version);
    }
    let of_origin = session.origin.as_ref().and_then(|origin| origin.trace());
    let trace = of_origin.or(session.trace.as_deref());
    headers.extend(trace.into_iter().flat_map(TraceContext::headers));
    correlator
        .request(RequestExchange {
            id,
            bytes,
            headers,
            deadline,
            progress,
            farewell: Farewell::Notify(version_header.clone()),
            late: makes_tasks.then(|| unwanted(session)),
            origin: session.origin.clone(),
        })
        .await
}

/// What is done with the answer to a call that was cancelled: when it is a task, the task is
/// cancelled too. Holds no session, which may end before any answer comes.
fn unwanted(session: &Session) -> LateAnswerHandler {
    let session = Arc::downgrade(&session.inner);
    Box::new(move |result| {
        if let (Some(session), Some(Ok(made))) = (session.upgrade(), created(result)) {
            cancel_task(&Session::of_host(session), &made.id);
        }
    })
}

/// Has the server cancel a task, without waiting.
pub(super) fn cancel_task(session: &Session, task: &str) {
    if !session.offers_tasks("/cancel") {
        // It would not know the request.
        debug!("the server has no way to cancel a task");
        return;
    }
    let Ok(params) = to_raw_value(&json!({ "taskId": task })) else {
        return;
    };
    let SessionInner {
        correlator,
        version_header,
        ..
    } = &*session.inner;
    let id = correlator.reserve();
    let bytes = envelope::request(id, method::TASKS_CANCEL, &params);
    correlator.order(id, bytes, version_header.clone());
}
