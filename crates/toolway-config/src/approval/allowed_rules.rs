//! Allow rules that the user gave for a server that a repository brought.
//!
//! Owns the rules that `approvals.json` keeps with the digest of a definition: they count only for
//! that exact definition (SEC-57). Which other rules count for such a server is in
//! `permission/repository_server.rs`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::edit::{EditError, Edited, edit};
use crate::environment::{Environment, path_key};
use crate::permission::RepositoryServer;

/// The rules that were allowed, and the digest of the definition they are for.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedRules {
    pub(crate) digest: String,
    pub(crate) rules: Vec<String>,
}

/// Reads `allowed` of a project. What is malformed allows nothing.
pub(super) fn read(project: &Map<String, Value>) -> BTreeMap<String, AllowedRules> {
    let allowed = project.get("allowed").and_then(Value::as_object);
    let entries = allowed.into_iter().flatten();
    entries
        .filter_map(|(name, entry)| Some((name.clone(), given(entry)?)))
        .collect()
}

fn given(entry: &Value) -> Option<AllowedRules> {
    let rules = entry.get("rules")?.as_array()?;
    Some(AllowedRules {
        digest: entry.get("digest")?.as_str()?.to_owned(),
        rules: rules
            .iter()
            .filter_map(|rule| rule.as_str().map(str::to_owned))
            .collect(),
    })
}

/// Keeps allow rules for a server that a repository brought, bound to its present definition. Rules
/// for an earlier definition are dropped.
pub fn allow_for_repository_server(
    environment: &Environment,
    server: &RepositoryServer,
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
