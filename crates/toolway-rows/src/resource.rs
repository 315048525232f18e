//! The resources of servers, and the templates of their addresses.

use serde::{Deserialize, Serialize};
use toolway_types::ServerName;

/// Resources and templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceListing {
    /// In order of address.
    pub resources: Vec<ResourceRow>,
    /// Likewise.
    pub templates: Vec<TemplateRow>,
}

/// One resource. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRow {
    /// Its address, as the server wrote it.
    pub uri: String,
    /// Its server.
    pub server: ServerName,
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Empty when there is none.
    pub description: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes, where the server says.
    pub size: Option<u64>,
}

/// One template. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRow {
    /// The address with variables, as the server wrote it.
    pub uri_template: String,
    /// Its server.
    pub server: ServerName,
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Empty when there is none.
    pub description: String,
    /// The media type of its resources.
    pub mime_type: Option<String>,
    /// What is to be filled in.
    pub variables: Vec<String>,
}
