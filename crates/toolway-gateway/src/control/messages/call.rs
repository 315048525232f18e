//! Tools and calls of them.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use toolway::ModelBlock;

use super::or_default;

/// The parameters of `toolway/tools`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolsParams {
    /// Only those of this server.
    pub server: Option<String>,
    /// Only what this agent sees.
    pub agent: Option<String>,
    /// Only what fits these words, the best first.
    pub search: Option<String>,
    /// The most of them.
    pub limit: Option<usize>,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize)]
pub struct ControlTools {
    /// In order of name, or of how well they fit.
    pub tools: Vec<ControlTool>,
}

/// A tool, as a program sees it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlTool {
    /// The name that models see.
    pub name: String,
    /// Its server.
    pub server: String,
    /// Its own name.
    pub tool: String,
    /// Its title.
    pub title: Option<String>,
    /// Empty when there is none.
    pub description: String,
    /// What it takes, as JSON Schema.
    pub input_schema: Box<RawValue>,
    /// What it gives, where the server says so.
    pub output_schema: Option<Box<RawValue>>,
    /// What its server says of it.
    pub annotations: Option<Box<RawValue>>,
    /// Whether it stays out of a model's list until it is searched for.
    pub deferred: bool,
    /// Where its server's definition came from.
    pub provenance: &'static str,
}

/// The parameters of `toolway/call`.
#[derive(Debug, Deserialize)]
pub struct CallParams<'a> {
    /// The server.
    #[serde(default)]
    pub server: Option<String>,
    /// The tool's own name.
    #[serde(default)]
    pub tool: Option<String>,
    /// In place of both, the name that models see.
    #[serde(default)]
    pub name: Option<String>,
    /// Its arguments.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// Who calls, if it is an agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Whether the call is asked about; it is unless this is false.
    #[serde(default)]
    pub check: Option<bool>,
    /// The longest it may take, in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// What is wanted of the result.
    #[serde(default, deserialize_with = "or_default")]
    pub results: ResultsWanted,
    /// What the server is told beside.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<&'a RawValue>,
}

/// What is wanted of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultsWanted {
    /// What the server sent.
    #[default]
    Raw,
    /// What a model should get of it.
    Bounded,
}

/// A result in the form for models.
pub fn text_result(blocks: &[ModelBlock], is_error: bool) -> serde_json::Value {
    json!({ "content": blocks, "isError": is_error })
}
