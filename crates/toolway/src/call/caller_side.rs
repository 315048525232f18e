//! One caller while it is attached, and the requests that are sent for it.
//!
//! Owns what a request carries to servers of its caller: what that is asked through, its roots, and
//! what is to be said with the request. Who a caller is, is `caller.rs`.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use toolway_types::{Era, ServerName};
use toolway_wire::{RawJson, RpcError, TraceContext, error};

use super::attention::Attention;
use super::caller::{Caller, CallerKind};
use super::log_message::LogSink;
use super::questions::{AskedSide, CausingRequest, QuestionAsker};
use super::server_notice::NoticeSink;
use super::{CallOptions, Continuations};
use crate::client_handler::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, Root};
use crate::lock::lock;

/// One caller while it is attached, as far as requests carry it to servers. Told apart by identity:
/// two of equal names are two.
pub struct CallerSide {
    pub(crate) caller: Caller,
    /// What it is asked through.
    pub(crate) asker: Arc<QuestionAsker>,
    /// Its roots of this moment.
    pub(crate) roots: watch::Sender<Arc<[Root]>>,
    /// Whether it is being asked anything.
    pub(crate) attention: Attention,
    /// What ends with it, by server: instances of servers that it shares with nobody.
    pub(crate) instances: HeldInstances,
    /// What runs the hooks of the host that it is attached to, which holds this in turn.
    hooks: OnceLock<Weak<dyn Any + Send + Sync>>,
}

/// What a caller holds of servers that it does not share, whatever that is.
pub(crate) type HeldInstances = Arc<Mutex<BTreeMap<ServerName, Arc<dyn Any + Send + Sync>>>>;

impl CallerSide {
    /// A caller whose requests cause such questions to be answered by `client_handler`, if by any.
    pub fn new(
        caller: Caller,
        client_handler: Option<Arc<dyn ClientHandler>>,
        roots: Vec<Root>,
    ) -> Self {
        let asked = AskedSide {
            client_handler,
            ..AskedSide::default()
        };
        Self::asked(caller, asked, roots)
    }

    /// A caller that is asked in this way.
    pub(crate) fn asked(caller: Caller, side: AskedSide, roots: Vec<Root>) -> Self {
        let attention = Attention::default();
        let asker = QuestionAsker::new(caller.clone(), side, attention.clone());
        Self {
            caller,
            asker: Arc::new(asker),
            roots: watch::Sender::new(Arc::from(roots)),
            attention,
            instances: HeldInstances::default(),
            hooks: OnceLock::new(),
        }
    }

    /// Has the hooks of its own host asked about what its requests cause, over whosever connection
    /// they go.
    pub(crate) fn heed_hooks(&self, hooks: &Arc<impl Any + Send + Sync>) {
        let hooks = Arc::downgrade(hooks);
        // Set once: a caller has one host.
        let _ = self.hooks.set(hooks);
    }

    /// What runs the hooks of its host, if that is there and this is it.
    pub(crate) fn hooks<Runner: Any + Send + Sync>(&self) -> Option<Arc<Runner>> {
        self.hooks.get()?.upgrade()?.downcast().ok()
    }

    /// Who answers what servers ask because of these requests of it; none where nobody does.
    pub(crate) fn asked_about(
        &self,
        requests: &[Arc<RequestOrigin>],
    ) -> Option<Arc<dyn ClientHandler>> {
        let cause = requests
            .iter()
            .map(|it| Arc::clone(it) as Arc<dyn CausingRequest>);
        // Of several on one pipe one that waits for no other answer: a server that waits for one
        // asks nothing else because of the same request. They are of one caller, so no other hears
        // of it if that is wrong.
        let asked = || requests.iter().filter(|it| it.client_handler.is_some());
        let chosen = asked().find(|it| it.asking.load(Ordering::Acquire) == 0);
        let chosen = chosen.or_else(|| asked().next());
        let of_request = chosen.map(|origin| {
            origin.asking.fetch_add(1, Ordering::AcqRel);
            let asking = AskingRequest(Arc::clone(origin));
            Arc::new(asking) as Arc<dyn ClientHandler>
        });
        self.asker.client_handler(cause.collect(), of_request)
    }

    /// The same one acting in another name: what it causes is asked of the same person.
    pub(crate) fn acting_as(&self, kind: CallerKind, name: &str) -> Self {
        Self {
            caller: Caller {
                principal: Arc::clone(&self.caller.principal),
                ..Caller::new(kind, name)
            },
            asker: Arc::clone(&self.asker),
            roots: watch::Sender::new(Arc::clone(&self.roots.borrow())),
            attention: self.attention.clone(),
            instances: Arc::clone(&self.instances),
            hooks: self.hooks.clone(),
        }
    }

    /// Whether both act for the same attachment.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.asker, &other.asker)
    }

    /// The same as whoever an instance of its own asks. It holds no instances: they would hold each
    /// other.
    pub(crate) fn as_owner_of_instance(&self) -> Self {
        Self {
            caller: self.caller.clone(),
            asker: Arc::clone(&self.asker),
            roots: self.roots.clone(),
            attention: self.attention.clone(),
            instances: HeldInstances::default(),
            hooks: self.hooks.clone(),
        }
    }
}

impl Default for CallerSide {
    /// The owner, of whom nothing can be asked.
    fn default() -> Self {
        Self::new(Caller::default(), None, Vec::new())
    }
}

impl fmt::Debug for CallerSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(formatter)
    }
}

/// What one request was sent for. A server's question that it causes is asked of this caller, and
/// what there is to say about the question is said with this request.
pub(crate) struct RequestOrigin {
    pub(crate) caller: Arc<CallerSide>,
    /// The tool that it calls, by its own name.
    tool: Option<Arc<str>>,
    remarks: Mutex<Vec<String>>,
    logs: Option<LogSink>,
    notices: Option<NoticeSink>,
    stated: Option<RawJson>,
    client_handler: Option<Arc<dyn ClientHandler>>,
    /// How many questions it is being asked.
    asking: AtomicUsize,
    continuations: Continuations,
    trace: Option<Box<SentTrace>>,
    is_over: AtomicBool,
    ended: Notify,
}

/// What a server is told of a trace, and how it was told.
struct SentTrace {
    context: TraceContext,
    sent: OnceLock<SentRequest>,
}

/// A request as it went out.
#[derive(Debug, Clone)]
pub(crate) struct SentRequest {
    pub(crate) id: u64,
    pub(crate) version: Arc<str>,
}

impl RequestOrigin {
    /// Of a request that says nothing of its own.
    #[cfg(test)]
    pub(crate) fn of(caller: &Arc<CallerSide>, tool: Option<Arc<str>>) -> Arc<Self> {
        let options = CallOptions::new(super::Consent::Typed);
        Self::under(caller, tool, &options, None)
    }

    /// Of a request under these conditions, for a call of this tool, if for one. Servers are told
    /// this of its trace.
    pub(crate) fn under(
        caller: &Arc<CallerSide>,
        tool: Option<Arc<str>>,
        options: &CallOptions,
        trace: Option<&TraceContext>,
    ) -> Arc<Self> {
        Arc::new(Self {
            caller: Arc::clone(caller),
            tool,
            logs: options.logs.clone(),
            notices: options.notices.clone(),
            stated: options.capabilities.clone(),
            client_handler: options.asked.client_handler.clone(),
            asking: AtomicUsize::new(0),
            continuations: options.continuations,
            trace: trace.map(|context| {
                Box::new(SentTrace {
                    context: context.clone(),
                    sent: OnceLock::new(),
                })
            }),
            remarks: Mutex::default(),
            is_over: AtomicBool::new(false),
            ended: Notify::new(),
        })
    }

    /// It is over when what is given is dropped.
    pub(crate) fn begin(&self) -> OriginGuard<'_> {
        OriginGuard(self)
    }

    /// Where goes what the server logs because of it, where the request says so itself.
    pub(crate) fn logs(&self) -> Option<&LogSink> {
        self.logs.as_ref()
    }

    /// Where goes what the server says beside the protocol because of it, where the request says so
    /// itself.
    pub(crate) fn notices(&self) -> Option<&NoticeSink> {
        self.notices.as_ref()
    }

    /// What the caller can be asked because of it, where the request says so itself.
    pub(crate) fn stated(&self) -> Option<&RawJson> {
        self.stated.as_ref()
    }

    /// Whether what is not the last word of a server of this era may be passed on.
    pub(crate) fn passes_on_within(&self, era: Era) -> bool {
        match self.continuations {
            Continuations::PassOnWithin(only) => only == era,
            Continuations::Drive | Continuations::PassOn => true,
        }
    }

    /// What the server is told of its trace, beside what its parameters say.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        Some(&self.trace.as_ref()?.context)
    }

    /// Notes how it went out, where somebody wants to know.
    pub(crate) fn note_sent(&self, id: u64, version: &str) {
        if let Some(trace) = &self.trace {
            // The first of several rounds counts.
            let version = Arc::from(version);
            let _ = trace.sent.set(SentRequest { id, version });
        }
    }

    /// How it went out.
    pub(crate) fn sent(&self) -> Option<&SentRequest> {
        self.trace.as_ref()?.sent.get()
    }

    /// Notes something: clean, on one line.
    pub(crate) fn remark(&self, remark: &str) {
        let mut remarks = lock(&self.remarks);
        if remarks.len() < MOST_REMARKS {
            remarks.push(remark.to_owned());
        }
    }

    /// What was noted.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
    }
}

impl fmt::Debug for RequestOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(formatter)
    }
}

impl CausingRequest for RequestOrigin {
    fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    fn over(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Before looking: an end in between is heard then.
            ended.as_mut().enable();
            if !self.is_over.load(Ordering::Acquire) {
                ended.await;
            }
        })
    }
}

/// Answers by the client handler of one request, which is being asked for as long as this is held.
struct AskingRequest(Arc<RequestOrigin>);

impl AskingRequest {
    fn inner(&self) -> Option<&dyn ClientHandler> {
        self.0.client_handler.as_deref()
    }
}

impl Drop for AskingRequest {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ClientHandler for AskingRequest {
    fn offers(&self) -> ClientOffers {
        self.inner().map(ClientHandler::offers).unwrap_or_default()
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        match self.inner() {
            Some(inner) => inner.elicit(server, request),
            None => Box::pin(std::future::ready(ElicitationAnswer::Cancel)),
        }
    }

    fn visited<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, ()> {
        match self.inner() {
            Some(inner) => inner.visited(server),
            None => Box::pin(std::future::pending()),
        }
    }

    fn roots<'a>(&'a self, server: &'a ServerName) -> Option<BoxFuture<'a, Vec<Root>>> {
        self.inner()?.roots(server)
    }

    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        if let Some(inner) = self.inner() {
            return inner.sample(server, request);
        }
        let nobody = RpcError::new(error::METHOD_NOT_FOUND, "method not found");
        Box::pin(std::future::ready(Err(nobody)))
    }
}

/// A request is over when this is dropped.
pub(crate) struct OriginGuard<'a>(&'a RequestOrigin);

impl Drop for OriginGuard<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.ended.notify_waiters();
    }
}

/// How many remarks one request carries.
const MOST_REMARKS: usize = 16;
