//! `toolway tools`: every tool of every server, under the name it is called by; or, for a provider
//! of models, what a session of a model would be listed.
//!
//! Owns what is shown; the rows are `toolway_rows`'. Parts: `one.rs` (one tool at a glance), `long.rs`
//! (`--long`), `export.rs` (`--format`), `kept.rs` (`--cached`), `early.rs` (rows while a slow server
//! is waited for), `absent.rs` (servers that are not there).

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use clap::Args;
use toolway::builtin::TOOL_SEARCH;
use toolway::rows::{asked_rows, place_row};
use toolway::{Catalog, CatalogTool, HostSnapshot, RecalledServer, ServerSnapshot};
use toolway_rows::{InstructionsListing, LeftOutRow, ToolListing};
use toolway_types::{ConnectionState, ServerName};

pub(crate) use self::absent::{require_connected, say_missing};
use self::absent::{require_in_time, say_late};
use self::early::Early;
use self::export::{Format, print_export, show_pool};
use self::long::{listed, show_long};
use crate::commands::admitted::{find_by_exposed, require_admitted};
use crate::commands::list::say_warnings;
use crate::connect::{self, Typed, TypedCommand, Wanted};
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::output::first_line;
use crate::report::Outcome;

mod absent;
mod early;
mod example;
mod export;
mod kept;
mod long;
mod one;
mod shape;

/// How many tools a search shows.
const SEARCH_RESULTS: usize = 10;

/// List the tools of all servers or of one, or show one tool
///
/// With a tool's name: what it takes, what its server says of it, which rule decides about it, and an
/// example of a call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway tools
  toolway tools -l
  toolway tools github create_issue
  toolway tools github --json
  toolway tools --search 'open an issue'
  toolway tools github --all
  toolway tools --format anthropic
  toolway tools --format openai --search 'open an issue'
  toolway tools https://mcp.example.com/mcp
  toolway tools -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct ToolsArgs {
    /// A server's name, or a URL; or a tool's whole name
    server: Option<String>,

    /// A tool of the server, to be shown alone
    #[arg(conflicts_with_all = ["search", "long", "all", "instructions", "accept_change", "format", "no_connect"])]
    tool: Option<String>,

    /// Show what each tool takes, too
    #[arg(short, long, conflicts_with_all = ["instructions", "format", "no_connect"])]
    long: bool,

    /// Only the tools that fit these words, best first; `select:name,name` for those of a name
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["all", "instructions", "no_connect"])]
    search: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also show the tools that the servers' entries leave out, and why; with `--format`, also print
    /// those that are deferred
    #[arg(long)]
    all: bool,

    /// Show what the servers say to models about themselves, instead of their tools
    #[arg(long, conflicts_with_all = ["all", "no_connect"])]
    instructions: bool,

    /// Let a server say to models what it says now, though it said something else before
    #[arg(long, requires_all = ["server", "instructions"])]
    accept_change: bool,

    /// Print what a model's session is listed, as its provider takes it under `tools` in a request:
    /// the tools that are not deferred, and Toolway's own; with `--search`, what was found
    #[arg(long, value_enum, conflicts_with_all = ["json", "instructions", "no_connect"])]
    format: Option<Format>,

    /// Show which servers would be asked: start nothing, connect to nothing
    #[arg(long)]
    no_connect: bool,

    /// Answer at once from what the servers offered before, and say how long ago: start nothing,
    /// wait for nothing
    #[arg(long, conflicts_with_all = ["no_connect", "instructions", "accept_change", "format"])]
    cached: bool,

    /// Show what is there after this many seconds, without the servers that need longer
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    #[command(flatten)]
    command: TypedCommand,
}

impl ToolsArgs {
    /// Whether it asks servers, rather than files alone.
    pub(crate) fn connects(&self) -> bool {
        !self.no_connect && !self.cached
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ToolsArgs) -> Outcome {
    let typed = Typed::either(context, args.server.as_deref(), &args.command)?;
    let (plan, wanted) = match &typed {
        Some(typed) => (context.plan_with(&typed.flags), Wanted::All),
        None => match &args.server {
            Some(name) => {
                let plan = context.plan();
                require_flags_only(plan)?;
                let wanted = match one::whole_name(args, plan) {
                    Some(whole) => find_by_exposed(context, plan, whole)?.1,
                    None => Wanted::Only(require_admitted(context, plan, name)?),
                };
                (plan.clone(), wanted)
            }
            None => (context.plan().clone(), Wanted::All),
        },
    };
    // Asked for one server, what is wrong with others is beside the point.
    if !matches!(wanted, Wanted::Only(_)) {
        context.require_flags(&plan)?;
    }
    let only = match (&typed, &wanted) {
        (Some(typed), _) => Some(typed.name.clone()),
        (None, Wanted::Only(name)) => Some(name.to_string()),
        (None, Wanted::All | Wanted::Listing | Wanted::Some(_)) => None,
    };
    if args.no_connect {
        return no_connect(context, args, &plan, only.as_deref());
    }
    let meant = one::meant(args, &plan, only.as_deref())?;
    if args.cached {
        return kept::run(context, args, plan, only.as_deref(), meant.as_ref());
    }
    let rules = meant.is_some().then(|| plan.clone());
    let limit = args.timeout.map(Duration::from_secs);
    let mut early = Early::new(context, args);
    let (snapshot, stopped) = connect::with_host_until(
        context,
        plan,
        wanted,
        async |host| {
            let settled = early.while_settling(context, host);
            connect::within(limit, settled).await;
            if let (true, Some(name)) = (args.accept_change, &only)
                && let Ok(name) = ServerName::new(name)
            {
                host.whole().accept_instructions(&name).await?;
            }
            Ok((host.snapshot(), None))
        },
        |host| Ok((host.snapshot(), Some(connect::stopped_showing(context)))),
    )?;
    if let (Some(_), Some(stopped)) = (&only, stopped.as_ref()) {
        return Err(stopped.clone());
    }
    say_warnings(context, &snapshot);
    if let Some(name) = &only {
        // A model is listed the tool that begins its login.
        let exports_login = args.format.is_some()
            && args.search.is_none()
            && snapshot
                .catalog
                .built_in()
                .iter()
                .any(|tool| tool.key.server.as_str() == name);
        if exports_login {
            say_missing(context, &snapshot);
        } else {
            require_in_time(&snapshot, name, limit)?;
            require_connected(&snapshot, name, typed.as_ref())?;
        }
    } else {
        say_missing(context, &snapshot);
        say_late(context, &snapshot, limit);
        let nothing = snapshot.catalog.tools().next().is_none()
            && meant.is_none()
            && !args.instructions
            && (!args.all || snapshot.catalog.left_out().next().is_none());
        if nothing && !args.json && args.format.is_none() {
            say_none(context, &snapshot);
            return stopped.map_or(Ok(Exit::Success), Err);
        }
    }
    if let (Some(meant), Some(plan)) = (&meant, &rules) {
        let outcome = one::show(context, args, plan, &snapshot.catalog, meant);
        return outcome.and_then(|exit| stopped.map_or(Ok(exit), Err));
    }
    let outcome = match &args.search {
        Some(query) => show_found(context, args, &snapshot.catalog, None, query),
        None if early.has_told() => early.show_rest(context, &snapshot.catalog),
        None => show(context, args, &snapshot.catalog, None, only.as_deref()),
    };
    outcome.and_then(|exit| stopped.map_or(Ok(exit), Err))
}

/// What a search finds: what a model would, by the same ranking.
fn show_found(
    context: &Context,
    args: &ToolsArgs,
    catalog: &Catalog,
    known: Option<&BTreeMap<ServerName, RecalledServer>>,
    query: &str,
) -> Outcome {
    let found = catalog.search(query, SEARCH_RESULTS);
    for missing in &found.missing {
        context.warn(format!("no tool is called `{}`", missing.name));
        if let Some(near) = &missing.suggestion {
            context.hint(format!("did you mean `{near}`?"));
        }
    }
    if let Some(format) = args.format {
        print_export(context, format.into(), &found.tools)?;
    } else if args.json {
        context.output.json(&ToolListing {
            tools: found
                .tools
                .iter()
                .copied()
                .map(listed(args, catalog))
                .collect(),
            asked: known.map(asked_rows),
            ..ToolListing::default()
        })?;
    } else if found.tools.is_empty() {
        context.say("no tool fits");
        if found.missing.is_empty() {
            context.hint("use other words, or fewer; `toolway tools` shows all");
        }
    } else if args.long {
        show_long(context, catalog, found.tools.iter().copied(), [])?;
    } else {
        let rows = found.tools.iter().copied().map(cells(catalog));
        context.output.table(&["NAME", "DESCRIPTION"], rows)?;
    }
    Ok(Exit::Success)
}

/// No tools at all: the next step depends on why.
fn say_none(context: &Context, snapshot: &HostSnapshot) {
    context.say("no tools");
    let connected = |server: &ServerSnapshot| matches!(server.state, ConnectionState::Connected(_));
    if snapshot.servers.is_empty() {
        context.hint("add a server with `toolway add <name> <command or url>`");
    } else if !snapshot.servers.iter().any(|server| connected(server)) {
        context.hint("no server is connected; see why with `toolway list`");
    }
}

fn show(
    context: &Context,
    args: &ToolsArgs,
    catalog: &Catalog,
    known: Option<&BTreeMap<ServerName, RecalledServer>>,
    only: Option<&str>,
) -> Outcome {
    if args.instructions {
        return show_instructions(context, args, catalog);
    }
    if let Some(format) = args.format {
        return show_pool(context, format.into(), catalog, args.all, only);
    }
    if args.json {
        let tools = catalog.tools().map(listed(args, catalog)).collect();
        let left_out = args
            .all
            .then(|| catalog.left_out().map(LeftOutRow::from).collect());
        context.output.json(&ToolListing {
            tools,
            left_out,
            asked: known.map(asked_rows),
            servers: None,
        })?;
    } else if args.long
        && !(catalog.tools().next().is_none() && catalog.left_out().next().is_none())
    {
        let left_out = args.all.then(|| catalog.left_out());
        show_long(
            context,
            catalog,
            catalog.tools(),
            left_out.into_iter().flatten(),
        )?;
        say_deferred(context, catalog);
    } else if args.all && catalog.left_out().next().is_some() {
        table_of_all(context, catalog)?;
        say_deferred(context, catalog);
    } else if catalog.tools().next().is_none() {
        context.say("no tools");
    } else {
        table(context, catalog)?;
        say_deferred(context, catalog);
    }
    Ok(Exit::Success)
}

/// How many of the tools are deferred.
fn deferred(catalog: &Catalog) -> usize {
    let tools = catalog.tools().chain(catalog.built_in());
    tools.filter(|tool| catalog.is_deferred(tool)).count()
}

/// Tells what `(deferred)` in a table means.
fn say_deferred(context: &Context, catalog: &Catalog) {
    let count = catalog
        .tools()
        .filter(|tool| catalog.is_deferred(tool))
        .count();
    let all = catalog.tools().count();
    let (are, them) = match count {
        0 => return,
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    context.hint(format!(
        "{count} of {all} tools {are} deferred: a model finds {them} with `{TOOL_SEARCH}`"
    ));
}

fn show_instructions(context: &Context, args: &ToolsArgs, catalog: &Catalog) -> Outcome {
    let sections = &catalog.instructions.sections;
    if args.json {
        let listing = InstructionsListing::from(&catalog.instructions);
        context.output.json(&listing)?;
    } else if sections.is_empty() {
        context.say("no instructions");
    } else {
        context
            .output
            .result(&format!("{}\n", catalog.instructions))?;
    }
    Ok(Exit::Success)
}

/// The table of all tools, with what keeps some of them out.
fn table_of_all(context: &Context, catalog: &Catalog) -> io::Result<()> {
    let offered = catalog.tools();
    let offered = offered.map(|tool| {
        vec![
            tool.name.clone(),
            "yes".to_owned(),
            said_first(catalog, tool),
        ]
    });
    let left_out = catalog.left_out();
    let left_out =
        left_out.map(|tool| vec![tool.key.exposed(), "no".to_owned(), tool.reason.clone()]);
    context
        .output
        .table(&["NAME", "OFFERED", "DESCRIPTION"], offered.chain(left_out))
}

/// The table of a catalogue's tools.
pub(crate) fn table(context: &Context, catalog: &Catalog) -> io::Result<()> {
    let rows = catalog.tools().map(cells(catalog));
    context.output.table(&["NAME", "DESCRIPTION"], rows)
}

fn cells(catalog: &Catalog) -> impl Fn(&CatalogTool) -> Vec<String> {
    |tool| vec![tool.name.clone(), said_first(catalog, tool)]
}

/// The first line of what is said about a tool.
fn said_first(catalog: &Catalog, tool: &CatalogTool) -> String {
    let first = first_line(&tool.description);
    if catalog.is_deferred(tool) {
        format!("(deferred) {first}")
    } else {
        first
    }
}

fn no_connect(
    context: &Context,
    args: &ToolsArgs,
    plan: &toolway_config::Plan,
    only: Option<&str>,
) -> Outcome {
    let asked = plan
        .admitted()
        .map(|(server, _)| server)
        .filter(|server| only.is_none_or(|only| server.name.as_str() == only));
    if args.json {
        // No server was asked, so no tool is known.
        return context.json(&ToolListing {
            left_out: args.all.then(Vec::new),
            servers: Some(asked.map(place_row).collect()),
            ..ToolListing::default()
        });
    }
    let rows = asked.map(|server| vec![server.name.to_string(), server.origin.to_string()]);
    context.output.table(&["SERVER", "SOURCE"], rows)?;
    Ok(Exit::Success)
}
