//! `toolway enable` and `toolway disable`: a server's switch, for this project or everywhere.
//!
//! Owns which servers are meant: a name, all, or what the user chooses from the list. What is written for it is
//! `toolway_config::switch_servers`.

use clap::Args;
use toolway_config::{Plan, PlannedServer, ServerVerdict, Switch};
use toolway_types::name::as_word;
use toolway_types::{Scope, ServerName};

use crate::commands::add::{WritableScope, say_written};
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::screen::name as shown;

/// How often an answer that names no server is asked for again.
const ATTEMPTS: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Its name, or `all`; without one you choose from a list
    name: Option<String>,

    /// Where the switch is kept: `local` for this project, `user` for every project
    #[arg(short, long, value_enum, default_value = "local")]
    scope: WritableScope,
}

/// Whether the organisation alone decides about a scope's servers.
pub(crate) fn is_the_organisations(scope: Scope) -> bool {
    matches!(scope, Scope::Managed | Scope::Enterprise)
}

/// Runs `enable` and `disable`.
pub(crate) fn run(context: &Context, args: &SwitchArgs, to: Switch) -> Outcome {
    if args.scope == WritableScope::Project {
        return Err(
            Report::usage("a repository's `.mcp.json` cannot switch servers on or off")
                .hint("use `-s local` for this project or `-s user` for every project"),
        );
    }
    let all = switchable(context.plan());
    let names = match args.name.as_deref() {
        Some("all") => all.iter().map(|server| server.name.clone()).collect(),
        Some(name) => vec![named(context, name)?],
        None if all.is_empty() => Vec::new(),
        None => {
            let Some(chosen) = choose(context, &all, to)? else {
                context.say("nothing was changed");
                return Ok(Exit::Success);
            };
            chosen
        }
    };
    if names.is_empty() {
        return Err(Report::configuration("no server is configured")
            .hint("add one with `toolway add <name> <command or url>`"));
    }
    apply(context, args.scope.scope(), &names, to)
}

fn apply(context: &Context, scope: Scope, names: &[ServerName], to: Switch) -> Outcome {
    let switched = toolway_config::switch_servers(context.environment(), scope, names, to)?;
    let word = match to {
        Switch::On => "enabled",
        Switch::Off => "disabled",
    };
    let list: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let list = list.join(", ");
    if switched.edited.changed || switched.nearer.is_some() {
        let what = format!("{word} {list} in the {scope} scope");
        say_written(context, &what, &switched.edited);
    } else if switched.overruled.is_empty() {
        let are = if names.len() == 1 { "is" } else { "are" };
        let said = format!("{list} {are} {word} already; nothing was changed");
        context.say(&said);
    }
    if let Some(nearer) = &switched.nearer {
        let what = "took back what was said of this project, which would have won";
        say_written(context, what, nearer);
    }
    let still = match to {
        Switch::On => "off",
        Switch::Off => "on",
    };
    for (name, reason) in &switched.overruled {
        let said = format!("warning: `{name}` is still {still}: {reason}");
        context.say(&said);
    }
    if to == Switch::On {
        say_what_waits(context, names);
    }
    Ok(Exit::Success)
}

/// What is switched on may still wait for approval.
fn say_what_waits(context: &Context, names: &[ServerName]) {
    let plan = context.setup.plan();
    let waits = |name: &&ServerName| {
        let server = plan.winner(name.as_str());
        server.is_some_and(|it| matches!(it.verdict, ServerVerdict::PendingApproval { .. }))
    };
    for name in names.iter().filter(waits) {
        let word = as_word(name.as_str());
        context.warn(format!(
            "`{name}` still waits for approval\nhint: look at it with `toolway approve {word}`"
        ));
    }
}

fn named(context: &Context, name: &str) -> Result<ServerName, Report> {
    let server = context.server(name)?;
    if is_the_organisations(server.scope) {
        return Err(Report::refused(format!(
            "server `{}` comes from the {} scope, which you cannot switch on or off",
            server.name, server.scope
        ))
        .hint("ask the administrator of this machine"));
    }
    Ok(server.name.clone())
}

/// The entry that counts for each name that the user can switch.
fn switchable(plan: &Plan) -> Vec<&PlannedServer> {
    let mut names: Vec<_> = plan.servers.iter().map(|server| &server.name).collect();
    names.dedup();
    let winners = names
        .into_iter()
        .filter_map(|name| plan.winner(name.as_str()));
    winners
        .filter(|server| !is_the_organisations(server.scope))
        .collect()
}

/// The servers that the user chooses from the list, if any.
fn choose(
    context: &Context,
    all: &[&PlannedServer],
    to: Switch,
) -> Result<Option<Vec<ServerName>>, Report> {
    let command = match to {
        Switch::On => "enable",
        Switch::Off => "disable",
    };
    if !context.output.can_ask() {
        return Err(Report::usage("which server?").hint(format!(
            "name it, or all of them: `toolway {command} all`; \
             `toolway list --no-connect` shows which there are"
        )));
    }
    let rows: Vec<String> = (1..)
        .zip(all)
        .map(|(number, server)| row(number, server))
        .collect();
    if !context.output.lay_before(&rows.join("\n"))? {
        return Ok(None);
    }
    let what = match to {
        Switch::On => "switch on",
        Switch::Off => "switch off",
    };
    let question = format!("Numbers or names to {what}, `all`, or Enter for none. Which? ");
    for _ in 0..ATTEMPTS {
        let Some(answer) = context.output.answer(&question)? else {
            context.output.leave_line();
            break;
        };
        if answer.is_empty() {
            break;
        }
        match understand(context.plan(), all, &answer) {
            Ok(names) => return Ok(Some(names)),
            Err(report) => context.say(report.render()),
        }
    }
    Ok(None)
}

fn row(number: usize, server: &PlannedServer) -> String {
    let state = match &server.verdict {
        ServerVerdict::Admitted(_) => "on",
        ServerVerdict::Disabled { .. } => "off",
        other => other.word(),
    };
    let name = shown(server.name.as_str());
    format!("{number:>3}  {name}  ({state}, {} scope)", server.scope)
}

/// An answer: numbers of rows or names, with commas between them. A number is always a row's,
/// whatever servers are called.
fn understand(
    plan: &Plan,
    all: &[&PlannedServer],
    answer: &str,
) -> Result<Vec<ServerName>, Report> {
    if answer == "all" {
        return Ok(all.iter().map(|server| server.name.clone()).collect());
    }
    let mut names = Vec::new();
    for part in answer.split(',').map(str::trim) {
        let by_name = |word: &str| all.iter().find(|server| server.name.as_str() == word);
        // A name may hold blanks; else they are between numbers and names.
        let words = match by_name(part) {
            Some(_) => vec![part],
            None => part.split_whitespace().collect(),
        };
        for word in words {
            let row = match word.parse::<usize>() {
                Ok(number) => number.checked_sub(1).and_then(|index| all.get(index)),
                Err(_) => by_name(word),
            };
            let row = row.ok_or_else(|| unknown_server(plan, word))?;
            names.push(row.name.clone());
        }
    }
    Ok(names)
}
