//! Dependencies between our crates point one way, and every manifest is read to prove it:
//! `{types, files} ← transport ← auth`, `{types, schema} ← wire ← transport`, `{types, files} ← config`,
//! `types ← rows`, `{types, schema} ← bindings ← cli`, `recording ← toolway`,
//! `{config, transport, auth, rows} ← toolway ← {gateway, tui} ← cli`; `testkit` only for tests.
//!
//! Owns the table of what may depend on what. Cargo already refuses cycles; this refuses a
//! shortcut that is no cycle yet, such as `wire` reading configuration.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{Finding, Tree};

const TESTKIT: &str = "toolway-testkit";

/// Each crate with all the crates below it. A crate that is not here has no place yet.
const BELOW: &[(&str, &[&str])] = &[
    ("toolway-types", &[]),
    ("toolway-files", &[]),
    ("toolway-schema", &[]),
    ("toolway-rows", &["toolway-types"]),
    ("toolway-bindings", &["toolway-types", "toolway-schema"]),
    ("toolway-recording", &[]),
    ("toolway-wire", &["toolway-types", "toolway-schema"]),
    ("toolway-config", &["toolway-types", "toolway-files"]),
    (
        "toolway-transport",
        &["toolway-types", "toolway-files", "toolway-wire"],
    ),
    (
        "toolway-auth",
        &[
            "toolway-types",
            "toolway-files",
            "toolway-wire",
            "toolway-transport",
        ],
    ),
    ("toolway", HOST),
    ("toolway-gateway", FRONT_END),
    ("toolway-tui", FRONT_END),
    (
        "toolway-cli",
        &[
            "toolway-types",
            "toolway-bindings",
            "toolway-files",
            "toolway-recording",
            "toolway-rows",
            "toolway-schema",
            "toolway-wire",
            "toolway-config",
            "toolway-transport",
            "toolway-auth",
            "toolway",
            "toolway-gateway",
            "toolway-tui",
        ],
    ),
    (
        TESTKIT,
        &[
            "toolway-types",
            "toolway-wire",
            "toolway-transport",
            "toolway",
            "toolway-gateway",
        ],
    ),
    ("xtask", &["toolway-config", "toolway-cli"]),
    (
        "toolway-fuzz",
        &[
            "toolway-types",
            "toolway-files",
            "toolway-rows",
            "toolway-wire",
            "toolway-config",
            "toolway-transport",
            "toolway-auth",
            "toolway",
            "toolway-gateway",
        ],
    ),
    // What is measured beside the product shares nothing with it.
    ("gateway-bench", &[]),
    ("typed-gateway", &[]),
    // Nor does what tests talk to.
    ("rust-client", &[]),
];
const HOST: &[&str] = &[
    "toolway-types",
    "toolway-files",
    "toolway-recording",
    "toolway-rows",
    "toolway-schema",
    "toolway-wire",
    "toolway-config",
    "toolway-transport",
    "toolway-auth",
];
const FRONT_END: &[&str] = &[
    "toolway-types",
    "toolway-files",
    "toolway-rows",
    "toolway-wire",
    "toolway-config",
    "toolway-transport",
    "toolway-auth",
    "toolway",
];

/// Crates that others build into small programs, with all that they may bring of others.
const LIGHT: &[(&str, &[&str])] = &[("toolway-rows", &["serde", "serde_json"])];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Part of what is shipped, or of its build.
    Shipped,
    Tests,
}

pub(super) fn dependencies_follow_the_direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = tree
        .get("Cargo.toml")
        .and_then(|text| text.parse::<Table>().ok());
    let shared = root
        .as_ref()
        .and_then(|root| {
            root.get("workspace")?
                .get("dependencies")?
                .as_table()
                .cloned()
        })
        .unwrap_or_default();
    let mut manifests = Vec::new();
    for (path, text) in tree
        .iter()
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
    {
        match text.parse::<Table>() {
            Ok(manifest) => manifests.push((path, text, manifest)),
            Err(error) => findings.push(Finding::error(path, None, error.message())),
        }
    }
    let ours: BTreeSet<&str> = manifests
        .iter()
        .filter_map(|(_, _, table)| name(table))
        .collect();
    for (path, text, manifest) in &manifests {
        let Some(name) = name(manifest) else { continue };
        let Some((_, below)) = BELOW.iter().find(|(crate_name, _)| *crate_name == name) else {
            let message = format!(
                "`{name}` has no place in the direction: give it one in \
                 xtask/src/tidy/direction.rs"
            );
            findings.push(Finding::error(path, None, message));
            continue;
        };
        let light = LIGHT.iter().find(|(crate_name, _)| *crate_name == name);
        for (key, package, used) in dependencies(manifest, &shared) {
            if let Some((_, allowed)) = light
                && used == Use::Shipped
                && !ours.contains(package.as_str())
                && !allowed.contains(&package.as_str())
            {
                let message = format!("`{name}` must stay light: it may not bring `{package}`");
                findings.push(Finding::error(path, line_of(text, &key), message));
            }
            if !ours.contains(package.as_str()) || below.contains(&package.as_str()) {
                continue;
            }
            let message = if package == TESTKIT {
                if used == Use::Tests {
                    continue;
                }
                format!("`{name}` may use `{TESTKIT}` only as a dev-dependency")
            } else {
                format!("`{name}` must not depend on `{package}`: it is not below `{name}`")
            };
            findings.push(Finding::error(path, line_of(text, &key), message));
        }
    }
    findings
}

pub(super) fn name(manifest: &Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

/// Every dependency as (key as written, real package name, use), platform sections included.
pub(super) fn dependencies(manifest: &Table, shared: &Table) -> Vec<(String, String, Use)> {
    let mut sections = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        sections.extend(targets.values().filter_map(Value::as_table));
    }
    let mut found = Vec::new();
    for section in sections {
        for (kind, used) in [
            ("dependencies", Use::Shipped),
            ("build-dependencies", Use::Shipped),
            ("dev-dependencies", Use::Tests),
        ] {
            let Some(entries) = section.get(kind).and_then(Value::as_table) else {
                continue;
            };
            for (key, entry) in entries {
                // A renamed crate is still that crate, wherever the new name was given.
                let renamed = |entry: &Value| entry.get("package")?.as_str().map(str::to_owned);
                let package = renamed(entry)
                    .or_else(|| shared.get(key).and_then(renamed))
                    .unwrap_or_else(|| key.clone());
                found.push((key.clone(), package, used));
            }
        }
    }
    found
}

fn line_of(text: &str, key: &str) -> Option<usize> {
    text.lines()
        .position(|line| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
        })
        .map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: (&str, &str) = (
        "crates/toolway-types/Cargo.toml",
        "[package]\nname = \"toolway-types\"\n",
    );
    const CONFIG: (&str, &str) = (
        "crates/toolway-config/Cargo.toml",
        "[package]\nname = \"toolway-config\"\n[dependencies]\ntoolway-types.workspace = true\n",
    );
    const KIT: (&str, &str) = (
        "crates/toolway-testkit/Cargo.toml",
        "[package]\nname = \"toolway-testkit\"\n",
    );

    fn wire(rest: &str) -> Vec<Finding> {
        let text = format!("[package]\nname = \"toolway-wire\"\n{rest}");
        let wire = ("crates/toolway-wire/Cargo.toml", text.as_str());
        dependencies_follow_the_direction(&Tree::of([TYPES, CONFIG, KIT, wire]))
    }

    #[test]
    fn a_dependency_along_the_direction_is_fine() {
        assert_eq!(
            wire("[dependencies]\ntoolway-types.workspace = true\nserde = \"1\"\n"),
            []
        );
    }

    #[test]
    fn a_dependency_against_the_direction_fails_with_its_line() {
        let findings = wire("[dependencies]\ntoolway-config.workspace = true\n");
        assert_eq!(
            findings,
            [Finding::error(
                "crates/toolway-wire/Cargo.toml",
                4,
                "`toolway-wire` must not depend on `toolway-config`: it is not below \
                 `toolway-wire`"
            )]
        );
    }

    #[test]
    fn a_renamed_or_platform_dependency_does_not_slip_through() {
        let renamed = "[dependencies]\nsettings = { package = \"toolway-config\" }\n";
        assert_eq!(wire(renamed).len(), 1);
        let platform = "[target.'cfg(unix)'.dependencies]\ntoolway-config.workspace = true\n";
        assert_eq!(wire(platform).len(), 1);
        let build = "[build-dependencies]\ntoolway-config.workspace = true\n";
        assert_eq!(wire(build).len(), 1);
    }

    #[test]
    fn a_name_given_in_the_workspace_manifest_does_not_slip_through() {
        let root = (
            "Cargo.toml",
            "[workspace.dependencies]\nsettings = { package = \"toolway-config\", path = \"x\" }\n",
        );
        let wire = (
            "crates/toolway-wire/Cargo.toml",
            "[package]\nname = \"toolway-wire\"\n[dependencies]\nsettings.workspace = true\n",
        );
        let findings = dependencies_follow_the_direction(&Tree::of([root, TYPES, CONFIG, wire]));
        assert_eq!(findings.len(), 1, "{findings:?}");
    }

    #[test]
    fn a_light_crate_brings_nothing_heavy() {
        let rows = |rest: &str| {
            let text = format!("[package]\nname = \"toolway-rows\"\n[dependencies]\n{rest}");
            let rows = ("crates/toolway-rows/Cargo.toml", text.as_str());
            dependencies_follow_the_direction(&Tree::of([TYPES, CONFIG, rows]))
        };
        assert_eq!(rows("serde = \"1\"\ntoolway-types.workspace = true\n"), []);
        let findings = rows("serde = \"1\"\ntokio = \"1\"\n");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].message.contains("may not bring `tokio`"));
        assert_eq!(rows("toolway-config.workspace = true\n").len(), 1);
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        assert_eq!(
            wire("[dev-dependencies]\ntoolway-testkit.workspace = true\n"),
            []
        );
        let findings = wire("[dependencies]\ntoolway-testkit.workspace = true\n");
        assert!(
            findings[0].message.contains("only as a dev-dependency"),
            "{findings:?}"
        );
    }

    #[test]
    fn tests_follow_the_direction_too() {
        assert_eq!(
            wire("[dev-dependencies]\ntoolway-config.workspace = true\n").len(),
            1
        );
    }

    #[test]
    fn a_crate_without_a_place_is_named() {
        let new = (
            "crates/toolway-new/Cargo.toml",
            "[package]\nname = \"toolway-new\"\n",
        );
        let findings = dependencies_follow_the_direction(&Tree::of([TYPES, new]));
        assert!(
            findings[0].message.contains("`toolway-new` has no place"),
            "{findings:?}"
        );
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        for (name, below) in BELOW {
            for lower in *below {
                let (_, under) = BELOW.iter().find(|(other, _)| other == lower).unwrap();
                assert!(
                    !under.contains(name),
                    "`{name}` and `{lower}` are below each other"
                );
            }
        }
    }
}
