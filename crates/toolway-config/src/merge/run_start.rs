//! The state of a repository when a run began.
//!
//! Approval of a whole repository, by a flag or a setting, covers what the user could see when they
//! gave it. What changes during the run needs its own approval, or a repository could start a
//! program of its choice by live reload (SEC-05).

use std::collections::BTreeMap;

use serde_json::Value;

use super::ServerCandidate;
use super::decide::difference;
use crate::approval::ApprovalState;

/// Every server that needs approval, by file and name, with its digest and its definition.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunStart(BTreeMap<(String, String), (String, Value)>);

impl RunStart {
    /// Takes servers as they are now, those of highest precedence first.
    pub(crate) fn with(servers: &[ServerCandidate]) -> Self {
        let mut began = BTreeMap::new();
        for candidate in servers.iter().filter(|it| it.author.needs_approval()) {
            if let Some(digest) = &candidate.digest {
                began.entry(key(candidate)).or_insert_with(|| {
                    let definition = Value::Object(candidate.raw.definition.clone());
                    (digest.clone(), definition)
                });
            }
        }
        Self(began)
    }

    /// What approval of the whole repository means for this server.
    pub(super) fn approval(&self, candidate: &ServerCandidate) -> ApprovalState {
        let name = candidate.raw.name.as_str();
        match self.0.get(&key(candidate)) {
            Some((digest, _)) if Some(digest) == candidate.digest.as_ref() => {
                ApprovalState::unasked()
            }
            Some((_, definition)) => ApprovalState::Pending {
                reason: format!("`{name}` has changed since this run began"),
                changed: Some(difference(definition, &candidate.raw.definition)),
            },
            None => ApprovalState::pending(format!(
                "`{name}` was not there when this run began, and is not approved"
            )),
        }
    }
}

fn key(candidate: &ServerCandidate) -> (String, String) {
    (
        candidate.place.file.clone(),
        candidate.raw.name.as_str().to_owned(),
    )
}
