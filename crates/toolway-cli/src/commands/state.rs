//! `toolway state`: everything that is known, in one JSON document.
//!
//! Owns which servers are asked for it, and its version. The document is `toolway_rows`'.

use std::time::Duration;

use clap::Args;
use toolway::HostSnapshot;
use toolway::rows::{exported_servers, name_table, tool_row};
use toolway_config::Plan;
use toolway_rows::{PromptRow, ResourceRow, StateExport, TemplateRow};

use super::list::{self, say_warnings};
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

impl StateArgs {
    /// Whether it asks servers, rather than files alone.
    pub(crate) fn connects(&self) -> bool {
        !self.no_connect && !self.cached
    }
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
    let catalog = &*snapshot.catalog;
    context.json(&StateExport {
        version: VERSION,
        servers: exported_servers(plan, list::rows(context, plan, snapshot)),
        tools: catalog
            .tools()
            .map(|tool| tool_row(catalog, tool))
            .collect(),
        resources: catalog.resources().map(ResourceRow::from).collect(),
        templates: catalog.templates().map(TemplateRow::from).collect(),
        prompts: catalog.prompts().map(PromptRow::from).collect(),
        names: name_table(plan, catalog),
    })
}
