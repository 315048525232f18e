//! What one server offers, as its lists were read.
//!
//! Owns the values. Fetching them is `connection/lists.rs` and `session/list.rs`; keeping them
//! between runs is `catalog_memory.rs`.

use std::sync::Arc;
use std::time::Duration;

use toolway_types::{PoolShare, ServerName};
use toolway_wire::view::{ItemFault, Prompt, Resource, ResourceTemplate, Tool};

use crate::catalog::ServerOffer;
use crate::journal::Redactor;

/// What a list held, and what was wrong with it.
#[derive(Debug, Clone)]
pub(crate) struct FetchedList<T> {
    /// Every usable item, in the server's order.
    pub items: Arc<Vec<T>>,
    /// One line for each thing that was skipped.
    pub warnings: Vec<String>,
    /// The items among those that have a name.
    pub faults: Vec<ItemFault>,
    /// Whether the list could not be read at all.
    pub failed: bool,
    /// For how long it is fresh, where the server says so: as long as its shortest-lived page.
    pub ttl: Option<Duration>,
    /// Whether the server says that it is the same for everybody.
    pub is_public: bool,
    /// What it holds of the bytes that all lists share.
    #[expect(dead_code, reason = "given back when the list goes")]
    pub share: Option<Arc<PoolShare>>,
}

impl<T> Default for FetchedList<T> {
    fn default() -> Self {
        Self {
            items: Arc::default(),
            warnings: Vec::new(),
            faults: Vec::new(),
            failed: false,
            ttl: None,
            is_public: false,
            share: None,
        }
    }
}

/// The lists a server may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Resources and their templates.
    Resources,
    /// Prompts.
    Prompts,
}

impl ListKind {
    /// Every list.
    pub(crate) const ALL: [ListKind; 3] = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];

    /// What it is a list of.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::Prompts => "prompts",
        }
    }
}

/// Everything one server offers, as far as it could be read.
#[derive(Clone, Default)]
pub(crate) struct ServerLists {
    /// Tools.
    pub tools: FetchedList<Tool>,
    /// Resources.
    pub resources: FetchedList<Resource>,
    /// Resource templates.
    pub templates: FetchedList<ResourceTemplate>,
    /// Prompts.
    pub prompts: FetchedList<Prompt>,
    /// What is wrong with the server itself.
    pub conduct: Vec<String>,
    /// Under which name it is kept for the next run; nothing is without one.
    pub label: Option<MemoryLabel>,
    /// Of each list, why it may be old.
    pub(crate) stale: [Option<String>; 3],
}

impl ServerLists {
    /// For how long a list is fresh, where the server says so.
    pub(crate) fn ttl(&self, list: ListKind) -> Option<Duration> {
        match list {
            ListKind::Tools => self.tools.ttl,
            ListKind::Prompts => self.prompts.ttl,
            ListKind::Resources => match (self.resources.ttl, self.templates.ttl) {
                (Some(resources), Some(templates)) => Some(resources.min(templates)),
                (resources, templates) => resources.or(templates),
            },
        }
    }

    /// Whether the server says that a list is the same for everybody.
    pub(crate) fn is_public(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => self.tools.is_public,
            ListKind::Prompts => self.prompts.is_public,
            ListKind::Resources => self.resources.is_public && self.templates.is_public,
        }
    }

    /// Everything that was skipped.
    pub(crate) fn warnings(&self) -> Vec<String> {
        [
            &self.tools.warnings,
            &self.resources.warnings,
            &self.templates.warnings,
            &self.prompts.warnings,
            &self.conduct,
        ]
        .into_iter()
        .flatten()
        .chain(self.stale.iter().flatten())
        .cloned()
        .collect()
    }

    /// The same for the catalogue.
    pub(crate) fn offer(&self, server: &ServerName) -> ServerOffer {
        let mut offer = ServerOffer::new(server.clone());
        offer.tools = self.tools.items.to_vec();
        offer.flawed.clone_from(&self.tools.faults);
        offer.resources = self.resources.items.to_vec();
        offer.resource_templates = self.templates.items.to_vec();
        offer.prompts = self.prompts.items.to_vec();
        offer
    }
}

/// Under which name a server's lists are kept, and what is kept out of them.
#[derive(Clone)]
pub(crate) struct MemoryLabel {
    pub(crate) key: CatalogKey,
    pub(crate) redactor: Arc<Redactor>,
}

/// The digest of a definition with everything that makes it another server, or the same server for
/// another user: values of variables and headers, and the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogKey(pub(crate) String);
