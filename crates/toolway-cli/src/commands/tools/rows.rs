//! The shapes that `toolway tools --json` prints, which are an interface.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use toolway::catalog::{LeftOutTool, Section};
use toolway::{CatalogTool, RecalledServer};
use toolway_types::ServerName;

/// One tool, as `tools --json` prints it. Absent values are null, never left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) server: &'a ServerName,
    pub(super) tool: &'a str,
    pub(super) title: Option<&'a str>,
    pub(super) description: &'a str,
    pub(super) input_schema: &'a RawValue,
    pub(super) output_schema: Option<&'a RawValue>,
    pub(super) annotations: Option<&'a RawValue>,
    pub(super) deferred: bool,
    /// Only with `--long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing<'a> {
    pub(super) tools: Vec<Row<'a>>,
    /// Only with `--all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<Vec<LeftOut<'a>>>,
    /// Only with `--cached`: when who was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<Vec<Asked<'a>>>,
    /// Only with `--no-connect`: who would be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) servers: Option<Vec<Planned<'a>>>,
}

/// When a server was asked, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked<'a> {
    server: &'a ServerName,
    seconds_ago: u64,
}

/// The same of all that something is known of.
pub(super) fn asked_of(
    known: Option<&BTreeMap<ServerName, RecalledServer>>,
) -> Option<Vec<Asked<'_>>> {
    let asked = known?.iter().map(|(server, known)| Asked {
        server,
        seconds_ago: known.age.as_secs(),
    });
    Some(asked.collect())
}

/// A server that was not asked.
#[derive(Debug, Serialize)]
pub(super) struct Planned<'a> {
    pub(super) name: &'a ServerName,
    pub(super) source: Source,
}

#[derive(Debug, Serialize)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) line: Option<u32>,
}

/// One tool that its server's entry leaves out.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut<'a> {
    pub(super) server: &'a ServerName,
    pub(super) tool: &'a str,
    pub(super) description: &'a str,
    pub(super) reason: &'a str,
}

/// What one server says to models about itself.
#[derive(Debug, Serialize)]
pub(super) struct Said<'a> {
    pub(super) server: &'a ServerName,
    pub(super) text: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Sayings<'a> {
    pub(super) instructions: Vec<Said<'a>>,
}

pub(in crate::commands) fn row(tool: &CatalogTool) -> Row<'_> {
    Row {
        name: &tool.name,
        server: &tool.key.server,
        tool: &tool.key.tool,
        title: tool.title.as_deref(),
        description: &tool.description,
        input_schema: &tool.input_schema,
        output_schema: tool.output_schema.as_deref(),
        annotations: tool.annotations.as_deref(),
        deferred: tool.deferred,
        signature: None,
    }
}

pub(super) fn left_out(tool: &LeftOutTool) -> LeftOut<'_> {
    LeftOut {
        server: &tool.key.server,
        tool: &tool.key.tool,
        description: &tool.description,
        reason: &tool.reason,
    }
}

pub(super) fn said(section: &Section) -> Said<'_> {
    Said {
        server: &section.server,
        text: &section.text,
    }
}
