//! A session: the protocol spoken with one server over one channel.
//!
//! Owns the handle that callers send requests through, once era, version and capabilities are
//! settled. Requests that are not answered at once are driven by `rounds.rs` and `task.rs` in the
//! modern era, by `url_elicitation.rs` and `legacy_task.rs` in the legacy one.
//! Does not own: when to connect, or what happens after the channel ended (`connection.rs`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use toolway_transport::{Channel, CloseReason, SendFailure};
use toolway_types::{Era, MessageDelivery, ProtocolMode, ServerFacts, Untrusted, limits};
use toolway_wire::view::{Tool, task as task_view};
use toolway_wire::{Message, RpcError, TraceContext, envelope, headers};

use self::correlator::Deadline;
pub(crate) use self::correlator::{Correlator, Pump, Strays};
pub(crate) use self::inbound::ListChanges;
pub(crate) use self::probe::is_era_evidence;
use crate::call::RequestOrigin;
use crate::catalog::instructions::MAX_INSTRUCTIONS;
use crate::error::{ConnectError, RequestError, RequestResult};
use crate::listing::ListKind;
use crate::route::{PassedOn, RequestOptions};
pub(crate) use crate::session::client_side::ClientSide;
pub(crate) use crate::session::habits::ServerHabits;

mod client_side;
mod correlator;
mod declared;
pub(crate) mod freshness;
mod habits;
mod inbound;
mod input;
mod legacy;
mod legacy_task;
pub(crate) mod list;
mod modern;
mod probe;
mod progress;
pub(crate) mod question;
mod rounds;
pub(crate) mod subscription;
mod task;
mod url_elicitation;

/// The largest answer to a greeting: it is kept, as values, for as long as the session stands.
const MAX_GREETING: usize = limits::message::GREETING;

/// Where a legacy server declares that calls can be tasks, within its capability `tasks`.
const TASK_CALLS: &str = "/requests/tools/call";

/// What we say about ourselves.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    info: Box<RawValue>,
}

impl ClientInfo {
    /// A client of this name and version.
    pub(crate) fn new(name: &str, version: &str) -> Self {
        let info = to_raw_value(&json!({ "name": name, "version": version }));
        Self {
            info: info.unwrap_or_else(|_| RawValue::NULL.to_owned()),
        }
    }
}

/// What a handshake needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    /// Who we are.
    pub client: Arc<ClientInfo>,
    /// How messages travel.
    pub delivery: MessageDelivery,
    /// Which era to speak.
    pub mode: ProtocolMode,
    /// The era it spoke last time; only asked when `mode` leaves it open.
    pub remembered: Option<Era>,
    /// Whether another channel of the same attempt already ended or went silent.
    pub again: bool,
    /// The longest that one step may take.
    pub timeout: Duration,
}

/// Listens in on a channel: every message, as it is sent and as it came. It must not block.
pub(crate) trait ChannelTap: Send + Sync {
    /// We sent this.
    fn sent(&self, message: &[u8]);
    /// The server sent this.
    fn received(&self, message: &[u8]);
}

/// Puts the protocol on a channel. The caller runs the pump and then greets.
pub(crate) fn open(
    channel: Channel,
    client_side: ClientSide,
    tap: Option<Arc<dyn ChannelTap>>,
) -> (Correlator, Pump) {
    correlator::open(channel, inbound::Reception::new(client_side), tap)
}

/// Settles era, version and capabilities with the server.
pub(crate) async fn greet(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<Session, ConnectError> {
    let facts = probe::settle(correlator, greeting).await?;
    let version_header = match facts.era {
        Era::Legacy => headers::legacy(&facts.protocol_version),
        Era::Modern => {
            correlator.reception().settle(Era::Modern, Vec::new());
            Vec::new()
        }
    };
    if greeting.delivery == MessageDelivery::PerRequest {
        correlator.reception().note_streams();
    }
    let inner = SessionInner {
        correlator: correlator.clone(),
        client: Arc::clone(&greeting.client),
        delivery: greeting.delivery,
        facts,
        version_header,
    };
    Ok(Session::of_host(Arc::new(inner)))
}

/// A handle to a settled session; clones share it.
#[derive(Clone)]
pub(crate) struct Session {
    inner: Arc<SessionInner>,
    /// What its requests are sent for; nothing where they are the host's own.
    origin: Option<Arc<RequestOrigin>>,
    /// What headers say of a trace where they are.
    trace: Option<Arc<TraceContext>>,
}

struct SessionInner {
    correlator: Correlator,
    client: Arc<ClientInfo>,
    delivery: MessageDelivery,
    facts: ServerFacts,
    version_header: Vec<(http::HeaderName, http::HeaderValue)>,
}

impl Session {
    /// A handle for requests of the host's own.
    fn of_host(inner: Arc<SessionInner>) -> Self {
        Self {
            inner,
            origin: None,
            trace: None,
        }
    }

    /// What the handshake settled.
    pub(crate) fn facts(&self) -> &ServerFacts {
        &self.inner.facts
    }

    /// Sends a request and waits for its result, through as many rounds of input and as long a task
    /// as the server makes of it. Dropping the future cancels the request at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &RawValue,
        options: &RequestOptions<'_>,
    ) -> RequestResult {
        let (timeout, tool, is_task) = (options.timeout, options.tool, options.is_task);
        let passed_on = match &options.origin {
            Some(origin) if !origin.passes_on_within(self.inner.facts.era) => PassedOn::default(),
            _ => options.passed_on,
        };
        let deadline = Deadline::new(timeout, options.idle);
        let deadline = deadline.with_answer_timeout(options.answer_timeout);
        let progress = options.progress.clone();
        let session = &Session {
            inner: Arc::clone(&self.inner),
            origin: options.origin.clone(),
            trace: options.trace.clone(),
        };
        match self.inner.facts.era {
            Era::Legacy if passed_on.tasks && task_view::is_wanted(params) => {
                // The caller's own task, which it follows itself.
                let sent = legacy::request(session, method, params, deadline, progress);
                Box::pin(sent).await.map_err(refine)
            }
            Era::Legacy if tool.is_some_and(|tool| self.makes_task_of(tool)) => {
                let time = (timeout, deadline);
                // Boxed: most calls are no task, and must not carry the room for one along.
                Box::pin(legacy_task::drive(session, params, time, progress, is_task)).await
            }
            Era::Legacy if passed_on.input => {
                let sent = legacy::request(session, method, params, deadline, progress);
                Box::pin(sent).await.map_err(refine)
            }
            Era::Legacy => {
                url_elicitation::drive(session, method, params, deadline, progress).await
            }
            Era::Modern => {
                let request = modern::ModernRequest {
                    progress,
                    tool,
                    passed_on,
                    ..modern::ModernRequest::new(method, params, deadline)
                };
                rounds::drive(session, request, is_task).await
            }
        }
    }

    /// Sends a notification that the protocol does not have.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: &RawValue,
        origin: Option<&Arc<RequestOrigin>>,
    ) -> Result<(), RequestError> {
        let (bytes, headers) = match self.inner.facts.era {
            Era::Legacy => {
                let bytes = envelope::notification(method, Some(params));
                (bytes, self.inner.version_header.clone())
            }
            Era::Modern => modern::notification(self, method, params, origin)?,
        };
        self.inner.correlator.notify(bytes, headers).await
    }

    /// Whether a legacy server declared this about tasks.
    fn offers_tasks(&self, what: &str) -> bool {
        let tasks = self.inner.facts.capabilities.get("tasks");
        tasks.is_some_and(|tasks| tasks.pointer(what).is_some_and(|it| !it.is_null()))
    }

    /// Whether a legacy call of this tool has to be a task. Where the server does not make tasks of
    /// calls, none may be asked for, whatever its tools say.
    fn makes_task_of(&self, tool: &Tool) -> bool {
        tool.requires_task && self.offers_tasks(TASK_CALLS)
    }

    /// Whether the server declared what this list is of.
    pub(crate) fn offers(&self, list: ListKind) -> bool {
        let capability = self.inner.facts.capabilities.get(list.word());
        capability.is_some_and(|capability| !capability.is_null())
    }

    /// Whether arguments of tools are mirrored into headers where their schemas ask for it.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        self.inner.facts.era == Era::Modern && self.inner.delivery == MessageDelivery::PerRequest
    }

    /// Whether the server may answer a call with a task.
    fn has_tasks(&self) -> bool {
        let extensions = self.inner.facts.capabilities.get("extensions");
        extensions
            .and_then(|extensions| extensions.get(task_view::EXTENSION))
            .is_some_and(|extension| !extension.is_null())
    }

    fn correlator(&self) -> &Correlator {
        &self.inner.correlator
    }

    /// Who answers what the server asks because of its requests.
    fn client_side(&self) -> ClientSide {
        let origin = self.origin.as_slice();
        self.reception().client_side().during(origin)
    }

    fn reception(&self) -> &inbound::Reception {
        self.inner.correlator.reception()
    }

    /// Lets the next read of this resource go to the server, whatever was read before.
    pub(crate) fn forget_resource(&self, uri: &str) {
        self.reception().freshness().forget_resource(uri);
    }

    /// Has a list fetched again as if the server had said that it changed.
    fn suspect(&self, list: ListKind) {
        self.inner.correlator.suspect(list);
    }

    /// How often the server said that each list changed.
    pub(crate) fn changes(&self) -> watch::Receiver<ListChanges> {
        self.inner.correlator.changes()
    }

    /// Which resources the server says have changed, from now on.
    pub(crate) fn updates(&self) -> broadcast::Receiver<Untrusted> {
        self.inner.correlator.updates()
    }

    /// Waits until the channel has ended, and says why.
    pub(crate) async fn closed(&self) -> CloseReason {
        self.inner.correlator.closed().await
    }

    /// Does something between two messages of one request. The server owes nothing meanwhile, so
    /// its end would go unnoticed: the end of the channel is watched for here.
    async fn between<T>(
        &self,
        deadline: Deadline,
        work: impl Future<Output = T>,
    ) -> Result<T, RequestError> {
        tokio::select! {
            biased;
            done = deadline.unless_over(work) => done,
            reason = self.closed() => Err(RequestError::Closed(reason)),
        }
    }

    /// What the server sent that had no place to go.
    pub(crate) fn strays(&self) -> Strays {
        self.inner.correlator.strays()
    }
}

/// A status whose body is a JSON-RPC error is that error: modern servers answer `404` to an
/// unknown method. Statuses that say something about the login or the session stay statuses.
fn refine(error: RequestError) -> RequestError {
    let RequestError::Send(SendFailure::Status {
        status,
        body,
        had_session,
        ..
    }) = &error
    else {
        return error;
    };
    if matches!(status, 401 | 403) || (*status == 404 && *had_session) {
        return error;
    }
    rpc_error(body).map_or(error, RequestError::Rpc)
}

/// The error of the protocol in the body of a status.
fn rpc_error(body: &[u8]) -> Option<RpcError> {
    match envelope::parse(body) {
        Ok(Message::Response { outcome, .. }) => outcome.err(),
        _ => None,
    }
}

/// Puts together what is kept of a handshake, cleaned.
fn facts(
    era: Era,
    protocol_version: String,
    server_info: Value,
    capabilities: Value,
    instructions: &Value,
) -> ServerFacts {
    let instructions = instructions
        .as_str()
        .filter(|text| !text.trim().is_empty())
        .map(|text| Untrusted::new(Untrusted::new(text).cut(MAX_INSTRUCTIONS)));
    let server_info = if server_info.is_object() {
        clean(server_info)
    } else {
        Value::Null
    };
    ServerFacts {
        era,
        protocol_version,
        server_info,
        capabilities,
        instructions,
    }
}

/// Cleans every string of a value, keys included.
fn clean(value: Value) -> Value {
    let clean_text = |text: String| Untrusted::new(text).to_string();
    match value {
        Value::String(text) => Value::String(clean_text(text)),
        Value::Array(items) => items.into_iter().map(clean).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| (clean_text(key), clean(value)))
            .collect(),
        other => other,
    }
}

/// Raw JSON from a literal of ours.
fn raw(literal: &str) -> Box<RawValue> {
    RawValue::from_string(literal.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests;
