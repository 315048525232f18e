//! How a tool's answer is printed: text as it is, other content as a line that says where it is;
//! on request only what a filter gives of it, or what a model would get.

use std::fmt::Write as _;

use toolway::projection::{self, Projection};
use toolway::view::{ContentBlock, ResourceBody};
use toolway::{SelectError, ToolOutcome};
use toolway_rows::{BlockRow, BoundedAnswer, SelectedValues, ServerAnswer};
use toolway_types::text::clean_line;

use crate::context::Context;
use crate::report::Report;

/// How an answer should be printed.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// As JSON.
    pub(super) json: bool,
    /// What a model would get of it.
    pub(super) bounded: bool,
    /// What this filter gives of it.
    pub(super) select: Option<&'a Projection>,
}

/// Prints an answer to stdout.
pub(super) fn print(
    context: &Context,
    outcome: &ToolOutcome,
    wanted: Wanted<'_>,
    usage: Option<&str>,
) -> Result<(), Report> {
    // A tool's own error has none of the fields that were wished for.
    let select = wanted.select.filter(|_| !outcome.is_error);
    let selected = select
        .map(|filter| outcome.select(filter))
        .transpose()
        .map_err(|error| unfit(outcome, &error))?;
    let raw = wanted.json && outcome.bounded.is_none() && selected.is_none();
    say_hooks(context, outcome, raw);
    match (&outcome.bounded, selected) {
        (Some(bounded), _) if wanted.json => context.output.json(&BoundedAnswer {
            content: bounded.blocks.iter().map(BlockRow::from).collect(),
            is_error: outcome.is_error,
        })?,
        (Some(bounded), _) => {
            let mut text = String::new();
            for block in &bounded.blocks {
                push_line(&mut text, &block.text());
            }
            context.output.text(&text)?;
        }
        (None, Some(values)) if wanted.json => context.output.json(&SelectedValues(values))?,
        (None, Some(values)) => context.output.text(&projection::lines(&values))?,
        (None, None) if wanted.json => context
            .output
            .json(&ServerAnswer::from(outcome.raw.as_raw()))?,
        (None, None) => context.output.text(&as_text(outcome))?,
    }
    for warning in &outcome.warnings {
        let note = if outcome.server.is_built_in() {
            format!("warning: {warning}")
        } else {
            format!("warning: server `{}`: {warning}", outcome.server)
        };
        context.say(&note);
    }
    if outcome.is_error && !wanted.json {
        let whose = if outcome.server.is_built_in() {
            String::new()
        } else {
            format!(" of server `{}`", outcome.server)
        };
        context.say(format!(
            "error: tool `{}`{whose} answered an error",
            outcome.tool
        ));
        let hint = match usage {
            Some(usage) => format!("it is called as `{usage}`"),
            None => format!(
                "see what it does with `toolway tools {}`",
                toolway_types::name::as_word(outcome.server.as_str())
            ),
        };
        context.hint(context.reached(hint));
    }
    Ok(())
}

/// What hooks did to the output, and what they want known.
fn say_hooks(context: &Context, outcome: &ToolOutcome, raw: bool) {
    if let Some(hook) = &outcome.replaced_by {
        let (shown, other) = if raw {
            (
                "the server's own output is shown",
                "what the hook gave instead without `--json`",
            )
        } else {
            (
                "the hook's output is shown",
                "the server's own with `--json`",
            )
        };
        let note = format!("note: {hook} replaced the output: {shown}, {other}");
        context.say(&note);
    }
    for words in &outcome.context {
        for line in words.lines() {
            context.say(format!("hook: {line}"));
        }
    }
}

/// A filter that does not fit what came back.
fn unfit(outcome: &ToolOutcome, error: &SelectError) -> Report {
    let report = Report::usage(format!(
        "`{}` of server `{}` answered, but nothing can be selected: {error}",
        outcome.tool, outcome.server
    ));
    report.hint(match outcome.outline() {
        Some(outline) => format!("the answer is {}", outline.text),
        None => "leave out `--select` to see the answer".to_owned(),
    })
}

/// An answer as text, other content as a line that says where it is.
pub(crate) fn as_text(outcome: &ToolOutcome) -> String {
    let mut text = String::new();
    for (block, content) in outcome.result().content.iter().enumerate() {
        match content {
            ContentBlock::Text { text: words }
            | ContentBlock::Resource {
                body: ResourceBody::Text(words),
                ..
            } => push_line(&mut text, words),
            ContentBlock::Image { .. }
            | ContentBlock::Audio { .. }
            | ContentBlock::Resource { .. } => {
                match outcome.saved.iter().find(|file| file.block == block) {
                    Some(file) => {
                        let _ = writeln!(
                            text,
                            "[{}, {} bytes: {}]",
                            file.mime_type,
                            file.bytes,
                            file.path.display()
                        );
                    }
                    None => text.push_str("[binary content that could not be saved]\n"),
                }
            }
            ContentBlock::ResourceLink {
                uri,
                name,
                title,
                description,
                mime_type,
            } => {
                let name = Some(title.as_ref().unwrap_or(name)).filter(|name| *name != uri);
                let words = [name, mime_type.as_ref(), description.as_ref()];
                let mut line = clean_line(uri).into_owned();
                for words in words.into_iter().flatten() {
                    let _ = write!(line, "  {}", clean_line(words));
                }
                push_line(&mut text, &line);
            }
            ContentBlock::Unknown { raw, .. } => {
                push_line(&mut text, outcome.plain(block).unwrap_or(raw.get()));
            }
        }
    }
    if let Some(structured) = outcome.unsaid_structure() {
        if text.trim().is_empty() {
            text.clear();
        }
        let pretty = serde_json::from_str::<serde_json::Value>(structured)
            .and_then(|value| serde_json::to_string_pretty(&value));
        push_line(&mut text, pretty.as_deref().unwrap_or(structured));
    }
    text
}

fn push_line(text: &mut String, words: &str) {
    text.push_str(words);
    if !words.ends_with('\n') {
        text.push('\n');
    }
}
