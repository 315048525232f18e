//! How a tool's answer is printed: text as it is, other content as a line that says where it is.

use std::fmt::Write as _;

use toolway::ToolOutcome;
use toolway::view::{Content, ResourceBody};

use crate::context::Context;
use crate::report::Report;

/// Prints an answer to stdout.
pub(super) fn print(
    context: &Context,
    outcome: &ToolOutcome,
    json: bool,
    usage: Option<&str>,
) -> Result<(), Report> {
    if let Some(hook) = &outcome.replaced_by {
        let (shown, other) = if json {
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
        context.output.say(&note);
    }
    for words in &outcome.context {
        for line in words.lines() {
            context.output.say(&format!("hook: {line}"));
        }
    }
    if json {
        context.output.json(&outcome.raw)?;
        return Ok(());
    }
    let text = as_text(outcome);
    // On a terminal a control character would act; in a pipe, bytes are bytes.
    if context.output.stdout_is_terminal() {
        context.output.result(&text)?;
    } else {
        context.output.verbatim(&text)?;
    }
    for warning in &outcome.warnings {
        context
            .output
            .say(&format!("warning: server `{}`: {warning}", outcome.server));
    }
    if outcome.is_error {
        context.output.say(&format!(
            "error: tool `{}` of server `{}` answered an error",
            outcome.tool, outcome.server
        ));
        context.output.say(&match usage {
            Some(usage) => format!("hint: it is called as `{usage}`"),
            None => format!(
                "hint: see what it does with `toolway tools {}`",
                toolway_types::name::as_word(outcome.server.as_str())
            ),
        });
    }
    Ok(())
}

/// An answer as text, other content as a line that says where it is.
pub(crate) fn as_text(outcome: &ToolOutcome) -> String {
    let mut text = String::new();
    for (block, content) in outcome.result.content.iter().enumerate() {
        match content {
            Content::Text { text: words }
            | Content::Resource {
                body: ResourceBody::Text(words),
                ..
            } => push_line(&mut text, words),
            Content::Image { .. } | Content::Audio { .. } | Content::Resource { .. } => {
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
            Content::ResourceLink { uri, .. } => push_line(&mut text, uri),
            Content::Unknown { raw, .. } => push_line(&mut text, raw.get()),
        }
    }
    if text.is_empty()
        && let Some(structured) = &outcome.result.structured
    {
        let pretty = serde_json::from_str::<serde_json::Value>(structured.get())
            .and_then(|value| serde_json::to_string_pretty(&value));
        push_line(&mut text, pretty.as_deref().unwrap_or(structured.get()));
    }
    text
}

fn push_line(text: &mut String, words: &str) {
    text.push_str(words);
    if !words.ends_with('\n') {
        text.push('\n');
    }
}
