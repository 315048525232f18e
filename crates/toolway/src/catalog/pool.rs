//! Which tools of a catalogue one model session sees, and which a search can find.

use crate::catalog::index::SearchIndex;
use crate::catalog::{Catalog, CatalogTool};
use crate::pool::ToolPool;

impl Catalog {
    /// What a session that has loaded nothing sees: every tool that is not deferred, the host's own
    /// first.
    pub fn default_pool(&self) -> impl Iterator<Item = &CatalogTool> {
        let all = self.built_in().iter().chain(self.tools());
        all.filter(|tool| !self.is_deferred(tool))
    }

    /// What this session sees: the same, and what it has loaded.
    pub fn pool(&self, pool: &ToolPool) -> Vec<&CatalogTool> {
        let loaded = pool.lock();
        let all = self.built_in().iter().chain(self.tools());
        all.filter(|tool| !self.is_deferred(tool) || loaded.contains(&tool.key))
            .collect()
    }

    /// What can be found by searching: the tools of servers, and those of the host's own that are
    /// deferred.
    pub(crate) fn searchable(&self) -> impl Iterator<Item = &CatalogTool> {
        self.tools().chain(self.searchable_own())
    }

    fn searchable_own(&self) -> impl Iterator<Item = &CatalogTool> {
        let own = self.built_in().iter();
        own.filter(|tool| self.is_deferred(tool))
    }

    /// The one at this place among them.
    pub(crate) fn searchable_at(&self, mut place: usize) -> Option<&CatalogTool> {
        for server in &self.servers {
            match server.tools().get(place) {
                Some(tool) => return Some(tool),
                None => place -= server.tools().len(),
            }
        }
        self.searchable_own().nth(place)
    }

    /// The index of what can be found, made by the first search.
    pub(crate) fn search_index(&self) -> &SearchIndex {
        let index = &self.on_demand.search;
        index.get_or_init(|| SearchIndex::build(&self.searchable().collect::<Vec<_>>()))
    }
}
