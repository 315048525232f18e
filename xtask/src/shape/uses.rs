//! Which module uses which, and the graph of the modules below one module.
//!
//! Owns what counts as a use: a path that leads to an item of another module. A re-export of
//! something in the same module or below it is no use: it gives a name, and asks for nothing.

use super::graph::Graph;
use super::module::{Crate, How, ModuleId, ROOT};

/// One use of something of another module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(super) from: ModuleId,
    pub(super) to: ModuleId,
    /// What is used; the module's own name when that is all that is named.
    pub(crate) item: String,
    pub(crate) file: String,
    pub(crate) line: usize,
}

/// Who takes part in the graph of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The modules below it, each with all that is below.
    Siblings,
    /// Those, and what the module defines itself.
    WithParent,
}

impl Crate {
    /// All uses, module by module.
    pub(crate) fn usages(&self) -> Vec<Usage> {
        let mut usages = Vec::new();
        for (from, module) in self.modules.iter().enumerate() {
            for written in &module.written {
                let Some(found) = self.resolve(from, &written.path) else {
                    continue;
                };
                let is_given_on = written.how == How::Import { exported: true }
                    && self.is_within(found.module, from);
                if found.module == from || is_given_on {
                    continue;
                }
                let named = || self.modules[found.module].path.last().cloned();
                usages.push(Usage {
                    from,
                    to: found.module,
                    item: found.item.or_else(named).unwrap_or_default(),
                    file: module.file.clone(),
                    line: written.line,
                });
            }
        }
        usages
    }

    /// The graph of the modules right below the root. What the root defines takes part too: a
    /// module that needs it, and that it needs, is in a cycle with it.
    pub(crate) fn graph(&self, usages: &[Usage]) -> Graph {
        self.graph_below(ROOT, Level::WithParent, usages)
    }

    /// Every module that has others below it, except the root, with the graph of those.
    pub(crate) fn deeper(&self, level: Level, usages: &[Usage]) -> Vec<(String, Graph)> {
        let parents = self.modules.iter().enumerate().skip(1);
        parents
            .filter(|(_, module)| !module.children.is_empty())
            .map(|(id, module)| (module.name(), self.graph_below(id, level, usages)))
            .collect()
    }

    fn graph_below(&self, parent: ModuleId, level: Level, usages: &[Usage]) -> Graph {
        let mut graph = Graph::default();
        for usage in usages {
            let (Some(from), Some(to)) =
                (self.node(parent, usage.from), self.node(parent, usage.to))
            else {
                continue;
            };
            let is_of_parent = |node: ModuleId| node == parent;
            if from == to || (level == Level::Siblings && (is_of_parent(from) || is_of_parent(to)))
            {
                continue;
            }
            graph.add(self.label(parent, from), self.label(parent, to), usage);
        }
        graph
    }

    /// The child of `parent` that a module lies in, or `parent` itself.
    fn node(&self, parent: ModuleId, mut module: ModuleId) -> Option<ModuleId> {
        if module == parent {
            return Some(module);
        }
        loop {
            match self.modules[module].parent? {
                above if above == parent => return Some(module),
                above => module = above,
            }
        }
    }

    fn label(&self, parent: ModuleId, node: ModuleId) -> String {
        let module = &self.modules[node];
        if node == parent {
            let file = module.file.rsplit('/').next();
            return file.unwrap_or_default().to_owned();
        }
        module.path.last().cloned().unwrap_or_default()
    }
}
