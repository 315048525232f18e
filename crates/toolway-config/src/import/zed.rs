//! Zed: `context_servers` in `settings.json`; servers of extensions stay with Zed.

use serde_json::Value;
use toolway_types::Diagnosis;

use super::ClientFile;
use super::client_json::ClientJson;
use super::translate::{self, EntryDraft};
use super::variables::VariableSyntax;

/// A time limit from this on is in milliseconds, as older versions had it; below, in seconds.
const MILLISECONDS_FROM: f64 = 1_000.0;

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let mut entries = ClientJson::parse(found, text)?.servers(found, &["context_servers"]);
    entries.retain(|entry| {
        let is_extension = entry.value.get("source").and_then(Value::as_str) == Some("extension")
            || entry.value.get("settings").is_some() && entry.value.get("command").is_none();
        if is_extension {
            let message = format!(
                "`{}` is started by a Zed extension and cannot be taken over",
                entry.name
            );
            found.say(entry.line, Diagnosis::warning(message));
        }
        !is_extension
    });
    translate::each(found, entries, VariableSyntax::None, |draft| {
        unfold_command(draft);
        draft.process();
        draft.remote("url");
        // Zed speaks no other remote transport, so this is no guess.
        if draft.is_set("url") {
            draft.put("type", "http");
        }
        draft.oauth("oauth", "client_id", "scopes");
        timeout(draft);
        draft.leave(
            "remote",
            "whether a server runs on a remote host is Zed's own matter",
        );
        draft.ignore(&["source", "settings"]);
    });
    Ok(())
}

/// Older files have the whole process in an object under `command`.
fn unfold_command(draft: &mut EntryDraft) {
    let mut process = match draft.take("command") {
        Some(Value::Object(process)) => process,
        Some(other) => return draft.restore("command", other),
        None => return,
    };
    for (from, to) in [
        ("path", "command"),
        ("args", "args"),
        ("env", "env"),
        ("timeout", "timeout"),
    ] {
        if let Some(value) = process.shift_remove(from) {
            draft.restore(to, value);
        }
    }
}

fn timeout(draft: &mut EntryDraft) {
    let Some(value) = draft.take("timeout") else {
        return;
    };
    let in_seconds = value
        .as_f64()
        .is_some_and(|number| number < MILLISECONDS_FROM);
    if in_seconds {
        draft.note(format!("`timeout` of {value} was taken as seconds."));
    }
    draft.restore("timeout", value);
    draft.timeout("timeout", if in_seconds { 1_000.0 } else { 1.0 });
}
