//! Where a path leads: the module that defines what it names.
//!
//! Owns the rules of Rust for that, as far as one crate and the names of modules and items go:
//! `crate`, `self`, `super`, modules below, imports, renamed imports, and re-exports, which lead on
//! to where the item is defined. What comes from another crate leads nowhere.

use super::module::{Crate, ModuleId, ROOT};

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) module: ModuleId,
    /// What of it; none when it is the module itself.
    pub(super) item: Option<String>,
}

/// A re-export leads to another one at most so often.
const MOST_STEPS: usize = 20;

impl Crate {
    /// The module that defines what a path in this module names; none outside of the crate.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String]) -> Option<Destination> {
        self.resolve_within(from, path, MOST_STEPS)
    }

    fn resolve_within(&self, from: ModuleId, path: &[String], steps: usize) -> Option<Destination> {
        let steps = steps.checked_sub(1)?;
        let first = path.first()?;
        match first.as_str() {
            "crate" => self.walk(ROOT, &path[1..], steps),
            "self" => self.walk(from, &path[1..], steps),
            "super" => {
                let supers = path.iter().take_while(|word| *word == "super").count();
                let mut module = from;
                for _ in 0..supers {
                    module = self.modules[module].parent?;
                }
                self.walk(module, &path[supers..], steps)
            }
            _ => self.lookup(from, path, steps),
        }
    }

    /// A path whose beginning is known; what is not found in a module is taken as an item of it.
    fn walk(&self, module: ModuleId, path: &[String], steps: usize) -> Option<Destination> {
        let Some(first) = path.first() else {
            return Some(Destination { module, item: None });
        };
        match self.lookup(module, path, steps) {
            Some(found) => Some(found),
            // A re-export of another crate.
            None if self.modules[module].imports.contains_key(first) => None,
            None => Some(Destination {
                module,
                item: Some(first.clone()),
            }),
        }
    }

    /// What a path means in a module, where that is something of this crate.
    fn lookup(&self, module: ModuleId, path: &[String], steps: usize) -> Option<Destination> {
        let (first, rest) = path.split_first()?;
        let here = &self.modules[module];
        let defined = || Destination {
            module,
            item: Some(first.clone()),
        };
        // A module and a function may have one name; only a module has something below it.
        if rest.is_empty() && here.items.contains(first) {
            return Some(defined());
        }
        // `use name::{self, …}` brings what is called `name` already.
        let import = here.imports.get(first);
        let import = import.filter(|path| path.as_slice() != std::slice::from_ref(first));
        if let Some(&child) = here.children.get(first)
            && !(rest.is_empty() && import.is_some())
        {
            return self.walk(child, rest, steps);
        }
        if here.items.contains(first) {
            return Some(defined());
        }
        if let Some(import) = import {
            let found = self.resolve_within(module, import, steps)?;
            return match found.item {
                None => self.walk(found.module, rest, steps),
                Some(_) => Some(found),
            };
        }
        here.globs.iter().find_map(|glob| {
            let steps = steps.checked_sub(1)?;
            let all = self.resolve_within(module, glob, steps)?;
            match all.item {
                None => self.lookup(all.module, path, steps),
                Some(_) => None,
            }
        })
    }
}
