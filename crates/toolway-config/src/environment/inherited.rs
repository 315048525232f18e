//! What child processes get of the environment.
//!
//! Owns the list of variables that all of them get. Everything else is declared by an entry; the
//! settings of the network are in `network.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_types::Secret;

use super::Environment;
use super::network::{RunByNpm, is_handed_on};

/// Variables a child process inherits; everything else must be declared by its entry (SEC-39).
const INHERITED: [&str; 9] = [
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// Tells a process which project it works in.
const PROJECT: &str = "TOOLWAY_PROJECT_DIR";

/// The parts of a locale. Not every `LC_*`: SSH passes those on, so people put other things there.
const LOCALE: [&str; 13] = [
    "ADDRESS",
    "ALL",
    "COLLATE",
    "CTYPE",
    "IDENTIFICATION",
    "MEASUREMENT",
    "MESSAGES",
    "MONETARY",
    "NAME",
    "NUMERIC",
    "PAPER",
    "TELEPHONE",
    "TIME",
];

/// Whether every child process gets a variable of this name.
fn is_inherited(name: &str) -> bool {
    let part = name.strip_prefix("LC_");
    part.is_some_and(|part| LOCALE.contains(&part)) || INHERITED.contains(&name)
}

/// What the child processes of one kind of author get.
#[derive(Debug)]
pub(crate) struct InheritedVariables {
    /// Where they work in one project.
    pub(crate) in_project: Arc<BTreeMap<String, Secret>>,
    /// Where they are shared by all projects.
    pub(crate) in_none: Arc<BTreeMap<String, Secret>>,
}

impl From<BTreeMap<String, Secret>> for InheritedVariables {
    fn from(in_project: BTreeMap<String, Secret>) -> Self {
        let mut in_none = in_project.clone();
        in_none.remove(PROJECT);
        Self {
            in_project: Arc::new(in_project),
            in_none: Arc::new(in_none),
        }
    }
}

impl Environment {
    /// The variables every child process gets from the host (SEC-39).
    pub(crate) fn inherited(&self) -> BTreeMap<String, Secret> {
        // A path that is not UTF-8 must not be mistaken for another one.
        let project = self.project_root().to_str().map(Secret::new);
        self.facts
            .vars
            .iter()
            // A value starting with `()` is a function to old shells.
            .filter(|(name, value)| is_inherited(name) && !value.expose().starts_with("()"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain(project.map(|project| (PROJECT.to_owned(), project)))
            .collect()
    }

    /// The same with the person's settings of the network, for what the person configured.
    pub(crate) fn inherited_with_network(&self) -> BTreeMap<String, Secret> {
        let in_npm = match self.var("npm_lifecycle_event") {
            Some(_) => RunByNpm::Yes,
            None => RunByNpm::No,
        };
        let vars = self.facts.vars.iter();
        let network = vars
            .filter(|(name, value)| is_handed_on(name, value, in_npm))
            .filter(|(_, value)| !value.expose().starts_with("()"));
        let mut inherited = self.inherited();
        inherited.extend(network.map(|(name, value)| (name.clone(), value.clone())));
        inherited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_39_a_secret_that_is_called_like_a_locale_is_not_inherited() {
        for name in ["LC_ALL", "LC_TIME", "LANG", "PATH"] {
            assert!(is_inherited(name), "{name}");
        }
        for name in ["LC_GITHUB_TOKEN", "LC_", "LC_ALL_TOKENS", "GITHUB_TOKEN"] {
            assert!(!is_inherited(name), "{name}");
        }
    }
}
