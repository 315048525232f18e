//! `toolway state`: everything that is known, in one JSON document.
//!
//! Owns the shape of the export, which is an interface: servers with their definitions, what they
//! offer, and which name stands for what. The rows are those of the commands that list each kind.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolway::HostSnapshot;
use toolway_config::{Plan, without_secrets};

use super::list::{self, say_warnings};
use super::{prompts, resources, tools};
use crate::connect::memory::refresh_old;
use crate::connect::{self, Wanted};
use crate::context::Context;
use crate::report::Outcome;

/// Grows when a field changes its meaning or goes; more fields may come without that.
const VERSION: u32 = 1;

/// Print everything that is known as one JSON document
///
/// All servers with their definitions (secrets hidden), tools, resources, templates and prompts
/// under their exposed and their own names, and what each name stands for. The order is fixed.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// Print JSON, errors too; the document itself is JSON in any case
    #[arg(long)]
    json: bool,

    /// Only what the configuration says: start nothing, connect to nothing
    #[arg(long)]
    no_connect: bool,

    /// Answer at once with what the servers offered before: start nothing, wait for nothing
    #[arg(long, conflicts_with = "no_connect")]
    cached: bool,

    /// Print what is there after this many seconds; servers that need longer are pending
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
}

#[derive(Serialize)]
struct State<'a> {
    version: u32,
    servers: Vec<Server>,
    tools: Vec<tools::Row<'a>>,
    resources: Vec<Value>,
    templates: Vec<Value>,
    prompts: Vec<Value>,
    names: Names<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Server {
    #[serde(flatten)]
    row: list::Row,
    normalized_name: String,
    verdict: &'static str,
    definition: Map<String, Value>,
}

/// What names stand for.
#[derive(Default, Serialize)]
struct Names<'a> {
    /// Servers by the spelling that exposed names have: several may have the same.
    servers: BTreeMap<String, Vec<&'a str>>,
    /// Tools by their exposed names.
    tools: BTreeMap<&'a str, Value>,
    /// Prompts by theirs.
    prompts: BTreeMap<&'a str, Value>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &StateArgs) -> Outcome {
    let plan = context.plan();
    context.require_flags(plan)?;
    if args.no_connect {
        return print(context, plan, &HostSnapshot::default());
    }
    if args.cached {
        let recalled = context.setup.recall(plan);
        let exit = print(context, plan, &recalled.snapshot)?;
        refresh_old(context, &recalled);
        return Ok(exit);
    }
    let limit = args.timeout.map(Duration::from_secs);
    let snapshot = connect::with_host(context, plan.clone(), Wanted::All, async |host| {
        connect::within(limit, connect::settle(context, host)).await;
        Ok(host.snapshot())
    })?;
    say_warnings(context, &snapshot);
    print(context, plan, &snapshot)
}

fn print(context: &Context, plan: &Plan, snapshot: &HostSnapshot) -> Outcome {
    let rows = list::rows(context, plan, snapshot);
    let servers = rows
        .into_iter()
        .zip(&plan.servers)
        .map(|(row, planned)| Server {
            row,
            normalized_name: planned.name.normalized(),
            verdict: planned.verdict.word(),
            definition: without_secrets(&planned.definition),
        });
    let catalog = &*snapshot.catalog;
    let mut names = Names::default();
    for planned in &plan.servers {
        let spelled = planned.name.normalized();
        let originals = names.servers.entry(spelled).or_default();
        // Entries that others shadow have the same name.
        if !originals.contains(&planned.name.as_str()) {
            originals.push(planned.name.as_str());
        }
    }
    for tool in catalog.tools() {
        let meant = json!({ "server": tool.key.server, "tool": tool.key.tool });
        names.tools.insert(&tool.name, meant);
    }
    for prompt in catalog.prompts() {
        let meant = json!({ "server": prompt.key.server, "prompt": prompt.key.tool });
        names.prompts.insert(&prompt.name, meant);
    }
    let resources = catalog.resources().map(resources::resource_row);
    let templates = catalog.templates().map(resources::template_row);
    context.json(&State {
        version: VERSION,
        servers: servers.collect(),
        tools: catalog
            .tools()
            .map(|tool| tools::row(catalog, tool))
            .collect(),
        resources: resources.collect(),
        templates: templates.collect(),
        prompts: catalog.prompts().map(prompts::row).collect(),
        names,
    })
}
