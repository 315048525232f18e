//! The modern era: no handshake, `_meta` and headers on every request, typed results.
//!
//! Owns shaping a modern request, reading `server/discover`, and cancelling a task at the server.
//! What a result asks for is done in `rounds.rs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway_transport::AnswerTimeout;
use toolway_types::{Era, MessageDelivery, ServerFacts};
use toolway_wire::era::{MODERN, meta_key, method};
use toolway_wire::meta::RequestMeta;
use toolway_wire::view::task::task;
use toolway_wire::view::{ResultType, Tool};
use toolway_wire::{RawJson, TraceContext, envelope, headers};

use super::correlator::{Correlator, Deadline, Farewell, LateAnswerHandler, RequestExchange};
use super::{ClientInfo, MAX_GREETING, Session, facts, raw};
use crate::call::{ProgressSink, RequestOrigin};
use crate::error::{RequestError, RequestResult};
use crate::route::PassedOn;

/// A modern request before it has an id.
pub(super) struct ModernRequest<'a> {
    pub method: &'a str,
    pub params: &'a RawValue,
    pub deadline: Deadline,
    pub progress: Option<ProgressSink>,
    pub tool: Option<&'a Tool>,
    pub passed_on: PassedOn,
}

impl<'a> ModernRequest<'a> {
    /// One without progress, that calls no tool.
    pub(super) fn new(method: &'a str, params: &'a RawValue, deadline: Deadline) -> Self {
        Self {
            method,
            params,
            deadline,
            progress: None,
            tool: None,
            passed_on: PassedOn::default(),
        }
    }
}

/// What `server/discover` says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Discovery {
    pub supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    instructions: Value,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

impl Discovery {
    /// Reads an answer; `None` when it is not a discovery, as from a server that answers
    /// anything with an empty object, or larger than one may be.
    pub(super) fn read(answer: &RawJson) -> Option<Self> {
        if answer.get().len() > MAX_GREETING {
            return None;
        }
        serde_json::from_str(answer.get()).ok()
    }

    /// What the session keeps of it.
    pub(super) fn into_facts(mut self, version: &str) -> ServerFacts {
        let server_info = self.meta.remove(meta_key::SERVER_INFO).unwrap_or_default();
        let version = version.to_owned();
        facts(
            Era::Modern,
            version,
            server_info,
            self.capabilities,
            &self.instructions,
        )
    }
}

/// Asks what the server offers. Ends without a word to the server: one that does not know the
/// question would not know the farewell either.
pub(super) async fn discover(
    correlator: &Correlator,
    client: &ClientInfo,
    delivery: MessageDelivery,
    timeout: Duration,
) -> RequestResult {
    let params = raw("{}");
    // Connecting has a limit of its own.
    let deadline = Deadline::new(timeout, None).with_answer_timeout(AnswerTimeout::BySender);
    let request = ModernRequest::new(method::DISCOVER, &params, deadline);
    let mut exchange = shape(correlator, client, delivery, request, None)?;
    exchange.farewell = Farewell::Silent;
    correlator.request(exchange).await
}

/// Sends a request and gives its result, of whatever type.
pub(super) fn request<'a>(
    session: &'a Session,
    request: ModernRequest<'_>,
) -> BoxFuture<'a, RequestResult> {
    let inner = &*session.inner;
    let makes_tasks = request.method == method::TOOLS_CALL && session.has_tasks();
    let origin = session.origin.as_ref();
    match shape(
        &inner.correlator,
        &inner.client,
        inner.delivery,
        request,
        origin,
    ) {
        Ok(mut exchange) => {
            exchange.late = makes_tasks.then(|| unwanted(session));
            inner.correlator.request(exchange)
        }
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

/// What is done with the answer to a call that was cancelled: when it is a task, the task is
/// cancelled too. Holds no session, which may end before any answer comes.
fn unwanted(session: &Session) -> LateAnswerHandler {
    let session = Arc::downgrade(&session.inner);
    Box::new(move |result| {
        if let (Some(session), Ok(ResultType::Task)) = (session.upgrade(), ResultType::peek(result))
            && let Ok(made) = task(result)
        {
            cancel_task(&Session::of_host(session), &made.id);
        }
    })
}

/// Has the server cancel a task, without waiting.
pub(super) fn cancel_task(session: &Session, task: &str) {
    let Ok(params) = to_raw_value(&json!({ "taskId": task })) else {
        return;
    };
    let inner = &*session.inner;
    let deadline = Deadline::new(Duration::ZERO, None);
    let request = ModernRequest::new(method::TASKS_CANCEL, &params, deadline);
    let shaped = shape(
        &inner.correlator,
        &inner.client,
        inner.delivery,
        request,
        None,
    );
    if let Ok(exchange) = shaped {
        let correlator = &inner.correlator;
        correlator.order(exchange.id, exchange.bytes, exchange.headers);
    }
}

/// Makes a notification ready to go: its bytes and headers.
pub(super) fn notification(
    session: &Session,
    method: &str,
    params: &RawValue,
    origin: Option<&Arc<RequestOrigin>>,
) -> Result<(Bytes, Vec<(HeaderName, HeaderValue)>), RequestError> {
    let inner = &session.inner;
    let reception = inner.correlator.reception();
    let declared = reception.declared_to(origin);
    let capabilities = declared.modern(&reception.roots_of(origin));
    let meta = RequestMeta::modern(MODERN, &inner.client.info, capabilities);
    let params = meta.splice(Some(params));
    let params = params.map_err(|error| RequestError::Malformed(error.to_string()))?;
    let headers = match inner.delivery {
        MessageDelivery::Stream => Vec::new(),
        MessageDelivery::PerRequest => headers::modern(method, Some(&params), None)
            .map_err(|error| RequestError::Malformed(error.to_string()))?,
    };
    Ok((envelope::notification(method, Some(&params)), headers))
}

/// Makes a request ready to go, under an id of its own.
pub(super) fn shape(
    correlator: &Correlator,
    client: &ClientInfo,
    delivery: MessageDelivery,
    request: ModernRequest<'_>,
    origin: Option<&Arc<RequestOrigin>>,
) -> Result<RequestExchange, RequestError> {
    let id = correlator.reserve();
    let reception = correlator.reception();
    let declared;
    let stated = origin.and_then(|origin| origin.stated());
    let capabilities = if let Some(stated) = stated.filter(|_| request.passed_on.input) {
        // What is asked is passed on, so the caller's own word counts.
        stated.as_raw()
    } else {
        declared = reception.declared_to(origin);
        declared.modern(&reception.roots_of(origin))
    };
    if let Some(origin) = origin {
        origin.note_sent(id, MODERN);
    }
    let mut meta = RequestMeta::modern(MODERN, &client.info, capabilities);
    if request.progress.is_some() || request.deadline.wants_signs_of_life() {
        meta = meta.with_progress_token(id);
    }
    let level = origin.and_then(|origin| reception.client_side().logs.level_of(origin));
    if let Some(level) = level {
        meta.set(meta_key::LOG_LEVEL, &raw(&format!("\"{level}\"")));
    }
    let malformed = |problem: &dyn std::fmt::Display| RequestError::Malformed(problem.to_string());
    let (bytes, headers, farewell) = match delivery {
        MessageDelivery::Stream => {
            let bytes = meta.request(id, request.method, request.params);
            // A task is cancelled as a task, never by way of the request that looked at it.
            let farewell = if request.method.starts_with("tasks/") {
                Farewell::Silent
            } else {
                Farewell::Notify(Vec::new())
            };
            (
                bytes.map_err(|error| malformed(&error))?,
                Vec::new(),
                farewell,
            )
        }
        MessageDelivery::PerRequest => {
            let params = meta.splice(Some(request.params));
            let params = params.map_err(|error| malformed(&error))?;
            let mut headers: Vec<(HeaderName, HeaderValue)> =
                headers::modern(request.method, Some(&params), request.tool)
                    .map_err(|error| malformed(&error))?;
            let trace = origin.and_then(|origin| origin.trace());
            headers.extend(trace.into_iter().flat_map(TraceContext::headers));
            let bytes = envelope::request(id, request.method, &params);
            (bytes, headers, Farewell::Silent)
        }
    };
    Ok(RequestExchange {
        id,
        bytes,
        headers,
        deadline: request.deadline,
        progress: request.progress,
        farewell,
        late: None,
        origin: origin.cloned(),
    })
}
