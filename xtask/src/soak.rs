//! `cargo xtask soak [daemon]`: many calls through the released gateway, or through its daemon, while
//! everything goes wrong around it.
//!
//! Owns building and starting it. What is called, and what may not happen, is the testkit's
//! (`crates/toolway-testkit/src/soak.rs`), whose small runs are among the tests.

use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::command;
use crate::workspace::{Profile, Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// What is soaked
    #[arg(value_enum, default_value_t = Soaked::Gateway)]
    what: Soaked,

    /// How many calls are made; it ends by itself after them
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Soaked {
    Gateway,
    Daemon,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let toolway = workspace.build_binary(Profile::Release)?;
    let chaos = workspace.build_test_program("toolway-chaos")?;
    let mut soak = Command::new(workspace.build_test_program("toolway-soak")?);
    soak.arg(toolway).arg(chaos).arg(options.calls.to_string());
    if options.what == Soaked::Daemon {
        soak.arg("daemon");
    }
    command::run(soak).context("it did not hold")
}
