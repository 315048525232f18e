//! The prompts of servers.

use serde::{Deserialize, Serialize};
use toolway_types::ServerName;

/// Prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptListing {
    /// In order of name.
    pub prompts: Vec<PromptRow>,
}

/// One prompt. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptRow {
    /// The exposed name.
    pub name: String,
    /// Its server.
    pub server: ServerName,
    /// Its own name.
    pub prompt: String,
    /// Its title.
    pub title: Option<String>,
    /// Empty when there is none.
    pub description: String,
    /// What it takes, in the server's order.
    pub arguments: Vec<PromptArgumentRow>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgumentRow {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Empty when there is none.
    pub description: String,
    /// Whether the prompt needs it.
    pub required: bool,
}
