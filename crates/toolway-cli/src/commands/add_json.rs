//! `toolway add-json`: writes a server's entry from JSON.

use std::io::Read as _;

use clap::Args;
use serde_json::{Map, Value};

use crate::commands::add::{self, Writing};
use crate::context::Context;
use crate::report::{Outcome, Report};

/// Add a server from its JSON entry
#[derive(Debug, Args)]
#[command(after_help = "Example:
  toolway add-json docs '{\"type\": \"http\", \"url\": \"https://mcp.example.com/mcp\"}'")]
pub(crate) struct AddJsonArgs {
    /// What to call it
    name: String,

    /// The entry, as it stands below `mcpServers`; `-` reads it from stdin
    json: String,

    #[command(flatten)]
    writing: Writing,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &AddJsonArgs) -> Outcome {
    let mut text = args.json.clone();
    if text == "-" {
        text.clear();
        context
            .output
            .streams()
            .reader()
            .read_to_string(&mut text)?;
    }
    let definition: Map<String, Value> = serde_json::from_str(&text).map_err(|error| {
        Report::usage(format!(
            "the entry of `{}` is not a JSON object: {error}",
            args.name
        ))
        .hint(format!(
            "write e.g. `toolway add-json {} '{{\"command\": \"…\", \"args\": [\"…\"]}}'`",
            args.name
        ))
    })?;
    // The whole file pasted instead of one entry is the commonest slip.
    if let Some(Value::Object(servers)) = definition.get("mcpServers") {
        let inner = servers.keys().next().map_or("<name>", String::as_str);
        return Err(
            Report::usage("this is a whole `mcpServers` object; one entry is wanted")
                .hint(format!("pass only the object below `{inner}`")),
        );
    }
    add::write(context, &args.name, &definition, &args.writing)
}
