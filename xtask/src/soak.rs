//! `cargo xtask soak`: many calls through the released gateway, while everything goes wrong around
//! it.
//!
//! Owns building and starting it. What is called, and what may not happen, is the testkit's
//! (`crates/toolway-testkit/src/soak.rs`), whose small runs are among the tests.

use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::command;
use crate::workspace::{Profile, Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How many calls are made; it ends by itself after them
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let toolway = workspace.build_binary(Profile::Release)?;
    let chaos = workspace.build_test_program("toolway-chaos")?;
    let mut soak = Command::new(workspace.build_test_program("toolway-soak")?);
    soak.arg(toolway).arg(chaos).arg(options.calls.to_string());
    command::run(soak).context("the gateway did not hold")
}
