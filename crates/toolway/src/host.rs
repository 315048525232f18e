//! The host: the only type front-ends use.
//!
//! Owns the way in: start, look, wait, call, change, stop. The work is elsewhere: servers in
//! `supervisor.rs`, calls in `dispatch.rs`. Parts: `options.rs` (what the embedding program
//! decides), `offers.rs` (resources and prompts), `following.rs` (resources that change),
//! `batch.rs` (several calls at once), `background.rs` (calls that nobody waits for),
//! `attention.rs` (permission is asked for one call at a time), `logins.rs` (logging in and out),
//! `ending.rs` (the orderly end, and what is kept for the next run).
//! What a host does with skills is `skills.rs`.
//!
//! Invariant: the host owns its tasks as a tree. `shutdown` ends them in an orderly way and
//! returns when every process is gone; dropping a host aborts them, and their processes with
//! them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolway_auth::references::References;
use toolway_config::Plan;
use toolway_transport::OpenOptions;
use toolway_transport::client::Client;
use toolway_transport::stdio::keeper::Keeper;
use toolway_types::{ConnectionState, Pool, Untrusted};

use self::background::Background;
pub use self::background::{
    BackgroundCall, CallHandle, CallId, CallStage, Called, CollectError, TooManyCalls,
};
pub use self::following::{ResourceSubscription, SubscribeError};
pub use self::offers::{CompletionReference, PromptOutcome, ResourceOutcome, Suggestions};
pub use self::options::HostOptions;
use self::reload::Reload;
use crate::account::{CurrentAccount, DirectoryState};
use crate::attention::Attention;
use crate::audit::{Audit, Entry};
use crate::auth::Auth;
use crate::call::{
    CallError, CallOptions, Prompter, TimeLimit, ToolOutcome, ToolRequest, ToolTarget,
};
use crate::catalog_memory::CatalogMemory;
use crate::connection::{ConnectLimits, Context, EraMemory, Interests};
use crate::dispatch::Dispatch;
use crate::dispatch::hooks::{Runner, RunnerOwner};
use crate::dispatch::permission::Approvals;
use crate::dispatch::result::MAX_PICTURE_MEMORY;
use crate::event::{self, Changes, HostEvent, NoPlanSource, UnknownServer};
use crate::journal::Journal;
use crate::pool::ToolPool;
use crate::reconnect::{ServerOrders, Unless};
use crate::respondent::Root;
use crate::search::Missing;
use crate::session::ClientIdentity;
use crate::session::list::ALL_LISTS;
use crate::snapshot::{HostSnapshot, ServerSnapshot, Settings};
use crate::supervisor;
use crate::supervisor::{ApplyPlan, Supervisor};
use crate::tasks::{self, Task};

mod account;
mod background;
mod batch;
mod ending;
mod following;
mod logins;
mod offers;
mod options;
pub(crate) mod reload;

/// A running host.
pub struct Host {
    reach: Arc<Reach>,
    background: Background,
    events: broadcast::Sender<HostEvent>,
    reload: Arc<Reload>,
    following: Option<Task<()>>,
    journal: Option<Journal>,
    hooks: RunnerOwner,
    roots: watch::Sender<Arc<[Root]>>,
    stop: CancellationToken,
    keeper: Keeper,
    interests: Arc<Interests>,
    auth: Option<Arc<Auth>>,
    attendant: Option<Task<()>>,
    supervisor: Task<()>,
    catalogs: Option<CatalogMemory>,
}

/// What a call needs of the host, so that one can outlive its caller.
struct Reach {
    pictures: watch::Receiver<Arc<HostSnapshot>>,
    orders: ServerOrders,
    plans: mpsc::Sender<ApplyPlan>,
    audit: Option<Audit>,
    prompter: Option<Arc<dyn Prompter>>,
    runner: Arc<Runner>,
    output_dir: PathBuf,
    /// The memory that pictures of all results are decoded in.
    picture_memory: Pool,
    attention: Attention,
}

impl Host {
    /// Starts connecting to every admitted server of the plan. Must run inside a tokio runtime.
    pub fn start(plan: Plan, options: HostOptions) -> Host {
        let members = supervisor::roster(&plan, &options.in_process, options.only.as_deref());
        let (roots, current_roots) = watch::channel(Arc::from(options.roots));
        let keeper = options.keeper.clone();
        let open = OpenOptions {
            client: Client::new(options.http),
            shield: options.shield,
            keeper: options.keeper,
            ..OpenOptions::default()
        };
        let references = options.secrets.map(|vault| References {
            vault,
            inherited: Arc::clone(&plan.inherited_env),
            cwd: plan.command_directory.clone(),
        });
        let (limits, identity) = (plan.limits, plan.identity.clone());
        let account = CurrentAccount::new(options.connectors, &plan);
        let settings = settings(plan);
        let approvals = Approvals::new(options.pins, options.rule_keeper);
        let approvals = Arc::new(approvals.with_roster(options.pinned));
        let mut hooks = RunnerOwner::new(
            options.hooks,
            options.classifier,
            open.clone(),
            options.output_dir.clone(),
            Arc::clone(&settings),
            Arc::clone(&approvals),
            options.audit.clone(),
        );
        let interests = Arc::new(Interests::default());
        let auth = Auth::new(options.auth, &open.client, identity, references.as_ref());
        let attention = Attention::default();
        let context = Arc::new(Context {
            client: Arc::new(ClientIdentity::new(
                &options.client_name,
                &options.client_version,
            )),
            respondent: options
                .respondent
                .map(|respondent| attention.of_respondent(respondent)),
            hooks: Arc::clone(hooks.runner()),
            roots: current_roots,
            open,
            references: references.clone(),
            eras: options
                .era_memory
                .map_or_else(EraMemory::none, EraMemory::at),
            limits: ConnectLimits::new(&limits),
            all_lists: Pool::new(ALL_LISTS),
            retry_first: options.retry_first,
            journal: options.journal.clone(),
            panics: Arc::new(AtomicU64::new(0)),
            interests: Arc::clone(&interests),
            attention: attention.clone(),
            auth: auth.clone(),
            connectors: account.connectors(),
        });
        let stop = CancellationToken::new();
        let (events, _) = broadcast::channel(event::EVENTS_LEN);
        let (mut supervisor, handle) = Supervisor::start(
            members,
            settings,
            context,
            events.clone(),
            options.clock,
            stop.clone(),
        );
        supervisor.add_builtins(options.builtins);
        hooks.follow(handle.pictures.clone());
        let attendant = auth.as_ref();
        let attendant = attendant.map(|auth| auth.attend(handle.orders.clone()));
        let reach = Arc::new(Reach {
            pictures: handle.pictures,
            orders: handle.orders,
            plans: handle.plans,
            audit: options.audit,
            prompter: options
                .prompter
                .map(|prompter| attention.of_prompter(prompter)),
            runner: Arc::clone(hooks.runner()),
            output_dir: options.output_dir,
            picture_memory: Pool::new(MAX_PICTURE_MEMORY),
            attention,
        });
        let reload = Arc::new(Reload {
            reach: Arc::clone(&reach),
            in_process: options.in_process,
            only: options.only,
            replan: options.replan,
            auth: auth.clone(),
            references,
            account,
            turn: tokio::sync::Mutex::default(),
        });
        let can_follow = reload.account.is_possible();
        let following = can_follow
            .then(|| tasks::spawn("connectors", account::follow_current(Arc::clone(&reload))));
        Host {
            reach,
            background: Background::default(),
            events,
            reload,
            following,
            journal: options.journal,
            hooks,
            roots,
            stop,
            keeper,
            interests,
            auth,
            attendant,
            supervisor: tasks::spawn("supervisor", supervisor.run()),
            catalogs: options.catalog_memory.map(CatalogMemory::at),
        }
    }

    /// The picture of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        self.reach.snapshot()
    }

    /// Every picture from now on; a slow reader sees the newest only.
    pub fn watch(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.reach.pictures.clone()
    }

    /// What happens from now on. A reader that is more than a thousand events behind loses the
    /// oldest; what is true now always stands in the snapshot.
    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    /// Waits until no server is still connecting for the first time.
    pub async fn settled(&self) {
        // An error means that the supervisor is gone, and then nothing connects any more.
        let _ = self.watch().wait_for(|picture| picture.is_settled()).await;
    }

    /// Waits until this server is not connecting any more. A server nobody knows is not.
    pub async fn ready(&self, server: &str) {
        self.reach.ready(server).await;
    }

    /// Ends whatever there is of this server's connection and connects anew, as at the first
    /// start. Returns the state once it is not `pending` any more; a server that may not connect
    /// stays `disabled`. Callers that ask at the same time share one connection.
    pub async fn reconnect(&self, server: &str) -> Result<ConnectionState, UnknownServer> {
        let unknown = || UnknownServer(server.to_owned());
        let reach = &self.reach;
        if let Some(auth) = &self.auth {
            auth.forget_server(server).await;
        }
        reach
            .orders
            .reconnect(server, Unless::Never)
            .await
            .unwrap_or_else(|| Err(unknown()))?;
        self.ready(server).await;
        let picture = self.snapshot();
        let shown = picture.server(server).ok_or_else(unknown)?;
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

    /// Carries one call through the whole line. A server that is connecting, also one that was
    /// lost and is being brought back, is waited for when the call names it, for as long as the
    /// call may take. A server that failed more than half a minute ago is tried once more first.
    /// Dropping the future cancels the call and tells the server.
    pub fn call(
        &self,
        request: ToolRequest,
        options: CallOptions,
    ) -> impl Future<Output = Result<ToolOutcome, CallError>> + Send {
        self.reach.call(request, options)
    }

    /// Waits for the server that a call names, if it is on its way.
    pub(crate) async fn await_server(
        &self,
        target: &ToolTarget,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let waited = self.reach.await_server(target, options, || ());
        waited.await.map(drop)
    }

    /// Loads tools into a session's pool, by exposed or own name; gives what is not there. What
    /// `ToolSearch` finds is loaded by itself.
    pub fn load_tools(&self, pool: &ToolPool, names: &[&str]) -> Vec<Missing> {
        let picture = self.snapshot();
        let found = picture.catalog.select(names.iter().copied());
        pool.load(found.tools.iter().map(|tool| tool.key.clone()));
        found.missing
    }

    /// Replaces the roots. Servers of the legacy era that were told of roots when they connected
    /// hear that they changed; modern ones are told with the next request that asks.
    pub fn set_roots(&self, roots: Vec<Root>) {
        self.roots.send_replace(Arc::from(roots));
    }
}

impl Reach {
    fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.pictures.borrow())
    }

    async fn ready(&self, server: &str) {
        let pending = |picture: &Arc<HostSnapshot>| {
            picture
                .server(server)
                .is_some_and(ServerSnapshot::is_pending)
        };
        let mut pictures = self.pictures.clone();
        let _ = pictures.wait_for(|picture| !pending(picture)).await;
    }

    async fn call(
        &self,
        mut request: ToolRequest,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let mut entry = match &self.audit {
            Some(audit) => audit.begin(&request, &options),
            None => Entry::none(),
        };
        let outcome = self.carry(&mut request, &options, &mut entry).await;
        entry.finish(&outcome).await;
        outcome
    }

    async fn carry(
        &self,
        request: &mut ToolRequest,
        options: &CallOptions,
        entry: &mut Entry,
    ) -> Result<ToolOutcome, CallError> {
        let picture = self
            .await_server(&request.target, options, || {
                entry.asked(&request.arguments);
            })
            .await?;
        // A tool of the host's own may be about a server, which is waited for like any that is
        // called.
        let picture = match picture.awaited.then(|| picture.aim(request)).flatten() {
            Some(key) => {
                self.await_server(&ToolTarget::Key(key), options, || ())
                    .await?
            }
            None => picture,
        };
        self.dispatch(&picture).noted(request, options, entry).await
    }

    /// What judges and carries by this picture.
    fn dispatch<'a>(&'a self, picture: &'a HostSnapshot) -> Dispatch<'a> {
        Dispatch {
            prompter: self.prompter.as_deref(),
            picture_memory: &self.picture_memory,
            ..self.runner.dispatch(picture)
        }
    }

    /// Waits for the server that a call names, if it is on its way, having said so with `waits`;
    /// gives the picture then.
    async fn await_server(
        &self,
        target: &ToolTarget,
        options: &CallOptions,
        waits: impl FnOnce(),
    ) -> Result<Arc<HostSnapshot>, CallError> {
        let picture = self.snapshot();
        let Some(server) = picture.absent(target) else {
            return Ok(picture);
        };
        waits();
        // Boxed: a call of a server that is there must not carry the room for waiting along.
        Box::pin(self.await_absent(&picture, server, target, options)).await?;
        Ok(self.snapshot())
    }

    async fn await_absent(
        &self,
        picture: &HostSnapshot,
        server: &ServerSnapshot,
        target: &ToolTarget,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        if matches!(server.state, ConnectionState::Failed(_)) {
            self.orders.revive(server.name.as_str()).await;
        }
        let general = || picture.general_limits().whole();
        let after = options.timeout.unwrap_or_else(general);
        let ready = tokio::time::timeout(after, self.ready(server.name.as_str())).await;
        ready.map_err(|_| CallError::TimedOut {
            server: server.name.clone(),
            tool: Untrusted::new(match target {
                ToolTarget::Exposed(name) => name,
                ToolTarget::Key(key) => &key.tool,
            }),
            after,
            limit: TimeLimit::Whole,
        })
    }
}

fn settings(plan: Plan) -> Arc<Settings> {
    Arc::new(Settings {
        permissions: plan.permissions,
        hooks: plan.hooks,
        limits: plan.limits,
    })
}
