//! The shape of the product: its crates as trees of modules, the types that they define, and which
//! module uses which.
//!
//! Owns what counts as product: the sources of every crate but the testkit, without tests and
//! without what exists for fuzzing only. It reads text and compiles nothing, so it works while the
//! product does not compile. What of it is a fault is for the rules of `tidy`.

mod graph;
mod lines;
mod module;
mod names;
mod paths;
mod read;
mod resolve;
mod uses;

use std::collections::BTreeSet;
use std::fmt;

pub(crate) use self::graph::{Cycle, Graph};
pub(crate) use self::lines::Lines;
pub(crate) use self::module::Crate;
pub(crate) use self::names::Names;
pub(crate) use self::uses::{Level, Usage};
use crate::tree::Tree;

/// Crates below `crates/` that are no product.
const NOT_PRODUCT: &[&str] = &["toolway-testkit"];

/// All crates of the product.
pub(crate) struct Shape {
    pub(crate) crates: Vec<Crate>,
}

/// A file that cannot be read as Rust, or that is missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) file: String,
    pub(crate) line: Option<usize>,
    pub(crate) problem: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Shape {
    pub(crate) fn read(tree: &Tree) -> Result<Self, Unreadable> {
        let crates = roots(tree)
            .into_iter()
            .map(|(name, root)| read::crate_at(tree, name, root))
            .collect::<Result<_, _>>()?;
        Ok(Self { crates })
    }

    /// Every type of the product, by name.
    pub(crate) fn names(&self) -> Names<'_> {
        let all = self.crates.iter();
        Names::of(all.flat_map(Crate::types))
    }
}

/// Each crate with the file that its modules hang below.
fn roots(tree: &Tree) -> BTreeSet<(&str, &str)> {
    let files = tree.with_extension("rs").map(|(path, _)| path);
    files
        .filter_map(|path| {
            let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
            let is_root = matches!(rest, "src/lib.rs" | "src/main.rs");
            (is_root && !NOT_PRODUCT.contains(&name)).then_some((name, path))
        })
        .collect()
}

#[cfg(test)]
mod tests;
