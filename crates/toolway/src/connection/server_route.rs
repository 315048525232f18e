//! The route to one server, through its session slot.
//!
//! Owns sending: a session that the server forgot is asked for anew, and the call that found out is
//! sent once more. So is one that the server refused for want of scopes, after a login with more
//! scopes. Nothing else is ever sent twice. A way to a server that has gone to rest since wakes it, and
//! has the request sent by the way that there is then: nothing of it was sent before.
//! Does not own what outcomes say about the session (`open_session.rs`), nor which instance a caller
//! needs (`instance.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolway_transport::{CloseReason, SendFailure};
use toolway_types::{ConnectionState, Era, Failure, ServerFacts, ServerName, Untrusted};
use toolway_wire::view::task;

use crate::auth::step_up::{Widened, Widener};
use crate::call::NotWidened;
use crate::connection::instance::{CallerInstance, OwnInstances};
use crate::connection::open_session::{FORGOTTEN, OpenSession, broken};
use crate::connection::session_slot::{SessionSlot, SlotState};
use crate::error::{RequestError, RequestResult, is_short, wants_login};
use crate::route::{RequestOptions, Route};
use crate::server_source::{ConnectGroup, ServerSource};
use crate::server_use::{ServerUse, UseInFlight};
use crate::snapshot::ServerWaker;

/// Longer than any program runs, and still a time that can be named.
const FOR_EVER: Duration = Duration::from_hours(10 * 365 * 24);

/// A route through this slot to a server of this source, whose login may be widened. `written` is what
/// it means that the server wants one, where its entry holds it.
pub(crate) fn route_through(
    slot: &SessionSlot,
    source: &ServerSource,
    widener: Option<Widener>,
    written: Option<Failure>,
    instances: Option<OwnInstances>,
    served: Option<ServedUse>,
) -> Arc<dyn Route> {
    Arc::new(ServerRoute {
        served,
        instances,
        widener,
        written,
        state: slot.entrance(),
        timeout: source.timeout(),
        request_timeout: source.request_timeout(),
        idle: usual_idle(source.group()),
        network: match source.group() {
            ConnectGroup::Local => "pipe",
            ConnectGroup::Remote => "tcp",
        },
        is_editor: source.is_editor(),
    })
}

/// Whether a request is let in, and what becomes of one that is not.
pub(crate) struct ServedUse {
    /// What counts the requests.
    pub(crate) usage: Arc<ServerUse>,
    /// Whether callers may follow tasks there.
    pub(crate) makes_tasks: bool,
    /// The server, and who wakes it.
    pub(crate) server: ServerName,
    pub(crate) waker: ServerWaker,
}

/// Whether a server says that calls may become tasks.
pub(crate) fn makes_tasks(facts: &ServerFacts) -> bool {
    let is_object = |capability: Option<&Value>| capability.is_some_and(Value::is_object);
    let capabilities = &facts.capabilities;
    match facts.era {
        Era::Legacy => is_object(capabilities.get("tasks")),
        Era::Modern => {
            let extensions = capabilities.get("extensions");
            is_object(extensions.and_then(|extensions| extensions.get(task::EXTENSION)))
        }
    }
}

struct ServerRoute {
    /// Whether it lets requests in; always without.
    served: Option<ServedUse>,
    /// For callers that do not share what is in the slot.
    instances: Option<OwnInstances>,
    widener: Option<Widener>,
    written: Option<Failure>,
    state: watch::Receiver<SlotState>,
    timeout: Option<Duration>,
    request_timeout: Option<Duration>,
    idle: Duration,
    network: &'static str,
    is_editor: bool,
}

/// A call inside: the session does not end in an orderly way before this is dropped.
struct EnteredSession {
    open_session: Arc<OpenSession>,
    counted: TaskTrackerToken,
}

impl ServerRoute {
    /// Takes the session, waiting in time while a connection is being made. `spent` is the session
    /// that the caller has tried already.
    async fn enter(
        slot: &mut watch::Receiver<SlotState>,
        deadline: Instant,
        spent: Option<&Arc<OpenSession>>,
    ) -> Result<EnteredSession, RequestError> {
        let of_use = |open_session: &Arc<OpenSession>| {
            // A session that has ended or is in doubt is about to be replaced, and nothing was
            // sent yet.
            spent.is_none_or(|spent| !Arc::ptr_eq(spent, open_session)) && open_session.is_of_use()
        };
        let settled = slot.wait_for(|state| match state {
            SlotState::Waiting => false,
            SlotState::Open(open_session) => of_use(open_session),
            SlotState::Shut(_) => true,
        });
        let now = tokio::time::timeout_at(deadline, settled).await;
        match now.map_err(|_| RequestError::TimedOut)?.as_deref() {
            // Counted while the slot cannot change, so that its next change sees this call.
            Ok(SlotState::Open(open_session)) => Ok(EnteredSession {
                open_session: Arc::clone(open_session),
                counted: open_session.token(),
            }),
            Ok(SlotState::Shut(state)) => Err(RequestError::Unavailable(state.clone())),
            Ok(SlotState::Waiting) | Err(_) => Err(RequestError::Closed(CloseReason::Asked)),
        }
    }

    /// Sends a request by the way that there is once the server is awake.
    async fn request_awake(
        served: &ServedUse,
        method: &str,
        params: Box<RawValue>,
        mut options: RequestOptions<'_>,
    ) -> RequestResult {
        let began = Instant::now();
        let awake = served.waker.wake_route(&served.server);
        let route = tokio::time::timeout(options.timeout, awake).await;
        let route = route.map_err(|_| RequestError::TimedOut)??;
        options.timeout = options.timeout.saturating_sub(began.elapsed());
        route.request(method, params, options).await
    }

    /// The same of a notification.
    async fn notify_awake(
        served: &ServedUse,
        method: &str,
        params: &RawValue,
        mut options: RequestOptions<'_>,
    ) -> Result<(), RequestError> {
        let began = Instant::now();
        let awake = served.waker.wake_route(&served.server);
        let route = tokio::time::timeout(options.timeout, awake).await;
        let route = route.map_err(|_| RequestError::TimedOut)??;
        options.timeout = options.timeout.saturating_sub(began.elapsed());
        route.notify(method, params, options).await
    }

    /// Lets a request in; an error with who wakes the server, once it rests.
    fn enter_use(&self) -> Result<Option<UseInFlight<'_>>, &ServedUse> {
        match &self.served {
            Some(served) => served.usage.enter().map(Some).ok_or(served),
            None => Ok(None),
        }
    }

    /// Takes note of a task that the caller follows itself. The outcome goes through: one that is only
    /// looked at would be carried along for the rest of the request.
    fn noted(&self, request: &RoutedRequest<'_>, outcome: RequestResult) -> RequestResult {
        if request.options.passed_on.tasks
            && let Some(served) = self.served.as_ref().filter(|served| served.makes_tasks)
        {
            let (method, params) = (request.method, &request.params);
            served.usage.note_task(method, params, &outcome);
        }
        outcome
    }

    /// The instance that this request must go to, if not to that of the slot.
    fn instance_for(&self, options: &RequestOptions<'_>) -> Option<Arc<CallerInstance>> {
        let (instances, origin) = (self.instances.as_ref()?, options.origin.as_ref()?);
        instances.of(&origin.caller)
    }

    /// Where no login can be made, a server that wants one refuses what its entry has.
    fn blame(&self, error: RequestError) -> RequestError {
        let is_login = match &error {
            RequestError::Unavailable(state) => matches!(state, ConnectionState::NeedsAuth { .. }),
            error => error.transport_failure().is_some_and(wants_login),
        };
        match &self.written {
            Some(failure) if is_login => {
                RequestError::Unavailable(ConnectionState::Failed(failure.clone()))
            }
            _ => error,
        }
    }

    /// Sends a request, and again when the server had forgotten the session.
    async fn request_in_session(&self, request: &mut RoutedRequest<'_>) -> RequestResult {
        let EnteredSession {
            open_session,
            counted,
        } = Self::enter(&mut request.slot, request.deadline, None).await?;
        let outcome = request.attempt(&open_session).await;
        let expired = open_session.judge(&outcome);
        if !(expired && open_session.expires()) {
            return outcome.map_err(|error| open_session.explain(error));
        }
        // What became a task has begun, and would begin a second time.
        if request.is_task.load(Ordering::Relaxed) {
            return Err(broken(FORGOTTEN));
        }
        drop(counted);
        // Boxed: a session that is known must not carry the room for another along.
        Box::pin(self.request_again(request, &open_session)).await
    }

    /// Sends a request once more, in another session than this one.
    async fn request_again(
        &self,
        request: &mut RoutedRequest<'_>,
        spent: &Arc<OpenSession>,
    ) -> RequestResult {
        let entered = Self::enter(&mut request.slot, request.deadline, Some(spent)).await?;
        let open_session = &entered.open_session;
        let outcome = request.attempt(open_session).await;
        open_session.judge(&outcome);
        outcome.map_err(|error| open_session.explain(error))
    }

    /// Has the login widened that a request fell short of, and sends the request once more. The
    /// time that a person takes for it is not the request's.
    async fn request_after_step_up(
        &self,
        mut request: RoutedRequest<'_>,
        widener: &Widener,
        error: RequestError,
        began: Instant,
    ) -> RequestResult {
        // What became a task has begun, and would begin a second time.
        if request.is_task.load(Ordering::Relaxed) {
            return Err(error);
        }
        let Some(challenge) = challenge_of(&error) else {
            return Err(error);
        };
        let asked = Instant::now();
        let why = match widener
            .widen(challenge, began, request.options.origin.as_ref())
            .await
        {
            Widened::Unasked => return Err(error),
            Widened::No(why) => why,
            Widened::Yes => {
                let deadline = request.deadline.checked_add(asked.elapsed());
                request.deadline = deadline.unwrap_or(request.deadline);
                match self.request_in_session(&mut request).await {
                    Err(again) if challenge_of(&again).is_some() => {
                        return Err(not_widened(&again, NotWidened::StillRefused));
                    }
                    outcome => {
                        if matches!(outcome, Ok(_) | Err(RequestError::Rpc(_))) {
                            widener.helped();
                        }
                        return outcome;
                    }
                }
            }
        };
        Err(not_widened(&error, why))
    }
}

/// A request on its way through the slot.
struct RoutedRequest<'a> {
    method: &'a str,
    params: Box<RawValue>,
    options: RequestOptions<'a>,
    deadline: Instant,
    /// Whether it has become a task.
    is_task: &'a AtomicBool,
    /// Where it comes in.
    slot: watch::Receiver<SlotState>,
    /// Kept until it is done, where its caller shares no other.
    _instance: Option<Arc<CallerInstance>>,
}

impl RoutedRequest<'_> {
    async fn attempt(&mut self, open_session: &OpenSession) -> RequestResult {
        self.options.timeout = self.deadline.saturating_duration_since(Instant::now());
        let session = &open_session.session;
        let (method, params) = (self.method, &self.params);
        session.request(method, params, &self.options).await
    }
}

/// What a server wants of the login that a request fell short of.
fn challenge_of(error: &RequestError) -> Option<&str> {
    let RequestError::Send(SendFailure::Status {
        status: 403,
        www_authenticate,
        ..
    }) = error
    else {
        return None;
    };
    www_authenticate.as_deref().filter(|it| is_short(Some(it)))
}

fn not_widened(error: &RequestError, why: NotWidened) -> RequestError {
    let challenge = challenge_of(error).unwrap_or_default();
    RequestError::NotWidened {
        challenge: Untrusted::new(challenge),
        why,
    }
}

/// How long a server of this kind may be silent. A local server that works for long can at least be
/// looked at; one across a network may be gone without notice.
fn usual_idle(group: ConnectGroup) -> Duration {
    match group {
        ConnectGroup::Local => Duration::from_mins(30),
        ConnectGroup::Remote => Duration::from_mins(5),
    }
}

impl Route for ServerRoute {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Box<RawValue>,
        options: RequestOptions<'a>,
    ) -> BoxFuture<'a, RequestResult> {
        let in_flight = match self.enter_use() {
            Ok(in_flight) => in_flight,
            Err(served) => {
                return Box::pin(Self::request_awake(served, method, params, options));
            }
        };
        Box::pin(async move {
            let _in_flight = in_flight;
            let began = Instant::now();
            let deadline = began.checked_add(options.timeout);
            let is_task = AtomicBool::new(false);
            let is_task = options.is_task.unwrap_or(&is_task);
            let instance = self.instance_for(&options);
            let mut request = RoutedRequest {
                slot: instance
                    .as_ref()
                    .map_or_else(|| self.state.clone(), |instance| instance.entrance()),
                _instance: instance,
                method,
                params,
                is_task,
                options: RequestOptions {
                    is_task: Some(is_task),
                    ..options
                },
                deadline: deadline.unwrap_or(began + FOR_EVER),
            };
            let outcome = self.request_in_session(&mut request).await;
            let outcome = self.noted(&request, outcome);
            if let Some(instances) = &self.instances {
                instances.note_end_of_request();
            }
            match (outcome, &self.widener) {
                (Err(error), Some(widener)) if challenge_of(&error).is_some() => {
                    // Boxed: a call that is not refused must not carry the room for it along.
                    Box::pin(self.request_after_step_up(request, widener, error, began)).await
                }
                (outcome, _) => outcome.map_err(|error| self.blame(error)),
            }
        })
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: &'a RawValue,
        options: RequestOptions<'a>,
    ) -> BoxFuture<'a, Result<(), RequestError>> {
        let in_flight = match self.enter_use() {
            Ok(in_flight) => in_flight,
            Err(served) => {
                return Box::pin(Self::notify_awake(served, method, params, options));
            }
        };
        Box::pin(async move {
            let _in_flight = in_flight;
            let now = Instant::now();
            let deadline = now.checked_add(options.timeout).unwrap_or(now + FOR_EVER);
            let instance = self.instance_for(&options);
            let mut slot = instance
                .as_ref()
                .map_or_else(|| self.state.clone(), |instance| instance.entrance());
            let entered = Self::enter(&mut slot, deadline, None).await?;
            let session = &entered.open_session.session;
            let told = session.notify(method, params, options.origin.as_ref());
            tokio::time::timeout_at(deadline, told)
                .await
                .map_err(|_| RequestError::TimedOut)?
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn network(&self) -> Option<&'static str> {
        Some(self.network)
    }

    fn request_timeout(&self) -> Option<Duration> {
        self.request_timeout
    }

    fn usual_idle(&self) -> Option<Duration> {
        Some(self.idle)
    }

    fn is_editor(&self) -> bool {
        self.is_editor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocators keep small blocks at hand; larger ones are looked for, for every request.
    #[test]
    fn a_request_fits_into_a_small_block() {
        let route = ServerRoute {
            served: None,
            instances: None,
            widener: None,
            written: None,
            state: watch::channel(SlotState::Waiting).1,
            timeout: None,
            request_timeout: None,
            idle: Duration::ZERO,
            network: "pipe",
            is_editor: false,
        };
        let options = RequestOptions::within(Duration::ZERO);
        let request = route.request("ping", RawValue::NULL.to_owned(), options);
        let room = size_of_val(&*request);
        assert!(room <= 1024, "{room}");
    }

    #[test]
    fn rel_09_a_remote_server_may_be_silent_for_less_long_than_a_local_one() {
        assert_eq!(usual_idle(ConnectGroup::Local), Duration::from_mins(30));
        assert_eq!(usual_idle(ConnectGroup::Remote), Duration::from_mins(5));
    }
}
