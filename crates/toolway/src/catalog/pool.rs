//! Which tools of a catalogue one model session sees, and which a search can find.

use crate::catalog::{Catalog, CatalogTool};
use crate::pool::ToolPool;

impl Catalog {
    /// What a session that has loaded nothing sees: every tool that is not deferred, the host's own
    /// first.
    pub fn default_pool(&self) -> impl Iterator<Item = &CatalogTool> {
        let all = self.built_in().iter().chain(&self.tools);
        all.filter(|tool| !tool.deferred)
    }

    /// What this session sees: the same, and what it has loaded.
    pub fn pool(&self, pool: &ToolPool) -> Vec<&CatalogTool> {
        let loaded = pool.lock();
        let all = self.built_in().iter().chain(&self.tools);
        all.filter(|tool| !tool.deferred || loaded.contains(&tool.key))
            .collect()
    }

    /// What can be found by searching: the tools of servers, and those of the host's own that are
    /// deferred.
    pub(crate) fn searchable(&self) -> impl Iterator<Item = &CatalogTool> {
        let own = self.built_in().iter().filter(|tool| tool.deferred);
        self.tools.iter().chain(own)
    }
}
