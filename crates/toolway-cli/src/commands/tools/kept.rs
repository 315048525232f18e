//! `toolway tools --cached`: the tools that servers offered before.
//!
//! Owns what is said of their age, and of servers that nothing is kept of. What is kept is the
//! library's, how it is refreshed `connect/memory.rs`.

use toolway::Recalled;
use toolway_config::Plan;
use toolway_types::ServerName;
use toolway_types::name::as_word;

use super::one::{self, Meant};
use super::{ToolsArgs, show, show_found};
use crate::connect::memory::{ago, refresh_old};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Shows what is kept.
pub(super) fn run(
    context: &Context,
    args: &ToolsArgs,
    mut plan: Plan,
    only: Option<&str>,
    meant: Option<&Meant<'_>>,
) -> Outcome {
    plan.servers
        .retain(|server| only.is_none_or(|only| server.name.as_str() == only));
    let recalled = context.setup.recall(&plan);
    let unknown: Vec<&ServerName> = plan
        .admitted()
        .map(|(server, _)| &server.name)
        .filter(|name| !recalled.known.get(*name).is_some_and(|it| it.lists.tools))
        .collect();
    if let (Some(_), [name]) = (only, unknown.as_slice()) {
        let message = format!("nothing is kept of server `{name}` yet");
        return Err(Report::new(Exit::Connection, message).hint(format!(
            "ask it with `toolway tools {}`",
            as_word(name.as_str())
        )));
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("`{name}`")).collect();
        context.warn(format!(
            "nothing is kept yet of {}\nhint: ask with `toolway tools`",
            names.join(", ")
        ));
    }
    let (catalog, known) = (&recalled.snapshot.catalog, Some(&recalled.known));
    let exit = match (meant, &args.search) {
        (Some(meant), _) => one::show(context, args, &plan, catalog, meant)?,
        (None, Some(query)) => show_found(context, args, catalog, known, query)?,
        (None, None) => show(context, args, catalog, known, only)?,
    };
    say_age(context, &recalled);
    refresh_old(context, &recalled);
    Ok(exit)
}

/// How old the oldest of it is.
fn say_age(context: &Context, recalled: &Recalled) {
    if let Some(oldest) = recalled.known.values().map(|known| known.age).max() {
        context.say(format!(
            "as of {}; without `--cached` the servers are asked",
            ago(oldest)
        ));
    }
}
