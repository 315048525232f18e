//! Nothing of the machine a change was made on is committed: no registry or mirror host (the
//! package clients know theirs), no absolute path of that machine.
//!
//! Owns the list of hosts. The paths are found at run time, since naming them would be the leak.

use std::fs;
use std::path::Path;

use super::{Finding, Tree};

/// Split so that the rule does not find itself.
const HOSTS: &[&str] = &[
    concat!("registry.npm", "js.org"),
    concat!("registry.yarn", "pkg.com"),
    concat!("npm", "mirror.com"),
    concat!("files.python", "hosted.org"),
    concat!("py", "pi.org"),
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("deb.deb", "ian.org"),
];

/// Folders in which anybody's files may lie, and which examples may name.
const COMMON: &[&str] = &[
    "", "/", "/home", "/Users", "/tmp", "/var/tmp", "/usr", "/opt", "/srv",
];

pub(super) fn no_registry_hosts(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter() {
        for (index, line) in text.lines().enumerate() {
            if let Some(host) = HOSTS.iter().find(|host| line.contains(**host)) {
                let message = format!("names the registry host `{host}`");
                findings.push(Finding::error(path, index + 1, message));
            }
        }
        findings.extend(recorded_addresses(path, text));
    }
    findings
}

/// A lock file written behind a mirror records the mirror's address for every package.
fn recorded_addresses(path: &str, text: &str) -> Option<Finding> {
    let recorded = |line: &str| line.trim_start().starts_with("\"resolved\": \"http");
    let line = text
        .lines()
        .position(recorded)
        .filter(|_| path.ends_with("package-lock.json"))?;
    Some(Finding::error(
        path,
        line + 1,
        "records download addresses; see tests/peers/.npmrc",
    ))
}

/// The checkout, and what really lies beside it and in the home of whoever runs this. A made-up
/// path of the same form, as tests need them, is no leak.
pub(super) fn machine_paths(root: &Path) -> Vec<String> {
    let home = std::env::home_dir();
    let mut paths = vec![root.to_path_buf()];
    for folder in [root.parent(), home.as_deref()].into_iter().flatten() {
        if COMMON.iter().any(|common| folder == Path::new(common)) {
            continue;
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        paths.extend(entries.map(|entry| entry.path()));
    }
    paths
        .into_iter()
        .filter_map(|path| path.into_os_string().into_string().ok())
        .collect()
}

pub(super) fn no_machine_paths(tree: &Tree, machine_paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter() {
        for (index, line) in text.lines().enumerate() {
            if let Some(found) = machine_paths.iter().find(|found| names(line, found)) {
                let message = format!("names `{found}`, a path of this machine");
                findings.push(Finding::error(path, index + 1, message));
            }
        }
    }
    findings
}

/// Whether the line names `path` or something below it, from the root of the machine.
fn names(line: &str, path: &str) -> bool {
    let continues = |character: char| character.is_alphanumeric() || "_-".contains(character);
    line.match_indices(path).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + path.len()..].chars().next();
        let is_inside = |character| continues(character) || "./}".contains(character);
        !before.is_some_and(is_inside) && !after.is_some_and(continues)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_host_fails_in_any_file() {
        let text = format!("a\nhttps://{}/left-pad\n", HOSTS[0]);
        let findings = no_registry_hosts(&Tree::of([("docs/x.md", text.as_str())]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, Some(2));
    }

    #[test]
    fn a_lock_file_with_download_addresses_fails_whatever_the_host() {
        let text = "{\n  \"resolved\": \"http://mirror.example/a.tgz\",\n}";
        assert_eq!(
            no_registry_hosts(&Tree::of([("p/package-lock.json", text)])).len(),
            1
        );
        assert_eq!(
            no_registry_hosts(&Tree::of([("p/package-lock.json", "{}")])),
            []
        );
    }

    #[test]
    fn a_path_of_this_machine_fails_and_a_longer_one_does_not() {
        let paths = ["/build/agent7".to_owned()];
        let check = |text| no_machine_paths(&Tree::of([("a.rs", text)]), &paths).len();
        assert_eq!(check("let x = \"/build/agent7/repo\";"), 1);
        assert_eq!(
            check("see /build/agent71/repo and /mnt/build/agent7/repo"),
            0
        );
    }

    #[test]
    fn what_really_lies_beside_the_checkout_is_looked_for() {
        let around = tempfile::tempdir().unwrap();
        let at = |name: &str| around.path().join(name).to_string_lossy().into_owned();
        fs::create_dir(around.path().join("notes")).unwrap();
        let paths = machine_paths(&around.path().join("checkout"));
        assert!(paths.contains(&at("checkout")));
        assert!(paths.contains(&at("notes")));
        assert!(!paths.contains(&at("made-up")));
    }

    #[test]
    fn folders_that_anybody_has_are_not_listed() {
        let shared = tempfile::tempdir_in("/tmp").unwrap();
        let paths = machine_paths(Path::new("/tmp/checkout"));
        assert!(paths.contains(&"/tmp/checkout".to_owned()));
        assert!(!paths.contains(&shared.path().to_string_lossy().into_owned()));
    }
}
