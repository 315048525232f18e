//! The catalogue: everything the connected servers offer, cleaned, named and bounded.
//!
//! Owns one immutable value with a revision, in two layers. What one server's offer decides alone
//! is a [`ServerCatalog`], made once and shared; a [`Catalog`] is a view of several of those, and
//! owns what depends on all of them together: who keeps a name, which tools are deferred, what the
//! servers say to models. So a change of one server costs nothing for each tool of another
//! (`docs/decisions/0027-a-catalogue-in-two-layers.md`). Does not own fetching the lists (the
//! session's) nor deciding whether a tool may run (`dispatch`'s).
//!
//! Invariants: every exposed name stands for exactly one tool; what was left out is named in
//! [`Catalog::warnings`]; no text in here holds a character that hides or steers.

use std::sync::{Arc, OnceLock};

use toolway_types::{ServerName, ToolKey};

use crate::catalog::deferral::DeferralRule;
use crate::catalog::index::SearchIndex;
use crate::catalog::naming::NamedServer;
use crate::catalog::neighbours::Neighbours;

mod admission;
mod assemble;
mod builtin;
pub(crate) mod deferral;
mod find;
pub(crate) mod index;
pub mod instructions;
mod names;
mod naming;
mod neighbours;
mod offer;
mod pool;
pub mod prompts;
pub mod resources;
pub mod sanitize;
mod served;
mod server_catalog;
pub mod tools;

#[cfg(test)]
mod tests;

pub use crate::call::KeptOutBy;
pub(crate) use crate::catalog::builtin::{
    AimedOffering, AimedServer, BuiltinBackend, CatalogBuiltin, Presence,
};
pub(crate) use crate::catalog::deferral::HostPart;
pub use instructions::{Instructions, InstructionsDelta, Section};
pub use offer::{EDITOR_TOOLS, ServerOffer};
pub use prompts::CatalogPrompt;
pub use resources::{CatalogResource, CatalogTemplate};
pub use server_catalog::ServerCatalog;
pub use tools::{CatalogTool, LeftOutTool, ServerTool, ToolHints};

/// Everything on offer at one moment.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Grows with every catalogue of a host.
    pub revision: u64,
    /// What the servers say to models about themselves.
    pub instructions: Instructions,
    /// The servers, by name.
    servers: Vec<ServerView>,
    /// Whose names can meet. The same as long as the servers are.
    neighbours: Arc<Neighbours>,
    /// The host's own tools, and its setting.
    host: Arc<HostPart>,
    /// The same as long as all servers offer the same.
    on_demand: Arc<OnDemand>,
}

/// One server in a catalogue: what it offers, and the names that the others leave it.
#[derive(Debug, Clone)]
pub(crate) struct ServerView {
    catalog: Arc<ServerCatalog>,
    /// Its names, where they are not those that it has alone.
    renamed: Option<Arc<NamedServer>>,
}

/// What is made of all servers together, on first use: nothing of it is needed to find a tool.
#[derive(Debug, Default)]
struct OnDemand {
    deferral: OnceLock<DeferralRule>,
    built_in: OnceLock<Vec<CatalogTool>>,
    search: OnceLock<SearchIndex>,
}

/// Something a server offered that is not in the catalogue as it was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogWarning {
    /// The server.
    pub server: ServerName,
    /// One sentence, lower case, safe to print.
    pub message: String,
}

impl CatalogWarning {
    pub(crate) fn new(server: &ServerName, message: String) -> Self {
        Self {
            server: server.clone(),
            message,
        }
    }
}

impl ServerView {
    fn names(&self) -> &NamedServer {
        self.renamed.as_deref().unwrap_or(&self.catalog.alone)
    }

    /// Whether the other is the very same, by the same names.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_names = match (&self.renamed, &other.renamed) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        same_names && Arc::ptr_eq(&self.catalog, &other.catalog)
    }

    /// Its tools, by their own names.
    pub(crate) fn tools(&self) -> &[CatalogTool] {
        &self.names().tools
    }

    /// What was left out or changed of what it offers, and why.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &CatalogWarning> {
        self.catalog.warnings.iter().chain(&self.names().warnings)
    }
}

impl Catalog {
    /// Builds the catalogue of what these servers offer. The order of the servers is of no matter.
    pub fn build<S: Into<Arc<ServerCatalog>>>(
        revision: u64,
        servers: impl IntoIterator<Item = S>,
    ) -> Arc<Catalog> {
        let servers = servers.into_iter().map(Into::into).collect();
        let nothing = Catalog::default();
        Arc::new(nothing.replaced(revision, servers, Arc::default()))
    }

    /// Builds the catalogue that comes after another one, and remembers what changed. What is the
    /// same as before is taken over.
    pub fn after<S: Into<Arc<ServerCatalog>>>(
        previous: &Catalog,
        servers: impl IntoIterator<Item = S>,
    ) -> Arc<Catalog> {
        let servers = servers.into_iter().map(Into::into).collect();
        Self::of_host(previous, servers, Arc::clone(&previous.host))
    }

    /// The same, with the host's own tools beside those of servers.
    pub(crate) fn of_host(
        previous: &Catalog,
        servers: Vec<Arc<ServerCatalog>>,
        host: Arc<HostPart>,
    ) -> Arc<Catalog> {
        Arc::new(previous.replaced(previous.revision + 1, servers, host))
    }

    /// Every tool, by server and then by the tool's own name.
    pub fn tools(&self) -> impl Iterator<Item = &CatalogTool> {
        self.servers.iter().flat_map(ServerView::tools)
    }

    /// Tools that are kept out, by server and then by their own names: listed for people who
    /// wonder, never callable.
    pub fn left_out(&self) -> impl Iterator<Item = &LeftOutTool> {
        let servers = self.servers.iter();
        let of_servers = servers.flat_map(|server| server.names().left_out.iter());
        let all = self.host.left_out.iter().chain(of_servers);
        // What a view does not have, nobody who sees it is told of.
        all.filter(|tool| tool.by != KeptOutBy::View)
    }

    /// Every resource, by server and then by URI.
    pub fn resources(&self) -> impl Iterator<Item = &CatalogResource> {
        let servers = self.servers.iter();
        servers.flat_map(|server| &server.catalog.resources)
    }

    /// Every resource template, by server and then by template.
    pub fn templates(&self) -> impl Iterator<Item = &CatalogTemplate> {
        let servers = self.servers.iter();
        servers.flat_map(|server| &server.catalog.templates)
    }

    /// Every prompt, by server and then by the prompt's own name.
    pub fn prompts(&self) -> impl Iterator<Item = &CatalogPrompt> {
        let servers = self.servers.iter();
        servers.flat_map(|server| server.names().prompts.iter().map(|prompt| &**prompt))
    }

    /// What was left out or changed, and why, by server.
    pub fn warnings(&self) -> impl Iterator<Item = &CatalogWarning> {
        let of_servers = self.servers.iter().flat_map(ServerView::warnings);
        self.host.warnings.iter().chain(of_servers)
    }

    /// The servers, by name.
    pub(crate) fn servers(&self) -> &[ServerView] {
        &self.servers
    }

    fn server(&self, server: &ServerName) -> Option<&ServerView> {
        let found = self
            .servers
            .binary_search_by(|view| view.catalog.server.cmp(server));
        found.ok().map(|place| &self.servers[place])
    }

    /// The name that a server's entry gives a tool.
    pub fn alias(&self, tool: &ToolKey) -> Option<&str> {
        let tool = self.server(&tool.server)?.catalog.tool(&tool.tool)?;
        tool.alias.as_ref().map(|alias| alias.tool.as_str())
    }

    /// The resource of a server with this URI, if it is listed.
    pub fn resource(&self, server: &ServerName, uri: &str) -> Option<&CatalogResource> {
        let resources = self.resources_of(server);
        let found = resources.binary_search_by(|one| one.uri.as_str().cmp(uri));
        found.ok().map(|index| &resources[index])
    }

    /// The resources of one server that are listed.
    pub fn resources_of(&self, server: &ServerName) -> &[CatalogResource] {
        let server = self.server(server);
        server.map_or(&[], |server| &server.catalog.resources)
    }

    /// The templates of one server.
    pub fn templates_of(&self, server: &ServerName) -> &[CatalogTemplate] {
        let server = self.server(server);
        server.map_or(&[], |server| &server.catalog.templates)
    }

    /// The prompt of a server by its own name.
    pub fn prompt(&self, server: &ServerName, name: &str) -> Option<&CatalogPrompt> {
        let prompts = &self.server(server)?.names().prompts;
        let prompt = prompts.iter().find(|prompt| prompt.key.tool == name);
        prompt.map(|prompt| &**prompt)
    }

    /// The tools of one server.
    pub fn tools_of(&self, server: &ServerName) -> &[CatalogTool] {
        self.server(server).map_or(&[], ServerView::tools)
    }
}
