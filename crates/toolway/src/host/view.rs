//! What a caller sees of a host: servers, their names, and the rules that hold for it.
//!
//! Owns views: which of the host's servers belong to one, its own servers beside them, and following
//! the host's plan. A view has a supervisor of its own, and shares its connections with all others
//! (`connection/pool.rs`): what it names as the host does is the host's connection, unless it uses
//! another login there. What it brings itself is its alone, also where another brings the same.
//!
//! Invariant: a view only narrows. Its rules deny and ask, never allow, and a tool that it is not
//! kept to is not there for it; servers of its own were admitted by a plan, as the host's were, and
//! what that plan denies or asks for holds too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use toolway_config::permission::{CallSubject, PermissionDecision};
use toolway_config::{Confinement, Permissions, Plan, Profile, ToolPatterns};
use toolway_types::{ConnectionState, ServerName};

use crate::builtin::Builtin;
use crate::call::RefusedBy;
use crate::connection::clock::Clock;
use crate::connection::{ConnectionContext, ConnectionPool};
use crate::dispatch::NewestRules;
use crate::event::{self, Changes, HostEvent, UnknownServer};
use crate::lock::lock;
use crate::reconnect::{ServerOrders, Unless};
use crate::server_source::InProcessServer;
use crate::snapshot::{CallSettings, HostSnapshot, ServerSnapshot};
use crate::supervisor::{self, ApplyPlan, ManagedServer, PlanEffects, Roster, Supervisor};
use crate::tasks::{self, Task};

/// What a view shows.
#[derive(Default, Clone)]
pub struct ViewSpec {
    /// Which of the host's servers; all of them when absent.
    pub servers: Option<Vec<ServerName>>,
    /// Rules that hold beside the host's. Only those count that deny or ask.
    pub rules: Option<Permissions>,
    /// Servers of its own, which end with it: the ones that this plan admits. One that has the name
    /// of a server of the host is seen in its place.
    pub own: Option<Arc<Plan>>,
    /// Server objects of its own, which end with it.
    pub objects: Vec<(ServerName, InProcessServer)>,
    /// The tools that it has at all, of its own servers too: no list shows another, and none can be
    /// called.
    pub confinement: Option<Confinement>,
    /// Servers that it does not connect to, although it shows them.
    pub off: BTreeSet<ServerName>,
    /// The account whose login is used, by server, in place of the one that its entry names. It is
    /// another connection then.
    pub accounts: BTreeMap<ServerName, String>,
}

/// A part of a host's servers, under rules of its own. Clones are the same view; its own servers end
/// with the last of them.
#[derive(Clone)]
pub struct View(Arc<RunningView>);

pub(super) struct RunningView {
    snapshots: watch::Receiver<Arc<HostSnapshot>>,
    pub(super) orders: ServerOrders,
    plans: mpsc::Sender<ApplyPlan>,
    events: broadcast::Sender<HostEvent>,
    spec: Mutex<Arc<ViewSpec>>,
    stop: CancellationToken,
    supervisor: Mutex<Option<Task<()>>>,
    ending: Arc<EndingViews>,
}

/// The views of a host that nobody holds any more, on their way out.
#[derive(Default)]
pub(super) struct EndingViews(Mutex<Vec<Task<()>>>);

/// The views of a host that follow its plan.
#[derive(Default)]
pub(super) struct FollowingViews(Mutex<Vec<Weak<RunningView>>>);

impl ViewSpec {
    /// Nothing at all.
    pub fn nothing() -> Self {
        Self {
            servers: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// What a profile shows. Which of the servers that it names are not there is told by
    /// [`Plan::profile_remarks`]; under which conditions calls are made, by
    /// [`Consent::from`](crate::Consent).
    pub fn of_profile(profile: &Profile) -> Self {
        let is_confined = profile.tools.is_some() || profile.read_only;
        Self {
            servers: profile.servers.clone(),
            rules: (!profile.permissions.is_empty()).then(|| profile.permissions.clone()),
            confinement: is_confined.then(|| Confinement {
                tools: profile.tools.clone(),
                without: ToolPatterns::default(),
                read_only: profile.read_only,
                origin: profile.origin.clone(),
            }),
            accounts: profile.accounts.clone(),
            ..Self::default()
        }
    }

    /// What this view has of a plan of the host.
    pub(super) fn roster(&self, plan: &Plan, of_host: Roster) -> Roster {
        let is_seen = |name: &ServerName| {
            let servers = self.servers.as_ref();
            servers.is_none_or(|servers| servers.contains(name))
        };
        let mut roster = of_host;
        roster.retain(|name, _| is_seen(name));
        if let Some(own) = &self.own {
            let mut members = supervisor::roster(own, &[], None);
            members.values_mut().for_each(ManagedServer::make_own);
            roster.extend(members);
        }
        supervisor::add_objects(&mut roster, plan, &self.objects);
        for (name, _) in &self.objects {
            if let Some(member) = roster.get_mut(name) {
                member.make_own();
            }
        }
        for (server, account) in &self.accounts {
            if let Some(member) = roster.get_mut(server) {
                member.use_account(account);
            }
        }
        for server in &self.off {
            if let Some(member) = roster.get_mut(server) {
                member.switch_off("switched off for whoever sees it here");
            }
        }
        roster
    }

    /// What holds for its calls.
    pub(super) fn settings(&self, of_host: &CallSettings, members: &Roster) -> CallSettings {
        let mut settings = of_host.clone();
        let mut narrower = Vec::new();
        if let Some(rules) = &self.rules {
            narrower.push(rules.clone().narrowing_only());
        }
        if let Some(own) = &self.own {
            // A server that a repository brought gets nothing by the name of one of the host's.
            let names = own.servers.iter().map(|server| &server.name);
            settings.permissions.forget_given_for(names);
            narrower.push(own.permissions.clone().narrowing_only());
        }
        if !narrower.is_empty() {
            narrower.insert(0, settings.permissions);
            settings.permissions = Permissions::merged(narrower);
        }
        if let Some(confinement) = &self.confinement {
            let servers: Vec<_> = members.keys().collect();
            let permissions = settings.permissions;
            settings.permissions = permissions.confined(confinement.clone(), &servers);
        }
        settings
    }
}

impl View {
    /// The snapshot of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.0.snapshots.borrow())
    }

    /// Every snapshot from now on; a slow reader sees the newest only.
    pub fn watch(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.0.snapshots.clone()
    }

    /// Whether both are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Ends whatever there is of this server's connection and connects anew; gives where it stands
    /// then, as [`Host::reconnect`](crate::Host::reconnect) does.
    pub async fn reconnect(&self, server: &str) -> Result<ConnectionState, UnknownServer> {
        let unknown = || UnknownServer(server.to_owned());
        let asked = self.orders().reconnect(server, Unless::Never).await;
        asked.unwrap_or_else(|| Err(unknown()))?;
        self.ready(server).await;
        let snapshot = self.snapshot();
        let shown = snapshot.server(server).ok_or_else(unknown)?;
        Ok(shown.state.clone())
    }

    /// What happens to its servers from now on. Calls, questions and logins are told by the host.
    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.0.events.subscribe()
    }

    /// Where orders about its servers go.
    pub(super) fn orders(&self) -> &ServerOrders {
        &self.0.orders
    }

    /// Wakes these servers, all of them when none is named, as far as they rest; others are left as
    /// they are. Returns when that was begun: [`View::ready`] and [`View::settled`] wait for them then.
    pub async fn wake(&self, servers: &[ServerName]) {
        self.0.orders.wake(servers).await;
    }

    /// Waits until this server is not connecting any more. An unknown server is not, nor is one that
    /// rests.
    pub async fn ready(&self, server: &str) {
        let pending = |snapshot: &Arc<HostSnapshot>| {
            let server = snapshot.server(server);
            server.is_some_and(ServerSnapshot::is_pending)
        };
        let mut snapshots = self.watch();
        let _ = snapshots.wait_for(|snapshot| !pending(snapshot)).await;
    }

    /// Waits until no server is still connecting for the first time. Those that rest are not.
    pub async fn settled(&self) {
        // An error means that the supervisor is gone, and then nothing connects any more.
        let _ = self
            .watch()
            .wait_for(|snapshot| snapshot.is_settled())
            .await;
    }

    /// Puts another roster in the place of the one before.
    pub(super) async fn apply(
        &self,
        members: Roster,
        settings: Arc<CallSettings>,
        anew: PlanEffects,
    ) -> Option<Changes> {
        let (done, answer) = oneshot::channel();
        let plan = ApplyPlan {
            members,
            settings,
            anew,
            done,
        };
        // Nothing changes when the supervisor is gone.
        let _ = self.0.plans.send(plan).await;
        answer.await.ok()
    }

    /// Ends what is its own; returns when that is gone.
    pub(super) async fn end(&self) {
        self.0.stop.cancel();
        let supervisor = lock(&self.0.supervisor).take();
        if let Some(supervisor) = supervisor
            && let Err(failure) = supervisor.join().await
        {
            tracing::warn!(%failure, "the supervisor did not end by itself");
        }
    }

    /// The same, if nobody else holds it.
    pub(super) async fn end_unless_shared(&self) {
        if Arc::strong_count(&self.0) == 1 {
            self.end().await;
        }
    }

    pub(super) fn spec(&self) -> Arc<ViewSpec> {
        Arc::clone(&lock(&self.0.spec))
    }

    /// From now on it is this that it shows; the next roster is made of it.
    pub(super) fn set_spec(&self, spec: Arc<ViewSpec>) {
        *lock(&self.0.spec) = spec;
    }

    /// Why this server cannot be called; nothing if it is connected.
    pub(super) fn obstacle(&self, server: &ServerName) -> Option<ServerObstacle> {
        let snapshot = self.snapshot();
        let Some(shown) = snapshot.server(server.as_str()) else {
            return Some(ServerObstacle::Missing);
        };
        match &shown.state {
            ConnectionState::Connected(_) => None,
            state => Some(ServerObstacle::NotConnected(Box::new(state.clone()))),
        }
    }
}

impl NewestRules for View {
    fn refuses(&self, subject: CallSubject<'_>, server: &ServerName) -> Option<RefusedBy> {
        let snapshot = self.snapshot();
        match snapshot.settings.permissions.decide(subject) {
            PermissionDecision::Deny { rule } => Some(RefusedBy::Rule {
                rule: rule.rule.clone(),
                origin: rule.origin.clone(),
            }),
            PermissionDecision::Unreadable { origin } => Some(RefusedBy::Unreadable { origin }),
            PermissionDecision::Ask { .. } | PermissionDecision::Allow { .. } => {
                let is_there = server.is_built_in() || snapshot.server(server.as_str()).is_some();
                (!is_there).then_some(RefusedBy::Withdrawn)
            }
        }
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("View")
            .field(&self.snapshot())
            .finish()
    }
}

/// Why a server that is needed cannot be called.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerObstacle {
    /// No server of this name is configured, or the view does not have it.
    Missing,
    /// It is not connected.
    NotConnected(Box<ConnectionState>),
}

impl std::fmt::Display for ServerObstacle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::NotConnected(state) = self else {
            return formatter.write_str("is not configured");
        };
        match &**state {
            ConnectionState::Failed(failure) => write!(formatter, "failed: {}", failure.message),
            ConnectionState::NeedsAuth { .. } => formatter.write_str("needs a login"),
            ConnectionState::Disabled { reason } => write!(formatter, "may not connect: {reason}"),
            ConnectionState::Pending { .. } => formatter.write_str("is still connecting"),
            ConnectionState::Connected(_) => formatter.write_str("is connected"),
        }
    }
}

impl Drop for RunningView {
    /// Ends in an orderly way although nobody waits; the end of the host does.
    fn drop(&mut self) {
        self.stop.cancel();
        let supervisor = self.supervisor.get_mut();
        let supervisor = supervisor.unwrap_or_else(PoisonError::into_inner).take();
        self.ending.add(supervisor);
    }
}

impl EndingViews {
    fn add(&self, supervisor: Option<Task<()>>) {
        let mut ending = lock(&self.0);
        ending.retain(|task| !task.is_finished());
        ending.extend(supervisor);
    }

    /// Waits until all of them are gone.
    pub(super) async fn gone(&self) {
        let ending = std::mem::take(&mut *lock(&self.0));
        for supervisor in ending {
            let _ = supervisor.join().await;
        }
    }
}

/// Makes the views of a host.
pub(super) struct ViewMaker {
    pub(super) context: Arc<ConnectionContext>,
    pub(super) pool: ConnectionPool,
    pub(super) clock: Arc<dyn Clock>,
    /// All views end when this is cancelled.
    pub(super) stop: CancellationToken,
    pub(super) following: FollowingViews,
    pub(super) ending: Arc<EndingViews>,
}

impl ViewMaker {
    /// Starts a view that follows the host's plan.
    pub(super) fn start(&self, members: Roster, settings: CallSettings, spec: ViewSpec) -> View {
        let (events, _) = broadcast::channel(event::EVENTS_LEN);
        let view = self.start_with(members, Arc::new(settings), spec, events, Vec::new());
        self.following.add(&view);
        view
    }

    /// Starts a view with the events and the tools of the embedding program.
    pub(super) fn start_with(
        &self,
        members: Roster,
        settings: Arc<CallSettings>,
        spec: ViewSpec,
        events: broadcast::Sender<HostEvent>,
        builtins: Vec<Builtin>,
    ) -> View {
        let stop = self.stop.child_token();
        let (mut supervisor, handle) = Supervisor::start(
            members,
            settings,
            Arc::clone(&self.context),
            self.pool.clone(),
            events.clone(),
            Arc::clone(&self.clock),
            stop.clone(),
        );
        supervisor.add_builtins(builtins);
        let task = tasks::spawn("supervisor", supervisor.run());
        View(Arc::new(RunningView {
            snapshots: handle.snapshots,
            orders: handle.orders,
            plans: handle.plans,
            events,
            spec: Mutex::new(Arc::new(spec)),
            stop,
            supervisor: Mutex::new(Some(task)),
            ending: Arc::clone(&self.ending),
        }))
    }
}

impl FollowingViews {
    pub(super) fn add(&self, view: &View) {
        let mut views = lock(&self.0);
        views.retain(|view| view.strong_count() > 0);
        views.push(Arc::downgrade(&view.0));
    }

    /// Those that somebody holds.
    pub(super) fn all(&self) -> Vec<View> {
        let views = lock(&self.0);
        views.iter().filter_map(Weak::upgrade).map(View).collect()
    }
}
