//! What lies in the vault, and what was done there. No secret is ever in it.

use serde::{Deserialize, Serialize};

use crate::Word;

/// Everything that lies in the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretListing {
    /// One row each.
    pub secrets: Vec<SecretRow>,
}

/// Something that lies in the vault. A secret that a user named has a `name`; what belongs to a
/// server has the fields that follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRow {
    /// What it is.
    pub kind: Word,
    /// The name, as in `${keychain:NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The user's word for the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Since when, in UTC.
    pub saved_at: String,
    /// Where it lies: `keychain`, or which kind of file.
    #[serde(rename = "where")]
    pub kept_in: Word,
}

/// A secret was put into the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSecret {
    /// Its name.
    pub name: String,
    /// Where it lies.
    #[serde(rename = "where")]
    pub kept_in: Word,
}

/// Secrets were taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedSecrets {
    /// How many.
    pub removed: usize,
}

/// All secrets were written to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedSecrets {
    /// The file.
    pub file: String,
    /// How many.
    pub secrets: usize,
    /// Whether the file is sealed with a passphrase.
    pub sealed: bool,
}

/// Secrets were taken from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedSecrets {
    /// How many.
    pub imported: usize,
}
