//! Servers of other clients, before they are taken over.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolway_types::Scope;

use crate::{SourceRow, Word};

/// What was found in the files of other clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportListing {
    /// File by file.
    pub servers: Vec<ImportRow>,
}

/// A server of another client. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportRow {
    /// Its name there.
    pub name: String,
    /// The client.
    pub client: Word,
    /// Where its entry stands.
    pub source: SourceRow,
    /// Who wrote the file: `person` or `stranger`.
    pub writer: Word,
    /// As it would be written here, secrets hidden.
    pub definition: Map<String, Value>,
    /// The scope it would go to; null when it is skipped.
    pub scope: Option<Scope>,
    /// Whether it is switched on there.
    pub enabled: bool,
    /// What is written in another way here.
    pub notes: Vec<String>,
    /// What cannot be carried over.
    pub dropped: Vec<String>,
    /// Why it is not taken; null when it is.
    pub skipped: Option<String>,
}
