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
use toolway_types::{BytePool, ServerName};

use super::attached::CallingParty;
use super::reload::Reload;
use super::view::{FollowingViews, ViewMaker};
use super::{Attached, Host, HostCore, HostOptions, account};
use crate::account::CurrentAccount;
use crate::auth::Auth;
use crate::call::CallerSide;
use crate::call::questions::{AskedSide, QuestionBook, QuestionNews};
use crate::catalog_memory::CatalogMemory;
use crate::connection::{ConnectLimits, ConnectionContext, CredentialPlaces, EraMemory};
use crate::dispatch::answers::PersonAnswers;
use crate::dispatch::hooks::HookRunnerOwner;
use crate::dispatch::result::MAX_PICTURE_MEMORY;
use crate::event::{self, HostEvent};
use crate::journal::Journal;
use crate::session::ClientInfo;
use crate::session::list::ALL_LISTS;
use crate::snapshot::CallSettings;
use crate::{supervisor, tasks};

impl Host {
    /// Starts connecting to every admitted server of the plan. Must run inside a tokio runtime.
    pub fn start(plan: Plan, mut options: HostOptions) -> Host {
        let servers = supervisor::roster(&plan, &options.in_process, options.only.as_deref());
        let owner_sees = mem::take(&mut options.owner_sees);
        let servers = owner_sees.roster(&plan, servers);
        let plan = Arc::new(plan);
        let (events, _) = broadcast::channel(event::EVENTS_LEN);
        let questions = question_book(&events, options.answers_for_callers);
        if let Some(journal) = &mut options.journal {
            *journal = told_lines(journal, &events);
        }
        let mut shared = SharedParts::new(&plan, &mut options, questions);
        if let Some(auth) = &shared.auth {
            auth.tell_of_logins(&events);
        }
        let stop = CancellationToken::new();
        let views = Arc::new(ViewMaker {
            context: Arc::new(shared.connection_context(&mut options)),
            pool: mem::take(&mut options.connections),
            clock: Arc::clone(&options.clock),
            stop: stop.clone(),
            following: FollowingViews::default(),
            ending: Arc::default(),
        });
        let view = views.start_with(
            servers,
            Arc::clone(&shared.settings),
            owner_sees.clone(),
            events.clone(),
            mem::take(&mut options.builtins),
        );
        shared.hooks.follow(view.watch());
        let auth = shared.auth.clone();
        let attendant = auth.as_ref();
        let attendant = attendant.map(|auth| {
            let pool = views.pool.clone();
            auth.reconnect_after_logins(move |server, epoch| pool.reconnect_since(server, epoch))
        });
        let core = Arc::new(shared.core(&mut options, events, Arc::clone(&views)));
        let runner = shared.hooks.runner();
        let (caller, answers) = (Arc::clone(runner.caller()), Arc::clone(runner.approvals()));
        let party = CallingParty::new(caller, answers, None, view.clone(), None);
        let reload = Arc::new(Reload {
            view,
            views,
            plan: std::sync::Mutex::new(plan),
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
            stop: stop.drop_guard(),
            launcher: options.launcher,
            auth,
            attendant,
            catalogs: options.catalog_memory.map(CatalogMemory::at),
        }
    }
}

/// What connections, calls and new plans share.
struct SharedParts {
    open: OpenOptions,
    references: Option<ReferenceResolver>,
    credentials: Arc<CredentialPlaces>,
    settings: Arc<CallSettings>,
    hooks: HookRunnerOwner,
    auth: Option<Arc<Auth>>,
    account: CurrentAccount,
    questions: Arc<QuestionBook>,
}

impl SharedParts {
    fn new(plan: &Plan, options: &mut HostOptions, questions: Arc<QuestionBook>) -> Self {
        let http = options.http.clone();
        let open = OpenOptions {
            client: HttpClient::new(mem::take(&mut options.http)),
            shield: mem::take(&mut options.shield),
            // Views that are still held must not keep it: its end is waited for.
            launcher: options.launcher.lent(),
            ..OpenOptions::default()
        };
        let references = options.secrets.take().map(|vault| ReferenceResolver {
            vault,
            inherited: Arc::clone(&plan.inherited_env),
            cwd: plan.command_directory.clone(),
        });
        let account = CurrentAccount::new(options.connectors.take(), plan);
        let auth_options = mem::take(&mut options.auth);
        let credentials = CredentialPlaces::new(references.as_ref(), &auth_options, http);
        let identity = plan.identity.clone();
        let auth = Auth::new(auth_options, &open.client, identity, references.as_ref());
        let settings = Arc::new(CallSettings::from(plan));
        let hooks = hook_runner(options, &open, &settings, &questions);
        Self {
            open,
            references,
            credentials: Arc::new(credentials),
            settings,
            hooks,
            auth,
            account,
            questions,
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
            credentials: Arc::clone(&self.credentials),
            eras: eras.map(EraMemory::at).unwrap_or_default(),
            limits: ConnectLimits::new(&self.settings.limits),
            all_lists: BytePool::new(ALL_LISTS),
            retry_first: options.retry_first,
            journal: options.journal.clone(),
            recorder: options.recorder.clone(),
            panics: Arc::new(AtomicU64::new(0)),
            auth: self.auth.clone(),
            connectors: self.account.connectors(),
            remembered: (options.catalog_memory.clone())
                .filter(|_| options.offers_remembered || options.rest_after.is_some())
                .map(CatalogMemory::at),
            rest_after: options.rest_after,
        }
    }

    fn core(
        &self,
        options: &mut HostOptions,
        events: broadcast::Sender<HostEvent>,
        views: Arc<ViewMaker>,
    ) -> HostCore {
        HostCore {
            audit: options.audit.take(),
            runner: Arc::clone(self.hooks.runner()),
            output_dir: mem::take(&mut options.output_dir),
            picture_memory: BytePool::new(MAX_PICTURE_MEMORY),
            events,
            calls: AtomicU64::new(0),
            views,
            questions: Arc::clone(&self.questions),
        }
    }
}

/// The same journal, which tells those who listen what servers log.
fn told_lines(journal: &Journal, events: &broadcast::Sender<HostEvent>) -> Journal {
    let events = events.clone();
    journal.told_to(Arc::new(move |server: &ServerName, line: &str| {
        event::tell(&events, || HostEvent::LogLine {
            server: server.clone(),
            line: line.to_owned(),
        });
    }))
}

/// The book of open questions, which tells those who listen.
fn question_book(events: &broadcast::Sender<HostEvent>, owner_answers: bool) -> Arc<QuestionBook> {
    let events = events.clone();
    let listener = move |news: QuestionNews<'_>| event::tell(&events, || HostEvent::from(news));
    Arc::new(QuestionBook::new(Box::new(listener), owner_answers))
}

fn hook_runner(
    options: &mut HostOptions,
    open: &OpenOptions,
    settings: &Arc<CallSettings>,
    questions: &Arc<QuestionBook>,
) -> HookRunnerOwner {
    let asked = AskedSide {
        book: Arc::clone(questions),
        is_owner: true,
        prompter: options.prompter.take(),
        client_handler: options.client_handler.take(),
        open_questions: options.open_questions,
    };
    let caller = CallerSide::asked(
        mem::take(&mut options.caller),
        asked,
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
