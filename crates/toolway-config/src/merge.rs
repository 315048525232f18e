//! One winner per name, and one per signature among plugins and connectors.
//!
//! Owns: precedence and duplicates. A whole entry wins; entries are never mixed. What loses is kept
//! with the reason.
//! Does not own: whether the winner may connect (`admission`).

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;
use toolway_types::{Author, Diagnosis, Origin, Scope};

use crate::Environment;
use crate::approval::{self, ApprovalBasis, ApprovalState, ApprovalsFile, InstalledPackages};
use crate::expansion;
use crate::ide::RunningEditors;
use crate::json::EntryMembers as _;
use crate::load::{LayerLocation, Layers, ProjectConsent};
use crate::plan::ShadowedEntry;
use crate::raw::{FileSettings, RawServer};

mod decide;
mod duplicate;
mod project_names;
mod run_start;
mod switch;

use decide::decide;
pub use duplicate::signature;
pub(crate) use project_names::{NameApproval, ProjectNames};
pub(crate) use run_start::RunStart;
pub use switch::Switch;
pub(crate) use switch::{switch_setting, switched_off};

/// Every server with its rank, and what decides about them.
#[derive(Debug)]
pub struct Config {
    pub(crate) basis: DecisionContext,
    /// In order of name, then of precedence, the highest first.
    pub(crate) servers: Vec<ServerCandidate>,
    pub(crate) diagnoses: Vec<Diagnosis>,
    pub(crate) blocked: Option<Diagnosis>,
    /// The file that excludes every other scope, when it exists.
    pub(crate) exclusive: Option<Origin>,
}

/// What decisions about single servers depend on.
#[derive(Debug)]
pub(crate) struct DecisionContext {
    pub(crate) environment: Environment,
    pub(crate) consent: ProjectConsent,
    /// `None` while a run begins.
    pub(crate) began: Option<RunStart>,
    /// Lowest precedence first.
    pub(crate) settings: Vec<(Scope, FileSettings)>,
    pub(crate) approvals: ApprovalsFile,
    pub(crate) editors: RunningEditors,
    /// What the servers of the project are called.
    pub(crate) project_names: ProjectNames,
}

/// One server in one layer.
#[derive(Debug, Clone)]
pub(crate) struct ServerCandidate {
    pub(crate) raw: RawServer,
    pub(crate) scope: Scope,
    /// Who wrote it. Decided here, and asked wherever it matters what the entry may do.
    pub(crate) author: Author,
    /// Whether it is approved.
    pub(crate) approval: ApprovalState,
    pub(crate) order: u32,
    /// The position in its file; a later one of the same name wins, as in any JSON reader.
    pub(crate) position: u32,
    pub(crate) place: Arc<LayerLocation>,
    pub(crate) digest: Option<String>,
    pub(crate) variables: Vec<String>,
    pub(crate) lost: Option<ShadowedBy>,
    pub(crate) shadows: Vec<ShadowedEntry>,
}

/// Why a server does not count.
#[derive(Debug, Clone)]
pub(crate) struct ShadowedBy {
    pub(crate) to: ShadowedEntry,
    pub(crate) reason: String,
}

impl ServerCandidate {
    pub(crate) fn shadow(&self) -> ShadowedEntry {
        ShadowedEntry {
            scope: self.scope,
            origin: self.raw.origin.clone(),
        }
    }

    /// Whether it counts at all: what is not approved, or could not start anyway, does not replace
    /// an entry of the user's own (SEC-55).
    pub(crate) fn is_approved(&self) -> bool {
        let starts = || {
            let off = self.raw.definition.member("disabled") == Some(&Value::Bool(true));
            !off && self.raw.fault().is_none()
        };
        matches!(self.approval, ApprovalState::Approved { .. })
            && (self.author != Author::Repository || starts())
    }

    /// The order of precedence: no two servers of one name have the same.
    fn rank(&self) -> (bool, Scope, u32, u32) {
        (self.raw.name_stands, self.scope, self.order, self.position)
    }

    /// Finds out whether it is approved, and so who its author is.
    fn judge(&mut self, basis: &DecisionContext, installed: &InstalledPackages) {
        self.approval = decide(basis, self, installed);
        // What Toolway wrote for the user, or the user has read and approved, is the user's
        // (SEC-58).
        if let ApprovalState::Approved {
            vouched: ApprovalBasis::Seen | ApprovalBasis::Typed,
            ..
        } = self.approval
            && self.scope == Scope::Local
        {
            self.author = Author::Person;
        }
    }
}

/// Settles which entry of each name counts. The order of the layers does not matter.
pub fn merge(layers: Layers) -> Config {
    merge_since(layers, None)
}

/// As [`merge`]; `began` is the state of the repository when the run began.
pub(crate) fn merge_since(layers: Layers, began: Option<RunStart>) -> Config {
    let exclusive = layers
        .files
        .iter()
        .find(|layer| layer.scope == Scope::Enterprise && !layer.settings.lists_only)
        .map(|layer| Origin::file(&layer.place.file, 1));
    let count = layers.files.iter().map(|layer| layer.servers.len()).sum();
    let mut servers = Vec::with_capacity(count);
    let mut settings = Vec::new();
    for layer in layers.files {
        for (position, raw) in (0..).zip(layer.servers) {
            servers.push(ServerCandidate {
                scope: layer.scope,
                author: layer.author,
                approval: ApprovalState::unasked(),
                order: layer.order,
                position,
                digest: layer
                    .author
                    .needs_approval()
                    .then(|| approval::digest(&layer.place.file, layer.scope, &raw.definition)),
                variables: expansion::variables_of(&raw.definition),
                place: Arc::clone(&layer.place),
                lost: None,
                shadows: Vec::new(),
                raw,
            });
        }
        settings.push((layer.scope, layer.settings));
    }
    settings.sort_by_key(|(scope, _)| *scope);
    let basis = DecisionContext {
        environment: layers.environment,
        consent: layers.consent,
        began,
        project_names: ProjectNames::of(&servers, &settings),
        settings,
        approvals: layers.approvals,
        editors: layers.editors,
    };
    let installed = InstalledPackages::default();
    for candidate in &mut servers {
        candidate.judge(&basis, &installed);
    }
    servers.sort_by(|a, b| {
        a.raw
            .name
            .cmp(&b.raw.name)
            .then_with(|| Reverse(a.rank()).cmp(&Reverse(b.rank())))
    });
    shadow_by_name(&mut servers);
    duplicate::shadow(&basis, &mut servers);
    Config {
        basis,
        servers,
        diagnoses: layers.diagnoses,
        blocked: layers.blocked,
        exclusive,
    }
}

/// Within each run of one name the first that counts wins, and is put first. An entry that is not
/// approved replaces no other: the first one above the winner waits for approval.
fn shadow_by_name(servers: &mut [ServerCandidate]) {
    for group in servers.chunk_by_mut(|a, b| a.raw.name == b.raw.name) {
        // A name with hidden characters is invalid and shadows nothing.
        let active = group.partition_point(|candidate| candidate.raw.name_stands);
        let group = &mut group[..active];
        let winner = group.iter().position(ServerCandidate::is_approved);
        let (above, below) = group.split_at_mut(winner.unwrap_or(active));
        shadow_others(above);
        shadow_others(below);
        if let Some(winner) = winner {
            group[..=winner].rotate_right(1);
        }
    }
}

/// The first stands for all the others.
fn shadow_others(group: &mut [ServerCandidate]) {
    let Some((first, others)) = group.split_first_mut() else {
        return;
    };
    for other in others {
        first.shadows.push(other.shadow());
        other.lost = Some(ShadowedBy {
            to: first.shadow(),
            reason: "by precedence".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests;
