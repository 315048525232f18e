//! Servers and tools, as programs see them.
//!
//! Owns the mapping, and where a definition came from.

use std::collections::BTreeSet;

use toolway::catalog::{Catalog, CatalogTool};
use toolway::types::{ConnectionState, Origin, Scope, ServerName, TransportKind};
use toolway::{HostSnapshot, ServerSnapshot};

use super::messages::{ControlServer, ControlTool};

/// Where the definitions of a view come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Provenances {
    /// The servers that an agent brought.
    pub(super) of_agent: BTreeSet<ServerName>,
}

impl Provenances {
    /// The word for one server.
    pub(super) fn of(&self, server: &ServerSnapshot) -> &'static str {
        match server.scope {
            _ if self.of_agent.contains(&server.name) => "agent",
            Scope::Dynamic if server.transport == Some(TransportKind::Sdk) => "sdk",
            Scope::Dynamic if server.origin == Origin::Program => "dynamic",
            Scope::Dynamic => "flag",
            other => other.as_str(),
        }
    }

    /// The same by name; the host's own tools are nobody's.
    pub(super) fn named(&self, snapshot: &HostSnapshot, server: &ServerName) -> &'static str {
        let server = snapshot.server(server.as_str());
        server.map_or("built-in", |server| self.of(server))
    }
}

/// One server.
pub(super) fn server_row(
    server: &ServerSnapshot,
    snapshot: &HostSnapshot,
    provenances: &Provenances,
    with_tools: bool,
) -> ControlServer {
    let facts = server.facts();
    let error = match &server.state {
        ConnectionState::Failed(failure) => Some(failure.message.clone()),
        ConnectionState::NeedsAuth { .. } => Some("wants a login first".to_owned()),
        _ => None,
    };
    let reason = match &server.state {
        ConnectionState::Disabled { reason } => Some(reason.clone()),
        _ => server.reason.clone(),
    };
    let tools = with_tools.then(|| {
        let tools = snapshot.catalog.tools();
        let own = tools.filter(|tool| tool.key.server == server.name);
        own.map(|tool| tool_row(tool, snapshot, provenances))
            .collect()
    });
    let instructions = facts.and_then(|facts| facts.instructions.as_ref());
    ControlServer {
        name: server.name.to_string(),
        status: server.state.as_str(),
        scope: server.scope,
        source: (&server.origin).into(),
        provenance: provenances.of(server),
        transport: server.transport.map(TransportKind::as_str),
        era: facts.map(|facts| facts.era),
        protocol_version: facts.map(|facts| facts.protocol_version.clone()),
        server_info: facts.map(|facts| facts.server_info.clone()),
        error,
        reason,
        resting: server.is_resting(),
        instructions: instructions.map(ToString::to_string),
        tool_count: server.counts.map(|counts| counts.tools),
        tools,
    }
}

/// Every server of a view.
pub(super) fn server_rows(
    snapshot: &HostSnapshot,
    provenances: &Provenances,
    with_tools: bool,
) -> Vec<ControlServer> {
    let servers = snapshot.servers.iter();
    servers
        .map(|server| server_row(server, snapshot, provenances, with_tools))
        .collect()
}

/// One tool.
pub(super) fn tool_row(
    tool: &CatalogTool,
    snapshot: &HostSnapshot,
    provenances: &Provenances,
) -> ControlTool {
    let catalog: &Catalog = &snapshot.catalog;
    ControlTool {
        name: tool.name.clone(),
        server: tool.key.server.to_string(),
        tool: tool.key.tool.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.as_ref().to_owned(),
        output_schema: tool.output_schema.as_deref().map(ToOwned::to_owned),
        annotations: tool.annotations.as_deref().map(ToOwned::to_owned),
        deferred: catalog.is_deferred(tool),
        provenance: provenances.named(snapshot, &tool.key.server),
    }
}
