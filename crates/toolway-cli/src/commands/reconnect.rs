//! `toolway reconnect`: a fresh start for a server, here and in every running Toolway.
//!
//! Owns the order of things: forget, tell the others, connect once, say what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use toolway_config::{Plan, ServerVerdict};
use toolway_types::{ConnectionState, ServerName};

use crate::commands::admitted::require_admitted;
use crate::commands::list;
use crate::connect;
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// How long the daemon may take to notice that somebody wants a server anew.
const HEARS_WITHIN: Duration = Duration::from_secs(10);

/// Connect to servers anew, and forget what is remembered
///
/// Every running Toolway process that watches its configuration connects anew as well. Here each
/// server is connected to once, to show what comes of it.
#[derive(Debug, Args)]
pub(crate) struct ReconnectArgs {
    /// Their names
    #[arg(required_unless_present = "all", value_name = "SERVER")]
    servers: Vec<String>,

    /// Every server that may connect
    #[arg(long, conflicts_with = "servers")]
    all: bool,

    /// Print JSON, as `toolway list --json` does
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ReconnectArgs) -> Outcome {
    let mut plan = context.plan().clone();
    require_flags_only(&plan)?;
    let servers = chosen(context, &plan, args)?;
    plan.servers.retain(|planned| {
        servers.contains(&planned.name) && matches!(planned.verdict, ServerVerdict::Admitted(_))
    });
    // Neither forgetting nor telling others is worth failing for: the connection here is what was
    // asked for first.
    connect::block_on(async {
        let heard = context.daemon().map(|daemon| daemon.reconnects.subscribe());
        let before = heard.as_ref().map(|heard| heard.borrow().clone());
        for server in &servers {
            context.say_findings(&context.setup.start_afresh(&plan, server).await);
        }
        if let (Some(mut heard), Some(before)) = (heard, before) {
            // The daemon hears of it like every process. What is shown here is what comes after that.
            let is_done = |counts: &BTreeMap<ServerName, u64>| {
                let mut servers = servers.iter();
                servers.all(|server| counts.get(server) > before.get(server))
            };
            let done = heard.wait_for(is_done);
            // Without its word, what is there now is shown.
            drop(tokio::time::timeout(HEARS_WITHIN, done).await);
        }
        Ok(())
    })?;
    let wanted = connect::Wanted::Some(servers);
    let snapshot = connect::with_host(context, plan.clone(), wanted, async |host| {
        connect::settle(context, host).await;
        Ok(host.snapshot())
    })?;
    list::say_warnings(context, &snapshot);
    list::show(context, &plan, &snapshot, args.json)?;
    let down: Vec<(&ServerName, &ConnectionState)> = snapshot
        .servers
        .iter()
        .filter(|server| !matches!(server.state, ConnectionState::Connected(_)))
        .map(|server| (&server.name, &server.state))
        .collect();
    match down.as_slice() {
        [] => Ok(Exit::Success),
        [(server, state), rest @ ..] => {
            let mut report = Report::unavailable(server.as_str(), state);
            if !rest.is_empty() {
                report.message = match rest.len() {
                    1 => format!("{}; one more is not connected", report.message),
                    more => format!("{}; {more} more are not connected", report.message),
                };
            }
            Err(report)
        }
    }
}

fn chosen(context: &Context, plan: &Plan, args: &ReconnectArgs) -> Result<Vec<ServerName>, Report> {
    if !args.all {
        let names = args.servers.iter();
        return names
            .map(|name| require_admitted(context, plan, name))
            .collect();
    }
    context.say_diagnoses(plan);
    let all: Vec<ServerName> = plan
        .admitted()
        .map(|(server, _)| server.name.clone())
        .collect();
    if plan.servers.is_empty() {
        return Err(Report::configuration("no server is configured")
            .hint("add one with `toolway add <name> <command or url>`"));
    }
    if all.is_empty() {
        return Err(Report::configuration("no configured server may connect")
            .hint("see why with `toolway list --no-connect`"));
    }
    Ok(all)
}
