//! Who asks something of a host.

use serde::{Deserialize, Serialize};

use crate::Word;

/// All callers that are attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerListing {
    /// The owner first.
    pub callers: Vec<CallerRow>,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerRow {
    /// What tells it from other callers.
    pub id: String,
    /// `person`, `agent`, `client` or `hook`.
    pub kind: Word,
    /// For whom it acts.
    pub principal: String,
    /// What people are shown of it.
    pub shown: String,
}
