//! What one server offers, on its way into a catalogue.
//!
//! Owns the value that a connection's lists, a server's entry and the rules are put together in.
//! What becomes of it is `server_catalog.rs`.

use std::sync::Arc;

use toolway_config::{Boundaries, Curation};
use toolway_types::ServerName;
use toolway_wire::view;

use crate::pool::Loading;

/// What an editor's server offers to models; the rest (open a file, show a difference) is for
/// programs.
pub const EDITOR_TOOLS: [&str; 2] = ["executeCode", "getDiagnostics"];

/// What one connected server offers, as its lists were read.
#[derive(Debug, Clone)]
pub struct ServerOffer {
    /// The server.
    pub server: ServerName,
    /// Its tools, all pages.
    pub tools: Vec<view::Tool>,
    /// Those that could not be read.
    pub flawed: Vec<view::ItemFault>,
    /// Its resources.
    pub resources: Vec<view::Resource>,
    /// Its resource templates.
    pub resource_templates: Vec<view::ResourceTemplate>,
    /// Whether it says that it has resources: there can be some that it does not list.
    pub declares_resources: bool,
    /// Its prompts.
    pub prompts: Vec<view::Prompt>,
    /// The only tools that enter the catalogue, where not all do; the others are the host's own
    /// to call.
    pub listed: Option<&'static [&'static str]>,
    /// What its entry says about when its tools are listed.
    pub loading: Loading,
    /// What its entry changes about its tools.
    pub curation: Arc<Curation>,
    /// What it says to models about itself, as received.
    pub instructions: Option<String>,
    /// Whether its tools are shown by their own names, without `mcp__<server>__`.
    pub bare_names: bool,
    /// The tools that whoever sees it has at all.
    pub boundaries: Boundaries,
    /// What is to be said about what was left out of it already.
    pub(crate) remarks: Vec<String>,
}

impl ServerOffer {
    /// A server that offers nothing yet.
    pub fn new(server: ServerName) -> Self {
        Self {
            server,
            tools: Vec::new(),
            flawed: Vec::new(),
            resources: Vec::new(),
            resource_templates: Vec::new(),
            declares_resources: false,
            prompts: Vec::new(),
            listed: None,
            loading: Loading::Usual,
            curation: Arc::default(),
            instructions: None,
            bare_names: false,
            boundaries: Boundaries::default(),
            remarks: Vec::new(),
        }
    }
}
