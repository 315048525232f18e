//! `toolway remove`: takes a server's entry out of the file that holds it.

use clap::Args;
use toolway_types::Scope;

use crate::commands::add::{WritableScope, say_written};
use crate::commands::switch::is_the_organisations;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Remove a server
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Its name
    name: String,

    /// Which file to remove it from; needed when several have it
    #[arg(short, long, value_enum)]
    scope: Option<WritableScope>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &RemoveArgs) -> Outcome {
    let plan = context.plan();
    let holders: Vec<Scope> = plan
        .servers
        .iter()
        .filter(|server| server.name.as_str() == args.name)
        .map(|server| server.scope)
        .collect();
    if holders.is_empty() {
        context.say_unreadable(plan);
        return Err(unknown_server(plan, &args.name));
    }
    let writable: Vec<Scope> = WritableScope::ALL
        .into_iter()
        .map(WritableScope::scope)
        .filter(|scope| holders.contains(scope))
        .collect();
    let scope = match (args.scope.map(WritableScope::scope), writable.as_slice()) {
        (Some(scope), writable) if writable.contains(&scope) => scope,
        (Some(scope), _) => {
            return Err(Report::configuration(format!(
                "server `{}` is not in the {scope} scope",
                args.name
            ))
            .hint(format!(
                "see where it stands with `toolway explain {}`",
                args.name
            )));
        }
        (None, [only]) => *only,
        (None, []) => {
            return Err(Report::refused(format!(
                "server `{}` comes from the {} scope, which `remove` cannot change",
                args.name, holders[0]
            ))
            .hint(if is_the_organisations(holders[0]) {
                "ask the administrator of this machine".to_owned()
            } else {
                format!("switch it off here with `toolway disable {}`", args.name)
            }));
        }
        (None, several) => {
            let commands: Vec<String> = several
                .iter()
                .map(|scope| format!("`toolway remove {} -s {scope}`", args.name))
                .collect();
            return Err(Report::usage(format!(
                "server `{}` stands in {} scopes",
                args.name,
                several.len()
            ))
            .hint(format!("say which one: {}", commands.join(" or "))));
        }
    };
    let entry = plan
        .servers
        .iter()
        .find(|server| server.name.as_str() == args.name && server.scope == scope)
        .ok_or_else(|| unknown_server(plan, &args.name))?;
    let edited = toolway_config::remove_server(context.environment(), entry)?;
    say_written(
        context,
        &format!("removed `{}` from the {scope} scope", args.name),
        &edited,
    );
    Ok(Exit::Success)
}
