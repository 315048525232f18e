//! What one server offers, cleaned, named and indexed.
//!
//! Owns everything of a catalogue that one server's offer decides alone. It is made once, when the
//! offer comes or changes, lives as long as that offer, and is shared by every catalogue that the
//! server is in. Does not own what depends on other servers (`../catalog.rs`), except that the names
//! which hold while none is in the way are found here, once.

use std::collections::HashSet;
use std::sync::Arc;

use toolway_types::ServerName;

use super::CatalogWarning;
use super::admission::Admission;
use super::instructions::cleaned;
use super::naming::{Nameable, NamedServer, name_together};
use super::offer::ServerOffer;
use super::prompts;
use super::resources::{self, CatalogResource, CatalogTemplate};
use super::tools::{CatalogTool, LeftOutTool, ServerTool};

/// What one server offers, immutable.
#[derive(Debug)]
pub struct ServerCatalog {
    pub(super) server: ServerName,
    /// What has a name.
    pub(super) nameable: Nameable,
    /// The names that hold while no other server is in the way.
    pub(super) alone: NamedServer,
    /// Tools that no list shows and no name finds: a caller has to know the server and the tool's
    /// own name. Apart from the others, so that no list shows them by mistake.
    pub(super) host_only: Vec<CatalogTool>,
    /// By URI.
    pub(super) resources: Vec<CatalogResource>,
    /// By template.
    pub(super) templates: Vec<CatalogTemplate>,
    /// Whether it has resources, listed or not.
    pub(super) has_resources: bool,
    /// What it says to models, cleaned and cut.
    pub(super) instructions: Option<Arc<str>>,
    /// Whether its tools are shown by their own names.
    pub(super) bare_names: bool,
    /// What was left out or changed.
    pub(super) warnings: Vec<CatalogWarning>,
}

impl From<ServerOffer> for Arc<ServerCatalog> {
    fn from(offer: ServerOffer) -> Self {
        Arc::new(ServerCatalog::of(offer))
    }
}

impl ServerCatalog {
    /// Cleans, digests and names what a server offers.
    pub fn of(offer: ServerOffer) -> Self {
        let (mut catalog, tools) = Self::without_tools(offer);
        let listed = |tool: &ServerTool, listed: Option<&[&str]>| {
            listed.is_none_or(|listed| listed.contains(&tool.key.tool.as_str()))
        };
        for tool in tools.admitted {
            let is_listed = listed(&tool, tools.listed);
            let tool = Arc::new(tool);
            if is_listed {
                catalog.nameable.tools.push(tool);
            } else {
                let name = tool.usual_name.clone();
                catalog.host_only.push(CatalogTool::new(name, tool));
            }
        }
        let together = [(&catalog.server, &catalog.nameable)];
        let mut named = name_together(&together, &HashSet::new());
        catalog.alone = named.pop().unwrap_or_default();
        catalog
    }

    /// The same, its tools beside it.
    pub(super) fn without_tools(offer: ServerOffer) -> (Self, AdmittedTools) {
        let server = offer.server;
        let mut warnings: Vec<CatalogWarning> = (offer.remarks.into_iter())
            .map(|remark| CatalogWarning::new(&server, remark))
            .collect();
        let admission = Admission {
            server: &server,
            curation: &offer.curation,
            bare: offer.bare_names,
            loading: offer.loading,
            boundaries: &offer.boundaries,
        };
        let mut left_out: Vec<LeftOutTool> = admission.flawed(offer.flawed, &offer.tools).collect();
        let admitted = admission.admit(offer.tools, &mut left_out, &mut warnings);
        left_out.sort_by(|one, other| one.key.cmp(&other.key));
        let resources = resources::admit(&server, offer.resources, &mut warnings);
        let templates =
            resources::admit_templates(&server, offer.resource_templates, &mut warnings);
        let prompts = prompts::admit(&server, offer.prompts, &mut warnings);
        let said = offer.instructions.as_deref();
        let said = said.filter(|_| offer.curation.instructions_dropped.is_none());
        let catalog = Self {
            nameable: Nameable {
                tools: Vec::new(),
                prompts: prompts.into_iter().map(Arc::new).collect(),
                left_out: left_out.into(),
            },
            alone: NamedServer::default(),
            host_only: Vec::new(),
            has_resources: offer.declares_resources
                || !(resources.is_empty() && templates.is_empty()),
            resources,
            templates,
            instructions: said.and_then(cleaned).map(Into::into),
            bare_names: offer.bare_names,
            warnings,
            server,
        };
        let listed = offer.listed;
        (catalog, AdmittedTools { admitted, listed })
    }

    /// The server.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// A tool by its own name, whether or not a list shows it.
    pub(super) fn tool(&self, name: &str) -> Option<&ServerTool> {
        let by_name = |tool: &ServerTool| tool.key.tool.as_str().cmp(name);
        let tools = &self.nameable.tools;
        let listed = tools.binary_search_by(|tool| by_name(tool)).ok();
        match listed {
            Some(place) => Some(&tools[place]),
            None => self.host_only(name).map(|tool| &**tool),
        }
    }

    /// A tool that no list shows, by its own name.
    pub(super) fn host_only(&self, name: &str) -> Option<&CatalogTool> {
        let found = self
            .host_only
            .binary_search_by(|tool| tool.key.tool.as_str().cmp(name));
        found.ok().map(|place| &self.host_only[place])
    }
}

/// The tools that entered, in their order.
pub(super) struct AdmittedTools {
    pub(super) admitted: Vec<ServerTool>,
    /// The only ones that lists show, where not all are.
    listed: Option<&'static [&'static str]>,
}
