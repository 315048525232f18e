//! Gateways that run, and who talks to them.
//!
//! Questions that wait there are `question.rs`'s.

use serde::{Deserialize, Serialize};
use toolway_types::Era;

use crate::{CallRow, StateRow, Word};

/// The gateways of one user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatewayListing {
    /// The one that runs longest first; those that do not answer last.
    pub gateways: Vec<GatewayRow>,
}

/// One gateway. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatewayRow {
    /// Its process, where the system says so.
    pub pid: Option<i32>,
    /// What it says of itself; null when it does not answer.
    pub status: Option<GatewayStatus>,
    /// Why it does not answer; null when it does.
    pub problem: Option<String>,
}

/// What a gateway says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// Its process.
    pub pid: u32,
    /// When it started, in UTC.
    pub since: String,
    /// The version of its program.
    pub version: String,
    /// The directory that it was started in.
    pub directory: String,
    /// The ways in.
    pub listens: Vec<ListeningRow>,
    /// Where its servers stand, by name.
    pub servers: Vec<StateRow>,
    /// Who talks to it, longest known first.
    pub clients: Vec<ServedClientRow>,
    /// The calls that run, oldest first; never their arguments.
    pub calls: Vec<CallRow>,
    /// How many of them wait for their client to come back with answers.
    pub parked: usize,
    /// How many questions wait for an answer.
    pub questions: usize,
}

/// A way into a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListeningRow {
    /// `stdio`, `http` or `metrics`.
    pub way: Word,
    /// Where; null where there is no address.
    pub address: Option<String>,
}

/// A client of a gateway. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedClientRow {
    /// What tells it from others; calls and questions of it name it as `caller.id`.
    pub id: String,
    /// For whom it acts.
    pub principal: String,
    /// What people are shown of it: its way in, or the name of its token.
    pub shown: String,
    /// What it calls itself, cleaned.
    pub name: Option<String>,
    /// Which version of that, cleaned.
    pub version: Option<String>,
    /// The family of protocols that it spoke last.
    pub era: Option<Era>,
    /// What it talks to: `/mcp`, `/mcp/<server>` or `/mcp/p/<profile>`, over stdio as well.
    pub endpoint: String,
    /// When it came, in UTC.
    pub since: String,
    /// When it last said anything, in UTC.
    pub last_seen: String,
    /// How many calls of tools it has made.
    pub calls: u64,
    /// How many calls of it wait for it to come back with answers.
    pub parked: usize,
}
