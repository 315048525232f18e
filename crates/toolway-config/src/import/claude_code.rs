//! Claude Code: `~/.claude.json`, with servers for everywhere and for single projects, and a
//! project's `.mcp.json`. Its entries have our own shape.

use serde_json::Value;
use toolway_types::Diagnosis;

use super::client_json::{ClientEntry, ClientJson};
use super::translate::{self, EntryDraft};
use super::variables::VariableSyntax;
use super::{ClientFile, ClientLocations};
use crate::keys::listed;

pub(super) fn read(
    found: &mut ClientFile,
    text: &str,
    places: &ClientLocations,
) -> Result<(), Diagnosis> {
    let json = ClientJson::parse(found, text)?;
    // The nearest directory that has something of its own; its entries win over the general ones.
    let project = places
        .cwd
        .ancestors()
        .filter_map(|directory| directory.to_str())
        .find(|directory| json.get(&["projects", *directory]).is_some());
    let mut entries: Vec<ClientEntry> = Vec::new();
    let mut switched_off: Vec<Value> = Vec::new();
    if let Some(directory) = project {
        entries = json.entries(&["projects", directory, "mcpServers"]);
        for key in ["disabledMcpServers", "disabledMcpjsonServers"] {
            if let Some(Value::Array(names)) = json.get(&["projects", directory, key]) {
                switched_off.extend(names);
            }
        }
    }
    say_other_projects(found, &json, project);
    let general = match json.get(&["projects"]) {
        // Such a file may hold no servers at all; its other keys are no entries to guess at.
        Some(_) => json.entries(&["mcpServers"]),
        None => json.servers(found, &["mcpServers"]),
    };
    for entry in general {
        if entries.iter().any(|own| own.name == entry.name) {
            let message = format!(
                "`{}` of this project stands before the general one",
                entry.name
            );
            found.say(entry.line, Diagnosis::warning(message));
        } else {
            entries.push(entry);
        }
    }
    for entry in entries {
        let off = switched_off.iter().any(|name| *name == entry.name.as_str());
        translate::each(found, vec![entry], VariableSyntax::Braced, |draft| {
            own_shape(draft);
            if off {
                draft.disable();
            }
        });
    }
    Ok(())
}

/// What belongs to other directories is wanted there, not here.
fn say_other_projects(found: &mut ClientFile, json: &ClientJson<'_>, own: Option<&str>) {
    let Some(Value::Object(projects)) = json.get(&["projects"]) else {
        return;
    };
    for directory in projects.keys().filter(|name| Some(name.as_str()) != own) {
        let entries = json.entries(&["projects", directory.as_str(), "mcpServers"]);
        if let Some(first) = entries.first() {
            let names = listed(entries.iter().map(|own| &own.name));
            let message = format!("left out: {names} of the project `{directory}`");
            let diagnosis = Diagnosis::warning(message)
                .hint("run `toolway import claude-code -s local` in that directory");
            found.say(first.line, diagnosis);
        }
    }
}

fn own_shape(draft: &mut EntryDraft) {
    draft.transport("type");
    draft.process();
    draft.remote("url");
    draft.text("headersHelper", "headersHelper");
    // The object is ours, key by key.
    if let Some(oauth) = draft.take("oauth") {
        draft.put("oauth", oauth);
    }
    if let Some(always) = draft.take("alwaysLoad") {
        draft.put("alwaysLoad", always);
    }
    draft.timeout("timeout", 1.0);
}
