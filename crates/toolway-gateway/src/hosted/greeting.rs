//! What an endpoint says of itself: `initialize` in the legacy era, `server/discover` in the modern
//! one.
//!
//! Owns capabilities, names and instructions. An endpoint of one server says what that server says;
//! a merged one declares all that can be routed, because servers come and go after the greeting.

use serde_json::{Value, json};
use toolway::HostSnapshot;
use toolway::types::{Era, ServerFacts, ServerName, limits, text};
use toolway_wire::era::meta_key;
use toolway_wire::view::{skill, task};

use super::endpoint::{ServedEndpoint, connected, facts, has_skills};
use super::scope::EndpointScope;

/// The most that all servers together say to models, in characters.
const MAX_INSTRUCTIONS: usize = limits::gateway::INSTRUCTIONS;

/// The members that both greetings share; `serverInfo` stands where its era wants it.
pub(super) fn of(endpoint: &ServedEndpoint, era: Era) -> Value {
    let snapshot = endpoint.view.snapshot();
    let (capabilities, info, instructions) = match &endpoint.scope {
        EndpointScope::One(server) => of_one(&snapshot, server, era),
        EndpointScope::Merged(_) => (
            merged_capabilities(&snapshot, era),
            own_info(),
            merged_instructions(&snapshot),
        ),
    };
    let mut greeting = json!({ "capabilities": capabilities });
    match era {
        Era::Legacy => greeting["serverInfo"] = info,
        Era::Modern => greeting["_meta"] = json!({ (meta_key::SERVER_INFO): info }),
    }
    if let Some(instructions) = instructions {
        greeting["instructions"] = instructions.into();
    }
    greeting
}

fn own_info() -> Value {
    json!({ "name": "toolway", "title": "Toolway", "version": env!("CARGO_PKG_VERSION") })
}

fn of_one(
    snapshot: &HostSnapshot,
    server: &ServerName,
    era: Era,
) -> (Value, Value, Option<String>) {
    let Some(facts) = facts(snapshot, server) else {
        // It may come later; what it offers then is announced.
        return (merged_capabilities(snapshot, era), own_info(), None);
    };
    let info = match &facts.server_info {
        Value::Null => own_info(),
        info => info.clone(),
    };
    // In its own words, where these may be said at all: a rule may be against it, or they changed.
    let is_said = snapshot.catalog.instructions.of(server).is_some();
    let instructions = facts.instructions.as_ref().filter(|_| is_said);
    let instructions = instructions.map(|it| it.as_received().to_owned());
    (capabilities_of(facts, era), info, instructions)
}

/// What a server can do, as far as a client of this era can use it through us.
fn capabilities_of(facts: &ServerFacts, era: Era) -> Value {
    let mut capabilities = facts.capabilities.as_object().cloned().unwrap_or_default();
    if facts.era != era {
        // Tasks mean something else in the other era: the host follows them.
        capabilities.remove("tasks");
        if let Some(Value::Object(extensions)) = capabilities.get_mut("extensions") {
            extensions.remove(task::EXTENSION);
        }
    }
    if let Some(tasks) = capabilities.get_mut("tasks").and_then(Value::as_object_mut) {
        tasks.remove("list");
    }
    for list in ["tools", "resources", "prompts"] {
        if let Some(Value::Object(capability)) = capabilities.get_mut(list) {
            // Changes that a server does not announce are still found out when it comes back.
            capability.insert("listChanged".to_owned(), true.into());
        }
    }
    Value::Object(capabilities)
}

fn merged_capabilities(snapshot: &HostSnapshot, era: Era) -> Value {
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "logging": {},
        "completions": {},
    });
    let mut extensions = serde_json::Map::new();
    let skills = connected(snapshot).find(|(_, facts)| has_skills(facts));
    if let Some((_, facts)) = skills {
        // What the first of them can do besides; the others refuse it.
        let declared = facts.capabilities["extensions"][skill::EXTENSION].clone();
        extensions.insert(skill::EXTENSION.to_owned(), declared);
    }
    match era {
        Era::Modern => {
            let has_tasks = connected(snapshot).any(|(_, facts)| {
                let declared = &facts.capabilities["extensions"][task::EXTENSION];
                facts.era == Era::Modern && declared.is_object()
            });
            if has_tasks {
                extensions.insert(task::EXTENSION.to_owned(), json!({}));
            }
        }
        Era::Legacy => {
            let makes_tasks = connected(snapshot).any(|(_, facts)| {
                facts.era == Era::Legacy
                    && facts.capabilities["tasks"]["requests"]["tools"]["call"].is_object()
            });
            if makes_tasks {
                capabilities["tasks"] =
                    json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
            }
        }
    }
    if !extensions.is_empty() {
        capabilities["extensions"] = Value::Object(extensions);
    }
    capabilities
}

/// Each server's words under its name, as far as there is room.
fn merged_instructions(snapshot: &HostSnapshot) -> Option<String> {
    let sections = &snapshot.catalog.instructions.sections;
    if sections.is_empty() {
        return None;
    }
    let mut all = String::from("What the servers behind Toolway say about themselves:");
    for section in sections.iter() {
        all.push_str("\n\n");
        all.push_str(&section.to_string());
    }
    Some(text::cut(&all, MAX_INSTRUCTIONS).into_owned())
}
