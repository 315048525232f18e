//! `toolway prompts`: which prompts there are. Rendering one is `prompt.rs`.
//!
//! Owns the table; the rows are `toolway_rows`'.

use clap::Args;
use toolway::Offering;
use toolway::catalog::CatalogPrompt;
use toolway_rows::{PromptListing, PromptRow};

use super::{offers, prompt};
use crate::connect::TypedCommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::first_line;
use crate::report::Outcome;

/// List the prompts of all servers, or of one
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway prompts
  toolway prompts github --json")]
pub(crate) struct PromptsArgs {
    /// A server's name, or a URL
    server: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    command: TypedCommand,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &PromptsArgs) -> Outcome {
    let wanted = Offering::ListPrompts;
    let snapshot = offers::listed(context, args.server.as_deref(), &args.command, wanted)?;
    let prompts: Vec<&CatalogPrompt> = snapshot.catalog.prompts().collect();
    if args.json {
        let prompts = prompts.iter().copied().map(PromptRow::from).collect();
        return context.json(&PromptListing { prompts });
    }
    if prompts.is_empty() {
        context.say("no prompts");
    } else {
        let head = ["NAME", "ARGUMENTS", "DESCRIPTION"];
        context
            .output
            .table(&head, prompts.iter().copied().map(cells))?;
    }
    Ok(Exit::Success)
}

fn cells(prompt: &CatalogPrompt) -> Vec<String> {
    let arguments = match prompt::usage_of_arguments(prompt).join(" ") {
        none if none.is_empty() => "-".to_owned(),
        arguments => arguments,
    };
    let text = match first_line(&prompt.description) {
        text if text.is_empty() => prompt.title.clone().unwrap_or_default(),
        text => text,
    };
    vec![prompt.name.clone(), arguments, text]
}
