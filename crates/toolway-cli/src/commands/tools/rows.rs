//! The shapes that `toolway tools --json` prints, which are an interface.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolway::catalog::LeftOutTool;
use toolway::{Catalog, CatalogTool, RecalledServer};
use toolway_types::ServerName;

/// One tool, as `tools --json` prints it. Absent values are null, never left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Row<'a> {
    name: &'a str,
    server: &'a ServerName,
    tool: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a RawValue,
    output_schema: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
    pub(super) deferred: bool,
    /// Only with `--long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing<'a> {
    pub(super) tools: Vec<Row<'a>>,
    /// Only with `--all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<Vec<Value>>,
    /// Only with `--cached`: when who was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<Vec<Value>>,
    /// Only with `--no-connect`: who would be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) servers: Option<Vec<Value>>,
}

pub(in crate::commands) fn row<'a>(catalog: &Catalog, tool: &'a CatalogTool) -> Row<'a> {
    Row {
        name: &tool.name,
        server: &tool.key.server,
        tool: &tool.key.tool,
        title: tool.title.as_deref(),
        description: &tool.description,
        input_schema: &tool.input_schema,
        output_schema: tool.output_schema.as_deref(),
        annotations: tool.annotations.as_deref(),
        deferred: catalog.is_deferred(tool),
        signature: None,
    }
}

/// One tool that its server's entry leaves out.
pub(super) fn left_out(tool: &LeftOutTool) -> Value {
    json!({
        "server": tool.key.server,
        "tool": tool.key.tool,
        "description": tool.description,
        "reason": tool.reason,
    })
}

/// When each server was asked.
pub(super) fn asked_of(known: &BTreeMap<ServerName, RecalledServer>) -> Vec<Value> {
    let asked = known
        .iter()
        .map(|(server, known)| json!({ "server": server, "secondsAgo": known.age.as_secs() }));
    asked.collect()
}
