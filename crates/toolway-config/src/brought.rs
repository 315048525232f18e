//! Servers that a program or an agent brings itself: from their definitions to an admitted plan.
//!
//! Owns that these are judged like entries of files: parsed, expanded with the rights of whoever
//! runs the program, and held against the organisation's policy; and that no allow rule which names
//! one of them counts, for it was given for another definition. A view shows such a plan beside the
//! host's ([`toolway::ViewSpec::own`](https://docs.rs/toolway)). Does not own who may bring servers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, Scope, ServerName, Severity, ToolKey};

use crate::Environment;
use crate::load::Flags;
use crate::permission::{PermissionList, Permissions};
use crate::plan::{Plan, PlannedServer, ServerVerdict};
use crate::planner::plan;

/// The key of an entry that says of single tools what is to become of their calls.
const TOOLS: &str = "tools";

/// Servers that somebody brought.
#[derive(Debug, Clone, Default)]
pub struct BroughtPlan {
    /// Those that may connect, and nothing else that files say but the rules for their tools.
    pub plan: Plan,
    /// Why each of the others may not.
    pub errors: BTreeMap<String, String>,
}

/// Judges definitions by name. Reads the files that say what is forbidden.
pub fn brought(environment: &Environment, definitions: &Map<String, Value>) -> BroughtPlan {
    let mut brought = BroughtPlan::default();
    let mut policies = Vec::new();
    let mut entries = Vec::new();
    for (name, definition) in definitions {
        match entry(name, definition, &mut policies) {
            Ok(entry) => entries.push((name.clone(), entry)),
            Err(why) => drop(brought.errors.insert(name.clone(), why)),
        }
    }
    let flags = Flags {
        brought: entries,
        strict: true,
        ..Flags::default()
    };
    let mut whole = plan(environment, &flags);
    whole.servers.retain(|server| {
        server.scope == Scope::Dynamic
            && server.origin == Origin::Program
            && !brought.errors.contains_key(server.name.as_str())
    });
    for (name, _) in &flags.brought {
        if let Some(why) = why_not(&whole, name) {
            brought.errors.insert(name.clone(), why);
        }
    }
    let is_admitted = |server: &PlannedServer| matches!(server.verdict, ServerVerdict::Admitted(_));
    whole.servers.retain(is_admitted);
    let mut permissions = Permissions::default();
    let named = |server: &PlannedServer| (server.name.clone(), server.transport);
    permissions.set_apart(whole.servers.iter().map(named));
    for (key, list) in policies {
        if !permissions.add_of_program(list, &key) {
            let why = format!("no rule can be written for its tool `{}`", key.tool);
            brought.errors.insert(key.server.to_string(), why);
        }
    }
    let refused = &brought.errors;
    (whole.servers).retain(|server| !refused.contains_key(server.name.as_str()));
    whole.permissions = permissions;
    brought.plan = whole;
    brought
}

/// An entry as a file would have it, and what it says of calls.
fn entry(
    name: &str,
    definition: &Value,
    policies: &mut Vec<(ToolKey, PermissionList)>,
) -> Result<Map<String, Value>, String> {
    let server = ServerName::new(name).map_err(|error| error.to_string())?;
    let Value::Object(definition) = definition else {
        return Err("a definition is an object".to_owned());
    };
    let mut definition = definition.clone();
    if let Some(Value::Array(tools)) = definition.get(TOOLS) {
        for tool in tools {
            policies.push(policy(&server, tool)?);
        }
        definition.remove(TOOLS);
    }
    Ok(definition)
}

fn policy(server: &ServerName, said: &Value) -> Result<(ToolKey, PermissionList), String> {
    let name = said["name"].as_str();
    let name = name.ok_or_else(|| format!("a tool in `{TOOLS}` needs its `name`"))?;
    let policy = match said["permission_policy"].as_str() {
        Some("always_allow") => PermissionList::Allow,
        Some("always_ask") => PermissionList::Ask,
        Some("always_deny") => PermissionList::Deny,
        _ => {
            return Err(format!(
                "`permission_policy` of the tool `{name}` is none of always_allow, always_ask and always_deny"
            ));
        }
    };
    Ok((ToolKey::new(server.clone(), name), policy))
}

/// Why a server that was brought may not connect.
fn why_not(plan: &Plan, name: &str) -> Option<String> {
    let first_error = |diagnoses: &[Diagnosis]| {
        let mut errors = diagnoses.iter();
        let error = errors.find(|it| it.severity == Severity::Error);
        error.map(|it| it.message.clone())
    };
    let Some(server) = plan.servers.iter().find(|it| it.name.as_str() == name) else {
        let said = plan.blocked.as_ref().map(|it| it.message.clone());
        return said.or_else(|| Some("cannot name a server".to_owned()));
    };
    match &server.verdict {
        ServerVerdict::Admitted(_) => None,
        ServerVerdict::Invalid { reason } => {
            Some(first_error(&server.diagnoses).unwrap_or_else(|| reason.clone()))
        }
        other => Some(other.reason().unwrap_or_else(|| other.word()).to_owned()),
    }
}
