//! `toolway policy`: the variables that the organisation sets, and the user's word on them.
//!
//! Owns what is shown and asked. Which variables count is `toolway_config::managed`; which servers
//! the organisation allows, `explain` tells of each.

use clap::{Args, Subcommand};
use toolway::rows::variable_row;
use toolway_config::{ManagedState, ManagedVariable};
use toolway_rows::PolicyListing;
use toolway_types::text::{TextKind, legible};

use crate::commands::add::say_written;
use crate::commands::approve::{ask, spaced};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// Show which variables the organisation sets, and confirm them
///
/// A few limits count at once. Whatever else `managed-settings.json` sets in its `env` counts once
/// you confirmed it, as if it stood in your environment; when a name or a value changes, you are
/// asked again.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: Option<PolicyCommand>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Let the organisation's variables count
    Confirm {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &PolicyArgs) -> Outcome {
    match args.command {
        Some(PolicyCommand::Confirm { yes }) => confirm(context, yes),
        None => show(context, args),
    }
}

fn show(context: &Context, args: &PolicyArgs) -> Outcome {
    let plan = context.plan();
    let variables = &plan.managed_env;
    if args.json {
        let variables = variables.iter().map(variable_row).collect();
        return context.json(&PolicyListing { variables });
    }
    if variables.is_empty() {
        context.say("the organisation sets no variable");
        return Ok(Exit::Success);
    }
    let rows = variables.iter().map(|variable| {
        vec![
            legible(&variable.name, TextKind::Code),
            variable.state.word().to_owned(),
            variable.origin.to_string(),
        ]
    });
    let head = ["VARIABLE", "STATE", "SOURCE"];
    context.output.table(&head, rows)?;
    if variables.iter().any(waits) {
        context.hint("look at them and let them count with `toolway policy confirm`");
    }
    Ok(Exit::Success)
}

fn waits(variable: &ManagedVariable) -> bool {
    variable.state == ManagedState::Waiting
}

fn confirm(context: &Context, yes: bool) -> Outcome {
    let plan = context.plan();
    let asked: Vec<_> = plan
        .managed_env
        .iter()
        .filter(|it| waits(it))
        .cloned()
        .collect();
    let Some(first) = asked.first() else {
        context.say("no variable of the organisation waits for you");
        return Ok(Exit::Success);
    };
    let mut sheet = context.output.screen().sheet();
    let path = legible(&first.origin.path(), TextKind::Code);
    sheet.row(&format!("the organisation sets these variables in {path}:"));
    for variable in &asked {
        let name = legible(&variable.name, TextKind::Code);
        let value = legible(variable.value.expose(), TextKind::Code);
        sheet.row(&format!("  {name}: {value}"));
    }
    sheet.row("Confirmed, they count as if they stood in your environment.");
    let question = "Let them count from now on?";
    ask(context, yes, &sheet.finish(), question, |last| {
        spaced("toolway policy confirm", last)
    })?;
    let edited = toolway_config::confirm_managed_variables(context.environment(), &asked)?;
    say_written(context, "confirmed the organisation's variables", &edited);
    Ok(Exit::Success)
}
