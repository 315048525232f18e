//! What serves the endpoint of `toolway run`: a command of its own, in the daemon where one runs.
//!
//! Owns the view of the agent: its servers, waiting for those that it requires, and the end of it all
//! when the run's process says no more, or is gone. What an agent file means is `toolway-config`'s, the
//! socket `toolway_gateway::agent_socket`'s.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use toolway::{
    AgentError, AgentSpec, Attached, Caller, CallerKind, ConfigWatch, Host, HostOptions,
    RetryFirst, ServerObstacle, ViewSpec,
};
use toolway_config::{Agent, NameForm, Plan, ServerVerdict, ToolPatterns, agent};
use toolway_gateway::agent_socket::{AgentSocket, RunFolder};
use toolway_gateway::hosted::RoutedQuestions;
use toolway_gateway::{
    EndpointOptions, HostService, HostServiceOptions, OwnerService, Peer, SealKeys, Service,
};
use toolway_types::name::shell_word;
use toolway_types::{ConnectionState, Diagnosis, ServerName, limits, text};

use super::{READY, RunView};
use crate::commands::serve::owner;
use crate::connect;
use crate::context::{Context, require_flags_only, unknown_server};
use crate::exit::Exit;
use crate::kept_hosts::asked_before_calls;
use crate::report::{Outcome, Report};

/// How long the first lists wait: programs that ask once are not to miss what is a moment late.
const WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// Serve the endpoint of a run
#[derive(Debug, Args)]
pub(crate) struct RunHostArgs {
    #[command(flatten)]
    view: RunView,

    /// The run's private folder
    #[arg(long)]
    folder: PathBuf,
}

/// What an endpoint shows.
struct RunShown {
    /// What people are shown of it.
    name: String,
    view: ViewSpec,
    required: Vec<ServerName>,
    tools: Option<ToolPatterns>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &RunHostArgs) -> Outcome {
    connect::block_on(async {
        let mut signals = context.signals();
        let planner = context.setup.planner();
        // Before the first plan, so that no change falls between the two.
        let files = ConfigWatch::start(context.setup.watched(&planner));
        let plan = planner.plan();
        require_flags_only(&plan)?;
        let shown = RunShown::of(context, &args.view, &plan)?;
        let owner_sees = asked_before_calls(&plan);
        let socket = owner::socket(context).await;
        let replan = Arc::clone(&planner);
        let defaults = connect::host_options(context);
        let options = HostOptions {
            // Clients' payloads are theirs, and each would be written twice.
            journal: defaults.journal.map(toolway::Journal::without_messages),
            caller: Caller::new(CallerKind::Person, crate::kept_hosts::CALLER),
            client_handler: Some(Arc::new(RoutedQuestions)),
            open_questions: true,
            answers_for_callers: socket.is_some(),
            retry_first: RetryFirst::Backoff,
            owner_sees,
            replan: Some(Arc::new(move || replan.plan())),
            ..defaults
        };
        let options = match context.daemon() {
            Some(daemon) => HostOptions {
                connections: daemon.pool.clone(),
                launcher: daemon.launcher.clone(),
                rest_after: Some(limits::daemon::KEPT),
                ..options
            },
            None => options,
        };
        let host = Arc::new(Host::start(plan, options));
        let mut gone = std::pin::pin!(hung_up(context)?);
        let outcome = tokio::select! {
            served = serve(context, args, shown, &host, socket.as_ref()) => served,
            () = &mut gone => Ok(()),
            () = files.follow(&host) => Ok(()),
            _ = signals.next() => Ok(()),
        };
        drop(socket);
        if let Some(host) = Arc::into_inner(host) {
            connect::end(host, &mut signals).await?;
        }
        // Where the run's process is gone, nobody else does.
        RunFolder::remove_if_abandoned(&args.folder);
        outcome.map(|()| Exit::Success)
    })
}

/// Serves the endpoint for as long as this is polled, once what it requires is there.
async fn serve(
    context: &Context,
    args: &RunHostArgs,
    shown: RunShown,
    host: &Arc<Host>,
    owners: Option<&toolway_gateway::owner_socket::OwnerSocket>,
) -> Result<(), Report> {
    let caller = Caller::new(CallerKind::Agent, &shown.name);
    let own = shown.view.own.clone();
    let spec = AgentSpec {
        view: shown.view,
        required: shown.required,
        ..AgentSpec::default()
    };
    let agent = host.agent(caller, spec).await;
    let agent = agent.map_err(|error| refusal(context, &error, own.as_deref(), &args.view))?;
    if let Some(tools) = &shown.tools {
        context.say_findings(&absent_tools(&agent, tools));
    }
    let socket = AgentSocket::bind(&args.folder)?;
    let (service, driver) = HostService::new(
        Arc::clone(host),
        HostServiceOptions {
            view: Some(agent.view().clone()),
            endpoint: EndpointOptions {
                names: NameForm::Short,
                wait: Some(args.view.wait.unwrap_or(WAIT)),
                ..EndpointOptions::default()
            },
            profiles: Vec::new(),
            seal: SealKeys::random().map_err(anyhow::Error::from)?,
            tracer: None,
        },
    );
    let directory = context.environment().cwd().display().to_string();
    let owned = Arc::new(OwnerService::new(Arc::clone(&service), &directory));
    owned.listens("run", Some(args.folder.display().to_string()));
    let name = args.folder.file_name().unwrap_or_default();
    let peer = Peer {
        principal: format!("run {}", name.to_string_lossy()).into(),
        ..Peer::owner(&shown.name)
    };
    context.output.result(&format!("{READY}\n"))?;
    let service: Arc<dyn Service> = service;
    tokio::select! {
        () = socket.serve(service, &peer) => {}
        () = driver => {}
        () = owner::serve(owners, &owned) => {}
    }
    agent.detach().await;
    Ok(())
}

/// Waits until the run's process says that it is over, or is gone.
fn hung_up(context: &Context) -> Result<impl Future<Output = ()> + use<>, Report> {
    let mut input: Box<dyn AsyncRead + Unpin + Send> = if context.daemon().is_some() {
        let (input, output) = context.output.streams().pipe()?;
        // Closed with the whole socket.
        output.forget();
        Box::new(input)
    } else {
        Box::new(tokio::io::stdin())
    };
    Ok(async move {
        let mut bytes = [0; 64];
        while matches!(input.read(&mut bytes).await, Ok(count) if count > 0) {}
    })
}

impl RunShown {
    fn of(context: &Context, view: &RunView, plan: &Plan) -> Result<Self, Report> {
        let environment = context.environment();
        let agent = view.agent.as_deref().map(|word| {
            let place = toolway_config::find_agent(environment, word)?;
            agent::agent(environment, place)
        });
        let agent = agent.transpose()?;
        let mut shown = match (&agent, &view.agent) {
            (Some(agent), Some(word)) => Self::of_agent(context, agent, word, plan),
            _ => Self {
                name: "run".to_owned(),
                view: ViewSpec::default(),
                required: Vec::new(),
                tools: None,
            },
        };
        if let Some(names) = &view.servers {
            shown.keep(plan, agent.as_ref(), names)?;
        }
        for name in &view.required {
            let name = ServerName::new(name.as_str()).map_err(|_| unknown_server(plan, name))?;
            if !shown.required.contains(&name) {
                shown.required.push(name);
            }
        }
        Ok(shown)
    }

    /// What an agent has, with what is wrong with it said.
    fn of_agent(context: &Context, agent: &Agent, word: &str, plan: &Plan) -> Self {
        let own = agent.own_plan(context.environment(), context.flags());
        context.say_findings(&agent.findings(&own, plan, word));
        Self {
            name: text::clean_line(&agent.name).into_owned(),
            view: ViewSpec {
                servers: agent.servers.clone(),
                own: Some(Arc::new(own)),
                confinement: agent.confinement(),
                ..ViewSpec::default()
            },
            required: agent.required.clone(),
            tools: agent.tools.clone(),
        }
    }

    /// Takes away all but these.
    fn keep(&mut self, plan: &Plan, agent: Option<&Agent>, names: &[String]) -> Result<(), Report> {
        let mut kept = Vec::new();
        for name in names {
            let is_own = |agent: &Agent| agent.own_names().any(|own| own.as_str() == name);
            let is_agents = agent.is_some_and(is_own);
            match plan.winner(name) {
                Some(server) => kept.push(server.name.clone()),
                None if is_agents => {}
                None => return Err(unknown_server(plan, name)),
            }
        }
        if let Some(servers) = &self.view.servers {
            kept.retain(|name| servers.contains(name));
        }
        self.view.servers = Some(kept);
        if let Some(own) = &mut self.view.own {
            let own = Arc::make_mut(own);
            own.servers
                .retain(|server| names.iter().any(|name| name == server.name.as_str()));
        }
        Ok(())
    }
}

/// Why the program is not started. What is configured is explained by other commands; `own` is not.
fn refusal(context: &Context, error: &AgentError, own: Option<&Plan>, view: &RunView) -> Report {
    let mut reports = error.obstacles.iter().map(|(server, obstacle)| {
        let own = own.and_then(|own| own.winner(server.as_str()));
        let report = match obstacle {
            ServerObstacle::Missing => {
                Report::configuration(format!("server `{server}` is not configured here"))
                    .hint("`toolway list --no-connect` shows all that are")
            }
            ServerObstacle::NotConnected(state) => Report::unavailable(server.as_str(), state),
        };
        match own {
            None => context.advised(report),
            Some(own) => {
                let waits = matches!(own.verdict, ServerVerdict::PendingApproval { .. });
                let word = view.agent.as_deref().unwrap_or_default();
                report.better_hint(Some(if waits {
                    agent::approval_hint(server, word)
                } else {
                    format!("it stands at {}", own.origin)
                }))
            }
        }
    });
    let Some(first) = reports.next() else {
        return Report::new(Exit::Unexpected, error.to_string());
    };
    let others: Vec<String> = reports
        .map(|report| format!("also: {}", report.message))
        .collect();
    let message = format!("the program is not started: {}", first.message);
    Report { message, ..first }.details(others)
}

/// The tools that an agent names and its servers do not have, as far as those are there.
fn absent_tools(agent: &Attached, tools: &ToolPatterns) -> Vec<Diagnosis> {
    let snapshot = agent.snapshot();
    let mut absent = Vec::new();
    for (pattern, origin) in tools.iter().filter(|(pattern, _)| !pattern.contains('*')) {
        let Some((server, _)) = pattern
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
        else {
            continue;
        };
        let is_there = snapshot.servers.iter().any(|known| {
            known.name.normalized() == server
                && matches!(known.state, ConnectionState::Connected(_))
        });
        let mut one = ToolPatterns::default();
        if !is_there || one.add(pattern, origin).is_err() {
            continue;
        }
        if !snapshot.catalog.tools().any(|tool| one.include(&tool.key)) {
            let shown = text::clean_line(pattern);
            let message = format!("`{shown}` in `tools` names no tool that server `{server}` has");
            absent.push(
                Diagnosis::warning(message)
                    .at(origin.clone())
                    .hint(format!("`toolway tools {}` shows them", shell_word(server))),
            );
        }
    }
    absent
}
