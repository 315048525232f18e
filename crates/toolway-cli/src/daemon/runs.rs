//! The daemon's work: commands that other processes have it run.
//!
//! Owns the loop that takes them (what the words mean is for who starts it to say), one thread for each (commands wait for their runtime as they do in
//! a process of their own), what passes between a command and who typed it, and the daemon's end:
//! when it is told, when a newer build takes over, or when nobody was there for a while.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::signal::unix::SignalKind;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use toolway::journal::timestamp;
use toolway::launcher::Launcher;
use toolway::{ConnectionPool, memory};
use toolway_config::{Environment, Flags};
use toolway_gateway::daemon_socket::{
    AskedRun, DaemonOpening, DaemonRequest, DaemonSocket, Heard, Replies, RunEnd, RunRefusal,
    RunRequest, WhyMoving, method,
};
use toolway_rows::{DaemonStatus, KeptServerRow, RunRow};
use toolway_types::limits;

use super::build::{Age, Build, namespaces};
use crate::context::Context;
use crate::exit::Exit;
use crate::kept_hosts::{self, Hosts};
use crate::output::Errors;
use crate::signals::{SignalSource, Signals};
use crate::streams::Streams;

/// How long what runs may take to end once the daemon is told to.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// A command whose process is gone has so long to end in an orderly way.
const ORPHAN_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The signals of one command that are kept.
const SIGNALS: usize = 64;

/// Reads what somebody typed; nothing where that is not for the daemon to run.
pub(crate) type ReadWords = fn(Vec<OsString>) -> Option<ReadCommand>;

/// A command that the daemon may run.
pub(crate) struct ReadCommand {
    /// What is typed for it.
    pub(crate) word: &'static str,
    /// It ends with its client only, who is told when the daemon goes.
    pub(crate) is_pipe: bool,
    /// It goes on until it is ended, and its process has it begun anew when the daemon goes.
    pub(crate) follows: bool,
    pub(crate) flags: Flags,
    pub(crate) errors: Errors,
    /// Runs it, and says what went wrong.
    pub(crate) run: Box<dyn FnOnce(&mut Context) -> Exit + Send>,
}

/// The daemon.
pub(crate) struct Daemon {
    read: ReadWords,
    hosts: Hosts,
    build: Build,
    namespaces: String,
    since: SystemTime,
    runs: Mutex<BTreeMap<u64, RunRow>>,
    counter: AtomicU64,
    /// No command is begun any more.
    ending: watch::Sender<Option<WhyMoving>>,
    /// Commands that run are to end as well.
    ends_now: watch::Sender<bool>,
    /// Something ended, or is to end.
    changed: Notify,
}

impl Daemon {
    /// Serves the socket until the daemon ends: when `signals` or somebody on the socket says so, when
    /// a newer build asks, or when it was unused for `idle`.
    pub(crate) async fn serve(
        read: ReadWords,
        environment: Environment,
        socket: DaemonSocket,
        launcher: Launcher,
        signals: &mut Signals,
        idle: Duration,
    ) {
        let pool = ConnectionPool::keeping(limits::daemon::KEPT);
        let daemon = Arc::new(Self {
            read,
            hosts: Hosts::new(pool.clone(), launcher),
            build: Build::own(),
            namespaces: namespaces(),
            since: SystemTime::now(),
            runs: Mutex::default(),
            counter: AtomicU64::new(0),
            ending: watch::Sender::new(None),
            ends_now: watch::Sender::new(false),
            changed: Notify::new(),
        });
        tracing::info!(pid = std::process::id(), "the daemon runs");
        let mut socket = Some(socket);
        let mut working = FuturesUnordered::new();
        let mut requests = pin!(kept_hosts::follow_requests(
            environment,
            pool,
            Arc::clone(daemon.hosts.reconnects()),
        ));
        let mut rest = pin!(tokio::time::sleep(idle));
        let mut ends_by = pin!(tokio::time::sleep(Duration::MAX / 4));
        let mut trim = tokio::time::interval(TRIM_EVERY);
        loop {
            if daemon.is_ending() && socket.take().is_some() {
                ends_by.as_mut().reset(Instant::now() + ENDS_WITHIN);
            }
            if daemon.is_ending() && daemon.running() == 0 {
                break;
            }
            let accepted = async {
                match &socket {
                    Some(socket) => socket.accept().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                accepted = accepted => match accepted {
                    Ok(stream) => {
                        rest.as_mut().reset(Instant::now() + idle);
                        working.push(Arc::clone(&daemon).open(stream));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the socket takes no connection");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Some(()) = working.next() => {}
                () = &mut requests => tracing::warn!("what other processes want is not followed"),
                () = daemon.changed.notified() => {
                    rest.as_mut().reset(Instant::now() + idle);
                }
                () = &mut rest => {
                    if daemon.running() == 0 && daemon.hosts.pool().is_empty() {
                        tracing::info!("nobody was there for a while");
                        daemon.end(WhyMoving::Stopped);
                    }
                    rest.as_mut().reset(Instant::now() + idle);
                }
                () = &mut ends_by => {
                    if daemon.ends_now.send_replace(true) {
                        tracing::warn!(runs = daemon.running(), "what does not end is left");
                        break;
                    }
                    tracing::warn!(runs = daemon.running(), "what still runs is ended");
                    ends_by.as_mut().reset(Instant::now() + ENDS_WITHIN);
                }
                _ = signals.next() => {
                    daemon.end(WhyMoving::Stopped);
                    daemon.ends_now.send_replace(signals.heard() > 1);
                }
                _ = trim.tick() => if daemon.running() == 0 {
                    memory::return_unused();
                },
            }
        }
        daemon.hosts.end().await;
        tracing::info!("the daemon has ended");
    }

    fn is_ending(&self) -> bool {
        self.ending.borrow().is_some()
    }

    fn end(&self, why: WhyMoving) {
        self.ending.send_modify(|ending| {
            ending.get_or_insert(why);
        });
        self.changed.notify_one();
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<u64, RunRow>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> usize {
        self.runs().len()
    }

    /// One connection, from what it asks to the end of that.
    async fn open(self: Arc<Self>, stream: UnixStream) {
        match DaemonOpening::read(stream).await {
            Some(DaemonOpening::Run(asked)) => self.take(*asked).await,
            Some(DaemonOpening::Other(other)) => {
                let (request, replies) = *other;
                self.answer(&request, replies).await;
            }
            None => {}
        }
    }

    async fn answer(&self, request: &DaemonRequest, mut replies: Replies) {
        match request.method.as_str() {
            method::STATUS => replies.answer(&self.status()).await,
            method::STOP => {
                let now = request.params["now"].as_bool().unwrap_or_default();
                tracing::info!(now, "told to stop");
                replies.answer(&json!({ "runs": self.running() })).await;
                self.end(WhyMoving::Stopped);
                if now {
                    self.ends_now.send_replace(true);
                }
                // Its end is what whoever asked waits for.
                std::future::pending::<()>().await;
            }
            unknown => replies.refuse_method(unknown).await,
        }
    }

    fn status(&self) -> DaemonStatus {
        let mut servers: Vec<_> = self.hosts.pool().connections();
        servers.sort_by(|one, other| one.server.cmp(&other.server));
        let row = |entry: toolway::PoolEntry| KeptServerRow {
            server: entry.server.to_string(),
            users: entry.claims,
        };
        DaemonStatus {
            pid: std::process::id(),
            since: timestamp(self.since),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            memory: memory::resident(),
            runs: self.runs().values().cloned().collect(),
            servers: servers.into_iter().map(row).collect(),
        }
    }

    /// Why a command is not run here.
    fn refusal(&self, request: &RunRequest) -> Option<RunRefusal> {
        if request.namespaces != self.namespaces {
            return Some(RunRefusal::Elsewhere);
        }
        match self.build.beside(&request.build) {
            Age::Same => {}
            Age::Newer => return Some(RunRefusal::Newer),
            Age::Older => {
                tracing::info!("a newer build takes over");
                self.end(WhyMoving::Replaced);
                return Some(RunRefusal::Outdated);
            }
        }
        if self.is_ending() {
            return Some(RunRefusal::Ending);
        }
        (self.running() >= limits::daemon::RUNS).then_some(RunRefusal::Busy)
    }

    /// Runs a command, and tells its end.
    async fn take(self: Arc<Self>, asked: AskedRun) {
        let AskedRun {
            request,
            streams,
            mut replies,
        } = asked;
        if let Some(refusal) = self.refusal(&request) {
            replies.refuse(refusal).await;
            return;
        }
        let words = std::iter::once("toolway").chain(request.words.iter().map(String::as_str));
        let words: Vec<OsString> = words.map(OsString::from).collect();
        let Some(command) = (self.read)(words) else {
            replies.refuse(RunRefusal::NotHere).await;
            return;
        };
        let (is_pipe, follows) = (command.is_pipe, command.follows);
        let environment = Environment::new(
            request.environment.clone(),
            PathBuf::from(&request.directory),
        )
        .with_umask(request.umask);
        // What the organisation sets is what the plan goes by, too.
        let environment = toolway_config::with_managed_variables(environment);
        let (signals, passed_on) = watch::channel(Vec::new());
        let Ok((owner, hold)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
            return replies.refuse(RunRefusal::Busy).await;
        };
        let row = RunRow {
            command: command.word.to_owned(),
            directory: request.directory.clone(),
            since: timestamp(SystemTime::now()),
        };
        let (daemon, handle) = (Arc::clone(&self), Handle::current());
        let (end, mut ended) = tokio::sync::oneshot::channel();
        let (go, told_to_go) = tokio::sync::oneshot::channel::<()>();
        let work = move || {
            if told_to_go.blocking_recv().is_err() {
                return;
            }
            let _entered = handle.enter();
            let run = || {
                let shared = handle.block_on(async {
                    let shared = daemon.hosts.for_run(&environment, &command.flags).await;
                    let plan = shared.project.plan().await;
                    (shared, plan)
                });
                let mut context = Context::of_run(
                    environment,
                    command.flags,
                    command.errors,
                    Streams::given(streams, owner),
                    SignalSource::passed_on(passed_on),
                );
                context.use_daemon(shared.0, shared.1);
                let exit = (command.run)(&mut context);
                RunEnd {
                    exit: exit.code(),
                    signal: context.ended_by(exit),
                }
            };
            let done = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| lost());
            // The loop may be gone with everything else.
            let _ = end.send(done);
        };
        let thread = std::thread::Builder::new().name("run".to_owned());
        if let Err(error) = thread.spawn(work) {
            tracing::warn!(%error, "no thread for a command");
            return replies.refuse(RunRefusal::Busy).await;
        }
        // Said once nothing is in the way any more: from here on it may have done something.
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        self.runs().insert(number, row);
        let Ok((heard, mut teller)) = replies.begin().await else {
            self.runs().remove(&number);
            self.changed.notify_one();
            return;
        };
        // Nothing of it has happened where its thread is gone.
        let _ = go.send(());
        let mut passing_on = pin!(self.pass_on(heard, &signals, hold));
        let mut ending = self.ending.subscribe();
        let (mut is_alone, mut is_told) = (false, false);
        let done = loop {
            tokio::select! {
                done = &mut ended => break done.unwrap_or_else(|_| lost()),
                () = &mut passing_on, if !is_alone => is_alone = true,
                why = async { ending.wait_for(Option::is_some).await.ok().and_then(|why| *why) }, if (is_pipe || follows) && !is_told => {
                    if follows {
                        self.runs().remove(&number);
                        self.changed.notify_one();
                        // Without a word: its process has it begun anew.
                        return;
                    }
                    let why = why.unwrap_or(WhyMoving::Stopped);
                    teller.tell_moving(why).await;
                    is_told = true;
                }
            }
        };
        self.runs().remove(&number);
        self.changed.notify_one();
        teller.tell(done).await;
    }

    /// Passes signals on until whoever typed the command is gone, which ends it too.
    async fn pass_on(
        &self,
        mut heard: Heard,
        signals: &watch::Sender<Vec<SignalKind>>,
        hold: std::os::fd::OwnedFd,
    ) {
        let mut ends_now = self.ends_now.subscribe();
        loop {
            tokio::select! {
                signal = heard.signal() => match signal {
                    Some(signal) => signals.send_modify(|all| {
                        // An orderly end, an immediate one; more than a few say nothing more.
                        if all.len() < SIGNALS {
                            all.push(SignalKind::from_raw(signal));
                        }
                    }),
                    None => break,
                },
                () = async { drop(ends_now.wait_for(|now| *now).await) } => {
                    signals.send_modify(|all| all.push(SignalKind::terminate()));
                    tokio::time::sleep(ORPHAN_ENDS_WITHIN).await;
                    break;
                }
            }
        }
        // What reads and writes its streams stops waiting.
        drop(hold);
        signals.send_modify(|all| all.push(SignalKind::hangup()));
        tokio::time::sleep(ORPHAN_ENDS_WITHIN).await;
        signals.send_modify(|all| all.push(SignalKind::hangup()));
    }
}

/// How often memory is looked after.
const TRIM_EVERY: Duration = Duration::from_secs(20);

/// How long to wait when no connection can be taken.
const PAUSE: Duration = Duration::from_millis(100);

fn lost() -> RunEnd {
    RunEnd {
        exit: Exit::Unexpected.code(),
        signal: None,
    }
}
