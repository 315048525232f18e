//! What a manifest says about what is run: `package.json`, `deno.json`, `pyproject.toml`.
//!
//! Owns reading one, which packages and tasks it is about, and the command lines and files that it
//! names. A manifest that cannot be read is about all of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::words::MANIFEST;
use crate::file::{open, read_opened};

/// The most that is read of one.
const LONGEST: u64 = 1024 * 1024;

/// The longest name of a package that is kept.
const LONGEST_NAME: usize = 256;

/// The most folders of packages that are looked at.
const MOST_FOLDERS: usize = 10_000;

/// Where manifests have lines by their names.
const LINES: [&str; 5] = [
    "/scripts",
    "/tasks",
    "/project/scripts",
    "/tool/poetry/scripts",
    "/tool/pdm/scripts",
];

pub(super) struct ProjectManifest(Option<Value>);

impl ProjectManifest {
    /// Reads one; nothing where there is none.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let text = match read_opened(open(path), LONGEST) {
            Ok(text) => text?,
            Err(_) => return Some(Self(None)),
        };
        let is_toml = path.extension().is_some_and(|ending| ending == "toml");
        let text = text.trim_start_matches('\u{feff}');
        Some(Self(if is_toml {
            toml::from_str(text).ok()
        } else {
            serde_json::from_str(text).ok()
        }))
    }

    /// Whether its content is known.
    pub(super) fn is_read(&self) -> bool {
        self.0.is_some()
    }

    fn at(&self, place: &str) -> Option<&Value> {
        self.0.as_ref()?.pointer(place)
    }

    /// The package that it is the manifest of.
    fn name(&self) -> Option<&str> {
        self.at("/name")?.as_str()
    }

    /// Whether it says what runs under one of these names, of packages or of its own lines.
    pub(super) fn concerns(&self, packages: &BTreeSet<String>, tasks: &BTreeSet<String>) -> bool {
        let has = |place, names: &BTreeSet<String>| {
            let members = self.at(place).and_then(Value::as_object);
            members.is_some_and(|members| members.keys().any(|name| names.contains(name)))
        };
        self.0.is_none()
            || self.name().is_some_and(|name| packages.contains(name))
            || has("/bin", packages)
            || LINES.into_iter().any(|place| has(place, tasks))
    }

    /// The lines that run under these names, with what runs before and after them.
    pub(super) fn lines(&self, names: &BTreeSet<String>) -> Vec<String> {
        let mut lines = Vec::new();
        let objects = LINES
            .into_iter()
            .filter_map(|place| self.at(place)?.as_object());
        for (name, line) in objects.flatten() {
            let bare = ["pre", "post"].iter().find_map(|it| name.strip_prefix(it));
            if names.contains(name) || bare.is_some_and(|bare| names.contains(bare)) {
                let line = line.get("command").unwrap_or(line);
                lines.extend(line.as_str().map(str::to_owned));
            }
        }
        lines
    }

    /// The commands that it puts where packages are installed.
    pub(super) fn commands(&self) -> impl Iterator<Item = &String> {
        let named = self.at("/bin").and_then(Value::as_object);
        named.into_iter().flat_map(|commands| commands.keys())
    }

    /// The files that it names as what is run.
    pub(super) fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let bin = self.at("/bin");
        let named = bin.and_then(Value::as_object).into_iter();
        let named = named.flat_map(|commands| commands.values());
        let all = [bin, self.at("/main")].into_iter().flatten().chain(named);
        all.filter_map(Value::as_str)
            .map(|file| folder.join(file.trim_start_matches('/')))
            .collect()
    }
}

/// The names under which a package, as it is written on a command line, may be found.
pub(super) fn package_names(word: &str) -> Vec<&str> {
    let at = word.rfind('@').filter(|at| *at > 0);
    let bare = at.map_or(word, |at| &word[..at]);
    // Another name may stand before the real one: `a@npm:b@1`.
    let alias = word.split_once('@').map(|(alias, _)| alias);
    let last = bare.rsplit('/').next();
    let mut names: Vec<&str> = [Some(word), Some(bare), alias, last]
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty() && !matches!(*name, "." | ".."))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What is installed below folders of packages, each of which is searched once per plan.
#[derive(Debug, Default)]
pub(crate) struct InstalledPackages(RefCell<BTreeMap<PathBuf, Option<Vec<Package>>>>);

#[derive(Debug)]
struct Package {
    folder: Option<String>,
    name: Option<String>,
    /// Its name is too long to be kept, so it may be any.
    may_be_any: bool,
    manifest: PathBuf,
}

impl InstalledPackages {
    /// The manifests of packages of these names, whatever their folders are called, as npm finds
    /// them; `None` where there are too many folders.
    pub(super) fn below(&self, modules: &Path, names: &BTreeSet<String>) -> Option<Vec<PathBuf>> {
        let is_one = |name: &Option<String>| name.as_ref().is_some_and(|name| names.contains(name));
        let mut known = self.0.borrow_mut();
        let packages = known
            .entry(modules.to_owned())
            .or_insert_with(|| packages(modules));
        let packages = packages.as_ref()?.iter();
        let wanted = packages.filter(|package| {
            package.may_be_any || is_one(&package.folder) || is_one(&package.name)
        });
        Some(wanted.map(|package| package.manifest.clone()).collect())
    }
}

/// All packages below a folder. Links are not followed: they can form cycles.
fn packages(modules: &Path) -> Option<Vec<Package>> {
    let mut found = Vec::new();
    let mut folders = vec![modules.to_owned()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        looked_at += 1;
        if looked_at > MOST_FOLDERS {
            return None;
        }
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name.as_encoded_bytes().starts_with(b"@") && is_folder {
                folders.push(path);
                continue;
            }
            let manifest = path.join(MANIFEST);
            if let Some(read) = ProjectManifest::read(&manifest) {
                let is_long = read.name().is_some_and(|name| name.len() > LONGEST_NAME);
                let kept = read.name().filter(|_| !is_long);
                found.push(Package {
                    folder: name.into_string().ok(),
                    name: kept.map(str::to_owned),
                    may_be_any: is_long,
                    manifest,
                });
            }
            let inner = path.join("node_modules");
            let is_real = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_dir());
            if is_folder && is_real(&inner) {
                folders.push(inner);
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use toolway_testkit::ScannedFolder;

    use super::*;

    #[test]
    fn a_folder_of_packages_is_looked_through_once() {
        let folder = ScannedFolder::new();
        let file = folder.write("node_modules/x/package.json", r#"{"name": "a"}"#);
        let modules = folder.path().join("node_modules");
        let below = |installed: &InstalledPackages, name: &str| {
            installed.below(&modules, &BTreeSet::from([name.to_owned()]))
        };
        let installed = InstalledPackages::default();
        assert_eq!(below(&installed, "b"), Some(vec![]));
        std::fs::remove_file(&file).unwrap();
        for name in ["a", "x"] {
            assert_eq!(below(&installed, name), Some(vec![file.clone()]));
            assert_eq!(below(&InstalledPackages::default(), name), Some(vec![]));
        }
        let long = format!(r#"{{"name": "{}"}}"#, "a".repeat(LONGEST_NAME + 1));
        folder.write("node_modules/x/package.json", long);
        assert_eq!(below(&InstalledPackages::default(), "b"), Some(vec![file]));
    }
}
