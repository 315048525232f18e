//! A request to a server as part of a trace: what the server is told of it, and the span of asking.
//!
//! Owns both for calls and for all else. A request without a trace costs one look at its conditions.

use serde_json::value::RawValue;
use toolway_types::ToolKey;
use toolway_wire::era::method;
use toolway_wire::{CarriedParams, RawJson, TraceContext, scan};

use crate::call::{CallError, CallFault, CallOptions, RequestOrigin};
use crate::route::Route;
use crate::spans::RequestSpan;

/// The span of asking a server, where there is one.
pub(super) struct AskingSpan(Option<RequestSpan>);

impl AskingSpan {
    /// Begins it.
    pub(super) fn begin(options: &CallOptions, method: &str, key: &ToolKey) -> Self {
        let span = options.trace.as_deref().and_then(|trace| trace.ask(method));
        Self(span.map(|mut span| {
            match method {
                method::TOOLS_CALL => span.target("gen_ai.tool.name", &key.tool),
                method::PROMPTS_GET => span.target("gen_ai.prompt.name", &key.tool),
                _ => {}
            }
            span.set("toolway.server.name", key.server.to_string());
            span
        }))
    }

    /// There is none.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// What the server is told.
    pub(super) fn told<'a>(&'a self, options: &'a CallOptions) -> Option<&'a TraceContext> {
        let own = self.0.as_ref().map(RequestSpan::context);
        own.or_else(|| Some(options.trace.as_ref()?.context()))
    }

    /// Ends it with what the server answered.
    pub(super) fn end(
        self,
        outcome: Result<&RawJson, &CallError>,
        origin: &RequestOrigin,
        route: &dyn Route,
    ) {
        let Some(mut span) = self.0 else {
            return;
        };
        if let Some(sent) = origin.sent() {
            span.set("jsonrpc.request.id", sent.id.to_string());
            span.set("mcp.protocol.version", sent.version.to_string());
        }
        if let Some(network) = route.network() {
            span.set("network.transport", network);
        }
        match outcome {
            Ok(result) if says_error(result) => span.failed("tool_error"),
            Ok(_) => span.succeeded(),
            Err(error) => fail(span, error),
        }
    }
}

/// Whether a result of a tool says that it failed.
fn says_error(result: &RawJson) -> bool {
    scan::members(result.get()).any(|(key, value)| key == "\"isError\"" && value == "true")
}

fn fail(span: RequestSpan, error: &CallError) {
    let kind = match error {
        CallError::Failed(_, CallFault::Protocol { code, .. }) => return span.refused(*code),
        CallError::Failed(_, CallFault::TimedOut { .. }) => "timeout",
        CallError::Failed(_, CallFault::Cancelled | CallFault::CancelledByServer) => "cancelled",
        CallError::Failed(_, CallFault::Transport { .. }) => "transport",
        CallError::Failed(_, CallFault::Malformed(_)) => "malformed",
        CallError::Failed(_, CallFault::TooLarge { .. }) => "too_large",
        CallError::NeedsAuth { .. } => "needs_auth",
        CallError::Unavailable { .. } => "unavailable",
        _ => "_OTHER",
    };
    span.failed(kind);
}

/// What travels along with a call that says this of its trace.
pub(super) fn carried(carried: CarriedParams, told: Option<&TraceContext>) -> CarriedParams {
    let Some(told) = told else {
        return carried;
    };
    match told.in_meta(carried.get("_meta")) {
        Some(meta) => carried.with("_meta", meta),
        None => carried.without(&["_meta"]),
    }
}

/// Parameters that say this of their request's trace.
pub(super) fn params(params: Box<RawValue>, told: Option<&TraceContext>) -> Box<RawValue> {
    match told {
        Some(told) => told.told_in(params),
        None => params,
    }
}
