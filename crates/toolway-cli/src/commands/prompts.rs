//! `toolway prompts`: which prompts there are. Rendering one is `prompt.rs`.
//!
//! Owns the rows that it shows; the JSON shape is an interface.

use clap::Args;
use serde::Serialize;
use toolway::Offering;
use toolway::catalog::CatalogPrompt;
use toolway_types::ServerName;

use super::offers::first_line;
use super::{offers, prompt};
use crate::connect::TypedCommand;
use crate::context::Context;
use crate::exit::Exit;
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

/// One prompt, as `--json` prints it. Absent values are null, never left out.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    name: &'a str,
    server: &'a ServerName,
    prompt: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    arguments: Vec<ArgumentRow<'a>>,
}

#[derive(Debug, Serialize)]
struct ArgumentRow<'a> {
    name: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    required: bool,
}

#[derive(Debug, Serialize)]
struct Listing<'a> {
    prompts: Vec<Row<'a>>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &PromptsArgs) -> Outcome {
    let wanted = Offering::ListPrompts;
    let snapshot = offers::listed(context, args.server.as_deref(), &args.command, wanted)?;
    let prompts = &snapshot.catalog.prompts;
    if args.json {
        let prompts = prompts.iter().map(row).collect();
        context.output.json(&Listing { prompts })?;
    } else if prompts.is_empty() {
        context.output.say("no prompts");
    } else {
        let rows: Vec<Vec<String>> = prompts.iter().map(cells).collect();
        let head = ["NAME", "ARGUMENTS", "DESCRIPTION"];
        context.output.table(&head, &rows)?;
    }
    Ok(Exit::Success)
}

fn cells(prompt: &CatalogPrompt) -> Vec<String> {
    let arguments = prompt::usage_of_arguments(prompt);
    let text = match first_line(&prompt.description) {
        text if text.is_empty() => prompt.title.clone().unwrap_or_default(),
        text => text,
    };
    let arguments = if arguments.is_empty() {
        "-".to_owned()
    } else {
        arguments.join(" ")
    };
    vec![prompt.name.clone(), arguments, text]
}

pub(super) fn row(prompt: &CatalogPrompt) -> Row<'_> {
    Row {
        name: &prompt.name,
        server: &prompt.key.server,
        prompt: &prompt.key.tool,
        title: prompt.title.as_deref(),
        description: &prompt.description,
        arguments: prompt
            .arguments
            .iter()
            .map(|argument| ArgumentRow {
                name: &argument.name,
                title: argument.title.as_deref(),
                description: &argument.description,
                required: argument.required,
            })
            .collect(),
    }
}
