//! Whether a server of the project's folder is approved.
//!
//! Owns that decision and its wording. It reads the definition as written, and the files that an
//! approved one runs; no variable of the environment is expanded before approval (SEC-01, SEC-02).

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use toolway_types::text::unified;
use toolway_types::{Author, Scope};

use super::{DecisionContext, NameApproval, ServerCandidate};
use crate::approval::{
    ApprovalBasis, ApprovalCoverage, ApprovalDecision, ApprovalState, ApprovalsFile, EntryPlace,
    FileDigests, InstalledPackages, is_as_it_was, named_files,
};
use crate::keys::{listed, spelled_out};
use crate::load::ProjectConsent;
use crate::raw::FileSettings;
use crate::redaction;

/// Decides about what a repository brings; other authors need no approval.
pub(super) fn decide(
    basis: &DecisionContext,
    candidate: &ServerCandidate,
    installed: &InstalledPackages,
) -> ApprovalState {
    let server = &candidate.raw;
    if !candidate.author.needs_approval() {
        return ApprovalState::unasked();
    }
    let name = server.name.as_str();
    if candidate.author == Author::Stranger {
        let reason = format!("`{name}` stands in a file of another user of this machine");
        return ApprovalState::pending(reason);
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
        return ApprovalState::Rejected { reason };
    }
    if matches!(basis.approvals, ApprovalsFile::Unreadable) {
        let reason = "`approvals.json` cannot be read, so nobody is approved".to_owned();
        return ApprovalState::pending(reason);
    }
    let record = basis
        .approvals
        .project(candidate.place.decided_in())
        .and_then(|project| project.servers.get(name));
    match record {
        Some(record) if record.decision == ApprovalDecision::Rejected => {
            return ApprovalState::Rejected {
                reason: if candidate.place.agent.is_some() {
                    format!("`{name}` of this agent was rejected")
                } else {
                    format!("`{name}` was rejected in this project")
                },
            };
        }
        Some(record) if Some(&record.digest) == candidate.digest.as_ref() => {
            let directory = &candidate.place.directory;
            let place = EntryPlace {
                directory,
                scope: candidate.scope,
            };
            let definition = &server.definition;
            let now = || named_files(&basis.environment, place, definition, installed);
            let changed = match record.coverage {
                // Typed by the user: files are not bound.
                ApprovalCoverage::Typed => None,
                ApprovalCoverage::Files(ref was) => first_change(directory, was, &now().bound),
            };
            if let Some(what) = changed {
                let reason = format!("{what} since `{name}`, which runs it, was approved");
                return ApprovalState::pending(reason);
            }
            return ApprovalState::Approved {
                allow_env: record.allow_env.clone(),
                vouched: match record.coverage {
                    ApprovalCoverage::Files(_) => ApprovalBasis::Seen,
                    ApprovalCoverage::Typed => ApprovalBasis::Typed,
                },
            };
        }
        Some(record) => {
            let reason = format!("`{name}` has changed since it was approved");
            let changed = Some(difference(&record.definition, &server.definition));
            return ApprovalState::Pending { reason, changed };
        }
        None => {}
    }
    // What was said of the names in `.mcp.json` was not said of an agent's servers.
    let is_agents = candidate.place.agent.is_some();
    let is_listed = is_project && !is_agents;
    let by_name = if is_listed {
        basis.enabled_in_project(name)
    } else {
        NameApproval::No
    };
    let all = |(_, settings): &(Scope, FileSettings)| settings.enable_all_project.is_some();
    let enabled = by_name == NameApproval::Yes || is_listed && basis.settings.iter().any(all);
    if enabled || basis.consent == ProjectConsent::ThisRun {
        return match &basis.began {
            Some(began) => began.approval(candidate),
            None => ApprovalState::unasked(),
        };
    }
    let from = if is_agents {
        "an agent file of the project"
    } else if is_project {
        "the project's `.mcp.json`"
    } else {
        "the project's folder"
    };
    let mut reason = format!("`{name}` comes from {from} and is not approved");
    if let NameApproval::Doubtful(said) = by_name {
        let written = spelled_out(&said.name);
        let place = &said.origin;
        let _ = write!(
            reason,
            "; `{written}` in `enabledMcpjsonServers` ({place}) could mean another server too"
        );
    }
    if !candidate.variables.is_empty() {
        reason.push_str("; it asks for ");
        reason.push_str(&listed(&candidate.variables));
    }
    ApprovalState::pending(reason)
}

/// The first change among the files that an entry runs.
fn first_change(directory: &Path, approved: &FileDigests, now: &FileDigests) -> Option<String> {
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
    // From another directory an entry may name other files; those it named before are compared too.
    let gone = || {
        let mut unnamed = approved.iter().filter(|(name, _)| !now.contains_key(*name));
        unnamed.find(|(name, digest)| !is_as_it_was(name, digest))
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
        // Hidden characters must be visible before approval.
        text.lines()
            .map(|line| spelled_out(line) + "\n")
            .collect::<String>()
    };
    // The approval screen shows the whole new definition.
    let (old, new) = redaction::to_compare(approved, now);
    let (old, new) = (pretty(&old), pretty(&new));
    unified(("approved", &old), ("now", &new), 3)
}
