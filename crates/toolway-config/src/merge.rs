//! One winner per name, and one per signature among what nobody configured by hand.
//!
//! Owns: precedence and duplicates. A whole entry wins; entries are never mixed. What loses is
//! kept with the reason, so that nothing vanishes silently.
//! Does not own: whether the winner may connect (`policy`).

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;
use toolway_types::{Author, Diagnosis, Origin, Scope};

use crate::Environment;
use crate::approval::{self, Approvals, Began, Installed, Standing, Vouched, decide};
use crate::env;
use crate::ide::Editors;
use crate::load::{Consent, Layers, Place};
use crate::plan::Shadow;
use crate::raw::{RawServer, Settings};

mod duplicate;
mod naming;
mod switch;

pub use duplicate::signature;
pub(crate) use naming::{ByName, ProjectNames};
pub(crate) use switch::{switched_off, word_about};

/// Every server with its rank settled, and what decides about them.
#[derive(Debug)]
pub struct Config {
    pub(crate) basis: Basis,
    /// In order of name, then of precedence, the highest first.
    pub(crate) servers: Vec<Candidate>,
    pub(crate) diagnoses: Vec<Diagnosis>,
    pub(crate) blocked: Option<Diagnosis>,
    /// The file that excludes every other scope, when it exists.
    pub(crate) exclusive: Option<Origin>,
}

/// What decisions about single servers rest on.
#[derive(Debug)]
pub(crate) struct Basis {
    pub(crate) environment: Environment,
    pub(crate) consent: Consent,
    /// Nothing while a run begins.
    pub(crate) began: Option<Began>,
    /// Lowest precedence first.
    pub(crate) settings: Vec<(Scope, Settings)>,
    pub(crate) approvals: Approvals,
    pub(crate) editors: Editors,
    /// What the servers of the project are called.
    pub(crate) project_names: ProjectNames,
}

/// One server in one layer.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) raw: RawServer,
    pub(crate) scope: Scope,
    /// Who wrote it. Decided here, and asked wherever it matters what the entry may do.
    pub(crate) author: Author,
    /// What a person said about it.
    pub(crate) standing: Standing,
    pub(crate) order: u32,
    /// The position in its file; a later one of the same name wins, as in any JSON reader.
    pub(crate) position: u32,
    pub(crate) place: Arc<Place>,
    pub(crate) digest: Option<String>,
    pub(crate) variables: Vec<String>,
    pub(crate) lost: Option<Lost>,
    pub(crate) shadows: Vec<Shadow>,
}

/// Why a server does not count.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    pub(crate) to: Shadow,
    pub(crate) reason: String,
}

impl Candidate {
    pub(crate) fn shadow(&self) -> Shadow {
        Shadow {
            scope: self.scope,
            origin: self.raw.origin.clone(),
        }
    }

    /// Whether it counts at all: what nobody approved, or could not start anyway, takes no place of
    /// a person's own (SEC-55).
    pub(crate) fn is_approved(&self) -> bool {
        let starts = || {
            let off = self.raw.definition.get("disabled") == Some(&Value::Bool(true));
            !off && self.raw.fault().is_none()
        };
        matches!(self.standing, Standing::Approved { .. })
            && (self.author != Author::Repository || starts())
    }

    /// The order of precedence: no two servers of one name have the same.
    fn rank(&self) -> (bool, Scope, u32, u32) {
        (self.raw.name_stands, self.scope, self.order, self.position)
    }

    /// Finds out what a person said about it, and so who speaks in it.
    fn judge(&mut self, basis: &Basis, installed: &Installed) {
        self.standing = decide(basis, self, installed);
        // What Toolway wrote for a person, or a person has read and approved, is theirs (SEC-58).
        if let Standing::Approved {
            vouched: Vouched::Seen | Vouched::Typed,
            ..
        } = self.standing
            && self.scope == Scope::Local
        {
            self.author = Author::Person;
        }
    }
}

/// Settles which entry of each name counts. The order of the layers does not matter.
pub fn merge(layers: Layers) -> Config {
    let exclusive = layers
        .files
        .iter()
        .find(|layer| layer.scope == Scope::Enterprise && !layer.settings.lists_only)
        .map(|layer| Origin::File {
            path: layer.place.file.clone().into(),
            line: 1,
        });
    let mut servers = Vec::new();
    let mut settings = Vec::new();
    for layer in layers.files {
        for (position, raw) in (0..).zip(layer.servers) {
            servers.push(Candidate {
                scope: layer.scope,
                author: layer.author,
                standing: Standing::unasked(),
                order: layer.order,
                position,
                digest: layer
                    .author
                    .needs_approval()
                    .then(|| approval::digest(&layer.place.file, layer.scope, &raw.definition)),
                variables: env::variables_of(&raw.definition),
                place: Arc::clone(&layer.place),
                lost: None,
                shadows: Vec::new(),
                raw,
            });
        }
        settings.push((layer.scope, layer.settings));
    }
    settings.sort_by_key(|(scope, _)| *scope);
    let basis = Basis {
        environment: layers.environment,
        consent: layers.consent,
        began: layers.began,
        settings,
        approvals: layers.approvals,
        editors: layers.editors,
        project_names: ProjectNames::of(&servers),
    };
    let installed = Installed::default();
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

/// Within each run of one name the first that counts wins, and is put first. What nobody approved
/// takes nobody's place: what stands above the winner waits for a person's yes, or rather the first
/// of it does.
fn shadow_by_name(servers: &mut [Candidate]) {
    for group in servers.chunk_by_mut(|a, b| a.raw.name == b.raw.name) {
        // A name with hidden characters is invalid for itself and shadows nobody.
        let standing = group.partition_point(|candidate| candidate.raw.name_stands);
        let group = &mut group[..standing];
        let winner = group.iter().position(Candidate::is_approved);
        let (above, below) = group.split_at_mut(winner.unwrap_or(standing));
        shadow_others(above);
        shadow_others(below);
        if let Some(winner) = winner {
            group[..=winner].rotate_right(1);
        }
    }
}

/// The first stands for all the others.
fn shadow_others(group: &mut [Candidate]) {
    let Some((first, others)) = group.split_first_mut() else {
        return;
    };
    for other in others {
        first.shadows.push(other.shadow());
        other.lost = Some(Lost {
            to: first.shadow(),
            reason: "by precedence".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests;
