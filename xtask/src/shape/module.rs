//! A crate as it was read: its modules, what each defines and imports, and what each names.
//!
//! Owns the values. Reading them is `read.rs`, what a path leads to `resolve.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::lines::Lines;

/// One crate of the product. The first module is its root.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(super) modules: Vec<Module>,
    /// The lines of each file that have no tests in them.
    pub(crate) files: BTreeMap<String, Lines>,
}

/// The place of a module in [`Crate::modules`].
pub(super) type ModuleId = usize;

/// The root of every crate.
pub(super) const ROOT: ModuleId = 0;

/// One module, be it a file or a part of one.
#[derive(Default)]
pub(super) struct Module {
    /// Its name and those of the modules around it, without the crate's.
    pub(super) path: Vec<String>,
    pub(super) file: String,
    pub(super) parent: Option<ModuleId>,
    pub(super) children: BTreeMap<String, ModuleId>,
    /// What is defined in it, beside modules.
    pub(super) items: BTreeSet<String>,
    /// What `use` brings into it: the name that it has here, and the path behind it.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// What `use …::*` brings into it.
    pub(super) globs: Vec<Vec<String>>,
    /// Every path that is written in it.
    pub(super) written: Vec<Written>,
    pub(super) types: Vec<TypeDefinition>,
}

/// A path as it is written somewhere.
pub(super) struct Written {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// `use` of any visibility.
    Import {
        /// Whether it gives the name to other modules too.
        exported: bool,
    },
    /// In an expression, a type, a pattern, a macro's words or an attribute.
    Inline,
}

/// A struct, enum, union, trait or type alias of a module. Types inside of functions do not count.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeDefinition {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    /// Whether it is declared `pub`, reachable from outside or not.
    pub(crate) is_public: bool,
}

impl Module {
    /// As it is written in Rust, without the crate.
    pub(super) fn name(&self) -> String {
        self.path.join("::")
    }
}

impl Crate {
    /// The modules in a module, or in those in it.
    pub(super) fn is_within(&self, mut module: ModuleId, ancestor: ModuleId) -> bool {
        loop {
            if module == ancestor {
                return true;
            }
            match self.modules[module].parent {
                Some(parent) => module = parent,
                None => return false,
            }
        }
    }

    /// Every type of it.
    pub(crate) fn types(&self) -> impl Iterator<Item = &TypeDefinition> {
        self.modules.iter().flat_map(|module| &module.types)
    }

    /// The lines of all its files.
    pub(crate) fn lines(&self) -> Lines {
        self.files.values().copied().sum()
    }

    /// How many modules it has, the root among them.
    pub(crate) fn modules(&self) -> usize {
        self.modules.len()
    }

    /// How many modules lie directly below the root.
    pub(crate) fn top_level(&self) -> usize {
        self.modules[ROOT].children.len()
    }
}
