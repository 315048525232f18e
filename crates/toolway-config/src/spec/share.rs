//! With whom the instance of a server is shared, by its entry.
//!
//! Owns what an entry without `share` means: servers across a network serve the user everywhere;
//! a process serves its project if its entry is the project's, or speaks of a place in it.

use serde_json::Value;
use toolway_types::{ReferenceKind, Scope, SecretReference, ServerShare, ShareMode, TransportSpec};

use super::SpecBuilder;
use crate::expansion::WORKSPACE;
use crate::json::EntryMembers as _;

/// Variables that mean another place in another project.
const OF_PROJECT: [&str; 4] = [
    WORKSPACE,
    "PWD",
    "TOOLWAY_PROJECT_DIR",
    "CLAUDE_PROJECT_DIR",
];

impl SpecBuilder<'_> {
    pub(super) fn share(
        &self,
        transport: &TransportSpec,
        references: &[SecretReference],
    ) -> ServerShare {
        let said = self.definition.member("share").and_then(Value::as_str);
        let root = || self.environment.project_root().to_owned();
        let is_projects = || self.belongs_to_project(transport, references);
        match said.and_then(ShareMode::parse) {
            Some(ShareMode::Session) => ServerShare::Session(is_projects().then(root)),
            Some(ShareMode::Project) => ServerShare::Project(root()),
            None if is_projects() => ServerShare::Project(root()),
            Some(ShareMode::User) | None => ServerShare::User,
        }
    }

    fn belongs_to_project(
        &self,
        transport: &TransportSpec,
        references: &[SecretReference],
    ) -> bool {
        // A command that prints a secret runs where the host does.
        if references
            .iter()
            .any(|one| one.kind == ReferenceKind::Command)
        {
            return true;
        }
        if !matches!(transport, TransportSpec::Stdio(_)) {
            return false;
        }
        let texts = ["command", "args", "env", "roots"];
        let speaks_of_it = |key| self.definition.member(key).is_some_and(names_project);
        matches!(self.scope, Scope::Project | Scope::Local)
            || self.definition.member("cwd").is_some()
            || texts.into_iter().any(speaks_of_it)
    }
}

/// Whether a text, or one inside, means another place in another project.
fn names_project(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let is_relative = ["./", "../"].iter().any(|start| text.starts_with(start));
            is_relative || text == "." || OF_PROJECT.iter().any(|name| names(text, name))
        }
        Value::Array(items) => items.iter().any(names_project),
        Value::Object(members) => members.values().any(names_project),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn names(text: &str, variable: &str) -> bool {
    let rest = text.split("${").skip(1);
    rest.filter_map(|rest| rest.strip_prefix(variable))
        .any(|rest| rest.starts_with(['}', ':']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_speaks_of_its_project_by_relative_paths_and_variables() {
        for text in [
            "./a",
            "../b",
            ".",
            "${PWD}/x",
            "--root=${workspace}",
            "${workspace:-/x}",
        ] {
            assert!(names_project(&json!(["x", text])), "{text}");
        }
        for text in ["/a", "a.py", "${HOME}/x", "${PWDX}", "..."] {
            assert!(!names_project(&json!({ "x": text })), "{text}");
        }
    }
}
