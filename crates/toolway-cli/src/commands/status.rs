//! `toolway status`: the gateways that run, and what they are doing.
//!
//! Owns how that is shown. What is true is each gateway's own word (`toolway_gateway`).

use std::time::Duration;

use clap::Args;
use toolway_rows::{CallRow, GatewayListing, GatewayRow, GatewayStatus, ServedClientRow, StateRow};
use toolway_types::text::{clean_line, counted};

use crate::age;
use crate::connect;
use crate::context::Context;
use crate::exit::Exit;
use crate::gateways::{self, AskedGateway};
use crate::report::{Outcome, Report};

/// Show the gateways that run, their clients and calls
///
/// A gateway is a running `toolway serve`, whoever started it. Shown are all of yours: where they
/// listen, where their servers stand, which clients talk to them, which calls run (never their
/// arguments), and how many questions wait for you.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &StatusArgs) -> Outcome {
    let mut gateways = connect::block_on(gateways::statuses(context))?;
    let since = |gateway: &AskedGateway<GatewayStatus>| {
        let answered = gateway.answered.as_ref().ok();
        answered.map_or_else(|| "~".to_owned(), |(status, _)| status.since.clone())
    };
    gateways.sort_by_key(since);
    if args.json {
        let gateways = gateways.into_iter().map(row).collect();
        return context.json(&GatewayListing { gateways });
    }
    if gateways.is_empty() {
        gateways::say_none(context);
        return Ok(Exit::Success);
    }
    let statuses = gateways::answering(context, gateways);
    for (place, (status, _)) in statuses.iter().enumerate() {
        if place > 0 {
            context.output.result("\n")?;
        }
        show(context, status)?;
    }
    let waiting = statuses.iter().map(|(status, _)| status.questions).sum();
    if waiting > 0 {
        context.say(match waiting {
            1 => "a question waits for an answer".to_owned(),
            many => format!("{many} questions wait for an answer"),
        });
        context.hint("see and answer them with `toolway approvals`");
    }
    Ok(Exit::Success)
}

fn row(gateway: AskedGateway<GatewayStatus>) -> GatewayRow {
    let pid = gateway.process;
    match gateway.answered {
        Ok((status, _)) => GatewayRow {
            pid,
            status: Some(status),
            problem: None,
        },
        Err(error) => GatewayRow {
            pid,
            status: None,
            problem: Some(error.to_string()),
        },
    }
}

fn show(context: &Context, status: &GatewayStatus) -> Result<(), Report> {
    let output = &context.output;
    let lasting = age::since(&status.since).unwrap_or_default();
    output.result(&format!(
        "Gateway {}: toolway {}, running for {}, started in {}\n",
        status.pid,
        clean_line(&status.version),
        age::short(lasting),
        clean_line(&status.directory),
    ))?;
    for way in &status.listens {
        let address = way.address.as_deref().unwrap_or("stdin and stdout");
        let (way, address) = (clean_line(&way.way), clean_line(address));
        output.result(&format!("  {way}: {address}\n"))?;
    }
    output.result("\n")?;
    if status.servers.is_empty() {
        output.result("No server is configured.\n")?;
    } else {
        let rows = status.servers.iter().map(server);
        output.table(&["SERVER", "STATE", "TOOLS", "DETAIL"], rows)?;
    }
    output.result("\n")?;
    if status.clients.is_empty() {
        output.result("No client is connected.\n")?;
    } else {
        let head = [
            "CLIENT",
            "NAME",
            "ERA",
            "AT",
            "HERE FOR",
            "LAST SEEN",
            "CALLS",
        ];
        output.table(&head, status.clients.iter().map(client))?;
    }
    if !status.calls.is_empty() {
        output.result("\n")?;
        let head = ["CALL", "SERVER", "CLIENT", "RUNS FOR"];
        output.table(&head, status.calls.iter().map(call))?;
    }
    if status.parked > 0 {
        let parked = counted(status.parked, "call");
        let waits = "for the client to come back with answers";
        output.result(&format!("{parked} of these wait {waits}.\n"))?;
    }
    Ok(())
}

fn server(server: &StateRow) -> Vec<String> {
    let tools = server.tools.map(|tools| tools.to_string());
    let detail = server.error.as_ref().or(server.reason.as_ref());
    let attempt = server.attempt.filter(|attempt| *attempt > 1);
    let detail = match (attempt, detail) {
        (Some(attempt), Some(detail)) => format!("attempt {attempt}: {detail}"),
        (Some(attempt), None) => format!("attempt {attempt}"),
        (None, detail) => detail.cloned().unwrap_or_default(),
    };
    vec![
        server.server.to_string(),
        server.state.to_string(),
        tools.unwrap_or_else(|| "-".to_owned()),
        clean_line(&detail).into_owned(),
    ]
}

fn client(client: &ServedClientRow) -> Vec<String> {
    let ago = |time: &str| age::since(time).map(age::short).unwrap_or_default();
    vec![
        clean_line(&client.shown).into_owned(),
        named(client),
        client
            .era
            .map_or("-", toolway_types::Era::as_str)
            .to_owned(),
        clean_line(&client.endpoint).into_owned(),
        ago(&client.since),
        format!("{} ago", ago(&client.last_seen)),
        client.calls.to_string(),
    ]
}

/// What a client calls itself.
fn named(client: &ServedClientRow) -> String {
    match (&client.name, &client.version) {
        (None, _) => "-".to_owned(),
        (Some(name), None) => clean_line(name).into_owned(),
        (Some(name), Some(version)) => clean_line(&format!("{name} {version}")).into_owned(),
    }
}

fn call(call: &CallRow) -> Vec<String> {
    let server = call.server.as_ref().map(ToString::to_string);
    vec![
        clean_line(&call.tool).into_owned(),
        server.unwrap_or_else(|| "-".to_owned()),
        clean_line(&call.caller.shown).into_owned(),
        age::short(Duration::from_millis(call.milliseconds)),
    ]
}
