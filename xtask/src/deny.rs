//! `cargo xtask deny`: the licences, origins and bans of `deny.toml`, judged by `cargo deny`.
//!
//! Owns which version judges, and which of its checks: known vulnerabilities (`advisories`) need a
//! database from outside the package registry, so they are asked for by hand.

use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::install;
use crate::workspace::Workspace;

/// The version that judges.
const VERSION: &str = "0.20.2";

/// Fails where a dependency breaks a rule of `deny.toml`.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut deny = Command::new(install::cargo_tool(workspace, "cargo-deny", VERSION)?);
    deny.current_dir(workspace.root())
        .args(["--locked", "check", "--hide-inclusion-graph"])
        .args(["licenses", "bans", "sources"]);
    command::run(deny)
}
