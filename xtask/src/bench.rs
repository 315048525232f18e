//! `cargo xtask bench`: Toolway beside its floors, in one run.
//!
//! Owns the list of suites. It measures and reports, and never judges: a missed target is shown
//! in the table, and the exit code only says whether the measuring worked. How a figure is
//! taken is in `paired.rs`; what the figures mean is in `bench/README.md`.

mod home;
mod paired;
mod report;
mod startup;

use anyhow::Result;

use crate::workspace::Workspace;

/// How thorough.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fewer repetitions, under three minutes; results are written beside the full ones
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let startup = startup::measure(workspace, if options.quick { 60 } else { 400 })?;
    let name = if options.quick {
        "startup-quick"
    } else {
        "startup"
    };
    report::publish(workspace, name, &startup)
}
