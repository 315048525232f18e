//! `toolway resources`: what there is to read.
//!
//! Owns the table; the rows are `toolway_rows`'. Reading is `read.rs`.

use clap::Args;
use toolway::Offering;
use toolway_rows::{ResourceListing, ResourceRow, TemplateRow};
use toolway_types::ServerName;

use super::offers;
use crate::connect::TypedCommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::first_line;
use crate::report::Outcome;

/// List the resources of all servers, or of one
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway resources
  toolway resources docs --json
  toolway resources --templates")]
pub(crate) struct ResourcesArgs {
    /// A server's name, or a URL
    server: Option<String>,

    /// List the templates: URIs with variables to fill in
    #[arg(long)]
    templates: bool,

    /// Print JSON: resources and templates
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    command: TypedCommand,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ResourcesArgs) -> Outcome {
    let wanted = Offering::ListResources;
    let snapshot = offers::listed(context, args.server.as_deref(), &args.command, wanted)?;
    let catalog = &*snapshot.catalog;
    if args.json {
        return context.json(&ResourceListing {
            resources: catalog.resources().map(ResourceRow::from).collect(),
            templates: catalog.templates().map(TemplateRow::from).collect(),
        });
    }
    if args.templates {
        let rows = catalog.templates().map(|it| {
            let label = label(&it.name, it.title.as_deref(), &it.description);
            cells(&it.uri_template, &it.server, it.mime_type.as_deref(), label)
        });
        show(context, "templates", "TEMPLATE", rows)?;
        return Ok(Exit::Success);
    }
    let rows = catalog.resources().map(|it| {
        let label = label(&it.name, it.title.as_deref(), &it.description);
        cells(&it.uri, &it.server, it.mime_type.as_deref(), label)
    });
    show(context, "resources", "URI", rows)?;
    let (there_are, them) = match catalog.templates().count() {
        0 => return Ok(Exit::Success),
        1 => ("there is a template".to_owned(), "it"),
        many => (format!("there are {many} templates"), "them"),
    };
    context.hint(format!(
        "{there_are} too: see {them} with `toolway resources --templates`"
    ));
    Ok(Exit::Success)
}

fn show(
    context: &Context,
    what: &str,
    first: &str,
    rows: impl Iterator<Item = Vec<String>>,
) -> std::io::Result<()> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        context.say(format!("no {what}"));
        return Ok(());
    }
    let head = [first, "SERVER", "TYPE", "DESCRIPTION"];
    context.output.table(&head, rows)
}

fn label(name: &str, title: Option<&str>, description: &str) -> String {
    match (title.unwrap_or(name), first_line(description)) {
        (name, text) if text.is_empty() => name.to_owned(),
        ("", text) => text,
        (name, text) => format!("{name}: {text}"),
    }
}

fn cells(uri: &str, server: &ServerName, mime_type: Option<&str>, label: String) -> Vec<String> {
    let mime_type = mime_type.unwrap_or("-").to_owned();
    vec![uri.to_owned(), server.to_string(), mime_type, label]
}
