//! `toolway resources`: what there is to read.
//!
//! Owns the rows that it shows; the JSON shape is an interface. Reading is `read.rs`.

use clap::Args;
use serde::Serialize;
use toolway::catalog::{CatalogResource, CatalogTemplate};
use toolway::template::UriTemplate;
use toolway::{Catalog, Offering};
use toolway_types::ServerName;

use super::offers::{self, first_line};
use crate::connect::TypedCommand;
use crate::context::Context;
use crate::exit::Exit;
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

/// One resource, as `--json` prints it. Absent values are null, never left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceRow<'a> {
    uri: &'a str,
    server: &'a ServerName,
    name: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    mime_type: Option<&'a str>,
    size: Option<u64>,
}

/// One template, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TemplateRow<'a> {
    uri_template: &'a str,
    server: &'a ServerName,
    name: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    mime_type: Option<&'a str>,
    variables: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Listing<'a> {
    resources: Vec<ResourceRow<'a>>,
    templates: Vec<TemplateRow<'a>>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ResourcesArgs) -> Outcome {
    let wanted = Offering::ListResources;
    let snapshot = offers::listed(context, args.server.as_deref(), &args.command, wanted)?;
    let catalog = &*snapshot.catalog;
    if args.json {
        context.output.json(&Listing {
            resources: catalog.resources.iter().map(resource_row).collect(),
            templates: catalog.templates.iter().map(template_row).collect(),
        })?;
    } else if args.templates {
        show_templates(context, catalog)?;
    } else {
        show_resources(context, catalog)?;
    }
    Ok(Exit::Success)
}

fn show_resources(context: &Context, catalog: &Catalog) -> std::io::Result<()> {
    let templates = catalog.templates.len();
    if catalog.resources.is_empty() {
        context.output.say("no resources");
    } else {
        let rows = catalog.resources.iter().map(|it| {
            let label = label(&it.name, it.title.as_deref(), &it.description);
            cells(&it.uri, &it.server, it.mime_type.as_deref(), label)
        });
        let head = ["URI", "SERVER", "TYPE", "DESCRIPTION"];
        context.output.table(&head, &rows.collect::<Vec<_>>())?;
    }
    let (there_are, them) = match templates {
        0 => return Ok(()),
        1 => ("there is a template".to_owned(), "it"),
        many => (format!("there are {many} templates"), "them"),
    };
    context.output.say(&format!(
        "hint: {there_are} too: see {them} with `toolway resources --templates`"
    ));
    Ok(())
}

fn show_templates(context: &Context, catalog: &Catalog) -> std::io::Result<()> {
    if catalog.templates.is_empty() {
        context.output.say("no templates");
        return Ok(());
    }
    let rows = catalog.templates.iter().map(|it| {
        let label = label(&it.name, it.title.as_deref(), &it.description);
        cells(&it.uri_template, &it.server, it.mime_type.as_deref(), label)
    });
    let head = ["TEMPLATE", "SERVER", "TYPE", "DESCRIPTION"];
    context.output.table(&head, &rows.collect::<Vec<_>>())
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

pub(super) fn resource_row(resource: &CatalogResource) -> ResourceRow<'_> {
    ResourceRow {
        uri: &resource.uri,
        server: &resource.server,
        name: &resource.name,
        title: resource.title.as_deref(),
        description: &resource.description,
        mime_type: resource.mime_type.as_deref(),
        size: resource.size,
    }
}

pub(super) fn template_row(template: &CatalogTemplate) -> TemplateRow<'_> {
    let variables = UriTemplate::parse(&template.uri_template)
        .map(|parsed| parsed.variables().into_iter().map(str::to_owned).collect())
        .unwrap_or_default();
    TemplateRow {
        uri_template: &template.uri_template,
        server: &template.server,
        name: &template.name,
        title: template.title.as_deref(),
        description: &template.description,
        mime_type: template.mime_type.as_deref(),
        variables,
    }
}
