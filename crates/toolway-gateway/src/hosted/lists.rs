//! The lists of an endpoint: put together once for each catalogue, written once for each era, and
//! sent as bytes.
//!
//! Owns the results of `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`,
//! their pages and cursors, and telling whether a list is another than somebody knows. Which view they are
//! of is `endpoint.rs`'s.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use toolway::catalog::CatalogTool;
use toolway::types::{Era, ServerName};
use toolway::{HostSnapshot, ListFreshness, ListKind, RawJson, ToolPool};
use toolway_wire::{RpcError, error};

use super::names::{CutNames, SharedAddresses};
use super::own_tools::OwnTools;
use super::scope::EndpointScope;

/// About how large one page is. Few lists have a second one: many clients read only the first.
const PAGE: usize = 4 << 20;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedList {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ServedList {
    const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The member of the result.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn kind(self) -> ListKind {
        match self {
            Self::Tools => ListKind::Tools,
            Self::Resources | Self::Templates => ListKind::Resources,
            Self::Prompts => ListKind::Prompts,
        }
    }
}

/// All lists of one endpoint at one catalogue.
pub(super) struct ServedLists {
    pub(super) snapshot: Arc<HostSnapshot>,
    scope: EndpointScope,
    own_tools: OwnTools,
    names: OnceLock<CutNames>,
    addresses: OnceLock<SharedAddresses>,
    /// By list and era.
    pages: [[OnceLock<Arc<ListPages>>; 2]; 4],
}

/// One list, written.
#[derive(Debug)]
pub(super) struct ListPages {
    /// The results, one for each page.
    pages: Vec<Bytes>,
    /// Of what is listed.
    digest: [u8; 32],
}

impl ServedLists {
    pub(super) fn new(
        snapshot: Arc<HostSnapshot>,
        scope: EndpointScope,
        own_tools: OwnTools,
    ) -> Self {
        Self {
            snapshot,
            scope,
            own_tools,
            names: OnceLock::new(),
            addresses: OnceLock::new(),
            pages: Default::default(),
        }
    }

    pub(super) fn names(&self) -> &CutNames {
        self.names
            .get_or_init(|| CutNames::of(&self.snapshot.catalog, self.scope.names()))
    }

    pub(super) fn addresses(&self) -> &SharedAddresses {
        self.addresses
            .get_or_init(|| SharedAddresses::of(&self.snapshot.catalog))
    }

    fn pages(&self, list: ServedList, era: Era) -> &Arc<ListPages> {
        let era_place = usize::from(era == Era::Modern);
        self.pages[list as usize][era_place].get_or_init(|| Arc::new(self.write(list, era, None)))
    }

    /// One page of a list. A pool is that of a client which finds its tools by searching.
    pub(super) fn page(
        &self,
        list: ServedList,
        era: Era,
        cursor: Option<&str>,
        pool: Option<&ToolPool>,
    ) -> Result<RawJson, RpcError> {
        let own;
        let pages = match (list, pool) {
            (ServedList::Tools, Some(_)) => {
                own = self.write(list, era, pool);
                &own
            }
            _ => &**self.pages(list, era),
        };
        let place = match cursor {
            None => 0,
            Some(cursor) => self.place(cursor)?,
        };
        let page = pages.pages.get(place).ok_or_else(no_such_page)?;
        RawJson::read(page).map_err(|problem| {
            RpcError::new(
                error::INTERNAL_ERROR,
                format!("a list is no JSON: {problem}"),
            )
        })
    }

    fn digest(&self, list: ServedList) -> [u8; 32] {
        self.pages(list, Era::Modern).digest
    }

    fn place(&self, cursor: &str) -> Result<usize, RpcError> {
        let (revision, place) = cursor.split_once('.').ok_or_else(no_such_page)?;
        if revision.parse() != Ok(self.snapshot.catalog.revision) {
            return Err(RpcError::new(
                error::INVALID_PARAMS,
                "the list has changed since this cursor was given out: begin again without one",
            ));
        }
        place.parse().map_err(|_| no_such_page())
    }

    fn write(&self, list: ServedList, era: Era, pool: Option<&ToolPool>) -> ListPages {
        let freshness = self.snapshot.freshness(list.kind());
        let mut writer = PageWriter::new(list, era, freshness, self.snapshot.catalog.revision);
        match list {
            ServedList::Tools => self.write_tools(&mut writer, era, pool),
            ServedList::Resources => {
                let resources = self.snapshot.catalog.resources();
                for resource in resources.filter(|it| self.scope.has(&it.server)) {
                    let uri = self.address(&resource.server, &resource.uri);
                    writer.item(|out| resource.write_served(&uri, out));
                }
            }
            ServedList::Templates => {
                let templates = self.snapshot.catalog.templates();
                for template in templates.filter(|it| self.scope.has(&it.server)) {
                    let uri = self.address(&template.server, &template.uri_template);
                    writer.item(|out| template.write_served(&uri, out));
                }
            }
            ServedList::Prompts => {
                let prompts = self.snapshot.catalog.prompts();
                for prompt in prompts.filter(|it| self.scope.has(&it.key.server)) {
                    match self.scope {
                        EndpointScope::One(_) => {
                            writer.item(|out| prompt.write_served(&prompt.key.tool, out));
                        }
                        EndpointScope::Merged(names) => {
                            let name = self.names().of_prompt(prompt, names);
                            writer.item(|out| prompt.write_served(&name, out));
                        }
                    }
                }
            }
        }
        writer.finish()
    }

    fn write_tools(&self, writer: &mut PageWriter, era: Era, pool: Option<&ToolPool>) {
        let catalog = &self.snapshot.catalog;
        let is_listed = |tool: &&CatalogTool| {
            if tool.is_built_in() {
                return self.own_tools.has(tool, pool.is_some());
            }
            self.scope.has(&tool.key.server)
                && pool.is_none_or(|pool| !catalog.is_deferred(tool) || pool.has(&tool.key))
        };
        let own = catalog.built_in().iter();
        for tool in own.chain(catalog.tools()).filter(is_listed) {
            match &self.scope {
                EndpointScope::One(server) => {
                    if tool.key.server == *server {
                        let name = catalog.alias(&tool.key).unwrap_or(&tool.key.tool);
                        writer.item(|out| tool.write_served(name, era, out));
                    }
                }
                EndpointScope::Merged(names) => {
                    let name = self.names().of_tool(tool, *names);
                    // Of two that were cut to the same name only one can be called.
                    if self.names().tool(&name).is_none_or(|key| *key == tool.key) {
                        writer.item(|out| tool.write_served(&name, era, out));
                    }
                }
            }
        }
    }

    fn address<'a>(&self, server: &ServerName, address: &'a str) -> std::borrow::Cow<'a, str> {
        match self.scope {
            EndpointScope::One(_) => address.into(),
            EndpointScope::Merged(_) => self.addresses().shown(server, address),
        }
    }
}

/// The lists as somebody knows them.
#[derive(Debug, Clone)]
pub(super) struct ToldLists([[u8; 32]; 4]);

impl ToldLists {
    /// All of them, as they are.
    pub(super) fn of(lists: &ServedLists) -> Self {
        Self(ServedList::ALL.map(|list| lists.digest(list)))
    }

    /// One was asked for.
    pub(super) fn learn(&mut self, list: ServedList, lists: &ServedLists) {
        self.0[list as usize] = lists.digest(list);
    }

    /// Which lists are others than those that were known; from now on they are known.
    pub(super) fn update(&mut self, lists: &ServedLists) -> Vec<ListKind> {
        let mut changed: Vec<ListKind> = Vec::new();
        for list in ServedList::ALL {
            let digest = lists.digest(list);
            let before = std::mem::replace(&mut self.0[list as usize], digest);
            if before != digest && !changed.contains(&list.kind()) {
                changed.push(list.kind());
            }
        }
        changed
    }
}

fn no_such_page() -> RpcError {
    RpcError::new(error::INVALID_PARAMS, "no page has this cursor")
}

/// Writes the pages of a list.
struct PageWriter {
    list: ServedList,
    prefix: Vec<u8>,
    revision: u64,
    open: Vec<u8>,
    items: usize,
    done: Vec<Bytes>,
    digest: Sha256,
}

impl PageWriter {
    fn new(list: ServedList, era: Era, freshness: ListFreshness, revision: u64) -> Self {
        let mut prefix = b"{".to_vec();
        if era == Era::Modern {
            prefix.extend_from_slice(&cached(freshness.ttl, freshness.is_public));
        }
        prefix.extend_from_slice(format!("\"{}\":[", list.member()).as_bytes());
        Self {
            list,
            open: prefix.clone(),
            prefix,
            revision,
            items: 0,
            done: Vec::new(),
            digest: Sha256::new(),
        }
    }

    fn item(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.open.len() > PAGE {
            let next = self.done.len() + 1;
            self.open.extend_from_slice(
                format!("],\"nextCursor\":\"{}.{next}\"}}", self.revision).as_bytes(),
            );
            let page = std::mem::replace(&mut self.open, self.prefix.clone());
            self.done.push(page.into());
            self.items = 0;
        }
        if self.items > 0 {
            self.open.push(b',');
        }
        self.items += 1;
        let start = self.open.len();
        write(&mut self.open);
        self.digest.update(&self.open[start..]);
        self.digest.update([0]);
    }

    fn finish(mut self) -> ListPages {
        self.open.extend_from_slice(b"]}");
        self.done.push(self.open.into());
        tracing::debug!(
            list = self.list.member(),
            pages = self.done.len(),
            "wrote a list"
        );
        ListPages {
            pages: self.done,
            digest: self.digest.finalize().into(),
        }
    }
}

/// The members of a complete modern result that may be kept for a while, each followed by a comma.
pub(super) fn cached(ttl: Duration, is_public: bool) -> Bytes {
    let scope = if is_public { "public" } else { "private" };
    let ttl = ttl.as_millis();
    format!("\"resultType\":\"complete\",\"ttlMs\":{ttl},\"cacheScope\":\"{scope}\",").into()
}
