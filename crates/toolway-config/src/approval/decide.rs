//! May a server of the project's folder be looked at further?
//!
//! Owns that one decision and its wording. It reads the definition as written, and the files that an
//! approved one runs; no variable of the environment is expanded before somebody approved it
//! (SEC-01, SEC-02).

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use similar::TextDiff;
use toolway_types::{Author, Scope};

use super::files::{self, Files, Installed, Stand};
use super::{Approvals, Coverage, Decided};
use crate::load::Consent;
use crate::merge::{Basis, ByName, Candidate};
use crate::raw::Settings;
use crate::raw::keys::spelled_out;
use crate::shown;

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
/// `installed` is what was found of packages so far.
pub(crate) fn decide(basis: &Basis, candidate: &Candidate, installed: &Installed) -> Standing {
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
    if is_project && let Some(said) = basis.disabled_in_project(name) {
        let as_written = if said.name == name {
            String::new()
        } else {
            format!(" as `{}`", spelled_out(&said.name))
        };
        let reason = format!(
            "`{name}` is in `disabledMcpjsonServers`{as_written} ({})",
            said.origin
        );
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
            let stand = Stand {
                directory,
                scope: candidate.scope,
            };
            let definition = &server.definition;
            let now = || files::named(&basis.environment, stand, definition, installed);
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
    let by_name = if is_project {
        basis.enabled_in_project(name)
    } else {
        ByName::No
    };
    let all = |(_, settings): &(Scope, Settings)| settings.enable_all_project.is_some();
    let enabled = by_name == ByName::Yes || is_project && basis.settings.iter().any(all);
    if enabled || basis.consent == Consent::ThisRun {
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
    if let ByName::Doubtful(said) = by_name {
        let written = spelled_out(&said.name);
        let place = &said.origin;
        let _ = write!(
            reason,
            "; `{written}` in `enabledMcpjsonServers` ({place}) could mean another server too"
        );
    }
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
    // The approval itself shows what would count from then on.
    let (old, new) = shown::to_compare(approved, now);
    let (old, new) = (pretty(&old), pretty(&new));
    TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(3)
        .header("approved", "now")
        .to_string()
}
