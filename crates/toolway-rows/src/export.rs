//! Everything that is known, in one document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolway_types::ServerName;

use crate::{PromptRow, ResourceRow, ServerRow, TemplateRow, ToolRow, Word};

/// The document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StateExport<'a> {
    /// Grows when a field changes its meaning or goes.
    pub version: u32,
    /// All servers.
    pub servers: Vec<ExportedServer>,
    /// All tools.
    pub tools: Vec<ToolRow<'a>>,
    /// All resources.
    pub resources: Vec<ResourceRow>,
    /// All templates.
    pub templates: Vec<TemplateRow>,
    /// All prompts.
    pub prompts: Vec<PromptRow>,
    /// What names stand for.
    pub names: NameTable,
}

/// A server with its definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedServer {
    /// As it is listed.
    #[serde(flatten)]
    pub row: ServerRow,
    /// Its name as exposed names spell it.
    pub normalized_name: String,
    /// What the plan says of it.
    pub verdict: Word,
    /// Its entry, secrets hidden.
    pub definition: Map<String, Value>,
}

/// What names stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameTable {
    /// Servers by the spelling that exposed names have: several may have the same.
    pub servers: BTreeMap<String, Vec<String>>,
    /// Tools by their exposed names.
    pub tools: BTreeMap<String, ToolMeaning>,
    /// Prompts by theirs.
    pub prompts: BTreeMap<String, PromptMeaning>,
}

/// The tool that a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMeaning {
    /// Its server.
    pub server: ServerName,
    /// Its own name.
    pub tool: String,
}

/// The prompt that a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptMeaning {
    /// Its server.
    pub server: ServerName,
    /// Its own name.
    pub prompt: String,
}
