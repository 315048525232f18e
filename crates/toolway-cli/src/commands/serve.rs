//! `toolway serve`: every server behind one MCP endpoint.
//!
//! Owns the flags, and the run: a host that follows its files, the service over it, the way in, and
//! the order in which they end. What is served is `toolway_gateway::hosted`'s; listening is
//! `serve/listening.rs`, who may come in there `serve/access.rs`, what clients see `serve/shown.rs`,
//! the owner's way in `serve/owner.rs`.

mod access;
mod listening;
pub(super) mod owner;
mod shown;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::sync::Notify;
use toolway::event::Replan;
use toolway::{Caller, CallerKind, ConfigWatch, Host, HostOptions, RetryFirst, memory};
use toolway_config::{NameForm, Plan, Planner, ResultForm};
use toolway_gateway::hosted::RoutedQuestions;
use toolway_gateway::{HostService, HostServiceOptions, OwnerService, Peer, SealKeys, Service};
use toolway_types::limits;

use self::access::AccessArgs;
use self::shown::{Shown, ShownFlags};
use crate::connect;
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::kept_hosts::CALLER;
use crate::report::{Outcome, Report};

/// How long changes of lists are gathered before they are kept.
const GATHERED: Duration = Duration::from_millis(500);

/// With hardly any processor time for so long, nobody is using the gateway.
const QUIET: Duration = Duration::from_secs(5);
const HARDLY_ANY: Duration = Duration::from_millis(5);

/// Pages are let go of again once so many bytes have come back: fewer are what timers and the like use.
const WORTH_IT: u64 = 3 << 20;

/// The longest that lists may be made to wait: clients give up before.
const MAX_WAIT: Duration = Duration::from_mins(10);

/// Serve every configured server as one MCP server
///
/// Without `--http` it talks to the program that started it, over stdin and stdout. With it, clients
/// of this machine come in at `/mcp` (all servers), `/mcp/<server>` (one, under its own names) and
/// `/mcp/p/<profile>`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Listen for HTTP on this address, such as `127.0.0.1:8808`, or on this port of this machine;
    /// port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", value_parser = listening::address, help_heading = "Listening")]
    http: Option<SocketAddr>,

    /// Also offer the transport of 2024-11-05, at `/sse`
    #[arg(long, requires = "http", help_heading = "Listening")]
    sse: bool,

    /// A name by which clients call this server, beside its address. Repeatable
    #[arg(
        long,
        value_name = "NAME",
        requires = "http",
        help_heading = "Listening"
    )]
    host: Vec<String>,

    /// Encrypt with this certificate: a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], help_heading = "Listening")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate: a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_cert"], help_heading = "Listening")]
    tls_key: Option<PathBuf>,

    /// A proxy in front encrypts
    #[arg(long, requires = "http", help_heading = "Listening")]
    behind_proxy: bool,

    /// Answer `/metrics`, `/healthz` and `/readyz` on this address too, without a token
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = listening::address,
        requires = "http",
        help_heading = "Listening"
    )]
    metrics: Option<SocketAddr>,

    /// How long the first lists wait for servers that are still connecting: 0.25 unless given
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = seconds,
        help_heading = "What clients see"
    )]
    wait: Option<Duration>,

    /// Write every message to and from servers into their logs, for `toolway logs --protocol`
    #[arg(long, help_heading = "Listening")]
    log_messages: bool,

    #[command(flatten)]
    access: AccessArgs,

    /// Serve what this profile shows
    #[arg(long, value_name = "NAME", help_heading = "What clients see")]
    profile: Option<String>,

    /// Serve only these servers
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "What clients see"
    )]
    servers: Option<Vec<String>>,

    /// Offer only tools that say of themselves that they only read
    #[arg(long, help_heading = "What clients see")]
    read_only: bool,

    /// What tools and prompts are called
    #[arg(long, value_enum, help_heading = "What clients see")]
    names: Option<NamesWord>,

    /// What clients get of results
    #[arg(long, value_enum, help_heading = "What clients see")]
    results: Option<ResultsWord>,

    /// Which tools clients see at first
    #[arg(long, value_enum, help_heading = "What clients see")]
    tools: Option<ToolsWord>,

    /// Offer tools that list and read resources, for clients that do not show resources to models
    #[arg(long, help_heading = "What clients see")]
    resource_tools: bool,
}

/// What tools and prompts are called.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum NamesWord {
    /// `<server>__<tool>`
    Short,
    /// `mcp__<server>__<tool>`, as rules call them
    Mcp,
    /// The tool's own name, where no other tool has it
    Own,
}

impl NamesWord {
    fn form(self) -> NameForm {
        match self {
            Self::Short => NameForm::Short,
            Self::Mcp => NameForm::Mcp,
            Self::Own => NameForm::Own,
        }
    }
}

/// What clients get of results.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ResultsWord {
    /// What the server sent
    Raw,
    /// What a model should get of it: long ones are saved, and said where
    Bounded,
}

impl ResultsWord {
    fn form(self) -> ResultForm {
        match self {
            Self::Raw => ResultForm::Raw,
            Self::Bounded => ResultForm::Bounded,
        }
    }
}

/// Which tools clients see at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolsWord {
    /// All of them
    All,
    /// A tool that finds the others
    Search,
}

impl ServeArgs {
    /// Whether it talks to the program that started it, and to nobody else.
    pub(crate) fn is_pipe(&self) -> bool {
        self.http.is_none()
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ServeArgs) -> Outcome {
    let in_daemon = context.daemon();
    if in_daemon.is_none() {
        toolway::memory::return_large_blocks();
    }
    let shared = SharedPlan::default();
    connect::block_on(async {
        let mut signals = context.signals();
        let planner = context.setup.planner();
        // Before the first plan, so that no change falls between the two.
        let files = ConfigWatch::start(context.setup.watched(&planner));
        let mut plan = planner.plan();
        require_flags_only(&plan)?;
        context.say_diagnoses(&plan);
        let shown = Shown::of(context, args, &plan)?;
        if plan.servers.is_empty() {
            context.warn(
                "no server is configured, so clients see no tools\n\
                 hint: `toolway add <name> -- <command>` adds one, `toolway import` takes those of other programs over; both take effect at once",
            );
        }
        shown.prepare(&mut plan);
        let flags = shown.flags();
        let access = args.http.map(|_| args.access.open(context)).transpose()?;
        let socket = owner::socket(context).await;
        let defaults = connect::host_options(context);
        let journal = defaults.journal.map(|journal| {
            if args.log_messages {
                journal
            } else {
                // Clients' payloads are theirs, and each would be written twice.
                journal.without_messages()
            }
        });
        let options = HostOptions {
            journal,
            caller: Caller::new(CallerKind::Person, CALLER),
            client_handler: Some(Arc::new(RoutedQuestions)),
            open_questions: true,
            // Without a way in nobody would ever answer.
            answers_for_callers: socket.is_some(),
            retry_first: RetryFirst::Backoff,
            offers_remembered: true,
            only: shown.servers(),
            replan: Some(shared.replan(planner, shown.searches)),
            ..defaults
        };
        let options = match in_daemon {
            Some(daemon) => HostOptions {
                connections: daemon.pool.clone(),
                launcher: daemon.launcher.clone(),
                rest_after: Some(limits::daemon::KEPT),
                ..options
            },
            None => options,
        };
        let (spans, findings) = context.setup.start_spans();
        context.say_once(findings);
        let host = Arc::new(Host::start(plan, options));
        let outcome = {
            let (service, driver) = HostService::new(
                Arc::clone(&host),
                HostServiceOptions {
                    view: shown.view(&host).await,
                    endpoint: shown.endpoint.clone(),
                    profiles: shown.profiles(&host).await,
                    seal: SealKeys::random().map_err(anyhow::Error::from)?,
                    tracer: spans.as_ref().map(|spans| spans.tracer().clone()),
                },
            );
            let owned = Arc::new(owner::service(context, &service));
            let serving = async {
                match access {
                    None => serve_pipe(context, &service, &owned).await,
                    Some(access) => listening::serve(context, args, &service, &owned, access).await,
                }
            };
            tokio::select! {
                served = serving => served,
                () = driver => Ok(()),
                () = shared.follow(&flags, &service) => Ok(()),
                () = files.follow(&host) => Ok(()),
                () = remember(&host) => Ok(()),
                () = owner::serve(socket.as_ref(), &owned) => Ok(()),
                () = OwnerService::tell_waiting(&host, |it| owner::tell(context, it)) => Ok(()),
                // The daemon looks after its own memory.
                () = trim_when_idle(&host), if in_daemon.is_none() => Ok(()),
                _ = signals.next() => {
                    service.end();
                    Ok(())
                }
            }
        };
        // Before the servers end, which may take a while: nobody is to wait for an answer meanwhile.
        drop(socket);
        if let Some(host) = Arc::into_inner(host) {
            connect::end(host, &mut signals).await?;
        }
        if let Some(spans) = spans {
            spans.end().await;
        }
        outcome.map(|()| Exit::Success)
    })
}

/// Keeps what servers offer for the next start while this one goes on: it may be ended at any time.
pub(super) async fn remember(host: &Host) {
    let mut snapshots = host.watch();
    let mut kept = 0;
    loop {
        let revision = snapshots.borrow_and_update().catalog.revision;
        if revision != kept {
            // Servers come one after the other.
            tokio::time::sleep(GATHERED).await;
            kept = snapshots.borrow_and_update().catalog.revision;
            host.remember().await;
        }
        if snapshots.changed().await.is_err() {
            return;
        }
    }
}

/// A number of seconds, as a flag has it.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(number)
        .ok()
        .filter(|wait| *wait <= MAX_WAIT)
        .ok_or_else(|| format!("not between 0 and {}", MAX_WAIT.as_secs()))
}

/// Gives back what connecting to all servers at once took, and later what busy times did, and goes on
/// for ever.
pub(super) async fn trim_when_idle(host: &Host) {
    host.settled().await;
    memory::return_unused();
    memory::return_code_pages();
    let mut looked = memory::processor_time();
    // What is resident while nobody uses it, once that was seen.
    let mut least = u64::MAX;
    let mut has_begun = false;
    loop {
        tokio::time::sleep(QUIET).await;
        let used = memory::processor_time();
        let is_quiet = used.saturating_sub(looked) < HARDLY_ANY;
        looked = used;
        // What was let go of is fetched again by whoever comes next: nobody must be using it now.
        if !is_quiet {
            continue;
        }
        // How long it was used says little of what came back: a client that lists the tools of one
        // server needs two milliseconds, and most pages of the start.
        let resident = memory::resident().unwrap_or_default();
        if has_begun && resident < least.saturating_add(WORTH_IT) {
            least = least.min(resident);
        } else {
            has_begun = true;
            memory::return_unused();
            memory::return_code_pages();
        }
    }
}

/// Talks to the program that started this one, until that is done.
async fn serve_pipe(
    context: &Context,
    service: &Arc<HostService>,
    owned: &OwnerService,
) -> Result<(), Report> {
    owned.listens("stdio", None);
    if context.output.stdin_is_terminal() {
        context.say(
            "talking MCP over stdin and stdout, as a client would start it; Ctrl-D ends it\n\
             hint: `toolway connect` writes it into a client's configuration, `--http 127.0.0.1:0` listens instead",
        );
    }
    let service: Arc<dyn Service> = Arc::clone(service) as _;
    let peer = Peer::owner("stdio");
    if context.daemon().is_some() {
        let (input, output) = context.output.streams().pipe()?;
        toolway_gateway::stdio::serve_on(service, &peer, input, output).await?;
    } else {
        toolway_gateway::stdio::serve(service, &peer).await?;
    }
    Ok(())
}

/// The plan of this moment, for who follows its profiles.
#[derive(Clone, Default)]
struct SharedPlan(Arc<SharedPlanState>);

#[derive(Default)]
struct SharedPlanState {
    newest: Mutex<Option<Plan>>,
    changed: Notify,
}

impl SharedPlan {
    /// Plans anew when files change, and lets profiles follow.
    fn replan(&self, planner: Arc<Planner>, searches: bool) -> Replan {
        let shared = self.clone();
        Arc::new(move || {
            let mut plan = planner.plan();
            shown::let_search(&mut plan, searches);
            let newest = &shared.0.newest;
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan.clone());
            shared.0.changed.notify_one();
            plan
        })
    }

    /// Keeps the profiles of a service those of the plan.
    async fn follow(&self, flags: &ShownFlags, service: &HostService) {
        loop {
            self.0.changed.notified().await;
            let newest = {
                let newest = &self.0.newest;
                newest.lock().unwrap_or_else(PoisonError::into_inner).take()
            };
            if let Some(plan) = newest {
                flags.follow(&plan, service).await;
            }
        }
    }
}
