//! `toolway enable` and `toolway disable`: a server's switch, for this project or everywhere.

use clap::Args;
use toolway_config::Switch;
use toolway_types::{Scope, ServerName};

use crate::commands::add::{WritableScope, say_written};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Its name, or `all`
    name: String,

    /// Where the switch is kept: `local` for this project, `user` for every project
    #[arg(short, long, value_enum, default_value = "local")]
    scope: WritableScope,
}

/// Switches on.
pub(crate) fn enable(context: &Context, args: &SwitchArgs) -> Outcome {
    switch(context, args, Switch::On)
}

/// Switches off.
pub(crate) fn disable(context: &Context, args: &SwitchArgs) -> Outcome {
    switch(context, args, Switch::Off)
}

/// Whether the organisation alone decides about a scope's servers.
pub(crate) fn is_the_organisations(scope: Scope) -> bool {
    matches!(scope, Scope::Managed | Scope::Enterprise)
}

fn switch(context: &Context, args: &SwitchArgs, to: Switch) -> Outcome {
    if args.scope == WritableScope::Project {
        return Err(Report::new(
            Exit::Usage,
            "a repository's `.mcp.json` cannot switch servers on or off",
        )
        .hint("use `-s local` for this project or `-s user` for every project"));
    }
    let names: Vec<ServerName> = if args.name == "all" {
        let plan = context.plan();
        let mut names: Vec<_> = plan
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect();
        names.dedup();
        names.retain(|name| {
            plan.winner(name.as_str())
                .is_some_and(|server| !is_the_organisations(server.scope))
        });
        names
    } else {
        let server = context.server(&args.name)?;
        if is_the_organisations(server.scope) {
            return Err(Report::new(
                Exit::Refused,
                format!(
                    "server `{}` comes from the {} scope, which you cannot switch on or off",
                    server.name, server.scope
                ),
            )
            .hint("ask the administrator of this machine"));
        }
        vec![server.name.clone()]
    };
    if names.is_empty() {
        return Err(Report::new(Exit::Configuration, "no server is configured")
            .hint("add one with `toolway add <name> <command or url>`"));
    }
    let edited =
        toolway_config::switch_servers(&context.environment, args.scope.scope(), &names, to)?;
    let word = match to {
        Switch::On => "enabled",
        Switch::Off => "disabled",
    };
    let list = names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    say_written(
        context,
        &format!("{word} {list} in the {} scope", args.scope.scope()),
        &edited,
    );
    Ok(Exit::Success)
}
