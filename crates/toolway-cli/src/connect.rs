//! Running the host for the length of one command.
//!
//! Owns the runtime, the live view while servers connect, and that the host is shut down before the
//! program exits. Parts: `setup.rs` (what every host starts with), `typed.rs` (servers that no file
//! configures), `memory.rs` (what servers offered before).

mod command_host;
pub(crate) mod memory;
mod setup;
mod typed;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::SignalKind;
use toolway::watch::ConfigWatch;
use toolway::{
    AttachOptions, Audit, Caller, CallerKind, ClientHandler, Host, HostOptions, HostSnapshot,
    Prompter,
};
use toolway_config::{Plan, PlannedServer};
use toolway_tui::{NoticeFeed, TerminalSize, Theme};
use toolway_types::{ConnectionState, ServerName, TransportKind};

pub(crate) use self::command_host::CommandHost;
pub(crate) use self::setup::{StorageArgs, host_options, logins, reconnect_elsewhere, vault};
pub(crate) use self::typed::{Typed, TypedCommand};
use crate::context::Context;
use crate::exit::Exit;
use crate::kept_hosts::{CALLER, RunInDaemon};
use crate::prompt::TerminalPrompt;
use crate::report::Report;
use crate::signals::Signals;

/// Which servers a command needs.
pub(crate) enum Wanted {
    /// All that the plan admits.
    All,
    /// All that the plan admits, and what the account's provider says of its connectors now.
    Listing,
    /// One; no other is started.
    Only(ServerName),
    /// These; no other is started.
    Some(Vec<ServerName>),
}

impl Wanted {
    /// What several calls need together.
    pub(crate) fn together<'a>(all: impl IntoIterator<Item = &'a Wanted>) -> Self {
        let mut names = Vec::new();
        for wanted in all {
            match wanted {
                Wanted::Listing => return Wanted::Listing,
                Wanted::All => return Wanted::All,
                Wanted::Only(name) => names.push(name.clone()),
                Wanted::Some(several) => names.extend_from_slice(several),
            }
        }
        names.sort_unstable();
        names.dedup();
        Wanted::Some(names)
    }
}

/// Starts a host on a plan, runs `work` on it, and stops it.
pub(crate) fn with_host<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Result<T, Report>,
) -> Result<T, Report> {
    run_host(context, plan, wanted, Interaction::default(), work, |_| {
        Err(stopped(context))
    })
}

/// What asks the user, where there is one.
#[derive(Default)]
struct Interaction {
    /// Whether a call may run.
    prompter: Option<Arc<dyn Prompter>>,
    /// What servers want to know.
    client_handler: Option<Arc<dyn ClientHandler>>,
}

impl Interaction {
    /// At the terminal, for requests that the user typed: asked where a hook wants that, or where
    /// something changed.
    fn at_terminal(context: &Context) -> Self {
        let prompt = || Arc::new(TerminalPrompt::new(context)) as Arc<dyn Prompter>;
        Self {
            prompter: context.output.can_ask().then(prompt),
            client_handler: crate::elicit::client_handler(context),
        }
    }
}

/// As [`with_host`], with a user to ask.
pub(crate) fn with_user<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Result<T, Report>,
) -> Result<T, Report> {
    // A call runs, or not, by these: a guard that is not read as it was meant is said every time.
    context.say_findings(plan.permissions.faults());
    let work = async |host: &CommandHost<'_>| {
        tokio::select! {
            done = work(host) => done,
            never = follow_reconnects(context, host) => never,
        }
    };
    let interaction = Interaction::at_terminal(context);
    run_host(context, plan, wanted, interaction, work, |_| {
        Err(stopped(context))
    })
}

/// How long a request runs before `toolway reconnect` is listened for.
const HANGS_AFTER: Duration = Duration::from_secs(1);

/// Connects servers anew when `toolway reconnect` asks for it, which ends the requests that hang
/// there. A request that is quick is spared the watching.
async fn follow_reconnects<T>(context: &Context, host: &CommandHost<'_>) -> T {
    if context.daemon().is_some() {
        // The daemon follows them for all.
        return std::future::pending().await;
    }
    tokio::time::sleep(HANGS_AFTER).await;
    let watch = ConfigWatch::start(context.setup.watched_requests());
    watch.follow(host.whole()).await;
    std::future::pending().await
}

/// As [`with_host`], for work without an end of its own, or with something to show before it:
/// `told` says what it means to be told to end.
pub(crate) fn with_host_until<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Result<T, Report>,
    told: impl FnOnce(&CommandHost<'_>) -> Result<T, Report>,
) -> Result<T, Report> {
    run_host(context, plan, wanted, Interaction::default(), work, told)
}

/// The user ended the command, and has seen what was there.
pub(crate) fn stopped_showing(context: &Context) -> Report {
    Report {
        exit: Exit::Interrupted,
        ..stopped(context)
    }
}

fn stopped(context: &Context) -> Report {
    interrupted(match context.daemon() {
        None => "every server that was started has been stopped",
        Some(_) => "servers stay with the daemon: `toolway daemon status`",
    })
}

fn run_host<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    interaction: Interaction,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Result<T, Report>,
    told: impl FnOnce(&CommandHost<'_>) -> Result<T, Report>,
) -> Result<T, Report> {
    if let Some(daemon) = context.daemon() {
        return run_in_daemon(context, daemon, &plan, wanted, interaction, work, told);
    }
    let (plan, options) = prepared(context, plan, wanted, interaction);
    let audit = options.audit.clone();
    block_on(async {
        let mut signals = context.signals();
        let host = Host::start(plan, options);
        let outcome = {
            let command_host = CommandHost::own(&host);
            let mut work: Work<'_, T> = Box::pin(work(&command_host));
            match until_told(context, &mut signals, &mut work).await {
                Ok(outcome) => outcome,
                Err(signal) => {
                    let outcome = told(&command_host);
                    drop(work);
                    if signal == SignalKind::interrupt() {
                        context.output.leave_line();
                    }
                    outcome
                }
            }
        };
        finish(context, host, &mut signals, audit.as_ref()).await?;
        outcome
    })
}

/// As [`run_host`], as one caller of a host that the daemon keeps.
fn run_in_daemon<T>(
    context: &Context,
    daemon: &RunInDaemon,
    plan: &Plan,
    wanted: Wanted,
    interaction: Interaction,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Result<T, Report>,
    told: impl FnOnce(&CommandHost<'_>) -> Result<T, Report>,
) -> Result<T, Report> {
    context.say_once(context.setup.findings());
    let project = &daemon.project;
    let servers = match wanted {
        Wanted::All | Wanted::Listing => None,
        Wanted::Only(name) => Some(vec![name]),
        Wanted::Some(names) => Some(names),
    };
    block_on(async {
        let mut signals = context.signals();
        let view = project.view(plan, servers).await;
        let options = AttachOptions {
            prompter: interaction.prompter,
            client_handler: interaction.client_handler,
            view: Some(view.clone()),
            ..AttachOptions::default()
        };
        let caller = Caller::new(CallerKind::Person, CALLER);
        let attached = project.host.attach(caller, options);
        let outcome = {
            let command_host = CommandHost::part(&project.host, &attached);
            let mut work: Work<'_, T> = Box::pin(work(&command_host));
            match until_told(context, &mut signals, &mut work).await {
                Ok(outcome) => outcome,
                Err(signal) => {
                    let outcome = told(&command_host);
                    drop(work);
                    if signal == SignalKind::interrupt() {
                        context.output.leave_line();
                    }
                    outcome
                }
            }
        };
        note_logins(context, &project.host, &attached.snapshot());
        project.host.remember_of(&view).await;
        drop(view);
        attached.detach().await;
        if let Some(audit) = &project.audit {
            tell_trouble(context, audit);
        }
        outcome
    })
}

/// What a command does with its host. Boxed: what goes on around it is compiled once for each
/// outcome, not for each command.
type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, Report>> + 'a>>;

/// The part of the plan that is wanted, and what the host starts with.
fn prepared(
    context: &Context,
    mut plan: Plan,
    wanted: Wanted,
    interaction: Interaction,
) -> (Plan, HostOptions) {
    let asks_provider = matches!(wanted, Wanted::Listing);
    let only = match wanted {
        Wanted::All | Wanted::Listing => None,
        Wanted::Only(name) => Some(vec![name]),
        Wanted::Some(names) => Some(names),
    };
    if let Some(names) = only {
        // The others have no part in this run, so the live view does not speak of them either.
        // A server whose tool is a hook, or decides in mode `auto`, has.
        let classifier = plan.permissions.classifier().and_then(|it| it.server());
        let hooks: Vec<&str> = plan.hooks.servers().chain(classifier).collect();
        plan.servers
            .retain(|server| names.contains(&server.name) || hooks.contains(&server.name.as_str()));
    }
    // The provider is no business of a run without connectors.
    let is_connector =
        |server: &PlannedServer| server.transport.is_some_and(TransportKind::is_connector);
    let has_connectors = plan.servers.iter().any(is_connector);
    let mut options = HostOptions {
        caller: Caller::new(CallerKind::Person, CALLER),
        prompter: interaction.prompter,
        client_handler: interaction.client_handler,
        ..host_options(context)
    };
    if !asks_provider && !has_connectors {
        options.connectors = None;
    }
    (plan, options)
}

/// What the work comes to, or the signal that ends it before that.
async fn until_told<T>(
    context: &Context,
    signals: &mut Signals,
    work: &mut Work<'_, T>,
) -> Result<Result<T, Report>, SignalKind> {
    loop {
        tokio::select! {
            outcome = &mut *work => return Ok(outcome),
            signal = signals.next() => {
                if !(signal == SignalKind::interrupt() && context.turns.interrupted()) {
                    return Err(signal);
                }
                signals.forget_last();
            }
        }
    }
}

/// Notes what helps with logins, and ends the host.
async fn finish(
    context: &Context,
    host: Host,
    signals: &mut Signals,
    audit: Option<&Audit>,
) -> Result<(), Report> {
    note_logins(context, &host, &host.snapshot());
    let ended = end(host, signals).await;
    if let Some(audit) = audit {
        tell_trouble(context, audit);
    }
    ended
}

/// Notes what helps with logins.
fn note_logins(context: &Context, host: &Host, snapshot: &HostSnapshot) {
    for server in &snapshot.servers {
        let name = server.name.as_str();
        if let ConnectionState::NeedsAuth { .. } = server.state
            && let Some(advice) = host.login_advice(name)
        {
            context.note_advice(name, advice);
        }
    }
}

/// Says that calls of this run could not be written down.
fn tell_trouble(context: &Context, audit: &Audit) {
    let Some(error) = audit.trouble() else {
        return;
    };
    context.warn(format!(
        "what was called could not be written down in `{}`: {error}; see `toolway audit`",
        audit.directory().display()
    ));
}

/// Ends a host in an orderly way, or at once when a further signal asks for that: what runs of it
/// is then killed with the runtime.
pub(crate) async fn end(host: Host, signals: &mut Signals) -> Result<(), Report> {
    let mut shutdown = std::pin::pin!(host.shutdown());
    loop {
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            // The first one asks for what is under way.
            _ = signals.next() => if signals.heard() > 1 {
                return Err(interrupted("every server that was started has been killed"));
            },
        }
    }
}

fn interrupted(hint: &str) -> Report {
    Report::new(Exit::Interrupted, "interrupted").hint(hint)
}

/// Waits until no server is pending any more, with a live view where there is a terminal.
pub(crate) async fn settle(context: &Context, host: &CommandHost<'_>) {
    settle_telling(context, host, None).await;
}

/// As [`settle`]; notices about each snapshot are printed above the view.
pub(crate) async fn settle_telling(
    context: &Context,
    host: &CommandHost<'_>,
    news: Option<NoticeFeed<'_>>,
) {
    if context.output.can_animate() {
        let errors = context.output.streams();
        // A terminal that cannot be drawn on is no reason to fail.
        let _ =
            toolway_tui::show(host.watch(), || errors.error_writer(), view(context), news).await;
    }
    host.settled().await;
}

/// Waits for as long as was said; for as long as it takes where nothing was.
pub(crate) async fn within(limit: Option<Duration>, waiting: impl Future<Output = ()>) {
    match limit {
        // Servers that are late are pending in the snapshot.
        Some(limit) => drop(tokio::time::timeout(limit, waiting).await),
        None => waiting.await,
    }
}

/// How live views are drawn on stderr.
pub(crate) fn view(context: &Context) -> toolway_tui::ViewOptions {
    toolway_tui::ViewOptions {
        screen: TerminalSize::of(context.output.streams().errors()),
        theme: theme(context),
    }
}

/// Whether live views are coloured.
pub(crate) fn theme(context: &Context) -> Theme {
    if context.output.colour() {
        Theme::Colour
    } else {
        Theme::Plain
    }
}

/// Runs a future on a runtime of its own, or on the daemon's. One thread: a command makes a handful of calls, and a
/// pool costs more to start than they do.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Report>>) -> Result<T, Report> {
    // One runtime for each outcome, not for each command: its part is compiled once.
    let work: Pin<Box<dyn Future<Output = Result<T, Report>>>> = Box::pin(work);
    if let Ok(daemon) = tokio::runtime::Handle::try_current() {
        return daemon.block_on(work);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(work);
    // Not waited for: a read of stdin ends only when somebody types or hangs up.
    runtime.shutdown_background();
    outcome
}
