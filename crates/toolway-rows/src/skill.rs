//! The skills of servers.

use serde::{Deserialize, Serialize};
use toolway_types::ServerName;

/// Skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillListing {
    /// Server by server.
    pub skills: Vec<SkillRow>,
}

/// One skill. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRow {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: ServerName,
    /// Its address.
    pub uri: String,
    /// What it is for.
    pub description: String,
    /// How many files it has, where they are listed.
    pub files: Option<usize>,
    /// Whether there are digests to hold them against.
    pub digests: bool,
    /// Null when it was not read.
    pub verified: Option<bool>,
    /// Why it cannot be shown.
    pub problem: Option<String>,
}

/// The text of a skill, or of one of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillTextRow {
    /// The skill's name.
    pub name: String,
    /// Its server.
    pub server: ServerName,
    /// Its address.
    pub uri: String,
    /// The text.
    pub text: String,
}
