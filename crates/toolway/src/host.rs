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
use std::sync::atomic::AtomicU64;

use tokio::sync::{broadcast, watch};
use tokio_util::sync::DropGuard;
use toolway_config::Plan;
use toolway_transport::stdio::launcher::Launcher;
use toolway_types::{BytePool, ConnectionState};

pub use self::agent::{AgentError, AgentSpec};
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
use self::questions::LeavingParty;
use self::reload::Reload;
use self::view::ViewMaker;
pub use self::view::{ServerObstacle, View, ViewSpec};
use crate::account::DirectoryState;
use crate::audit::{Audit, AuditEntry};
use crate::auth::Auth;
use crate::call::questions::{AskedPrompter, AskedSide, QuestionBook};
use crate::call::{
    CallError, CallOptions, CallResult, Caller, CallerKind, CallerSide, Prompter, ToolRequest,
    ToolTarget,
};
use crate::catalog_memory::CatalogMemory;
use crate::dispatch::Dispatch;
use crate::dispatch::hooks::{HookRunner, HookRunnerOwner, LibraryHook};
use crate::event::{Changes, HostEvent, NoPlanSource, ToldCall, UnknownServer};
use crate::journal::Journal;
use crate::reconnect::Unless;
use crate::snapshot::HostSnapshot;
use crate::tasks::Task;

mod account;
mod agent;
mod attached;
mod background;
mod batch;
mod ending;
mod following;
mod logins;
mod offers;
mod options;
mod passing;
mod questions;
pub(crate) mod reload;
mod start;
mod view;

/// A running host.
pub struct Host {
    core: Arc<HostCore>,
    /// The owner's way in.
    own: Attached,
    reload: Arc<Reload>,
    following: Option<Task<()>>,
    journal: Option<Journal>,
    hooks: HookRunnerOwner,
    /// Ends every view with the host, whoever still holds one.
    stop: DropGuard,
    launcher: Launcher,
    auth: Option<Arc<Auth>>,
    attendant: Option<Task<()>>,
    catalogs: Option<CatalogMemory>,
}

/// A caller's way into a host.
pub struct Attached {
    core: Arc<HostCore>,
    party: Arc<CallingParty>,
    background: Background,
    _leaving: LeavingParty,
}

impl Attached {
    fn new(core: Arc<HostCore>, party: Arc<CallingParty>) -> Self {
        Self {
            _leaving: LeavingParty::of(&core, &party),
            core,
            party,
            background: Background::default(),
        }
    }
}

/// What a call needs of the host, so that one can outlive its caller.
struct HostCore {
    audit: Option<Audit>,
    runner: Arc<HookRunner>,
    output_dir: PathBuf,
    /// The memory that images of all results are decoded in.
    picture_memory: BytePool,
    events: broadcast::Sender<HostEvent>,
    /// How many calls were told of.
    calls: AtomicU64,
    views: Arc<ViewMaker>,
    questions: Arc<QuestionBook>,
}

impl Host {
    /// What happens from now on. A reader that is more than a thousand events behind loses the
    /// oldest; what is true now always stands in the snapshot.
    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.core.events.subscribe()
    }

    /// Ends whatever there is of this server's connection and connects anew, as at the first
    /// start. Returns the state once it is not `pending` any more; a server that may not connect
    /// stays `disabled`. Callers that ask at the same time share one connection.
    pub async fn reconnect(&self, server: &str) -> Result<ConnectionState, UnknownServer> {
        let unknown = || UnknownServer(server.to_owned());
        if let (Some(auth), Some(identity)) = (&self.auth, self.snapshot().identity(server)) {
            auth.forget_server(&identity).await;
        }
        let orders = self.party.view.orders();
        orders
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
        let asked = AskedSide {
            book: Arc::clone(&self.core.questions),
            is_owner: false,
            prompter: options.prompter,
            client_handler: options.client_handler,
            open_questions: options.open_questions,
        };
        let kind = caller.kind;
        let side = CallerSide::asked(caller, asked, options.roots);
        side.heed_hooks(&self.core.runner);
        let keeps_rules = options.keeps_rules || kind == CallerKind::Person;
        let answers = Arc::new(self.own.party.answers.of_another_caller(kind, keeps_rules));
        let view = options.view.unwrap_or_else(|| self.own.party.view.clone());
        let party = CallingParty::new(Arc::new(side), answers, options.pool, view, options.consent);
        Attached::new(Arc::clone(&self.core), party)
    }

    /// Adds hooks that are functions of this program, for a front-end that learns of them once the
    /// host runs. Only once: gives false otherwise, and nothing is added then.
    pub fn add_hooks(&self, hooks: Vec<LibraryHook>) -> bool {
        self.core.runner.add(hooks)
    }

    /// A view of this host, for callers that see less than all of it, or servers of their own
    /// beside it. It follows the host's plan.
    pub async fn view(&self, spec: ViewSpec) -> View {
        self.reload.view(spec).await
    }

    /// Has a view of this host show something else from now on, to all who hold it: what it does not
    /// show any more is gone for them when this returns. The owner's own view stays as it is.
    pub async fn change_view(&self, view: &View, spec: ViewSpec) {
        if !view.is(self.own.view()) {
            self.reload.change_view(view, spec).await;
        }
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
    async fn call(
        &self,
        party: &CallingParty,
        mut request: ToolRequest,
        mut options: CallOptions,
    ) -> CallResult {
        if options.pool.is_none() {
            options.pool.clone_from(&party.pool);
        }
        let told = ToldCall::begin(&self.events, &self.calls, &party.side.caller, || {
            party.tool_of(&request.target)
        });
        let mut entry = AuditEntry::begin(self.audit.as_ref(), &request, &party.side);
        let outcome = match self
            .await_servers(party, &request, &options, &mut entry)
            .await
        {
            Ok(snapshot) => {
                let prompter = party.side.asker.prompter(options.asked.prompter.as_ref());
                let dispatch = self.dispatch(party, &snapshot, prompter.as_ref());
                dispatch.run(&mut request, &options, &mut entry).await
            }
            Err(error) => Err(error),
        };
        entry.finish(&outcome).await;
        if let Some(mut told) = told {
            told.note_end(&outcome);
        }
        outcome
    }

    /// Waits for the servers that a call is about, and gives the snapshot that it runs by.
    async fn await_servers(
        &self,
        party: &CallingParty,
        request: &ToolRequest,
        options: &CallOptions,
        entry: &mut AuditEntry,
    ) -> Result<Arc<HostSnapshot>, CallError> {
        let waits = || entry.awaited(&request.arguments);
        let snapshot = party.await_server(&request.target, options, waits).await?;
        // A tool of the host's own may be about a server, which is waited for as well.
        match snapshot.awaited.then(|| snapshot.aim(request)).flatten() {
            Some(key) => {
                let target = ToolTarget::Key(key);
                party.await_server(&target, options, || ()).await
            }
            None => Ok(snapshot),
        }
    }

    /// What runs calls by this snapshot.
    fn dispatch<'a>(
        &'a self,
        party: &'a CallingParty,
        snapshot: &'a HostSnapshot,
        prompter: Option<&'a AskedPrompter<'a>>,
    ) -> Dispatch<'a> {
        Dispatch {
            caller: &party.side,
            prompter: prompter.map(|prompter| prompter as &dyn Prompter),
            newest: Some(&party.view),
            asks_owner: prompter.is_some_and(AskedPrompter::asks_owner),
            approvals: &party.answers,
            picture_memory: &self.picture_memory,
            ..self.runner.dispatch(snapshot)
        }
    }
}
