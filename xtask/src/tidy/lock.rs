//! The fuzz targets keep building: their lock file knows what our crates depend on.
//!
//! Owns the comparison of `fuzz/Cargo.lock`, which no other command reads, with the manifests.
//! Does not own versions: a requirement that the locked version does not meet shows with the next
//! `cargo xtask fuzz`.

use toml::{Table, Value};

use super::direction::{Use, dependencies, name};
use super::{Finding, Tree};

const LOCK: &str = "fuzz/Cargo.lock";

pub(super) fn fuzz_targets_lock_every_dependency(tree: &Tree) -> Vec<Finding> {
    let Some(lock) = tree.get(LOCK) else {
        return Vec::new();
    };
    let lock: Table = match lock.parse() {
        Ok(lock) => lock,
        Err(error) => return vec![Finding::error(LOCK, None, error.message())],
    };
    let table = |path| tree.get(path).and_then(|text| text.parse::<Table>().ok());
    let shared = table("Cargo.toml").and_then(|mut root| {
        let workspace = root.remove("workspace")?;
        workspace.get("dependencies")?.as_table().cloned()
    });
    let shared = shared.unwrap_or_default();
    let locked: Vec<(&str, Vec<&str>)> = packages(&lock).collect();
    let mut findings = Vec::new();
    let manifests = tree.iter().map(|(path, _)| path);
    for manifest in manifests.filter(|path| path.ends_with("/Cargo.toml")) {
        let Some(manifest) = table(manifest) else {
            continue;
        };
        let Some(crate_name) = name(&manifest) else {
            continue;
        };
        let Some((_, known)) = locked.iter().find(|(name, _)| *name == crate_name) else {
            continue;
        };
        for (_, package, used) in dependencies(&manifest, &shared) {
            if used == Use::Shipped && !known.contains(&package.as_str()) {
                let message = format!(
                    "does not know that `{crate_name}` depends on `{package}`: run `cargo update \
                     --workspace` in `fuzz`"
                );
                findings.push(Finding::error(LOCK, None, message));
            }
        }
    }
    findings
}

/// The packages of this repository, each with what it depends on.
fn packages(lock: &Table) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let packages = lock.get("package").and_then(Value::as_array);
    let packages = packages.into_iter().flatten().filter_map(Value::as_table);
    packages
        .filter(|package| !package.contains_key("source"))
        .filter_map(|package| {
            let depends = package.get("dependencies").and_then(Value::as_array);
            // A name, and a version behind it where several are locked.
            let depends = depends.into_iter().flatten().filter_map(Value::as_str);
            let depends = depends.filter_map(|entry| entry.split(' ').next());
            Some((package.get("name")?.as_str()?, depends.collect()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (&str, &str) = (
        "Cargo.toml",
        "[workspace.dependencies]\nhash = { version = \"1\", package = \"foldhash\" }\n",
    );
    const WIRE: (&str, &str) = (
        "crates/toolway-wire/Cargo.toml",
        "[package]\nname = \"toolway-wire\"\n[dependencies]\nhash.workspace = true\n\
         memchr = \"2\"\n[dev-dependencies]\nproptest = \"1\"\n",
    );

    fn findings(depends: &str) -> Vec<String> {
        let lock = format!(
            "[[package]]\nname = \"memchr\"\nsource = \"registry\"\n\n\
             [[package]]\nname = \"toolway-wire\"\ndependencies = [{depends}]\n"
        );
        let findings =
            fuzz_targets_lock_every_dependency(&Tree::of([ROOT, WIRE, ("fuzz/Cargo.lock", &lock)]));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_lock_that_knows_all_that_is_shipped_is_fine() {
        assert_eq!(findings("\"foldhash 1.0.0\", \"memchr\""), [""; 0]);
    }

    #[test]
    fn a_dependency_that_is_not_locked_is_named() {
        assert_eq!(
            findings("\"memchr\""),
            [
                "error: fuzz/Cargo.lock: does not know that `toolway-wire` depends on `foldhash`: \
              run `cargo update --workspace` in `fuzz`"
            ]
        );
    }

    #[test]
    fn a_lock_that_cannot_be_read_is_named() {
        let findings =
            fuzz_targets_lock_every_dependency(&Tree::of([("fuzz/Cargo.lock", "= broken")]));
        assert_eq!(findings.len(), 1);
    }
}
