//! Calls of a program, and what there is to call.
//!
//! Owns what parameters mean, and the form of answers. Whether a call runs is the host's to decide.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use toolway::types::{ServerName, ToolKey};
use toolway::{Attached, CallOptions, Consent, RawJson, ResultDelivery, ToolRequest, ToolTarget};

use super::asking::NobodyAsked;
use super::error::ControlError;
use super::messages::{CallParams, ControlTools, ResultsWanted, ToolsParams, text_result};
use super::rows::{Provenances, tool_row};
use crate::conversation::{Answer, IncomingRequest};
use crate::hosted::progress_message;
use crate::outlet::Outlet;

/// How long a call waits for a server that is on its way.
const COMING: Duration = Duration::from_secs(30);

/// The most tools that a search gives where nothing is said.
const FOUND: usize = 20;

/// What of a call's parameters is MCP's.
#[derive(Serialize)]
struct PassedParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

/// Carries out a call.
pub(super) async fn call(
    attached: &Attached,
    params: CallParams<'_>,
    request: &IncomingRequest,
    outlet: &Outlet,
) -> Result<Answer, ControlError> {
    let target = target(&params)?;
    let passed = PassedParams {
        arguments: params.arguments,
        meta: params.meta,
    };
    let passed = to_raw_value(&passed).map_err(|error| ControlError::invalid(error.to_string()))?;
    let call = ToolRequest::of_params(target, &RawJson::from(passed))
        .map_err(|error| ControlError::invalid(error.to_string()))?;
    let options = options(&params, request, outlet)?;
    await_server(attached, &call.target).await?;
    let outcome = attached.call(call, options).await?;
    if params.results == ResultsWanted::Bounded
        && let Some(bounded) = &outcome.bounded
    {
        let result = text_result(&bounded.blocks, outcome.is_error);
        let result = to_raw_value(&result).map_err(|it| ControlError::internal(it.to_string()))?;
        return Ok(Answer::result(result));
    }
    Ok(Answer::result(outcome.passed_on().clone()))
}

fn target(params: &CallParams<'_>) -> Result<ToolTarget, ControlError> {
    match (&params.server, &params.tool, &params.name) {
        (Some(server), Some(tool), None) => {
            let server = ServerName::new(server);
            let server = server.map_err(|error| ControlError::invalid(error.to_string()))?;
            Ok(ToolTarget::Key(ToolKey::new(server, tool)))
        }
        (None, None, Some(name)) => Ok(ToolTarget::Exposed(name.clone())),
        _ => Err(ControlError::invalid(
            "a call needs `server` and `tool`, or `name`",
        )),
    }
}

fn options(
    params: &CallParams<'_>,
    request: &IncomingRequest,
    outlet: &Outlet,
) -> Result<CallOptions, ControlError> {
    let is_checked = params.check.unwrap_or(true);
    let mut options = CallOptions::new(if is_checked {
        Consent::Prompt
    } else {
        Consent::Typed
    });
    if !is_checked {
        options.asked.prompter = Some(Arc::new(NobodyAsked));
    }
    options.delivery = match params.results {
        ResultsWanted::Raw => ResultDelivery::Raw,
        ResultsWanted::Bounded => ResultDelivery::Bounded,
    };
    if let Some(seconds) = params.timeout {
        let limit = Duration::try_from_secs_f64(seconds).ok();
        let limit = limit.filter(|limit| !limit.is_zero());
        let wrong = || ControlError::invalid("`timeout` is a number of seconds");
        options.timeout = Some(limit.ok_or_else(wrong)?);
    }
    if let Some(token) = request.head.progress_token.clone() {
        let outlet = outlet.clone();
        options.progress = Some(Arc::new(move |progress| {
            outlet.notify(progress_message(&progress, &token));
        }));
    }
    Ok(options)
}

/// Waits for the server of a call that is on its way, and says so plainly where there is none.
async fn await_server(attached: &Attached, target: &ToolTarget) -> Result<(), ControlError> {
    let ToolTarget::Key(key) = target else {
        return Ok(());
    };
    let view = attached.view();
    let name = key.server.as_str();
    if view.snapshot().server(name).is_none() {
        return Err(ControlError::unknown_server(name));
    }
    // A call would wait for as long as it may take itself.
    if tokio::time::timeout(COMING, view.ready(name))
        .await
        .is_err()
    {
        let message = format!("server `{name}` is not there after {COMING:?}");
        return Err(ControlError::unavailable(message, "pending"));
    }
    Ok(())
}

/// What may be called.
pub(super) async fn tools(
    attached: &Attached,
    provenances: &Provenances,
    params: &ToolsParams,
) -> Result<ControlTools, ControlError> {
    let view = attached.view();
    match &params.server {
        Some(name) if view.snapshot().server(name).is_none() => {
            return Err(ControlError::unknown_server(name));
        }
        Some(name) => view.ready(name).await,
        None => view.settled().await,
    }
    let snapshot = view.snapshot();
    let is_wanted = |server: &ServerName| {
        let wanted = params.server.as_deref();
        wanted.is_none_or(|wanted| wanted == server.as_str())
    };
    let limit = params.limit.unwrap_or(match params.search {
        Some(_) => FOUND,
        None => usize::MAX,
    });
    let catalog = &snapshot.catalog;
    let found = if let Some(words) = &params.search {
        catalog.search(words, usize::MAX).tools
    } else {
        let of_servers = catalog.tools();
        of_servers.filter(|tool| !tool.is_built_in()).collect()
    };
    let tools = found.into_iter().filter(|tool| is_wanted(&tool.key.server));
    let tools = tools.take(limit);
    Ok(ControlTools {
        tools: tools
            .map(|tool| tool_row(tool, &snapshot, provenances))
            .collect(),
    })
}
