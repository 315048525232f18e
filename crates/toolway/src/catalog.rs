//! The catalogue: everything the connected servers offer, cleaned, named and bounded.
//!
//! Owns one immutable value with a revision: unique names, a fixed order, and the two indices by
//! which a tool is found. Does not own fetching the lists (the session's) nor deciding whether a
//! tool may run (`dispatch`'s).
//!
//! Invariants: every exposed name stands for exactly one tool; what was left out is named in
//! [`Catalog::warnings`]; no text in here holds a character that hides or steers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use toolway_config::Curation;
use toolway_types::name::ends_like_suffix;
use toolway_types::{ServerName, ToolKey};
use toolway_wire::view;

use crate::call::{CallError, ToolTarget};
use crate::catalog::deferral::{HostPart, Terms};
use crate::catalog::index::SearchIndex;
use crate::pool::Loading;

mod builtin;
pub(crate) mod deferral;
pub(crate) mod index;
pub mod instructions;
mod names;
mod pool;
pub mod prompts;
pub mod resources;
pub mod sanitize;
pub mod tools;

#[cfg(test)]
mod tests;

pub use crate::call::KeptOutBy;
pub(crate) use crate::catalog::builtin::{
    AimedOffering, AimedServer, BuiltinBackend, CatalogBuiltin, Presence,
};
pub use instructions::{Instructions, InstructionsDelta, Section};
pub use prompts::CatalogPrompt;
pub use resources::{CatalogResource, CatalogTemplate};
pub use tools::{CatalogTool, LeftOutTool, ToolHints};

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
    /// The host's part; only the host's own offer has it.
    pub(crate) host: Option<Box<HostPart>>,
    /// What its entry changes about its tools.
    pub curation: Arc<Curation>,
    /// What it says to models about itself, as received.
    pub instructions: Option<String>,
    /// Whether its tools are shown by their own names, without `mcp__<server>__`.
    pub bare_names: bool,
    /// What is to be said about what was left out of it already.
    pub(crate) remarks: Vec<String>,
}

/// What an editor's server offers to models; the rest (open a file, show a difference) is for
/// programs.
pub const EDITOR_TOOLS: [&str; 2] = ["executeCode", "getDiagnostics"];

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
            host: None,
            curation: Arc::default(),
            instructions: None,
            bare_names: false,
            remarks: Vec::new(),
        }
    }
}

/// Everything on offer at one moment.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Grows with every catalogue of a host.
    pub revision: u64,
    /// Every tool, by server and then by the tool's own name.
    pub tools: Vec<CatalogTool>,
    /// Tools that no list shows and no name finds: a caller has to know the server and the tool's
    /// own name. Apart from the others, so that no list shows them by mistake.
    host_only: Vec<CatalogTool>,
    /// The host's own tools.
    built_in: Vec<CatalogTool>,
    /// Tools that are kept out: listed for people who wonder, never callable.
    pub left_out: Vec<LeftOutTool>,
    /// What the servers say to models about themselves.
    pub instructions: Instructions,
    /// Every resource, by server and then by URI.
    pub resources: Vec<CatalogResource>,
    /// Every resource template, by server and then by template.
    pub templates: Vec<CatalogTemplate>,
    /// Every prompt, by server and then by the prompt's own name.
    pub prompts: Vec<CatalogPrompt>,
    /// What was left out or changed, and why.
    pub warnings: Vec<CatalogWarning>,
    by_name: HashMap<String, usize, RandomState>,
    by_key: HashMap<ToolKey, usize, RandomState>,
    by_spelling: HashMap<String, Vec<usize>, RandomState>,
    /// The aliases of those tools that have one, as keys of their servers.
    aliases: HashMap<ToolKey, ToolKey, RandomState>,
    /// Made by the first search.
    pub(crate) search: OnceLock<SearchIndex>,
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

impl Catalog {
    /// Builds the catalogue of what these servers offer. The order of the offers is of no matter.
    pub fn build(revision: u64, offers: impl IntoIterator<Item = ServerOffer>) -> Arc<Catalog> {
        Self::assemble(revision, &Instructions::default(), offers)
    }

    /// Builds the catalogue that comes after another one, and remembers what changed.
    pub fn after(
        previous: &Catalog,
        offers: impl IntoIterator<Item = ServerOffer>,
    ) -> Arc<Catalog> {
        Self::assemble(previous.revision + 1, &previous.instructions, offers)
    }

    fn assemble(
        revision: u64,
        before: &Instructions,
        offers: impl IntoIterator<Item = ServerOffer>,
    ) -> Arc<Catalog> {
        let mut catalog = Catalog {
            revision,
            ..Catalog::default()
        };
        let mut offers: Vec<ServerOffer> = offers.into_iter().collect();
        let terms = Terms::of(&mut offers);
        offers.sort_by(|one, other| one.server.cmp(&other.server));
        catalog.instructions = before.next(revision, &offers);
        for offer in offers {
            let warnings = &mut catalog.warnings;
            for remark in offer.remarks {
                warnings.push(CatalogWarning::new(&offer.server, remark));
            }
            let naming = tools::Naming {
                server: &offer.server,
                curation: &offer.curation,
                bare: offer.bare_names,
            };
            let flawed = naming.flawed(offer.flawed, &offer.tools);
            catalog.left_out.extend(flawed);
            let admitted = naming.admit(offer.tools, &mut catalog.left_out, warnings);
            for tool in &admitted {
                if let Some(alias) = offer.curation.alias(&tool.key.tool) {
                    let alias = ToolKey::new(offer.server.clone(), &alias.text);
                    catalog.aliases.insert(tool.key.clone(), alias);
                }
            }
            let (listed, host_only): (Vec<_>, Vec<_>) = admitted.into_iter().partition(|tool| {
                let name = tool.key.tool.as_str();
                offer.listed.is_none_or(|listed| listed.contains(&name))
            });
            catalog.tools.extend(listed);
            catalog.host_only.extend(host_only);
            catalog
                .resources
                .extend(resources::admit(&offer.server, offer.resources, warnings));
            catalog.templates.extend(resources::admit_templates(
                &offer.server,
                offer.resource_templates,
                warnings,
            ));
            catalog
                .prompts
                .extend(prompts::admit(&offer.server, offer.prompts, warnings));
        }
        names::prefix_collisions(&mut catalog.tools, &mut catalog.warnings);
        let kept_out = catalog.left_out.iter().map(|tool| tool.key.exposed());
        let kept_out: HashSet<String> = kept_out.collect();
        let aliases = &catalog.aliases;
        names::tell_apart(&mut catalog.tools, &kept_out, |key| aliases.get(key));
        names::tell_apart(&mut catalog.prompts, &HashSet::new(), |_| None);
        let hidden = names::hide_collisions(&mut catalog.tools, &mut catalog.warnings);
        let hidden = hidden.into_iter().map(|(tool, reason)| LeftOutTool {
            key: tool.key,
            shown: tool.shown,
            description: tool.description,
            by: KeptOutBy::Namesake,
            reason,
        });
        catalog.left_out.extend(hidden);
        catalog
            .left_out
            .sort_by(|one, other| one.key.cmp(&other.key));
        names::hide_collisions(&mut catalog.prompts, &mut catalog.warnings);
        terms.settle(&mut catalog);
        let most = catalog.tools.len() + catalog.host_only.len() + catalog.built_in.len();
        catalog.by_name.reserve(most);
        catalog.by_key.reserve(most);
        catalog.by_spelling.reserve(catalog.tools.len());
        for (index, tool) in catalog.tools.iter().enumerate() {
            catalog.by_name.insert(tool.name.clone(), index);
            catalog.by_key.insert(tool.key.clone(), index);
            let spelled = tool.key.spelled();
            let alias = catalog.aliases.get(&tool.key).map(ToolKey::spelled);
            if let Some(alias) = alias.filter(|alias| *alias != spelled) {
                catalog.by_spelling.entry(alias).or_default().push(index);
            }
            catalog.by_spelling.entry(spelled).or_default().push(index);
        }
        for (index, tool) in (catalog.tools.len()..).zip(&catalog.host_only) {
            catalog.by_key.insert(tool.key.clone(), index);
        }
        let first = catalog.tools.len() + catalog.host_only.len();
        for (index, tool) in (first..).zip(&catalog.built_in) {
            catalog.by_name.insert(tool.name.clone(), index);
            catalog.by_key.insert(tool.key.clone(), index);
        }
        catalog.add_aliases();
        catalog.note_spelled_alone();
        Arc::new(catalog)
    }

    /// Lets aliases stand for their tools, last: a tool's own name is its own, even that of one
    /// that is kept out (SEC-31).
    fn add_aliases(&mut self) {
        for (index, tool) in self.tools.iter().enumerate() {
            let Some(alias) = self.aliases.get(&tool.key) else {
                continue;
            };
            let is_taken = self
                .left_out
                .binary_search_by(|other| other.key.cmp(alias))
                .is_ok();
            if !is_taken {
                self.by_key.entry(alias.clone()).or_insert(index);
            }
        }
    }

    /// Notes of each tool whether another one, kept out or not, is spelled like it.
    fn note_spelled_alone(&mut self) {
        let kept_out: HashSet<String> = self
            .left_out
            .iter()
            .map(|tool| tool.key.spelled())
            .collect();
        for (index, tool) in self.tools.iter_mut().enumerate() {
            let spelled = tool.key.spelled();
            let alike = self.by_spelling.get(&spelled);
            tool.spelled_alone = alike.is_some_and(|alike| alike.iter().all(|one| *one == index))
                && !kept_out.contains(&spelled);
        }
    }

    /// The name that a server's entry gives a tool.
    pub fn alias(&self, tool: &ToolKey) -> Option<&str> {
        Some(self.aliases.get(tool)?.tool.as_str())
    }

    /// Finds a tool: by its exposed name, by the plain `mcp__server__tool` spelling where only
    /// one tool answers to it, or by server and tool, original, normalised or its alias.
    pub fn find(&self, target: &ToolTarget) -> Result<&CatalogTool, CallError> {
        self.position(target).map(|index| self.at(index))
    }

    /// Whether a tool is exposed under exactly this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The tool in a place that [`Catalog::position`] gave.
    pub(crate) fn at(&self, index: usize) -> &CatalogTool {
        match index.checked_sub(self.tools.len()) {
            None => &self.tools[index],
            Some(index) => match index.checked_sub(self.host_only.len()) {
                None => &self.host_only[index],
                Some(index) => &self.built_in[index],
            },
        }
    }

    /// The host's own tools: they stand beside those of servers, and are called like them.
    pub fn built_in(&self) -> &[CatalogTool] {
        &self.built_in
    }

    pub(crate) fn set_built_in(&mut self, tools: Vec<CatalogTool>) {
        self.built_in = tools;
    }

    /// As [`Catalog::find`], giving its place.
    pub(crate) fn position(&self, target: &ToolTarget) -> Result<usize, CallError> {
        let exact = match target {
            ToolTarget::Exposed(name) => self.by_name.get(name),
            ToolTarget::Key(key) => self.by_key.get(key),
        };
        if let Some(index) = exact {
            return Ok(*index);
        }
        // The name that tells a tool from all others is its own, whether or not it is shown so.
        if let ToolTarget::Exposed(name) = target
            && ends_like_suffix(name)
            && let Some(index) =
                (self.tools.iter()).position(|tool| tool.key.exposed_apart() == *name)
        {
            return Ok(index);
        }
        // What is called exactly this is meant, even if it is not to be had.
        if let ToolTarget::Key(key) = target
            && let Some(tool) = self.kept_out(target).filter(|tool| tool.key == *key)
        {
            return Err(tool.error());
        }
        let alike = self
            .by_spelling
            .get(&target.spelled())
            .map_or(&[][..], Vec::as_slice);
        let matching: Vec<usize> = alike
            .iter()
            .copied()
            .filter(|index| {
                let own = &self.tools[*index].key;
                let alias = self.aliases.get(own);
                names::answers(own, target)
                    || alias.is_some_and(|alias| names::answers(alias, target))
            })
            .collect();
        match names::closest(&self.tools, &matching, target) {
            Some(index) => Ok(index),
            None if matching.is_empty() => Err(match self.kept_out(target) {
                Some(tool) => tool.error(),
                None => CallError::Unknown {
                    target: target.clone(),
                    suggestions: names::suggest(self.named(), target),
                },
            }),
            None => Err(CallError::Ambiguous {
                target: target.clone(),
                candidates: matching
                    .iter()
                    .map(|index| self.tools[*index].name.clone())
                    .collect(),
            }),
        }
    }

    /// Every tool that a list shows, with its alias.
    fn named(&self) -> impl Iterator<Item = (&CatalogTool, Option<&ToolKey>)> {
        let all = self.tools.iter().chain(&self.built_in);
        all.map(|tool| (tool, self.aliases.get(&tool.key)))
    }

    /// The tool that was meant, if it is kept out.
    fn kept_out(&self, target: &ToolTarget) -> Option<&LeftOutTool> {
        let spelled = target.spelled();
        self.left_out.iter().find(|tool| match target {
            ToolTarget::Key(key) => tool.key == *key,
            ToolTarget::Exposed(name) => {
                tool.key.exposed_apart() == *name || tool.key.spelled() == spelled
            }
        })
    }

    /// The resource of a server with this URI, if it is listed.
    pub fn resource(&self, server: &ServerName, uri: &str) -> Option<&CatalogResource> {
        let found = self
            .resources
            .binary_search_by(|one| (&one.server, one.uri.as_str()).cmp(&(server, uri)));
        found.ok().map(|index| &self.resources[index])
    }

    /// The templates of one server.
    pub fn templates_of(&self, server: &ServerName) -> &[CatalogTemplate] {
        let start = self.templates.partition_point(|one| one.server < *server);
        let count = self.templates[start..].partition_point(|one| one.server == *server);
        &self.templates[start..start + count]
    }

    /// The prompt of a server by its own name.
    pub fn prompt(&self, server: &ServerName, name: &str) -> Option<&CatalogPrompt> {
        let mut prompts = self.prompts.iter();
        prompts.find(|prompt| prompt.key.server == *server && prompt.key.tool == name)
    }

    /// The tools of one server.
    pub fn tools_of(&self, server: &ServerName) -> &[CatalogTool] {
        let start = self.tools.partition_point(|tool| tool.key.server < *server);
        let count = self.tools[start..].partition_point(|tool| tool.key.server == *server);
        &self.tools[start..start + count]
    }
}
