//! The route by which a request reaches one server, as far as a call is concerned.
//!
//! Owns the traits, the conditions of one request and what a call is told where there is no route.
//! Connections and the built-in tools implement them; `dispatch/send.rs` uses them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use serde_json::value::RawValue;
use toolway_config::RunLimits;
pub use toolway_transport::AnswerTimeout;
use toolway_types::{ConnectionState, ServerName};
use toolway_wire::{TraceContext, view};

use crate::call::{CallError, Continuations, NotWidened, ProgressSink, RequestOrigin};
use crate::error::{RequestError, RequestResult, scopes_in};
use crate::pool::ToolPool;

/// An open way to one server: a session, as far as a call is concerned.
pub trait Route: Send + Sync {
    /// Sends one request and waits for its result. Dropping the future cancels the request and
    /// tells the server.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Box<RawValue>,
        options: RequestOptions<'a>,
    ) -> BoxFuture<'a, RequestResult>;

    /// Sends a notification; an error where it did not get on its way.
    fn notify<'a>(
        &'a self,
        _method: &'a str,
        _params: &'a RawValue,
        _options: RequestOptions<'a>,
    ) -> BoxFuture<'a, Result<(), RequestError>> {
        let nobody = "nobody takes notifications here".to_owned();
        Box::pin(ready(Err(RequestError::Malformed(nobody))))
    }

    /// The longest a call may take by the server's own entry.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// How long the answer to an HTTP request may take to begin, by the server's own entry.
    fn request_timeout(&self) -> Option<Duration> {
        None
    }

    /// How long a call may go without a sign of life by default; for ever when absent.
    fn usual_idle(&self) -> Option<Duration> {
        None
    }

    /// How messages get there, in the words that spans have for it; nothing where no message does.
    fn network(&self) -> Option<&'static str> {
        None
    }

    /// Whether an editor is at the other end: what it answers is for this program, not for a
    /// model, and no limit of a context window applies.
    fn is_editor(&self) -> bool {
        false
    }
}

/// Where routes come from: the connections of the host.
pub trait Routes: Send + Sync {
    /// The route to one server, or why there is none.
    fn route(&self, server: &ServerName) -> Result<Arc<dyn Route>, CallError>;

    /// The server of this name, or the only one that has it when normalised.
    fn named(&self, _spelled: &str) -> Option<ServerName> {
        None
    }

    /// The digest of what one server is defined as; none where its name is all there is.
    fn definition(&self, _server: &ServerName) -> Option<&Arc<str>> {
        None
    }
}

/// The conditions of one request. Only what was permitted has some, so that nothing else can be
/// sent, not even by the route of a snapshot:
///
/// ```compile_fail,E0451
/// use toolway::route::{RequestOptions, Route};
///
/// async fn slip_past(route: &dyn Route, options: RequestOptions<'_>) {
///     let params = serde_json::value::to_raw_value(&serde_json::json!({ "name": "rm" })).unwrap();
///     let options = RequestOptions { origin: None, ..options };
///     let _ = route.request("tools/call", params, options).await;
/// }
/// ```
///
/// ```compile_fail,E0624
/// use std::time::Duration;
/// use toolway::route::{RequestOptions, Route};
///
/// async fn slip_past(route: &dyn Route) {
///     let params = serde_json::value::to_raw_value(&serde_json::json!({ "name": "rm" })).unwrap();
///     let options = RequestOptions::within(Duration::from_secs(1));
///     let _ = route.request("tools/call", params, options).await;
/// }
/// ```
///
/// Nor does a snapshot give away a route, or serve as routes for a pipeline that somebody else puts
/// together with rules of their own:
///
/// ```compile_fail,E0624
/// use toolway::HostSnapshot;
/// use toolway::types::ServerName;
///
/// fn lay_hands_on(snapshot: &HostSnapshot, server: &ServerName) {
///     let _ = snapshot.route(server);
/// }
/// ```
///
/// ```compile_fail,E0277
/// use toolway::HostSnapshot;
/// use toolway::config::Permissions;
/// use toolway::dispatch::Dispatch;
///
/// fn forge<'a>(
///     host: Dispatch<'a>,
///     snapshot: &'a HostSnapshot,
///     permissions: &'a Permissions,
/// ) -> Dispatch<'a> {
///     Dispatch { routes: snapshot, permissions, ..host }
/// }
/// ```
#[derive(Clone)]
pub struct RequestOptions<'a> {
    /// The longest it may take, whatever happens meanwhile.
    pub timeout: Duration,
    /// The longest it may go without a sign of life; progress is one.
    pub idle: Option<Duration>,
    /// How long an answer may take to begin, where requests are answered one by one.
    pub answer_timeout: AnswerTimeout,
    /// Where progress goes; the server is asked for it only where there is a listener.
    pub progress: Option<ProgressSink>,
    /// The tool called, as its server described it: its schema may ask for arguments to be
    /// mirrored into headers.
    pub tool: Option<&'a view::Tool>,
    /// Told when the request has become a task: then it must not be sent again.
    pub is_task: Option<&'a AtomicBool>,
    /// The session that calls, for the host's own tools.
    pub pool: Option<ToolPool>,
    /// What is the caller's to go on from.
    pub passed_on: PassedOn,
    /// What is said of its trace where it is sent for no caller; its parameters say it too.
    pub(crate) trace: Option<Arc<TraceContext>>,
    /// What it is sent for: whoever is asked what the server wants to know meanwhile.
    pub(crate) origin: Option<Arc<RequestOrigin>>,
}

impl RequestOptions<'_> {
    /// Conditions without permission, to measure what permission costs.
    #[cfg(feature = "measure")]
    pub fn unpermitted(timeout: Duration) -> Self {
        Self::within(timeout)
    }

    /// Only a time limit, which is the request's own.
    pub(crate) fn within(timeout: Duration) -> Self {
        Self {
            timeout,
            idle: None,
            answer_timeout: AnswerTimeout::BySender,
            progress: None,
            tool: None,
            is_task: None,
            pool: None,
            passed_on: PassedOn::default(),
            trace: None,
            origin: None,
        }
    }
}

/// Which answers that are not the last word are given to the caller as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassedOn {
    /// Wishes for input, and pages that have to be visited first.
    pub input: bool,
    /// Tasks.
    pub tasks: bool,
}

impl PassedOn {
    /// What a caller wants.
    pub(crate) fn of(continuations: Continuations) -> Self {
        let passed_on = continuations != Continuations::Drive;
        Self {
            input: passed_on,
            tasks: passed_on,
        }
    }
}

/// What a call is told of a server that is in this state.
pub(crate) fn unavailable(server: ServerName, state: ConnectionState) -> CallError {
    match state {
        ConnectionState::NeedsAuth {
            detail,
            unnamed_scopes,
        } => CallError::NeedsAuth {
            server,
            scopes: scopes_in(&detail),
            not_widened: unnamed_scopes.then_some(NotWidened::Unnamed),
        },
        state => CallError::Unavailable { server, state },
    }
}

/// The limits of the whole host, where neither a call nor a server's entry says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GeneralLimits {
    /// The longest a call may take; absent means what is usual.
    pub timeout: Option<Duration>,
    /// The longest a call may go without a sign of life; zero is for ever, and absent means what
    /// is usual for the kind of server.
    pub idle: Option<Duration>,
    /// How long the answer to an HTTP request may take to begin; absent means what is usual.
    pub request: Option<Duration>,
}

impl GeneralLimits {
    /// The longest a call may take by default.
    pub(crate) fn whole(&self) -> Duration {
        self.timeout.unwrap_or(RunLimits::USUAL_TOOL)
    }
}
