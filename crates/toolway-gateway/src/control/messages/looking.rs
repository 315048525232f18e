//! Looking: what is known, and what is offered beside tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolway::types::Scope;
use toolway_rows::{
    AuditLine, HookRow, LogRow, PromptRow, ResourceRow, SourceRow, TemplateRow, Word,
};

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

/// What a server logged.
#[derive(Debug, Clone, Serialize)]
pub struct LogLines {
    /// The oldest first.
    pub lines: Vec<LogRow>,
}

/// What was called.
#[derive(Debug, Clone, Serialize)]
pub struct AuditLines {
    /// The oldest first.
    pub calls: Vec<AuditLine>,
}

/// The rules that hold.
#[derive(Debug, Clone, Serialize)]
pub struct PermissionListing {
    /// The strictest lists first.
    pub rules: Vec<PermissionRow>,
}

/// One of them.
#[derive(Debug, Clone, Serialize)]
pub struct PermissionRow {
    /// As written.
    pub rule: String,
    /// `allow`, `ask` or `deny`.
    pub behavior: Word,
    /// The scope that it stands in.
    pub scope: Scope,
    /// Where it stands.
    pub source: SourceRow,
}

/// What can be read.
#[derive(Debug, Clone, Serialize)]
pub struct ResourcesListed {
    /// Resources.
    pub resources: Vec<ResourceRow>,
    /// Templates of their addresses.
    pub templates: Vec<TemplateRow>,
}

/// Prompts.
#[derive(Debug, Clone, Serialize)]
pub struct PromptsListed {
    /// By server.
    pub prompts: Vec<PromptRow>,
}

/// The parameters of `toolway/resources` and `toolway/prompts`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ListParams {
    /// Only of this server.
    pub server: Option<String>,
    /// Only what this agent sees.
    pub agent: Option<String>,
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
