//! May a server of the project's folder be looked at further?
//!
//! Owns that one decision and its wording. It reads the definition as written and nothing else:
//! no variable is expanded to answer it (SEC-01, SEC-02).

use serde_json::{Map, Value};
use similar::TextDiff;
use toolway_types::Scope;

use super::{Approvals, Decided, needs_approval};
use crate::env;
use crate::load::Consent;
use crate::merge::{Basis, Candidate};
use crate::raw::keys::spelled_out;

/// The answer.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Yes; it may read these variables beyond the harmless ones.
    Approved { allow_env: Vec<String> },
    /// A person said no.
    Rejected { reason: String },
    /// Nobody said anything, or about something else.
    Pending {
        reason: String,
        changed: Option<String>,
    },
}

/// Decides for a server of project or local scope; every other scope needs nobody's word.
pub(crate) fn decide(basis: &Basis, candidate: &Candidate) -> Standing {
    let server = &candidate.raw;
    let approved = || Standing::Approved {
        allow_env: Vec::new(),
    };
    if !needs_approval(candidate.scope) {
        return approved();
    }
    let name = server.name.as_str();
    let is_project = candidate.scope == Scope::Project;
    if is_project && let Some(said) = basis.find(|settings| &settings.disabled_project, name) {
        let reason = format!("`{name}` is in `disabledMcpjsonServers` ({})", said.origin);
        return Standing::Rejected { reason };
    }
    if matches!(basis.approvals, Approvals::Unreadable) {
        let reason = "`approvals.json` cannot be read, so nobody is approved".to_owned();
        return Standing::Pending {
            reason,
            changed: None,
        };
    }
    let record = basis
        .approvals
        .project(&candidate.place.directory)
        .and_then(|project| project.servers.get(name));
    match record {
        Some(record) if record.decision == Decided::Rejected => {
            return Standing::Rejected {
                reason: format!("`{name}` was rejected in this project"),
            };
        }
        Some(record) if Some(&record.digest) == candidate.digest.as_ref() => {
            return Standing::Approved {
                allow_env: record.allow_env.clone(),
            };
        }
        Some(record) => {
            let reason = format!("`{name}` has changed since it was approved");
            let changed = Some(difference(&record.definition, &server.definition));
            return Standing::Pending { reason, changed };
        }
        None => {}
    }
    let enabled_by_name = is_project
        && (basis
            .find(|settings| &settings.enabled_project, name)
            .is_some()
            || basis
                .settings
                .iter()
                .any(|(_, settings)| settings.enable_all_project.is_some()));
    if enabled_by_name || basis.consent == Consent::ThisRun {
        return match &basis.began {
            Some(began) => began.standing(candidate),
            None => approved(),
        };
    }
    let from = if is_project {
        "the project's `.mcp.json`"
    } else {
        "the project's folder"
    };
    let mut reason = format!("`{name}` comes from {from} and is not approved");
    if !candidate.variables.is_empty() {
        let names: Vec<_> = candidate
            .variables
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        reason.push_str("; it asks for ");
        reason.push_str(&names.join(", "));
    }
    Standing::Pending {
        reason,
        changed: None,
    }
}

/// A unified diff of two definitions.
pub(super) fn difference(approved: &Value, now: &Map<String, Value>) -> String {
    let pretty = |value: &Value| {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        // What a person cannot see, they would approve unseen.
        text.lines()
            .map(|line| spelled_out(line) + "\n")
            .collect::<String>()
    };
    let (mut old, mut new) = (approved.clone(), Value::Object(now.clone()));
    mask(&mut old, &mut new);
    let (old, new) = (pretty(&old), pretty(&new));
    TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(3)
        .header("approved", "now")
        .to_string()
}

/// Hides the values of `env` and `headers`, which may be secrets, and keeps that they differ.
/// The approval itself shows what would count from then on.
fn mask(old: &mut Value, new: &mut Value) {
    for key in ["env", "headers"] {
        let before = old.get(key).cloned().unwrap_or_default();
        for (side, word) in [
            (&mut *old, "[redacted]"),
            (&mut *new, "[redacted, changed]"),
        ] {
            let Some(values) = side.get_mut(key).and_then(Value::as_object_mut) else {
                continue;
            };
            for (name, value) in values {
                let plain = value.as_str().is_some_and(env::is_variable);
                if !plain {
                    let same = before.get(name).is_none_or(|was| was == value);
                    *value = Value::from(if same { "[redacted]" } else { word });
                }
            }
        }
    }
}
