//! The host: the only type front-ends use.
//!
//! Owns the way in: start, look, wait, call, change, stop. The work is elsewhere: servers in
//! `supervisor.rs`, calls in `dispatch.rs`. How the parts are put together is `start.rs`; what a
//! host does with skills is `skills.rs`.
//!
//! Invariant: the host owns its tasks as a tree. `shutdown` ends them in an orderly way and
//! returns when every process is gone; dropping a host aborts them, and their processes with
//! them.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolway_config::Plan;
use toolway_transport::stdio::launcher::Launcher;
use toolway_types::{BytePool, ConnectionState, ToolKey};

pub use self::attached::AttachOptions;
use self::attached::CallingParty;
use self::background::Background;
pub use self::background::{
    BackgroundCall, CallHandle, CallId, CallStage, Called, CollectError, TooManyCalls,
};
pub use self::following::{ResourceSubscription, SubscribeError};
pub use self::offers::{CompletionReference, PromptOutcome, ResourceOutcome, Suggestions};
pub use self::options::HostOptions;
pub use self::passing::{PassedAnswer, PassedMethod, PassedTask, TaskStep};
use self::reload::Reload;
use crate::account::DirectoryState;
use crate::audit::{Audit, AuditEntry};
use crate::auth::Auth;
use crate::call::{
    CallError, CallOptions, CallResult, Caller, CallerSide, LogInterests, ToolRequest, ToolTarget,
};
use crate::catalog_memory::CatalogMemory;
use crate::connection::ResourceInterests;
use crate::dispatch::Dispatch;
use crate::dispatch::hooks::{HookRunner, HookRunnerOwner};
use crate::event::{Changes, HostEvent, NoPlanSource, UnknownServer};
use crate::journal::Journal;
use crate::reconnect::{ServerOrders, Unless};
use crate::snapshot::{HostSnapshot, ServerSnapshot};
use crate::supervisor::ApplyPlan;
use crate::tasks::Task;

mod account;
mod attached;
mod background;
mod batch;
mod ending;
mod following;
mod logins;
mod offers;
mod options;
mod passing;
pub(crate) mod reload;
mod start;

/// A running host.
pub struct Host {
    core: Arc<HostCore>,
    /// The owner's way in.
    own: Attached,
    reload: Arc<Reload>,
    following: Option<Task<()>>,
    journal: Option<Journal>,
    hooks: HookRunnerOwner,
    stop: CancellationToken,
    launcher: Launcher,
    auth: Option<Arc<Auth>>,
    attendant: Option<Task<()>>,
    supervisor: Task<()>,
    catalogs: Option<CatalogMemory>,
}

/// A caller's way into a host.
pub struct Attached {
    core: Arc<HostCore>,
    party: Arc<CallingParty>,
    background: Background,
}

impl Attached {
    fn new(core: Arc<HostCore>, party: Arc<CallingParty>) -> Self {
        Self {
            core,
            party,
            background: Background::default(),
        }
    }
}

/// What a call needs of the host, so that one can outlive its caller.
struct HostCore {
    snapshots: watch::Receiver<Arc<HostSnapshot>>,
    orders: ServerOrders,
    plans: mpsc::Sender<ApplyPlan>,
    audit: Option<Audit>,
    runner: Arc<HookRunner>,
    output_dir: PathBuf,
    /// The memory that images of all results are decoded in.
    picture_memory: BytePool,
    events: broadcast::Sender<HostEvent>,
    interests: Arc<ResourceInterests>,
    logs: Arc<LogInterests>,
}

impl Host {
    /// Every snapshot from now on; a slow reader sees the newest only.
    pub fn watch(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.core.snapshots.clone()
    }

    /// What happens from now on. A reader that is more than a thousand events behind loses the
    /// oldest; what is true now always stands in the snapshot.
    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.core.events.subscribe()
    }

    /// Waits until no server is still connecting for the first time.
    pub async fn settled(&self) {
        // An error means that the supervisor is gone, and then nothing connects any more.
        let _ = self
            .watch()
            .wait_for(|snapshot| snapshot.is_settled())
            .await;
    }

    /// Waits until this server is not connecting any more. An unknown server is not.
    pub async fn ready(&self, server: &str) {
        self.core.ready(server).await;
    }

    /// Ends whatever there is of this server's connection and connects anew, as at the first
    /// start. Returns the state once it is not `pending` any more; a server that may not connect
    /// stays `disabled`. Callers that ask at the same time share one connection.
    pub async fn reconnect(&self, server: &str) -> Result<ConnectionState, UnknownServer> {
        let unknown = || UnknownServer(server.to_owned());
        let core = &self.core;
        if let Some(auth) = &self.auth {
            auth.forget_server(server).await;
        }
        core.orders
            .reconnect(server, Unless::Never)
            .await
            .unwrap_or_else(|| Err(unknown()))?;
        self.ready(server).await;
        let snapshot = self.snapshot();
        let shown = snapshot.server(server).ok_or_else(unknown)?;
        Ok(shown.state.clone())
    }

    /// Puts a new plan in the place of the old one. Servers are compared by their definitions:
    /// only what changed starts, stops or is replaced, and calls in flight finish on the old
    /// connection (half a minute at most). Rules, hooks and limits hold for every call that
    /// starts afterwards.
    pub async fn apply(&self, plan: Plan) -> Changes {
        self.reload.apply(plan).await
    }

    /// Makes a fresh plan and applies it.
    pub async fn reload(&self) -> Result<Changes, NoPlanSource> {
        self.reload.reload().await
    }

    /// What is known of the account's connectors, and every change of it; nothing without an
    /// account.
    pub fn directory(&self) -> Option<watch::Receiver<DirectoryState>> {
        self.reload.account.directory()
    }

    /// Lets a caller in: an agent, a client of the gateway, another front-end. What is asked because
    /// of its requests is asked of it, and what it is permitted for its session is permitted to it
    /// alone. Dropping what is given ends its calls in the background.
    pub fn attach(&self, caller: Caller, options: AttachOptions) -> Attached {
        let side = CallerSide::new(caller, options.client_handler, options.roots);
        let answers = Arc::new(self.own.party.answers.of_another_caller());
        let party = CallingParty::new(Arc::new(side), options.prompter, answers, options.pool);
        Attached::new(Arc::clone(&self.core), party)
    }
}

/// A host is its owner's way in as well.
impl Deref for Host {
    type Target = Attached;

    fn deref(&self) -> &Attached {
        &self.own
    }
}

impl HostCore {
    fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    async fn ready(&self, server: &str) {
        let pending = |snapshot: &Arc<HostSnapshot>| {
            snapshot
                .server(server)
                .is_some_and(ServerSnapshot::is_pending)
        };
        let mut snapshots = self.snapshots.clone();
        let _ = snapshots.wait_for(|snapshot| !pending(snapshot)).await;
    }

    async fn call(
        &self,
        party: &CallingParty,
        mut request: ToolRequest,
        mut options: CallOptions,
    ) -> CallResult {
        if options.pool.is_none() {
            options.pool.clone_from(&party.pool);
        }
        let mut entry = AuditEntry::begin(self.audit.as_ref(), &request, &party.side);
        let outcome = match self.await_servers(&request, &options, &mut entry).await {
            Ok(snapshot) => {
                let dispatch = self.dispatch(party, &snapshot);
                dispatch.run(&mut request, &options, &mut entry).await
            }
            Err(error) => Err(error),
        };
        entry.finish(&outcome).await;
        outcome
    }

    /// Waits for the servers that a call is about, and gives the snapshot that it runs by.
    async fn await_servers(
        &self,
        request: &ToolRequest,
        options: &CallOptions,
        entry: &mut AuditEntry,
    ) -> Result<Arc<HostSnapshot>, CallError> {
        let waits = || entry.awaited(&request.arguments);
        let snapshot = self.await_server(&request.target, options, waits).await?;
        // A tool of the host's own may be about a server, which is waited for as well.
        match snapshot.awaited.then(|| snapshot.aim(request)).flatten() {
            Some(key) => {
                self.await_server(&ToolTarget::Key(key), options, || ())
                    .await
            }
            None => Ok(snapshot),
        }
    }

    /// What runs calls by this snapshot.
    fn dispatch<'a>(&'a self, party: &'a CallingParty, snapshot: &'a HostSnapshot) -> Dispatch<'a> {
        Dispatch {
            caller: &party.side,
            prompter: party.prompter.as_deref(),
            approvals: &party.answers,
            picture_memory: &self.picture_memory,
            ..self.runner.dispatch(snapshot)
        }
    }

    /// Waits for the server that a call names, if it is on its way, having said so with `waits`;
    /// gives the snapshot then.
    async fn await_server(
        &self,
        target: &ToolTarget,
        options: &CallOptions,
        waits: impl FnOnce(),
    ) -> Result<Arc<HostSnapshot>, CallError> {
        let snapshot = self.snapshot();
        let Some(server) = snapshot.absent(target) else {
            return Ok(snapshot);
        };
        waits();
        // Boxed: a call of a server that is there must not carry the room for waiting along.
        Box::pin(self.await_absent(&snapshot, server, target, options)).await?;
        Ok(self.snapshot())
    }

    async fn await_absent(
        &self,
        snapshot: &HostSnapshot,
        server: &ServerSnapshot,
        target: &ToolTarget,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        if matches!(server.state, ConnectionState::Failed(_)) {
            self.orders.revive(server.name.as_str()).await;
        }
        let general = || snapshot.general_limits().whole();
        let after = options.timeout.unwrap_or_else(general);
        let ready = tokio::time::timeout(after, self.ready(server.name.as_str())).await;
        ready.map_err(|_| {
            let (ToolTarget::Exposed(tool) | ToolTarget::Key(ToolKey { tool, .. })) = target;
            CallError::timed_out(&server.name, tool, after)
        })
    }
}
