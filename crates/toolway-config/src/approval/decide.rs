//! May a server of the project's folder be looked at further?
//!
//! Owns that one decision and its wording. It reads the definition as written, and the files that an
//! approved one runs; no variable of the environment is expanded before somebody approved it
//! (SEC-01, SEC-02).

use std::path::Path;

use serde_json::{Map, Value};
use similar::TextDiff;
use toolway_types::{Author, Scope};

use super::files::{self, Files};
use super::{Approvals, Coverage, Decided};
use crate::env;
use crate::load::Consent;
use crate::merge::{Basis, Candidate};
use crate::raw::keys::spelled_out;

/// The answer.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Yes, or nobody is asked.
    Approved {
        /// What it may read of the environment beyond the harmless.
        allow_env: Vec<String>,
        vouched: Vouched,
    },
    /// A person said no.
    Rejected { reason: String },
    /// Nobody said anything, or about something else.
    Pending {
        reason: String,
        changed: Option<String>,
    },
}

impl Standing {
    /// Whether a person has seen this very entry.
    pub(crate) fn vouched(&self) -> Vouched {
        match self {
            Self::Approved { vouched, .. } => *vouched,
            Self::Rejected { .. } | Self::Pending { .. } => Vouched::Unseen,
        }
    }

    /// That of an entry about which nobody has to be asked.
    pub(crate) fn unasked() -> Self {
        Self::Approved {
            allow_env: Vec::new(),
            vouched: Vouched::Unseen,
        }
    }
}

/// How a yes came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vouched {
    /// Nobody had to be asked, or a word for the whole repository covers it.
    Unseen,
    /// A person saw this very definition and said yes.
    Seen,
    /// A person typed it.
    Typed,
}

/// Decides about what a repository brings; everybody else needs nobody's word.
pub(crate) fn decide(basis: &Basis, candidate: &Candidate) -> Standing {
    let server = &candidate.raw;
    if !candidate.author.needs_approval() {
        return Standing::unasked();
    }
    let name = server.name.as_str();
    if candidate.author == Author::Stranger {
        let reason = format!("`{name}` stands in a file of another user of this machine");
        return Standing::Pending {
            reason,
            changed: None,
        };
    }
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
            let directory = &candidate.place.directory;
            let now = || files::named(&basis.environment, directory, &server.definition);
            let changed = match record.coverage {
                // They mean whatever stands there.
                Coverage::Typed => None,
                Coverage::Files(ref was) => first_change(directory, was, &now().bound),
            };
            if let Some(what) = changed {
                let reason = format!("{what} since `{name}`, which runs it, was approved");
                return Standing::Pending {
                    reason,
                    changed: None,
                };
            }
            return Standing::Approved {
                allow_env: record.allow_env.clone(),
                vouched: match record.coverage {
                    Coverage::Files(_) => Vouched::Seen,
                    Coverage::Typed => Vouched::Typed,
                },
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
            None => Standing::unasked(),
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

/// What of the files that an entry runs is not as it was.
fn first_change(directory: &Path, approved: &Files, now: &Files) -> Option<String> {
    let file = |name: &str| {
        let below = Path::new(name).strip_prefix(directory);
        let shown = below.map_or_else(|_| name.into(), Path::to_string_lossy);
        format!("`{}`", spelled_out(&shown))
    };
    let new_or_other = now
        .iter()
        .find_map(|(name, digest)| match approved.get(name) {
            Some(was) if was == digest => None,
            Some(_) => Some(format!("{} has changed", file(name))),
            None => Some(format!("{} has appeared", file(name))),
        });
    // From another directory an entry may name other files; those it named are still as they were.
    let gone = || {
        let mut unnamed = approved.iter().filter(|(name, _)| !now.contains_key(*name));
        unnamed.find(|(name, digest)| !files::is_as_it_was(name, digest))
    };
    new_or_other.or_else(|| {
        let (name, _) = gone()?;
        let what = if Path::new(name).exists() {
            "changed"
        } else {
            "gone"
        };
        Some(format!("{} has {what}", file(name)))
    })
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
