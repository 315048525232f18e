//! Running hooks: programs, tools and functions, side by side, each within its time.
//!
//! Owns what a hook is started with and what counts as its failure. What is made of the answers
//! is decided where they are asked for: before a call, after it, or around a server's question.
//!
//! Invariants: the answers come in the order of the configuration, whichever is ready first; a
//! failure names what failed; dropping the future ends every hook with all it started.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::join_all;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;
use toolway_config::permission::HookLocation;
use toolway_config::{Hook, HookAction, HookEvent, Hooks};
use toolway_transport::OpenOptions;
use toolway_transport::program::{self, Invocation, ProgramLimits, ProgramOutput, ProgramRun};
use toolway_types::{BytePool, Origin, ServerName, ShieldMode, limits};

use super::library::late;
use super::{HookInput, HookReply, LibraryClassifier, LibraryHook, reply, tool};
use crate::audit::{ActingHook, Audit};
use crate::call::CallerSide;
use crate::dispatch::Dispatch;
use crate::dispatch::answers::PersonAnswers;
use crate::lock::lock;
use crate::pins::Pins;
use crate::snapshot::{CallSettings, HostSnapshot, ServerSnapshot};

/// The most a hook may print. Output in the place of a large result needs room.
const MAX_STDOUT: usize = limits::call::HOOK_OUTPUT;
/// How much of its complaints is kept.
const MAX_STDERR: usize = 16 * 1024;
/// The longest title of a hook, in characters.
const MAX_TITLE: usize = 100;

/// Runs the hooks of one host.
#[derive(Debug, Default)]
pub struct HookRunner {
    library: Vec<LibraryHook>,
    /// Those that came later.
    added: OnceLock<Vec<LibraryHook>>,
    classifier: Option<LibraryClassifier>,
    session: String,
    output_dir: PathBuf,
    /// The host's own caller, in whose place the host itself asks.
    caller: Arc<CallerSide>,
    approvals: Arc<PersonAnswers>,
    audit: Option<Audit>,
    /// None: results of hooks are wanted whole, and no snapshot is ever decoded.
    picture_memory: BytePool,
    /// How processes are started; gone when the host is.
    open: Mutex<Option<OpenOptions>>,
    /// The settings the host started with, until there are snapshots.
    first: Arc<CallSettings>,
    /// Held weakly: a snapshot holds sessions, and a session holds this.
    snapshots: OnceLock<Weak<Snapshots>>,
    /// The servers whose tools run as hooks at this moment.
    busy: Mutex<Vec<ServerName>>,
}

type Snapshots = watch::Receiver<Arc<HostSnapshot>>;

/// The host's owner of its runner. When it is dropped, no hook starts any more: a session that is
/// still held must not keep the launcher of processes alive.
pub(crate) struct HookRunnerOwner {
    runner: Arc<HookRunner>,
    snapshots: Option<Arc<Snapshots>>,
}

impl HookRunnerOwner {
    pub(crate) fn new(
        library: Vec<LibraryHook>,
        classifier: Option<LibraryClassifier>,
        open: OpenOptions,
        output_dir: PathBuf,
        first: Arc<CallSettings>,
        (caller, approvals): (Arc<CallerSide>, Arc<PersonAnswers>),
        audit: Option<Audit>,
    ) -> Self {
        if let (None, Some(idle)) = (&classifier, first.permissions.idle_auto()) {
            tracing::warn!("{}", idle.message);
        }
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let runner = Arc::new(HookRunner {
            library,
            classifier,
            session: format!("{:x}-{now:x}", std::process::id()),
            output_dir,
            open: Mutex::new(Some(open)),
            first,
            caller,
            approvals,
            audit,
            ..HookRunner::default()
        });
        runner.caller.heed_hooks(&runner);
        Self {
            runner,
            snapshots: None,
        }
    }

    /// From now on the newest snapshot counts.
    pub(crate) fn follow(&mut self, snapshots: Snapshots) {
        let snapshots = Arc::new(snapshots);
        // Set once: a host has one supervisor.
        let _ = self.runner.snapshots.set(Arc::downgrade(&snapshots));
        self.snapshots = Some(snapshots);
    }

    pub(crate) fn runner(&self) -> &Arc<HookRunner> {
        &self.runner
    }
}

impl Drop for HookRunnerOwner {
    fn drop(&mut self) {
        self.runner.with_open(Option::take);
    }
}

/// A hook that has a say.
#[derive(Clone, Copy)]
pub(super) enum MatchingHook<'a> {
    Configured(&'a Hook),
    Library(&'a LibraryHook),
}

/// Which hook it was, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookName {
    pub(super) title: String,
    pub(super) origin: Origin,
}

impl HookName {
    /// The same for the audit.
    pub(super) fn acting(&self) -> ActingHook {
        ActingHook {
            hook: self.title.clone(),
            origin: self.origin.to_string(),
        }
    }
}

impl std::fmt::Display for HookName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the hook `{}` in {}", self.title, self.origin)
    }
}

impl MatchingHook<'_> {
    fn name(&self) -> HookName {
        let (title, origin) = match self {
            Self::Configured(hook) => (hook.title(), hook.origin.clone()),
            Self::Library(hook) => (hook.name.clone(), Origin::Program),
        };
        HookName {
            title: self::title(&title),
            origin,
        }
    }
}

/// What something is called in messages: one short line.
pub(in crate::dispatch) fn title(name: &str) -> String {
    toolway_types::text::cut(&reply::one_line(name), MAX_TITLE).into_owned()
}

/// What one hook said, or what went wrong with it.
pub(super) struct HookResult {
    pub(super) hook: HookName,
    pub(super) said: Result<HookReply, String>,
}

/// What came of running something that was configured.
pub(in crate::dispatch) enum Printed {
    /// A program ended.
    Program(ProgramOutput),
    /// A tool answered this.
    Tool(String),
}

/// What hooks run with.
#[derive(Clone, Copy)]
pub(in crate::dispatch) struct HookResources<'a> {
    pub(in crate::dispatch) place: &'a HookLocation,
    /// How hooks that are tools are called; absent where there is no host.
    pub(in crate::dispatch) calls: Option<&'a Dispatch<'a>>,
}

impl HookRunner {
    /// No hooks of the embedding program, and no way to start any.
    pub fn none() -> Self {
        Self::default()
    }

    /// The hooks for an event on whatever goes by these names, in order.
    pub(super) fn concerned<'a>(
        &'a self,
        hooks: &'a Hooks,
        event: HookEvent,
        names: &[String],
    ) -> Vec<MatchingHook<'a>> {
        let configured = hooks.matching_any(event, names);
        let library = self
            .library()
            .filter(|hook| hook.event == event && hook.matcher.matches_any(names));
        configured
            .into_iter()
            .map(MatchingHook::Configured)
            .chain(library.map(MatchingHook::Library))
            .collect()
    }

    /// The classifier of the embedding program.
    pub(in crate::dispatch) fn classifier(&self) -> Option<&LibraryClassifier> {
        self.classifier.as_ref()
    }

    /// The same for everything that this host does.
    pub(in crate::dispatch) fn session(&self) -> &str {
        &self.session
    }

    /// Whether there is no hook of the embedding program.
    pub(super) fn is_empty(&self) -> bool {
        self.library.is_empty() && self.added.get().is_none_or(Vec::is_empty)
    }

    fn library(&self) -> impl Iterator<Item = &LibraryHook> {
        self.library
            .iter()
            .chain(self.added.get().into_iter().flatten())
    }

    /// Adds hooks of the embedding program to those it began with; false when that was done before.
    pub(crate) fn add(&self, hooks: Vec<LibraryHook>) -> bool {
        self.added.set(hooks).is_ok()
    }

    /// Whether the embedding program has a hook for this event.
    pub(super) fn has(&self, event: HookEvent) -> bool {
        self.library().any(|hook| hook.event == event)
    }

    /// The snapshot of this moment; none without a host.
    pub(super) fn snapshot(&self) -> Option<Arc<HostSnapshot>> {
        let snapshots = self.snapshots.get()?.upgrade()?;
        let snapshot = Arc::clone(&snapshots.borrow());
        Some(snapshot)
    }

    /// How things were defined when they were permitted.
    pub(crate) fn pins(&self) -> &Pins {
        self.approvals.pins()
    }

    /// What the host's own caller answered.
    pub(crate) fn approvals(&self) -> &Arc<PersonAnswers> {
        &self.approvals
    }

    /// The host's own caller.
    pub(crate) fn caller(&self) -> &Arc<CallerSide> {
        &self.caller
    }

    /// What the plan of this moment says.
    pub(crate) fn settings(&self) -> Arc<CallSettings> {
        match self.snapshot() {
            Some(snapshot) => Arc::clone(&snapshot.settings),
            None => Arc::clone(&self.first),
        }
    }

    /// A dispatch by this snapshot, without a user to ask.
    pub(crate) fn dispatch<'a>(&'a self, snapshot: &'a HostSnapshot) -> Dispatch<'a> {
        let settings = &snapshot.settings;
        Dispatch {
            caller: &self.caller,
            catalog: &snapshot.catalog,
            permissions: &settings.permissions,
            hooks: &settings.hooks,
            runner: self,
            routes: &snapshot.routes,
            approvals: &self.approvals,
            prompter: None,
            newest: None,
            asks_owner: false,
            limits: snapshot.general_limits(),
            output_dir: &self.output_dir,
            picture_memory: &self.picture_memory,
            audit: self.audit.as_ref(),
            max_output_tokens: settings.limits.max_output_tokens,
            result_text: settings.limits.result_text,
        }
    }

    /// Runs all of them side by side.
    pub(super) async fn run(
        &self,
        hooks: Vec<MatchingHook<'_>>,
        event: HookEvent,
        mut input: HookInput,
        means: HookResources<'_>,
    ) -> Vec<HookResult> {
        input.session_id.clone_from(&self.session);
        input.cwd = means.place.workspace.display().to_string();
        let input = &input;
        join_all(hooks.into_iter().map(|hook| async move {
            let said = match hook {
                MatchingHook::Configured(hook) => self.configured(hook, event, input, means).await,
                MatchingHook::Library(hook) => hook.run(input.clone()).await,
            };
            HookResult {
                hook: hook.name(),
                said,
            }
        }))
        .await
    }

    async fn configured(
        &self,
        hook: &Hook,
        event: HookEvent,
        input: &HookInput,
        means: HookResources<'_>,
    ) -> Result<HookReply, String> {
        match self
            .printed(&hook.action, hook.timeout, input, means)
            .await?
        {
            Printed::Program(ended) => HookReply::of_program(event, &ended),
            Printed::Tool(text) => HookReply::parse(event, &text),
        }
    }

    /// Runs what was configured, and tells it this. An error is that it could not be run to its
    /// end.
    pub(in crate::dispatch) async fn printed(
        &self,
        action: &HookAction,
        limit: Duration,
        input: &impl Serialize,
        means: HookResources<'_>,
    ) -> Result<Printed, String> {
        match action {
            HookAction::Broken { reason } => Err(reason.clone()),
            HookAction::Command { command, args } => {
                let invocation = match args {
                    None => Invocation::Line(command.clone()),
                    Some(args) => Invocation::Words {
                        program: command.clone(),
                        args: args.clone(),
                    },
                };
                let open = self.with_open(|open| open.clone());
                let open = open.ok_or_else(|| "no process is started here".to_owned())?;
                let program = self::program(invocation, limit, input, means.place)?;
                let ended = program::run(program, &open).await;
                Ok(Printed::Program(ended.map_err(|error| error.to_string())?))
            }
            HookAction::McpTool {
                server,
                tool,
                input: arguments,
            } => {
                let target = tool::HookTool::new(server, tool, arguments, input)?;
                let _busy = BusyServer::with(&self.busy, target.server());
                let calls = means.calls.ok_or("there is no host to call its tool")?;
                // A hook on a hook's own tool would never end.
                let (no_hooks, nobody) = (Hooks::empty(), HookRunner::none());
                let calls = Dispatch {
                    hooks: &no_hooks,
                    runner: &nobody,
                    prompter: None,
                    ..calls.clone()
                };
                let work = async {
                    let arrived = self.arrived(target.server()).await;
                    // The host's own servers and rules: a caller may see another server under
                    // that name, or none, and a hook is not its to answer.
                    match arrived.or_else(|| self.snapshot()) {
                        Some(snapshot) => {
                            // It may be another since the call began.
                            let permissions = &snapshot.settings.permissions;
                            target.require_own_server(&snapshot.catalog, permissions)?;
                            let calls = Dispatch {
                                catalog: &snapshot.catalog,
                                permissions,
                                routes: &snapshot.routes,
                                ..calls.clone()
                            };
                            target.call(&calls, limit).await
                        }
                        None => target.call(&calls, limit).await,
                    }
                };
                match timeout(limit, work).await {
                    Ok(said) => said.map(Printed::Tool),
                    Err(_) => Err(late(limit)),
                }
            }
        }
    }

    /// Waits for a server that is on its way: the snapshot that has it, or that tells why it did
    /// not come. None for one that is not on its way.
    async fn arrived(&self, server: &ServerName) -> Option<Arc<HostSnapshot>> {
        let pending = |snapshot: &Arc<HostSnapshot>| {
            let shown = snapshot.server(server.as_str());
            shown.is_some_and(ServerSnapshot::is_pending)
        };
        let mut snapshots = (*self.snapshots.get()?.upgrade()?).clone();
        let waker = {
            let snapshot = snapshots.borrow();
            let resting = snapshot.server(server.as_str());
            let resting = resting.filter(|shown| shown.is_resting());
            resting.and_then(|_| snapshot.routes.waker.clone())
        };
        if let Some(waker) = waker {
            return waker.wake(server).await;
        }
        if !pending(&snapshots.borrow_and_update()) {
            return None;
        }
        let snapshot = snapshots.wait_for(|snapshot| !pending(snapshot)).await;
        snapshot.ok().map(|snapshot| Arc::clone(&snapshot))
    }

    /// Whether a tool of this server runs as a hook right now.
    pub(super) fn is_busy(&self, server: &ServerName) -> bool {
        lock(&self.busy).contains(server)
    }

    fn with_open<T>(&self, work: impl FnOnce(&mut Option<OpenOptions>) -> T) -> T {
        work(&mut lock(&self.open))
    }
}

fn program(
    invocation: Invocation,
    limit: Duration,
    input: &impl Serialize,
    place: &HookLocation,
) -> Result<ProgramRun, String> {
    let mut stdin = serde_json::to_vec(input).map_err(|error| error.to_string())?;
    stdin.push(b'\n');
    let project = place.environment.get("TOOLWAY_PROJECT_DIR").cloned();
    // Hooks that were written for another host find their files by its name for it.
    let env = project.map(|project| ("CLAUDE_PROJECT_DIR".to_owned(), project));
    Ok(ProgramRun {
        invocation,
        stdin,
        inherited: Arc::clone(&place.environment),
        env: env.into_iter().collect(),
        cwd: place.directory.clone(),
        // It is the person's own program, and may be one that changes settings.
        shield: ShieldMode::Off,
        limits: ProgramLimits {
            time: limit,
            stdout: MAX_STDOUT,
            stderr: MAX_STDERR,
        },
    })
}

/// A server whose tool runs as a hook, as long as it does.
struct BusyServer<'a> {
    servers: &'a Mutex<Vec<ServerName>>,
    server: ServerName,
}

impl<'a> BusyServer<'a> {
    fn with(servers: &'a Mutex<Vec<ServerName>>, server: &ServerName) -> Self {
        lock(servers).push(server.clone());
        Self {
            servers,
            server: server.clone(),
        }
    }
}

impl Drop for BusyServer<'_> {
    fn drop(&mut self) {
        let mut servers = lock(self.servers);
        if let Some(at) = servers.iter().position(|server| *server == self.server) {
            servers.swap_remove(at);
        }
    }
}
