//! Servers: where they stand, and what the configuration says of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolway_types::{Era, Scope, ServerName};

use crate::{DiagnosisRow, HookRow, LoginRow, SourceRow, Word};

/// Servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerListing {
    /// Every one that is mentioned anywhere.
    pub servers: Vec<ServerRow>,
}

/// One server. Absent values are null, where nothing else is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerRow {
    /// Its name.
    pub name: ServerName,
    /// The scope it is configured in.
    pub scope: Scope,
    /// Where its entry stands.
    pub source: SourceRow,
    /// How it is reached.
    pub transport: Option<Word>,
    /// `pending`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub state: Word,
    /// Whether it rests: it connects when it is needed, and is offered as it was until then; absent
    /// where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resting: bool,
    /// Why it may not connect.
    pub reason: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// The family of protocols that it speaks.
    pub era: Option<Era>,
    /// Which protocol it speaks.
    pub protocol_version: Option<String>,
    /// What it says of itself.
    pub server_info: Option<Value>,
    /// How many tools it offers.
    pub tools: Option<usize>,
    /// How many resources.
    pub resources: Option<usize>,
    /// How many prompts.
    pub prompts: Option<usize>,
    /// The account that its entry names; absent where it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The command that logs in; absent where no login is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// The last lines that it wrote to stderr; absent where it wrote none or did not fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// How long ago it was asked what it offers; absent where it was asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_ago: Option<u64>,
    /// The logins there; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logins: Vec<LoginRow>,
}

/// The entry that counts for a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntryRow {
    /// The name.
    pub name: ServerName,
    /// The scope it is configured in.
    pub scope: Scope,
    /// Where it stands.
    pub source: SourceRow,
    /// How the server is reached.
    pub transport: Option<Word>,
    /// What the plan says of it.
    pub verdict: Word,
    /// Why.
    pub reason: Option<String>,
    /// As written, secrets hidden.
    pub definition: Map<String, Value>,
    /// The account that it names; absent where it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The login that the server uses; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginRow>,
}

/// Everything that is configured under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The name.
    pub name: String,
    /// Its entries, the one that counts first.
    pub entries: Vec<ExplainedEntry>,
    /// The hooks that calls of a tool meet, where a tool was named.
    pub hooks: Option<Vec<HookRow>>,
}

/// One entry under a name, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEntry {
    /// The scope it is configured in.
    pub scope: Scope,
    /// Where it stands.
    pub source: SourceRow,
    /// How the server is reached.
    pub transport: Option<Word>,
    /// What the plan says of it.
    pub verdict: Word,
    /// Why.
    pub reason: Option<String>,
    /// What changed since it was approved.
    pub changed: Option<String>,
    /// The entries that it shadows.
    pub shadows: Vec<ShadowRow>,
    /// The names of the variables it reads.
    pub variables: Vec<String>,
    /// Why the server's instructions are dropped.
    pub instructions_dropped: Option<String>,
    /// As written, secrets hidden.
    pub definition: Map<String, Value>,
    /// What is wrong with it.
    pub diagnoses: Vec<DiagnosisRow>,
}

/// An entry that another shadows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowRow {
    /// The scope it is configured in.
    pub scope: Scope,
    /// Where it stands.
    pub source: SourceRow,
}

/// A server that would be asked, and where its entry stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPlace {
    /// Its name.
    pub name: ServerName,
    /// Where its entry stands.
    pub source: SourceRow,
}
