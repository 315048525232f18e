//! The tools of servers, and what servers say of their use.
//!
//! Rows of tools borrow: schemas are large, and there are thousands of them. Who reads a row owns it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolway_types::ServerName;

use crate::{JudgmentRow, ServerPlace};

/// Tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolListing<'a> {
    /// In order of name.
    pub tools: Vec<ToolRow<'a>>,
    /// Those that are not offered, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOutRow>>,
    /// When who was asked, where the answer is an older one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Vec<AskedRow>>,
    /// Who would be asked, where nobody was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<ServerPlace>>,
}

/// One tool. Absent values are null, where nothing else is said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRow<'a> {
    /// The exposed name.
    pub name: Cow<'a, str>,
    /// Its server.
    pub server: Cow<'a, ServerName>,
    /// Its own name.
    pub tool: Cow<'a, str>,
    /// Its title.
    pub title: Option<Cow<'a, str>>,
    /// Empty when there is none.
    pub description: Cow<'a, str>,
    /// What it takes, as JSON Schema.
    pub input_schema: Cow<'a, RawValue>,
    /// What it gives, where the server says so.
    pub output_schema: Option<Cow<'a, RawValue>>,
    /// What its server says of it.
    pub annotations: Option<Cow<'a, RawValue>>,
    /// Whether it stays out of a model's list until it is searched for.
    pub deferred: bool,
    /// What it takes, in one line; absent where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// All about it; absent in lists.
    #[serde(flatten)]
    pub page: Option<ToolPage>,
}

/// What is shown of one tool beside its row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPage {
    /// What it takes, those within others included.
    pub arguments: Vec<ToolArgumentRow>,
    /// Groups of arguments of which a call needs one.
    pub one_of: Vec<Vec<String>>,
    /// What it gives, in one line.
    pub returns: Option<String>,
    /// Which rule decides about it.
    pub permission: JudgmentRow,
    /// A call that can be typed.
    pub example: Option<String>,
}

/// One argument, or a member of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolArgumentRow {
    /// How it is typed: `ship_to.street`, `items[].id`.
    pub path: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a call needs it.
    pub needed: bool,
    /// What it is without.
    pub default: Option<Value>,
    /// Within which limits, in words.
    pub limits: Vec<String>,
    /// What its server says of it.
    pub description: Option<String>,
}

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutRow {
    /// Its server.
    pub server: ServerName,
    /// Its own name.
    pub tool: String,
    /// Empty when there is none.
    pub description: String,
    /// Why.
    pub reason: String,
}

/// How long ago a server was asked what it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedRow {
    /// Its name.
    pub server: ServerName,
    /// How long ago.
    pub seconds_ago: u64,
}

/// What servers say of how to use them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionsListing {
    /// Server by server.
    pub instructions: Vec<InstructionsRow>,
}

/// What one server says of how to use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionsRow {
    /// Its name.
    pub server: ServerName,
    /// The text.
    pub text: String,
}
