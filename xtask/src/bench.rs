//! `cargo xtask bench`: Toolway beside its floors, in one run.
//!
//! Owns the list of suites. It measures and reports, and never judges: a missed target is shown
//! in the table, and the exit code only says whether the measuring worked. How a figure is
//! taken is in `paired.rs`; what the figures mean is in `bench/README.md`.

mod calls;
mod home;
mod paired;
mod report;
mod startup;

use anyhow::Result;

use crate::workspace::Workspace;

/// A suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    /// Starting and reading configuration
    Startup,
    /// What the pipeline adds to a call
    Calls,
}

/// What, and how thorough.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these; all when none is named
    suites: Vec<Suite>,

    /// Fewer repetitions, under three minutes; results are written beside the full ones
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let quick = options.quick;
    let publish = |name: &str, report: &report::Report| {
        let name = if quick {
            format!("{name}-quick")
        } else {
            name.to_owned()
        };
        report::publish(workspace, &name, report)
    };
    let wanted = |suite| options.suites.is_empty() || options.suites.contains(&suite);
    if wanted(Suite::Startup) {
        let startup = startup::measure(workspace, if quick { 60 } else { 400 })?;
        publish("startup", &startup)?;
    }
    if wanted(Suite::Calls) {
        let calls = calls::measure(workspace, if quick { 40 } else { 200 })?;
        publish("calls", &calls)?;
    }
    Ok(())
}
