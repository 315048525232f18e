//! Goose: `extensions` in `config.yaml`; what is built into Goose stays there.

use serde_json::{Map, Value};
use toolway_types::Diagnosis;

use super::ClientFile;
use super::client_json::{self, ClientEntry};
use super::translate::{self, EntryDraft};
use super::variables::VariableSyntax;
use crate::edit::yaml_text;

/// Kinds of extensions that run inside Goose.
const BUILT_IN: [&str; 5] = [
    "builtin",
    "platform",
    "frontend",
    "inline_python",
    "inlinePython",
];

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let whole =
        yaml_text::value_of(text).map_err(|error| client_json::broken(&found.path, &error))?;
    let mut entries = Vec::new();
    let mut built_in = Vec::new();
    for (name, value) in whole
        .get("extensions")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let value = unfold(value);
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if BUILT_IN.contains(&kind) {
            built_in.push(format!("`{name}`"));
            continue;
        }
        entries.push(ClientEntry {
            name: name.clone(),
            place: vec!["extensions".to_owned(), name.clone()],
            line: None,
            value,
        });
    }
    if !built_in.is_empty() {
        // Every installation has some of these; one line for all does not bury what matters.
        let message = format!(
            "{} cannot be taken over: built into Goose",
            built_in.join(", ")
        );
        found.say(None, Diagnosis::warning(message));
    }
    translate::each(found, entries, VariableSyntax::Braced, entry);
    Ok(())
}

/// Some versions keep everything but the switch under `config`.
fn unfold(value: &Value) -> Value {
    let (Some(outer), Some(inner)) = (
        value.as_object(),
        value.get("config").and_then(Value::as_object),
    ) else {
        return value.clone();
    };
    let others = outer.iter().filter(|(key, _)| *key != "config");
    let merged: Map<String, Value> = others
        .chain(inner)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Value::Object(merged)
}

fn entry(draft: &mut EntryDraft) {
    draft.transport("type");
    draft.text("cmd", "command");
    draft.list("args", "args");
    draft.table("envs", "env");
    if draft.has("env_keys") {
        draft.note(
            "the variables in `env_keys` come from the environment here, not from Goose's keyring.",
        );
    }
    draft.passed_variables("env_keys");
    draft.text("cwd", "cwd");
    draft.remote("uri");
    draft.timeout("timeout", 1_000.0);
    // Goose means every tool by an empty list.
    if draft
        .peek_list("available_tools")
        .is_some_and(|tools| !tools.is_empty())
    {
        draft.list("available_tools", "includeTools");
    }
    draft.leave("socket", "Toolway cannot connect over a socket file");
    draft.ignore(&[
        "name",
        "display_name",
        "description",
        "bundled",
        "available_tools",
    ]);
}
