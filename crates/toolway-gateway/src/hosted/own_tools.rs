//! Which of the host's own tools an endpoint offers beside those of servers.
//!
//! Owns the choice. The tools themselves are `toolway::builtin`'s.

use toolway::builtin::{AUTHENTICATE, LIST_RESOURCES, READ_RESOURCE, TOOL_SEARCH};
use toolway::catalog::CatalogTool;

/// Which of the host's own tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTools {
    /// The tools by which a model reads resources: for clients that do not offer resources to it.
    pub resources: bool,
    /// The tool by which a model begins a login, of each server that wants one.
    pub logins: bool,
}

impl Default for OwnTools {
    fn default() -> Self {
        Self {
            resources: false,
            logins: true,
        }
    }
}

impl OwnTools {
    /// Whether this one is offered, to a client that searches for tools or does not.
    pub(super) fn has(self, tool: &CatalogTool, searches: bool) -> bool {
        match tool.key.tool.as_str() {
            TOOL_SEARCH => searches,
            LIST_RESOURCES | READ_RESOURCE => self.resources,
            AUTHENTICATE => self.logins,
            // A tool of the program that embeds the host.
            _ => true,
        }
    }
}
