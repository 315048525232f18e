//! `toolway tools --format`: tools as a provider of models takes them.
//!
//! Owns which tools go into an export, and what is told beside it. Shapes are the library's.

use std::io;

use clap::ValueEnum;
use toolway::builtin::TOOL_SEARCH;
use toolway::export::{ExportTarget, export};
use toolway::{Catalog, CatalogTool, ToolPool};

use super::deferred;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// Whose shape `--format` prints.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Format {
    /// The Anthropic Messages API
    Anthropic,
    /// Chat Completions
    Openai,
    /// The Responses interface
    OpenaiResponses,
    /// Gemini's function declarations
    Gemini,
}

impl From<Format> for ExportTarget {
    fn from(format: Format) -> Self {
        match format {
            Format::Anthropic => ExportTarget::Anthropic,
            Format::Openai => ExportTarget::OpenAi,
            Format::OpenaiResponses => ExportTarget::OpenAiResponses,
            Format::Gemini => ExportTarget::Gemini,
        }
    }
}

/// What a session of a model is listed that has loaded nothing, or, with `all`, what it is listed
/// where nothing is deferred.
pub(super) fn show_pool(
    context: &Context,
    target: ExportTarget,
    catalog: &Catalog,
    all: bool,
    only: Option<&str>,
) -> Outcome {
    let pool = ToolPool::new();
    if all {
        let tools = catalog.tools().chain(catalog.built_in());
        pool.load(tools.map(|tool| tool.key.clone()));
    }
    let mut tools = catalog.pool(&pool);
    if all {
        // There is nothing left to find.
        tools.retain(|tool| tool.name != TOOL_SEARCH);
    }
    if let Some(only) = only {
        tools.retain(|tool| tool.key.server.as_str() == only);
    }
    print_export(context, target, &tools)?;
    let count = if all { 0 } else { deferred(catalog) };
    let words = match count {
        0 => return Ok(Exit::Success),
        1 => "a deferred tool is not listed".to_owned(),
        count => format!("{count} deferred tools are not listed"),
    };
    let them = if count == 1 { "it" } else { "them" };
    let found = match only {
        None => format!(": a model finds {them} with `{TOOL_SEARCH}`"),
        Some(_) => String::new(),
    };
    context.hint(format!("{words}{found}; `--all` prints {them} too"));
    Ok(Exit::Success)
}

pub(super) fn print_export(
    context: &Context,
    target: ExportTarget,
    tools: &[&CatalogTool],
) -> io::Result<()> {
    let export = export(target, tools.iter().copied());
    for note in &export.notes {
        context.warn(format!(
            "`{}` of `{}` is left out: {} does not take such a name",
            note.argument,
            note.tool,
            target.as_str()
        ));
    }
    context.output.json(&export.tools)
}
