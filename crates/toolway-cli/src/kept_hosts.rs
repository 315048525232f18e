//! The hosts that the daemon keeps: one for each set of variables, flags and directory that commands
//! are typed with.
//!
//! Owns finding the host of a command, that its plan is the files' of this moment, and how many hosts
//! there are. Their connections are one pool's: what is equal in two of them is one process. A
//! connection that nobody uses stays for a while, and so does its host.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use toolway::launcher::Launcher;
use toolway::watch::{ConfigChange, ConfigWatch};
use toolway::{
    Audit, Caller, CallerKind, ConnectionPool, Host, HostOptions, UserSetup, View, ViewSpec,
};
use toolway_config::{Environment, Flags, Plan, Planner};
use toolway_gateway::hosted::RoutedQuestions;
use toolway_types::ServerName;

use crate::daemon_use;

/// Who this program is in the audit.
pub(crate) const CALLER: &str = "cli";

/// The most hosts; the one that was used longest ago goes first.
const MOST: usize = 32;

/// Variables that tell one shell, terminal or command from the next, and that no entry reads.
const FLEETING: [&str; 7] = [
    "_",
    "SHLVL",
    "OLDPWD",
    "TRACEPARENT",
    "TRACESTATE",
    "BAGGAGE",
    daemon_use::VARIABLE,
];

/// All of them.
pub(crate) struct Hosts {
    pool: ConnectionPool,
    launcher: Launcher,
    kept: tokio::sync::Mutex<Vec<Arc<ProjectHost>>>,
    /// How often one was asked for, to tell which was used longest ago.
    asked: AtomicU64,
    reconnects: Reconnects,
}

/// How often each server was connected anew because a process wanted that.
pub(crate) type Reconnects = Arc<watch::Sender<BTreeMap<ServerName, u64>>>;

/// What a command that runs in the daemon has of it.
pub(crate) struct RunInDaemon {
    /// The host for its variables, flags and directory.
    pub(crate) project: Arc<ProjectHost>,
    /// The connections of all hosts.
    pub(crate) pool: ConnectionPool,
    /// What starts servers.
    pub(crate) launcher: Launcher,
    /// What came of `toolway reconnect`, of whoever typed it.
    pub(crate) reconnects: Reconnects,
}

/// What makes two commands use one host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostKey {
    variables: BTreeMap<String, String>,
    directory: PathBuf,
    /// Found again for each: a directory becomes a project while the daemon runs.
    project: PathBuf,
    umask: Option<u32>,
    flags: Flags,
}

/// One host, and the plan that it follows.
pub(crate) struct ProjectHost {
    key: HostKey,
    pub(crate) host: Arc<Host>,
    pub(crate) audit: Option<Audit>,
    planner: Arc<Planner>,
    pool: ConnectionPool,
    planned: tokio::sync::Mutex<Planned>,
    used: AtomicU64,
}

struct Planned {
    plan: Plan,
    /// What the files were when the plan was made of them.
    files: Vec<PlanFile>,
}

/// What tells two states of a file apart without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlanFile {
    path: PathBuf,
    found: Option<(u64, u64, u64, i64, i64)>,
}

impl Hosts {
    /// Without a host yet.
    pub(crate) fn new(pool: ConnectionPool, launcher: Launcher) -> Self {
        Self {
            pool,
            launcher,
            kept: tokio::sync::Mutex::default(),
            asked: AtomicU64::new(0),
            reconnects: Arc::default(),
        }
    }

    /// The connections.
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    /// What a command has that was typed with these.
    pub(crate) async fn for_run(&self, environment: &Environment, flags: &Flags) -> RunInDaemon {
        let mut variables = environment.variables();
        variables.retain(|name, _| !FLEETING.contains(&name.as_str()));
        let key = HostKey {
            variables,
            directory: environment.cwd().to_owned(),
            project: environment.project_root().to_owned(),
            umask: environment.umask(),
            flags: flags.clone(),
        };
        let project = self.project(key, environment).await;
        RunInDaemon {
            project,
            pool: self.pool.clone(),
            launcher: self.launcher.clone(),
            reconnects: Arc::clone(&self.reconnects),
        }
    }

    /// Where is told what came of requests to connect anew.
    pub(crate) fn reconnects(&self) -> &Reconnects {
        &self.reconnects
    }

    async fn project(&self, key: HostKey, environment: &Environment) -> Arc<ProjectHost> {
        let mut kept = self.kept.lock().await;
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(found) = kept.iter().find(|host| host.key == key) {
            found.used.store(number, Ordering::Relaxed);
            return Arc::clone(found);
        }
        let setup = UserSetup::new(environment.clone(), key.flags.clone());
        let started = self.start(key, &setup);
        started.used.store(number, Ordering::Relaxed);
        let started = Arc::new(started);
        kept.push(Arc::clone(&started));
        let is_idle = |host: &&Arc<ProjectHost>| Arc::strong_count(host) == 1;
        if kept.len() > MOST {
            let oldest = kept.iter().filter(is_idle);
            let oldest = oldest.min_by_key(|host| host.used.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.cloned() {
                kept.retain(|host| !Arc::ptr_eq(host, &oldest));
                // What it started must not outlive it: who keeps its servers' logs would be gone.
                self.pool.end_unclaimed().await;
                end(oldest).await;
            }
        }
        started
    }

    /// Ends all of them, and every connection.
    pub(crate) async fn end(&self) {
        let hosts = std::mem::take(&mut *self.kept.lock().await);
        self.pool.end_unclaimed().await;
        futures_util::future::join_all(hosts.into_iter().map(end)).await;
    }
}

async fn end(project: Arc<ProjectHost>) {
    if let Some(project) = Arc::into_inner(project)
        && let Some(host) = Arc::into_inner(project.host)
    {
        host.shutdown().await;
    }
}

impl Hosts {
    fn start(&self, key: HostKey, setup: &UserSetup) -> ProjectHost {
        let pool = &self.pool;
        let planner = setup.planner();
        let newest = Planned::of(&planner);
        let (options, _) = setup.host_options();
        let audit = options.audit.clone();
        let options = HostOptions {
            connections: pool.clone(),
            launcher: self.launcher.clone(),
            caller: Caller::new(CallerKind::Person, CALLER),
            client_handler: Some(Arc::new(RoutedQuestions)),
            owner_sees: asked_before_calls(&newest.plan),
            ..options
        };
        let host = Arc::new(Host::start(newest.plan.clone(), options));
        ProjectHost {
            key,
            host,
            audit,
            planner,
            pool: pool.clone(),
            planned: tokio::sync::Mutex::new(newest),
            used: AtomicU64::new(0),
        }
    }
}

impl ProjectHost {
    /// The plan of this moment, which the host goes by when this returns.
    pub(crate) async fn plan(&self) -> Plan {
        let mut planned = self.planned.lock().await;
        let files = PlanFile::all(&self.planner);
        if files != planned.files {
            let fresh = Planned::of(&self.planner);
            let changed = changed_servers(&planned.plan, &fresh.plan);
            self.host.apply(fresh.plan.clone()).await;
            self.pool
                .end_unclaimed_of(|server| changed.contains(server))
                .await;
            *planned = fresh;
        }
        planned.plan.clone()
    }

    /// What a command sees of the host that needs these servers, or all of them.
    pub(crate) async fn view(&self, plan: &Plan, servers: Option<Vec<ServerName>>) -> View {
        let servers = servers.map(|mut servers| {
            servers.extend(asked_before_calls(plan).servers.unwrap_or_default());
            servers
        });
        let spec = ViewSpec {
            servers,
            ..ViewSpec::default()
        };
        self.host.view(spec).await
    }
}

/// Has servers connect anew when a process wants that, for as long as it is polled, and tells how often
/// each was. All hosts have one state folder, which is where the daemon's socket lies.
pub(crate) async fn follow_requests(
    environment: Environment,
    pool: ConnectionPool,
    reconnects: Reconnects,
) {
    let setup = UserSetup::new(environment, Flags::default());
    let mut watch = ConfigWatch::start(setup.watched_requests());
    let mut ordering = FuturesUnordered::new();
    loop {
        tokio::select! {
            change = watch.next() => match change {
                Some(ConfigChange::Reconnect(server)) => {
                    let (pool, reconnects) = (pool.clone(), Arc::clone(&reconnects));
                    ordering.push(async move {
                        pool.connect_anew(|name| *name == server).await;
                        reconnects.send_modify(|counts| *counts.entry(server).or_default() += 1);
                    });
                }
                Some(ConfigChange::Files) => {}
                None => return,
            },
            Some(()) = ordering.next() => {}
        }
    }
}

/// The servers that decide about calls: hooks, and what decides in mode `auto`.
pub(crate) fn asked_before_calls(plan: &Plan) -> ViewSpec {
    let classifier = plan.permissions.classifier().and_then(|it| it.server());
    let names = plan.hooks.servers().chain(classifier);
    ViewSpec {
        servers: Some(
            names
                .filter_map(|name| ServerName::new(name).ok())
                .collect(),
        ),
        ..ViewSpec::default()
    }
}

/// The servers that are defined otherwise than before, or may not connect any more.
fn changed_servers(before: &Plan, after: &Plan) -> Vec<ServerName> {
    let after: BTreeMap<_, _> = after
        .admitted()
        .map(|(server, spec)| (&server.name, spec))
        .collect();
    before
        .admitted()
        .filter(|(server, spec)| after.get(&server.name) != Some(spec))
        .map(|(server, _)| server.name.clone())
        .collect()
}

impl Planned {
    fn of(planner: &Arc<Planner>) -> Self {
        // First, so that a change while the plan is made is found the next time.
        let files = PlanFile::all(planner);
        Self {
            plan: planner.plan(),
            files,
        }
    }
}

impl PlanFile {
    fn all(planner: &Planner) -> Vec<Self> {
        let stamp = |path: PathBuf| {
            let found = std::fs::metadata(&path).ok();
            let found = found.as_ref().map(stamp_of);
            Self { path, found }
        };
        planner.watched_paths().into_iter().map(stamp).collect()
    }
}

fn stamp_of(file: &Metadata) -> (u64, u64, u64, i64, i64) {
    let (seconds, nanos) = (file.mtime(), file.mtime_nsec());
    (file.dev(), file.ino(), file.size(), seconds, nanos)
}
