//! Send: the permitted call goes to its server, and the server's bytes come back.
//!
//! Owns the shape of `tools/call`, what else is asked of a server, and the one table from what can go wrong on the way to a
//! [`CallError`]. Which time limits hold is `send/limits.rs`, what is said of a trace `send/traced.rs`. Does not own ids, deadlines or
//! cancellation: those are the route's, and dropping the future here drops the request there.

mod limits;
mod traced;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use toolway_transport::{CloseReason, SendFailure};
use toolway_types::{ConnectionState, ToolKey, Untrusted};
use toolway_wire::era::method;
use toolway_wire::{CarriedParams, RawJson, RpcError, TraceContext};

use self::traced::AskingSpan;
use super::permission::PermittedCall;
use super::{Dispatch, hooks};
use crate::audit::AuditEntry;
use crate::call::{
    CallError, CallFault, CallOptions, CallerSide, Oversize, RequestOrigin, TimeLimit,
};
use crate::catalog::CatalogTool;
use crate::error::{RequestError, is_short, scopes_in, wants_login};
use crate::route::{GeneralLimits, PassedOn, RequestOptions, Route, unavailable};

/// A server's answer to a permitted call, unread.
#[derive(Debug)]
pub struct RawResult<'a> {
    call: PermittedCall<'a>,
    result: RawJson,
    of_editor: bool,
}

impl<'a> RawResult<'a> {
    pub(super) fn tool(&self) -> &'a CatalogTool {
        self.call.tool()
    }

    pub(super) fn result(&self) -> &RawJson {
        &self.result
    }

    pub(super) fn result_mut(&mut self) -> &mut RawJson {
        &mut self.result
    }

    /// Whether an editor answered.
    pub(super) fn is_of_editor(&self) -> bool {
        self.of_editor
    }

    pub(super) fn into_parts(self) -> (PermittedCall<'a>, RawJson) {
        (self.call, self.result)
    }
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

/// What continues an earlier request: of no meaning to a server whose answers are seen to here.
const CONTINUING: [&str; 2] = ["inputResponses", "requestState"];

/// The member by which a legacy client wants a task made of its call.
const TASK: &str = "task";

/// The parameters of `tools/call`, and where in them the arguments begin, which are last.
fn call_params(
    call: &PermittedCall<'_>,
    passed_on: PassedOn,
    told: Option<&TraceContext>,
) -> Result<(Box<RawValue>, usize), serde_json::Error> {
    let name = &call.tool().key.tool;
    let (raw, carried) = (call.raw_arguments(), call.carried());
    if raw.is_none() && carried.is_empty() && told.is_none() {
        let arguments = call.arguments();
        let params = to_raw_value(&CallParams { name, arguments })?;
        let begin = arguments_begin(params.get());
        return Ok((params, begin));
    }
    let mut params = b"{\"name\":".to_vec();
    serde_json::to_writer(&mut params, name)?;
    let carried = of_this_hop(carried.clone(), passed_on);
    traced::carried(carried, told).write(&mut params);
    params.extend_from_slice(b",\"arguments\":");
    let begin = params.len();
    match raw {
        Some(raw) => params.extend_from_slice(raw.bytes()),
        None => serde_json::to_writer(&mut params, call.arguments())?,
    }
    params.push(b'}');
    Ok((raw_value(params)?, begin))
}

/// What travels along, without what is of no meaning where answers are seen to here.
pub(crate) fn of_this_hop(carried: CarriedParams, passed_on: PassedOn) -> CarriedParams {
    let mut carried = carried;
    if !passed_on.input {
        carried = carried.without(&CONTINUING);
    }
    if !passed_on.tasks {
        carried = carried.without(&[TASK]);
    }
    carried
}

/// Where the arguments begin in `{"name":…,"arguments":…}`.
fn arguments_begin(params: &str) -> usize {
    // The first of its kind: a quotation mark inside the name has a backslash before it.
    const BEFORE: &str = r#"","arguments":"#;
    params.find(BEFORE).map_or(0, |at| at + BEFORE.len())
}

/// What was put together of JSON, as one value.
pub(crate) fn raw_value(json: Vec<u8>) -> Result<Box<RawValue>, serde_json::Error> {
    let text = String::from_utf8(json).map_err(serde::de::Error::custom)?;
    RawValue::from_string(text)
}

/// Sends the call to its server.
///
/// It takes a [`PermittedCall`] and nothing else, so a call without permission cannot be sent:
///
/// ```compile_fail,E0308
/// use toolway::audit::AuditEntry;
/// use toolway::dispatch::{Dispatch, hooks::HookedCall, send};
/// use toolway::{CallOptions, Consent};
///
/// async fn rush(call: HookedCall<'_>, host: &Dispatch<'_>, entry: &mut AuditEntry) {
///     let options = CallOptions::new(Consent::Typed);
///     let _ = send::send(call, host, &options, entry).await;
/// }
/// ```
///
/// The same with a permitted call compiles:
///
/// ```
/// use toolway::audit::AuditEntry;
/// use toolway::dispatch::{Dispatch, permission::PermittedCall, send};
/// use toolway::{CallOptions, Consent};
///
/// async fn proceed(call: PermittedCall<'_>, host: &Dispatch<'_>, entry: &mut AuditEntry) {
///     let options = CallOptions::new(Consent::Typed);
///     let _ = send::send(call, host, &options, entry).await;
/// }
/// ```
pub async fn send<'a>(
    mut call: PermittedCall<'a>,
    dispatch: &Dispatch<'_>,
    options: &CallOptions,
    entry: &mut AuditEntry,
) -> Result<RawResult<'a>, CallError> {
    let key = &call.tool().key;
    let route = match &call.tool().own {
        Some(answers) => Arc::clone(&answers.route),
        None => dispatch.routes.route(&key.server)?,
    };
    let span = match &call.tool().own {
        // No server is asked.
        Some(_) => AskingSpan::none(),
        None => AskingSpan::begin(options, method::TOOLS_CALL, key),
    };
    let told = span.told(options);
    let tool = Some(call.tool().own_name());
    let origin = RequestOrigin::under(dispatch.caller, tool, options, told);
    let mut conditions = RequestOptions {
        tool: Some(call.tool().received()),
        origin: Some(Arc::clone(&origin)),
        ..limits::options(options, &*route, dispatch.limits)
    };
    if conditions.passed_on.tasks && hooks::looks_at_results(&call, dispatch) {
        conditions.passed_on.tasks = false;
    }
    let params = call_params(&call, conditions.passed_on, told);
    let (params, begin) = params.map_err(|error| {
        let message = Untrusted::new(error.to_string());
        CallError::Failed(
            key.clone(),
            CallFault::Transport {
                message,
                sent: false,
            },
        )
    })?;
    let over = origin.begin();
    let timeout = conditions.timeout;
    entry.sent(|| {
        let text = params.get();
        text.get(begin..text.len() - 1).unwrap_or_default()
    });
    let answer = route.request(method::TOOLS_CALL, params, conditions).await;
    drop(over);
    let remarks = origin.take_remarks();
    match answer {
        Ok(result) => {
            span.end(Ok(&result), &origin, &*route);
            for remark in remarks {
                call.warn(remark);
            }
            Ok(RawResult {
                call,
                result,
                of_editor: route.is_editor(),
            })
        }
        Err(error) => {
            let mut error = explain(error, key, timeout);
            span.end(Err(&error), &origin, &*route);
            if let CallError::Failed(_, CallFault::Protocol { remarks: about, .. }) = &mut error {
                *about = remarks;
            }
            Err(error)
        }
    }
}

/// Something to be asked of a server beside calls.
pub(crate) struct PreparedRequest<'a> {
    /// Names what is asked for.
    pub(crate) key: &'a ToolKey,
    pub(crate) method: &'a str,
    pub(crate) params: Box<RawValue>,
}

impl<'a> PreparedRequest<'a> {
    pub(crate) fn new(
        key: &'a ToolKey,
        method: &'a str,
        params: &Value,
    ) -> Result<Self, CallError> {
        let params = to_raw_value(params).map_err(|error| {
            let what = Untrusted::new(error.to_string());
            CallError::Failed(key.clone(), CallFault::Malformed(what))
        })?;
        Ok(Self {
            key,
            method,
            params,
        })
    }
}

/// Asks a server for something beside its tools, which was permitted.
pub(crate) async fn request(
    route: &dyn Route,
    request: PreparedRequest<'_>,
    options: &CallOptions,
    general: GeneralLimits,
    caller: &Arc<CallerSide>,
) -> Result<RawJson, CallError> {
    let PreparedRequest {
        key,
        method,
        params,
    } = request;
    let span = AskingSpan::begin(options, method, key);
    let told = span.told(options);
    let params = traced::params(params, told);
    let origin = RequestOrigin::under(caller, None, options, told);
    let _over = origin.begin();
    let options = RequestOptions {
        origin: Some(Arc::clone(&origin)),
        ..limits::options(options, route, general)
    };
    let timeout = options.timeout;
    let answer = route.request(method, params, options).await;
    let answer = answer.map_err(|error| explain(error, key, timeout));
    span.end(answer.as_ref(), &origin, route);
    answer
}

/// Tells a server something that was permitted.
pub(crate) async fn notify(
    route: &dyn Route,
    notice: PreparedRequest<'_>,
    options: &CallOptions,
    general: GeneralLimits,
    caller: &Arc<CallerSide>,
) -> Result<(), CallError> {
    let options = RequestOptions {
        origin: Some(RequestOrigin::under(caller, None, options, None)),
        ..limits::options(options, route, general)
    };
    let timeout = options.timeout;
    let told = route.notify(notice.method, &notice.params, options).await;
    told.map_err(|error| explain(error, notice.key, timeout))
}

/// The one mapping from what happened on the route to what the caller is told.
pub(crate) fn explain(error: RequestError, key: &ToolKey, after: Duration) -> CallError {
    let server = || key.server.clone();
    let timed_out = |after, limit| CallFault::TimedOut { after, limit };
    let lost = |message: String| CallFault::Transport {
        message: Untrusted::new(message),
        // A channel that ends takes requests along that the server has, or may have.
        sent: true,
    };
    let fault = match error {
        RequestError::TimedOut => timed_out(after, TimeLimit::Whole),
        RequestError::Idle { after } => timed_out(after, TimeLimit::Idle),
        RequestError::InputRefused { input } => CallFault::InputRefused(input),
        RequestError::TooManyRounds { rounds } => CallFault::TooManyRounds(rounds),
        RequestError::TaskCancelled => CallFault::CancelledByServer,
        RequestError::Closed(CloseReason::Asked) => CallFault::Cancelled,
        RequestError::Closed(CloseReason::Exited { status, .. }) => {
            lost(format!("its process ended ({status})"))
        }
        RequestError::Closed(CloseReason::EndOfStream { .. }) => {
            lost("the server closed the connection".to_owned())
        }
        RequestError::Closed(CloseReason::Broken(message)) => lost(message),
        RequestError::Send(failure) | RequestError::Closed(CloseReason::Failed(failure))
            if wants_login(&failure) =>
        {
            return unavailable(server(), refused_login(failure));
        }
        RequestError::Closed(CloseReason::Failed(failure)) => failed(failure, true),
        RequestError::Send(failure) => {
            let sent = match &failure {
                SendFailure::Cut(_) => true,
                SendFailure::Status { status, .. } => *status >= 500,
                _ => false,
            };
            failed(failure, sent)
        }
        RequestError::Rpc(RpcError {
            code,
            message,
            data,
        }) => CallFault::Protocol {
            code,
            message: Untrusted::new(message),
            data,
            remarks: Vec::new(),
        },
        RequestError::Malformed(what) => CallFault::Malformed(Untrusted::new(what)),
        RequestError::Unavailable(state) => return unavailable(server(), state),
        RequestError::NotWidened { challenge, why } => {
            return CallError::NeedsAuth {
                server: server(),
                scopes: scopes_in(&challenge),
                not_widened: Some(why),
            };
        }
    };
    CallError::Failed(key.clone(), fault)
}

/// The same for what the transport says, of one request or of the connection that all share.
fn failed(failure: SendFailure, sent: bool) -> CallFault {
    let malformed = |what: String| CallFault::Malformed(Untrusted::new(what));
    let message = match failure {
        SendFailure::TimedOut { after } => {
            let limit = TimeLimit::Beginning;
            return CallFault::TimedOut { after, limit };
        }
        SendFailure::TooLarge { limit } => {
            let what = Oversize::Answer;
            return CallFault::TooLarge { what, limit };
        }
        SendFailure::NotMcp { content_type } => {
            return malformed(format!("content of type `{content_type}`"));
        }
        SendFailure::Encoded { encoding } => {
            return malformed(format!("content compressed with `{encoding}`"));
        }
        SendFailure::Cut(message)
        | SendFailure::Unreachable { message, .. }
        | SendFailure::Denied { message } => message,
        SendFailure::Certificate { .. } | SendFailure::Credentials(_) => failure.to_string(),
        SendFailure::Status { status, .. } => format!("HTTP status {status}"),
        SendFailure::Redirected { location } => {
            format!("redirected to another origin (`{location}`)")
        }
    };
    let message = Untrusted::new(message);
    CallFault::Transport { message, sent }
}

/// The state that the refusal of one request would put its server in.
fn refused_login(failure: SendFailure) -> ConnectionState {
    let challenge = match failure {
        SendFailure::Status {
            www_authenticate, ..
        } => www_authenticate.unwrap_or_default(),
        _ => String::new(),
    };
    let is_short = is_short(Some(&challenge));
    let detail = Untrusted::new(challenge);
    ConnectionState::NeedsAuth {
        unnamed_scopes: is_short && scopes_in(&detail).is_empty(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_arguments_are_found_whatever_the_name_looks_like() {
        let arguments = json!({ "text": r#"","arguments":"# });
        let Value::Object(arguments) = arguments else {
            panic!("an object")
        };
        for name in ["t", r#"","arguments":{"n":2}}"#, r"ends with \", ""] {
            let arguments = &arguments;
            let params = to_raw_value(&CallParams { name, arguments }).expect("JSON");
            let found = &params.get()[arguments_begin(params.get())..];
            assert_eq!(found, r#"{"text":"\",\"arguments\":"}}"#, "{name}");
        }
    }
}
