//! What a person allowed of a server that a repository brought.
//!
//! Owns the rules that are kept with the digest of a definition in `approvals.json`: they count as
//! long as the entry is that very one (SEC-57). Which rules count for a server otherwise is
//! `permission/brought.rs`'s.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use toolway_types::{Author, Origin, Scope};

use super::Approvals;
use crate::edit::{EditError, Edited, edit};
use crate::environment::{Environment, path_key};
use crate::permission::{Brought, Permissions};
use crate::plan::PlannedServer;

/// What was allowed of one server, and of which definition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    digest: String,
    rules: Vec<String>,
}

/// Reads what stands under `allowed` of a project. What is not as we write it allows nothing.
pub(super) fn read(project: &Map<String, Value>) -> BTreeMap<String, Given> {
    let allowed = project.get("allowed").and_then(Value::as_object);
    let entries = allowed.into_iter().flatten();
    entries
        .filter_map(|(name, entry)| Some((name.clone(), given(entry)?)))
        .collect()
}

fn given(entry: &Value) -> Option<Given> {
    let rules = entry.get("rules")?.as_array()?;
    Some(Given {
        digest: entry.get("digest")?.as_str()?.to_owned(),
        rules: rules
            .iter()
            .filter_map(|rule| rule.as_str().map(str::to_owned))
            .collect(),
    })
}

/// A server as one that a repository brought, if one did: then its name is no reason to believe
/// that a rule means it. The one place where that is decided.
pub fn brought(server: &PlannedServer) -> Option<Brought> {
    let Origin::File { path, .. } = &server.origin else {
        return None;
    };
    // Approved local settings are the person's in much, but nobody gave their rules for them.
    let is_found = server.scope == Scope::Local && !server.is_typed;
    if server.author != Author::Repository && !is_found {
        return None;
    }
    let folder = path.parent().unwrap_or(path);
    Some(Brought {
        server: server.name.clone(),
        origin: server.origin.clone(),
        digest: server.digest.clone()?,
        directory: match server.scope {
            // It lies in a folder of the project.
            Scope::Local => folder.parent().unwrap_or(folder),
            _ => folder,
        }
        .to_owned(),
    })
}

/// Tells the rules which servers a repository brought, and what was allowed of each.
pub(crate) fn note(
    permissions: &mut Permissions,
    servers: &[PlannedServer],
    approvals: &Approvals,
    file: &Path,
) {
    let kept = Origin::File {
        path: file.to_owned(),
        line: 1,
    };
    // What waits for approval beside the one that counts says nothing about that one's name.
    let counting = servers
        .chunk_by(|a, b| a.name == b.name)
        .filter_map(<[PlannedServer]>::first);
    for server in counting.filter_map(brought) {
        let project = approvals.project(&server.directory);
        let given = project.and_then(|project| project.allowed.get(server.server.as_str()));
        let rules = given
            .filter(|given| given.digest == server.digest)
            .map(|given| given.rules.clone())
            .unwrap_or_default();
        permissions.add_brought(server, &rules, &kept);
    }
}

/// Keeps allow rules for a server that a repository brought: they count for its definition as it
/// stands. What was kept for another one is forgotten.
pub fn allow_brought(
    environment: &Environment,
    server: &Brought,
    rules: &[String],
) -> Result<Edited<()>, EditError> {
    let directory = path_key(&server.directory);
    edit(&environment.approvals_file(), |document| {
        document.set(&["version"], &json!(1))?;
        let path = ["projects", &directory, "allowed", server.server.as_str()];
        let before = document.get(&path).as_ref().and_then(given);
        let before = before.filter(|given| given.digest == server.digest);
        let mut kept = before.unwrap_or_default().rules;
        for rule in rules {
            if !kept.contains(rule) {
                kept.push(rule.clone());
            }
        }
        document.set(&path, &json!({ "digest": server.digest, "rules": kept }))
    })
}
