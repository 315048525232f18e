//! Looking: what is known, and what is offered beside tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolway_rows::HookRow;

/// The parameters of `toolway/explain`.
#[derive(Debug, Clone, Deserialize)]
pub struct ExplainParams {
    /// The server.
    pub server: String,
    /// One of its tools.
    #[serde(default)]
    pub tool: Option<String>,
}

/// The parameters of `toolway/logs`.
#[derive(Debug, Clone, Deserialize)]
pub struct LogsParams {
    /// The server.
    pub server: String,
    /// The most lines.
    #[serde(default)]
    pub lines: Option<usize>,
}

/// The parameters of `toolway/audit`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AuditParams {
    /// Not before this time, in UTC.
    pub since: Option<String>,
    /// Only of this server.
    pub server: Option<String>,
    /// The most lines, the newest.
    pub limit: Option<usize>,
}

/// The parameters of `toolway/read`.
#[derive(Debug, Clone, Deserialize)]
pub struct ReadParams {
    /// The server.
    pub server: String,
    /// The address of the resource.
    pub uri: String,
    /// Who reads, if it is an agent.
    #[serde(default)]
    pub agent: Option<String>,
}

/// The parameters of `toolway/prompt`.
#[derive(Debug, Clone, Deserialize)]
pub struct PromptParams {
    /// The server.
    pub server: String,
    /// The prompt's own name.
    pub prompt: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    /// Who asks, if it is an agent.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Every hook.
#[derive(Debug, Clone, Serialize)]
pub struct HookListing {
    /// Those of files, then the program's own.
    pub hooks: Vec<HookRow>,
}

/// What servers cost a model's context.
#[derive(Debug, Clone, Serialize)]
pub struct ContextRow {
    /// Each of them.
    pub servers: Vec<ServerContext>,
    /// All together, in tokens.
    pub total: usize,
}

/// What one server costs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerContext {
    /// Its name.
    pub server: String,
    /// How many tools it has.
    pub tools: usize,
    /// What those cost, in tokens.
    pub tool_tokens: usize,
    /// What its words to models cost, in tokens.
    pub instruction_tokens: usize,
}
