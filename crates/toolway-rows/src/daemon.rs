//! The daemon of one user: what it runs and what it keeps.

use serde::{Deserialize, Serialize};

/// What the daemon says of itself. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// When it started, in UTC.
    pub since: String,
    /// The version of its program.
    pub version: String,
    /// How much memory it holds, in bytes; null where the system does not say.
    pub memory: Option<u64>,
    /// The commands that it runs, oldest first.
    pub runs: Vec<RunRow>,
    /// The servers that it is connected to, by name.
    pub servers: Vec<KeptServerRow>,
}

/// A command that the daemon runs. Never its arguments: they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// Which command.
    pub command: String,
    /// Where it was typed.
    pub directory: String,
    /// When it began, in UTC.
    pub since: String,
}

/// A server that the daemon is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptServerRow {
    /// Its name.
    pub server: String,
    /// By how many it is used at this moment.
    pub users: usize,
}
