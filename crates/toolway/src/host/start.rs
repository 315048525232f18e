//! Starts a host: puts its parts together from a plan and the options of the embedding program.
//!
//! Owns the order. What each part does is its own module's.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use toolway_auth::references::ReferenceResolver;
use toolway_config::Plan;
use toolway_transport::OpenOptions;
use toolway_transport::client::HttpClient;
use toolway_types::BytePool;

use super::attached::CallingParty;
use super::reload::Reload;
use super::{Attached, Host, HostCore, HostOptions, account};
use crate::account::CurrentAccount;
use crate::auth::Auth;
use crate::call::{CallerSide, LogInterests};
use crate::catalog_memory::CatalogMemory;
use crate::connection::{ConnectLimits, ConnectionContext, EraMemory, ResourceInterests};
use crate::dispatch::answers::PersonAnswers;
use crate::dispatch::hooks::HookRunnerOwner;
use crate::dispatch::result::MAX_PICTURE_MEMORY;
use crate::event::{self, HostEvent};
use crate::session::ClientInfo;
use crate::session::list::ALL_LISTS;
use crate::snapshot::CallSettings;
use crate::supervisor::{self, Supervisor, SupervisorHandle};
use crate::tasks;

impl Host {
    /// Starts connecting to every admitted server of the plan. Must run inside a tokio runtime.
    pub fn start(plan: Plan, mut options: HostOptions) -> Host {
        let servers = supervisor::roster(&plan, &options.in_process, options.only.as_deref());
        let mut shared = SharedParts::new(plan, &mut options);
        let stop = CancellationToken::new();
        let (events, _) = broadcast::channel(event::EVENTS_LEN);
        let (mut supervisor, handle) = Supervisor::start(
            servers,
            Arc::clone(&shared.settings),
            Arc::new(shared.connection_context(&mut options)),
            events.clone(),
            Arc::clone(&options.clock),
            stop.clone(),
        );
        supervisor.add_builtins(mem::take(&mut options.builtins));
        shared.hooks.follow(handle.snapshots.clone());
        let auth = shared.auth.clone();
        let attendant = auth.as_ref();
        let attendant = attendant.map(|auth| auth.reconnect_after_logins(handle.orders.clone()));
        let core = Arc::new(shared.core(&mut options, handle, events));
        let runner = shared.hooks.runner();
        let (caller, answers) = (Arc::clone(runner.caller()), Arc::clone(runner.approvals()));
        let party = CallingParty::new(caller, options.prompter.take(), answers, None);
        let reload = Arc::new(Reload {
            core: Arc::clone(&core),
            in_process: options.in_process,
            only: options.only,
            replan: options.replan,
            auth: auth.clone(),
            references: shared.references,
            account: shared.account,
            turn: tokio::sync::Mutex::default(),
        });
        let can_follow = reload.account.is_possible();
        let following = can_follow
            .then(|| tasks::spawn("connectors", account::follow_current(Arc::clone(&reload))));
        Host {
            own: Attached::new(Arc::clone(&core), party),
            core,
            reload,
            following,
            journal: options.journal,
            hooks: shared.hooks,
            stop,
            launcher: options.launcher,
            auth,
            attendant,
            supervisor: tasks::spawn("supervisor", supervisor.run()),
            catalogs: options.catalog_memory.map(CatalogMemory::at),
        }
    }
}

/// What connections, calls and new plans share.
struct SharedParts {
    open: OpenOptions,
    references: Option<ReferenceResolver>,
    settings: Arc<CallSettings>,
    hooks: HookRunnerOwner,
    auth: Option<Arc<Auth>>,
    account: CurrentAccount,
    interests: Arc<ResourceInterests>,
    logs: Arc<LogInterests>,
}

impl SharedParts {
    fn new(plan: Plan, options: &mut HostOptions) -> Self {
        let open = OpenOptions {
            client: HttpClient::new(mem::take(&mut options.http)),
            shield: mem::take(&mut options.shield),
            launcher: options.launcher.clone(),
            ..OpenOptions::default()
        };
        let references = options.secrets.take().map(|vault| ReferenceResolver {
            vault,
            inherited: Arc::clone(&plan.inherited_env),
            cwd: plan.command_directory.clone(),
        });
        let account = CurrentAccount::new(options.connectors.take(), &plan);
        let auth_options = mem::take(&mut options.auth);
        let identity = plan.identity.clone();
        let auth = Auth::new(auth_options, &open.client, identity, references.as_ref());
        let settings = Arc::new(CallSettings::from(plan));
        let hooks = hook_runner(options, &open, &settings);
        Self {
            open,
            references,
            settings,
            hooks,
            auth,
            account,
            interests: Arc::default(),
            logs: Arc::default(),
        }
    }

    fn connection_context(&self, options: &mut HostOptions) -> ConnectionContext {
        let eras = options.era_memory.take();
        let client = ClientInfo::new(&options.client_name, &options.client_version);
        ConnectionContext {
            client: Arc::new(client),
            caller: Arc::clone(self.hooks.runner().caller()),
            hooks: Arc::clone(self.hooks.runner()),
            open: self.open.clone(),
            references: self.references.clone(),
            eras: eras.map(EraMemory::at).unwrap_or_default(),
            limits: ConnectLimits::new(&self.settings.limits),
            all_lists: BytePool::new(ALL_LISTS),
            retry_first: options.retry_first,
            journal: options.journal.clone(),
            panics: Arc::new(AtomicU64::new(0)),
            interests: Arc::clone(&self.interests),
            logs: Arc::clone(&self.logs),
            auth: self.auth.clone(),
            connectors: self.account.connectors(),
        }
    }

    fn core(
        &self,
        options: &mut HostOptions,
        handle: SupervisorHandle,
        events: broadcast::Sender<HostEvent>,
    ) -> HostCore {
        HostCore {
            snapshots: handle.snapshots,
            orders: handle.orders,
            plans: handle.plans,
            audit: options.audit.take(),
            runner: Arc::clone(self.hooks.runner()),
            output_dir: mem::take(&mut options.output_dir),
            picture_memory: BytePool::new(MAX_PICTURE_MEMORY),
            events,
            interests: Arc::clone(&self.interests),
            logs: Arc::clone(&self.logs),
        }
    }
}

fn hook_runner(
    options: &mut HostOptions,
    open: &OpenOptions,
    settings: &Arc<CallSettings>,
) -> HookRunnerOwner {
    let caller = CallerSide::new(
        mem::take(&mut options.caller),
        options.client_handler.take(),
        mem::take(&mut options.roots),
    );
    let approvals = PersonAnswers::new(options.pins.take(), options.rule_keeper.take());
    HookRunnerOwner::new(
        mem::take(&mut options.hooks),
        options.classifier.take(),
        open.clone(),
        options.output_dir.clone(),
        Arc::clone(settings),
        (
            Arc::new(caller),
            Arc::new(approvals.with_roster(options.pinned.take())),
        ),
        options.audit.clone(),
    )
}
