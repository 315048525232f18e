//! `toolway control`: Toolway for a program in any language, over stdin and stdout.
//!
//! Owns the run: a host that follows its files, the service of the program over it, and the order in
//! which they end. What the program may ask is `toolway_gateway::control`'s.

use std::sync::Arc;

use clap::Args;
use toolway::{Caller, CallerKind, ConfigWatch, Host, HostOptions, RetryFirst, UserSetup};
use toolway_config::Plan;
use toolway_gateway::hosted::RoutedQuestions;
use toolway_gateway::{ControlOptions, ControlService, OwnerService, Peer, Service};
use toolway_types::limits;

use super::serve::{owner, remember, trim_when_idle};
use crate::connect;
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::kept_hosts::{CALLER, asked_before_calls};
use crate::report::{Outcome, Report};

/// Serve one program, which uses Toolway as a library
///
/// The program starts it, and talks to it over stdin and stdout: MCP, and methods of Toolway's own by
/// which it brings servers, calls tools and answers questions. Packages for Python and TypeScript do
/// this for you; `docs/control.md` says how to write another one. It ends with its stdin.
#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// Write every message to and from servers into their logs, for `toolway logs --protocol`
    #[arg(long)]
    log_messages: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ControlArgs) -> Outcome {
    let in_daemon = context.daemon();
    if in_daemon.is_none() {
        toolway::memory::return_large_blocks();
    }
    connect::block_on(async {
        let mut signals = context.signals();
        let planner = context.setup.planner();
        // Before the first plan, so that no change falls between the two.
        let files = ConfigWatch::start(context.setup.watched(&planner));
        let plan = planner.plan();
        require_flags_only(&plan)?;
        context.say_diagnoses(&plan);
        let options = options(context, args, &plan);
        let options = HostOptions {
            replan: Some(Arc::new(move || planner.plan())),
            ..options
        };
        let (spans, findings) = context.setup.start_spans();
        context.say_once(findings);
        let host = Arc::new(Host::start(plan, options));
        let outcome = {
            let environment = context.environment().clone();
            let (service, driver) = ControlService::new(ControlOptions {
                host: Arc::clone(&host),
                setup: Arc::new(UserSetup::new(environment, context.flags().clone())),
                tracer: spans.as_ref().map(|spans| spans.tracer().clone()),
            });
            let service = Arc::new(service);
            tokio::select! {
                served = serve(context, &service) => served,
                () = driver => Ok(()),
                () = files.follow(&host) => Ok(()),
                () = remember(&host) => Ok(()),
                () = serve_owner(context, &service) => Ok(()),
                () = OwnerService::tell_waiting(&host, |it| owner::tell(context, it)) => Ok(()),
                // The daemon looks after its own memory.
                () = trim_when_idle(&host), if in_daemon.is_none() => Ok(()),
                _ = signals.next() => Ok(()),
            }
        };
        if let Some(host) = Arc::into_inner(host) {
            connect::end(host, &mut signals).await?;
        }
        if let Some(spans) = spans {
            spans.end().await;
        }
        outcome.map(|()| Exit::Success)
    })
}

/// What the host of a program is started with.
fn options(context: &Context, args: &ControlArgs, plan: &Plan) -> HostOptions {
    let defaults = connect::host_options(context);
    let journal = defaults.journal.map(|journal| {
        if args.log_messages {
            journal
        } else {
            journal.without_messages()
        }
    });
    let options = HostOptions {
        journal,
        caller: Caller::new(CallerKind::Person, CALLER),
        client_handler: Some(Arc::new(RoutedQuestions)),
        open_questions: true,
        answers_for_callers: true,
        // Servers are connected to for the program, which may want none of those in files.
        owner_sees: asked_before_calls(plan),
        retry_first: RetryFirst::Backoff,
        offers_remembered: true,
        ..defaults
    };
    match context.daemon() {
        Some(daemon) => HostOptions {
            connections: daemon.pool.clone(),
            launcher: daemon.launcher.clone(),
            rest_after: Some(limits::daemon::KEPT),
            ..options
        },
        None => options,
    }
}

/// Talks to the program that started this one, until that is done.
async fn serve(context: &Context, service: &Arc<ControlService>) -> Result<(), Report> {
    if context.output.stdin_is_terminal() {
        context.say("talking to a program over stdin and stdout; Ctrl-D ends it");
        context.hint("see `docs/control.md` for what such a program says");
    }
    let service: Arc<dyn Service> = Arc::clone(service) as _;
    let peer = Peer::owner("control");
    if context.daemon().is_some() {
        let (input, output) = context.output.streams().pipe()?;
        toolway_gateway::stdio::serve_on(service, &peer, input, output).await?;
    } else {
        toolway_gateway::stdio::serve(service, &peer).await?;
    }
    Ok(())
}

/// Serves the owner over a socket, once there is something to see.
async fn serve_owner(context: &Context, service: &ControlService) {
    let owned = service.owner().await;
    let socket = owner::socket(context).await;
    owner::serve(socket.as_ref(), &owned).await;
}
