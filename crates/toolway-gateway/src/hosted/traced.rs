//! A client's request as part of a trace: what servers are told of it, and the span of answering.
//!
//! Owns where the context comes from: `_meta` first, as the protocol says, else the headers, whose
//! context is linked where both name one. What is not valid is passed on to nobody. Without a
//! collector and without a context, a request costs a look at each.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderName;
use toolway::types::text::clean_line;
use toolway::{CallTrace, RequestSpan, TraceContext, Tracer};
use toolway_wire::era::{meta_key, method};
use toolway_wire::{Id, request_head, scan};

use super::party::ClientParty;
use crate::conversation::{Answer, IncomingRequest};

/// The span of answering a request.
pub(super) struct AnsweringSpan {
    span: RequestSpan,
    method: &'static str,
    /// What is asked for, if no list has it yet: its server may be on its way.
    unlisted: Option<String>,
}

/// Finds out what a request says of its trace, notes there what servers are told of it, and begins
/// the span of answering it where spans are wanted.
pub(super) fn begin(
    tracer: Option<&Tracer>,
    client: &ClientParty,
    request: &mut IncomingRequest,
) -> Option<AnsweringSpan> {
    let Some(tracer) = tracer else {
        if says_anything(request) {
            let (context, _) = context(request);
            request.trace = Some(Arc::new(CallTrace::passing(context)));
        }
        return None;
    };
    let (context, of_transport) = context(request);
    let link = of_transport.filter(|link| context.parent() != Some(*link));
    let method = known(&request.method);
    let (span, trace) = tracer.answer(context, link, method);
    request.trace = Some(Arc::new(trace));
    let mut span = span?;
    let name = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => {
            request_head::text_param(request.params.as_ref(), "name")
        }
        _ => None,
    };
    let unlisted = name.filter(|name| !name_target(&mut span, client, method, name));
    let unlisted = unlisted.map(Cow::into_owned);
    let id = match &request.id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => {
            let short: String = text.chars().take(MAX_ID).collect();
            clean_line(&short).into_owned()
        }
    };
    span.set("jsonrpc.request.id", id);
    span.set(
        "network.transport",
        match request.headers {
            Some(_) => "tcp",
            None => "pipe",
        },
    );
    Some(AnsweringSpan {
        span,
        method,
        unlisted,
    })
}

/// The longest id that stands in a span, in characters.
const MAX_ID: usize = 64;

impl AnsweringSpan {
    /// Says which revision the client speaks, and in which session.
    pub(super) fn told(&mut self, version: Option<&str>, session: Option<&str>) {
        if let Some(version) = version {
            self.span.set("mcp.protocol.version", version.to_owned());
        }
        if let Some(session) = session {
            self.span.set("mcp.session.id", session.to_owned());
        }
    }

    /// Ends it with what the client is answered.
    pub(super) fn end(mut self, client: &ClientParty, answer: &Answer) {
        if let Some(name) = &self.unlisted {
            name_target(&mut self.span, client, self.method, name);
        }
        match answer {
            Answer::Error(error) => self.span.refused(error.code),
            Answer::Result(result) => {
                let mut members = scan::members(result.payload().get());
                let is_error = self.method == method::TOOLS_CALL
                    && members.any(|(key, value)| key == "\"isError\"" && value == "true");
                if is_error {
                    self.span.failed("tool_error");
                } else {
                    self.span.succeeded();
                }
            }
        }
    }
}

/// Whether a request says anything of a trace, valid or not.
fn says_anything(request: &IncomingRequest) -> bool {
    let head = &request.head;
    let in_meta = [&head.traceparent, &head.tracestate, &head.baggage];
    in_meta.iter().any(|raw| raw.is_some())
        || request.headers.as_ref().is_some_and(|headers| {
            let mut names = headers.keys().map(HeaderName::as_str);
            names.any(|name| matches!(name, meta_key::TRACEPARENT | meta_key::BAGGAGE))
        })
}

/// The context of a request, and the span that its headers name.
fn context(request: &IncomingRequest) -> (TraceContext, Option<toolway_wire::TraceParent>) {
    let of_meta = TraceContext::of_head(&request.head);
    let Some(headers) = &request.headers else {
        return (of_meta, None);
    };
    let of_headers = TraceContext::of_headers(headers);
    let of_transport = of_headers.parent();
    (of_meta.or(of_headers), of_transport)
}

/// Names what a request is about, where the client's list has it: other names could be any number.
fn name_target(span: &mut RequestSpan, client: &ClientParty, method: &str, name: &str) -> bool {
    let endpoint = &client.endpoint;
    let snapshot = endpoint.view.snapshot();
    let (attribute, is_listed) = if method == method::TOOLS_CALL {
        let tool = endpoint.tool(&snapshot.catalog, name);
        ("gen_ai.tool.name", tool.is_some())
    } else {
        let prompt = endpoint.prompt(&snapshot.catalog, name);
        ("gen_ai.prompt.name", prompt.is_some())
    };
    if is_listed {
        span.target(attribute, name);
    }
    is_listed
}

/// A method by its own name if the protocol has it: others could be any number.
fn known(name: &str) -> &'static str {
    const KNOWN: [&str; 22] = [
        method::INITIALIZE,
        method::PING,
        method::DISCOVER,
        method::TOOLS_LIST,
        method::TOOLS_CALL,
        method::RESOURCES_LIST,
        method::RESOURCE_TEMPLATES_LIST,
        method::RESOURCES_READ,
        method::DIRECTORY_READ,
        method::RESOURCES_SUBSCRIBE,
        method::RESOURCES_UNSUBSCRIBE,
        method::PROMPTS_LIST,
        method::PROMPTS_GET,
        method::COMPLETION_COMPLETE,
        method::LOGGING_SET_LEVEL,
        method::SUBSCRIPTIONS_LISTEN,
        method::SKILLS_LIST,
        method::SKILLS_GET,
        method::TASKS_GET,
        method::TASKS_RESULT,
        method::TASKS_UPDATE,
        method::TASKS_CANCEL,
    ];
    KNOWN.into_iter().find(|it| *it == name).unwrap_or("other")
}
