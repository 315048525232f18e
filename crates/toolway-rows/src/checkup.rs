//! What is wrong with the configuration and the machine, or will be.

use serde::{Deserialize, Serialize};

use crate::{DiagnosisRow, HookRow, Word};

/// Everything that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkup {
    /// Where the user's files are.
    pub config_home: String,
    /// Where the project is.
    pub project_root: String,
    /// What servers behind the shield cannot do.
    pub shield: ShieldRow,
    /// How many servers there are of each verdict.
    pub servers: VerdictCounts,
    /// All hooks.
    pub hooks: Vec<HookRow>,
    /// How the machine is.
    pub checks: Vec<CheckRow>,
    /// What is wrong with the configuration.
    pub diagnoses: Vec<DiagnosisRow>,
}

/// How many servers there are of each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerdictCounts {
    /// May connect.
    pub admitted: usize,
    /// Wait for the user's approval.
    pub pending_approval: usize,
    /// The organisation refuses them.
    pub refused: usize,
    /// The user rejected them.
    pub rejected: usize,
    /// Switched off.
    pub disabled: usize,
    /// Another entry counts.
    pub shadowed: usize,
    /// Cannot be used as they are written.
    pub invalid: usize,
}

/// One look at the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRow {
    /// What was looked at.
    pub name: Word,
    /// `ok`, `warn` or `fail`.
    pub state: Word,
    /// What was found.
    pub message: String,
    /// What helps.
    pub hint: Option<String>,
}

/// The shield, as it would be raised now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShieldRow {
    /// Whether there is one.
    pub on: bool,
    /// Why not; absent where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What servers behind it cannot write; absent where there is none, as the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protects: Option<Vec<String>>,
    /// What they cannot look into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hides: Option<Vec<String>>,
    /// What cannot be protected, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Vec<String>>,
    /// Every server that is a process.
    pub servers: Vec<ShieldedRow>,
}

/// Whether a server is behind the shield.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShieldedRow {
    /// Its name.
    pub name: String,
    /// What is wanted: `off`, `best-effort` or `required`.
    pub mode: Word,
    /// Whether it is.
    pub shielded: bool,
}
