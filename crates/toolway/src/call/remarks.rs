//! What a user should know about the questions of one server: that a hook refused in their place,
//! or that no user was asked.
//!
//! Owns that every remark is written down (`toolway logs`) and reaches the requests that caused the
//! question, and no others.

use std::sync::Arc;

use tracing::warn;

use super::{Caller, RequestOrigin};
use crate::journal::JournalWriter;

/// Where remarks about the questions of one connection go.
#[derive(Default)]
pub(crate) struct Remarks {
    journal: Option<JournalWriter>,
    requests: Vec<Arc<RequestOrigin>>,
}

impl Remarks {
    /// Writes them down there.
    pub(crate) fn written_to(journal: Option<JournalWriter>) -> Self {
        Self {
            journal,
            requests: Vec::new(),
        }
    }

    /// The same about questions that these requests cause.
    pub(crate) fn about(&self, requests: &[Arc<RequestOrigin>]) -> Self {
        Self {
            journal: self.journal.clone(),
            requests: requests.to_vec(),
        }
    }

    /// Whose requests these are, where they are somebody's.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        let first = self.requests.first()?;
        Some(&first.caller.caller)
    }

    /// Makes one: clean, on one line.
    pub(crate) fn make(&self, remark: &str) {
        warn!("{remark}");
        if let Some(journal) = &self.journal {
            journal.remark(remark);
        }
        for request in &self.requests {
            request.remark(remark);
        }
    }
}
