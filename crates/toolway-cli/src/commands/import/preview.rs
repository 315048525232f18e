//! What `import` shows before anything is written.
//!
//! Owns the lines, the rows for `--json`, and what is said of files that are left out. Which servers are
//! taken is `import.rs`.

use std::borrow::Cow;

use serde_json::Value;
use toolway_config::import::{ClientFile, FileWriter, ImportedServer, StrangerReason};
use toolway_config::without_secrets;
use toolway_rows::{ImportListing, ImportRow, SourceRow};
use toolway_types::name::as_word;
use toolway_types::text::{TextKind, legible};
use unicode_width::UnicodeWidthStr as _;

use super::{Candidate, Fate, ImportArgs, Target};
use crate::context::Context;
use crate::screen::{Screen, Sheet, name};

/// Says how each file that was left out can be taken all the same.
pub(super) fn say_left_out(context: &Context, candidates: &[Candidate<'_>]) {
    let mut said: Option<&ClientFile> = None;
    for candidate in candidates {
        let Fate::LeaveOut(stranger) = candidate.fate else {
            continue;
        };
        let file = candidate.found;
        if said.is_some_and(|said| std::ptr::eq(said, file)) {
            continue;
        }
        said = Some(file);
        let path = file.path.display().to_string();
        context.warn(format!("`{path}` was left out: {stranger}"));
        let path = as_word(&path);
        let hint = match stranger {
            StrangerReason::WritableByAll => format!("keep others out of it: `chmod o-w {path}`"),
            StrangerReason::Project | StrangerReason::Owner | StrangerReason::Elsewhere => {
                let client = file.client.id();
                format!("look at it, then name it: `toolway import {client} --from {path}`")
            }
        };
        context.hint(&hint);
    }
}

/// What a file holds is its writer's word: no row of it can pass for one of ours (SEC-52).
pub(super) fn render(candidates: &[Candidate<'_>], screen: Screen) -> String {
    let mut sheet = screen.sheet();
    let mut file: Option<&ClientFile> = None;
    let mut width = 0;
    for candidate in candidates {
        if file.is_none_or(|file| !std::ptr::eq(file, candidate.found)) {
            file = Some(candidate.found);
            let names = candidate.found.servers.iter();
            width = names
                .map(|server| name(&server.name).width())
                .max()
                .unwrap_or(0);
            sheet.row(&format!(
                "{} ({})",
                candidate.found.client.title(),
                legible(&candidate.found.path.display().to_string(), TextKind::Code)
            ));
            if let FileWriter::Stranger(stranger) = candidate.found.writer {
                sheet.row(&format!("  not your own: {stranger}"));
            }
            if matches!(candidate.fate, Fate::Add(Target::Proposed)) {
                sheet.row("  for its `.mcp.json`, where each waits for `toolway approve`");
            }
        }
        let name = name(&candidate.server.name);
        let name = format!("{name}{}", " ".repeat(width.saturating_sub(name.width())));
        match &candidate.fate {
            Fate::Add(_) => added(&mut sheet, &format!("  + {name}  "), candidate),
            Fate::Same(reason) | Fate::Skip(reason) => {
                let reason = legible(reason, TextKind::Prose);
                sheet.row(&format!("  = {name}  skipped: {reason}"));
            }
            Fate::LeaveOut(_) => add_row(&mut sheet, &format!("  - {name}  "), candidate),
        }
    }
    sheet.finish()
}

/// A server that would be added, what is put in another way, and what is lost.
pub(in crate::commands) fn added(sheet: &mut Sheet, lead: &str, candidate: &Candidate<'_>) {
    let words = |text: &str| legible(text.trim_end_matches('.'), TextKind::Prose);
    add_row(sheet, lead, candidate);
    if is_decided_here(candidate) {
        whole(sheet, candidate.server);
    }
    if !candidate.server.enabled {
        sheet.row("      switched off there, so switched off here");
    }
    for note in &candidate.server.notes {
        sheet.row(&format!("      ~ {}", words(note)));
    }
    for loss in &candidate.server.dropped {
        sheet.row(&format!("      ! {}", words(loss)));
    }
}

/// Whether the user decides by the preview about a foreign entry. Then nothing of it is hidden, as
/// in `approve`: it could be code.
fn is_decided_here(candidate: &Candidate<'_>) -> bool {
    matches!(candidate.fate, Fate::Add(_)) && candidate.found.writer != FileWriter::Person
}

/// A foreign definition as it would be written, `env` included, which may be code.
fn whole(sheet: &mut Sheet, server: &ImportedServer) {
    let shown = serde_json::to_string_pretty(&server.definition).unwrap_or_default();
    for line in shown.lines() {
        sheet.row(&format!("      {}", legible(line, TextKind::Source)));
    }
}

/// A server that would be added: what it reaches or runs, and what else decides that. Nothing of
/// it is cut; secrets are hidden in what is the user's own, or is not decided about.
fn add_row(sheet: &mut Sheet, lead: &str, candidate: &Candidate<'_>) {
    let definition = &candidate.server.definition;
    let shown = if is_decided_here(candidate) {
        Cow::Borrowed(definition)
    } else {
        Cow::Owned(without_secrets(definition))
    };
    let word = |key: &str| shown.get(key).and_then(Value::as_str);
    match (word("url"), word("command")) {
        (Some(url), _) => sheet.row(&format!("{lead}{}", legible(url, TextKind::Code))),
        (None, Some(command)) => {
            let args = shown.get("args").and_then(Value::as_array);
            let args = args.into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<&str> = std::iter::once(command).chain(args).collect();
            sheet.command(lead, &words);
        }
        (None, None) => sheet.row(lead),
    }
    for key in ["cwd", "headersHelper"] {
        if let Some(text) = word(key) {
            sheet.row(&format!("      {key}: {}", legible(text, TextKind::Code)));
        }
    }
    // Their values may be secrets; their names tell which of them are code.
    if let Some(Value::Object(variables)) = definition.get("env") {
        let names: Vec<_> = variables.keys().map(|key| name(key)).collect();
        if !names.is_empty() {
            sheet.row(&format!("      env: {}", names.join(", ")));
        }
    }
}

/// Shows the preview, page by page where the user is asked about it next. False when they stopped
/// before its end.
pub(super) fn show(context: &Context, args: &ImportArgs, preview: &str) -> std::io::Result<bool> {
    let asks = !args.yes && !args.dry_run && context.output.can_ask();
    if asks && context.output.stdout_is_terminal() {
        context.output.lay_before(preview)
    } else {
        context.output.result(preview).map(|()| true)
    }
}

pub(super) fn listing(candidates: &[Candidate<'_>]) -> ImportListing {
    let servers = candidates.iter().map(|candidate| {
        let Candidate {
            found,
            server,
            fate,
        } = candidate;
        let (scope, skipped) = match fate {
            Fate::Add(target) => (Some(target.scope()), None),
            Fate::Same(reason) | Fate::Skip(reason) => (None, Some(reason.clone())),
            Fate::LeaveOut(stranger) => (None, Some(stranger.to_string())),
        };
        let writer = match found.writer {
            FileWriter::Person => "person",
            FileWriter::Stranger(_) => "stranger",
        };
        ImportRow {
            name: server.name.clone(),
            client: found.client.id().into(),
            source: SourceRow {
                path: found.path.display().to_string(),
                line: server.line,
            },
            writer: writer.into(),
            definition: without_secrets(&server.definition),
            scope,
            enabled: server.enabled,
            notes: server.notes.clone(),
            dropped: server.dropped.clone(),
            skipped,
        }
    });
    ImportListing {
        servers: servers.collect(),
    }
}
