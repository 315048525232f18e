//! `cargo xtask bench`: Toolway beside its floors, in one run.
//!
//! Owns the list of suites. It measures and reports, and never judges: a missed target is shown
//! in the table, and the exit code only says whether the measuring worked. How a figure is
//! taken is in `paired.rs`; what the figures mean is in `bench/README.md`.

mod calls;
mod catalogue;
mod example;
mod gateway;
mod home;
mod paired;
mod report;
mod search;
mod startup;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use self::report::Report;
use crate::workspace::{Profile, Workspace};

/// Enough starts for a first look.
const QUICK_STARTS: usize = 60;

/// What is measured, and how thoroughly.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these suites; all when left out
    suites: Vec<Suite>,

    /// Fewer repetitions, under three minutes; results are written beside the full ones
    #[arg(long)]
    quick: bool,

    /// So many repetitions, in place of those that a suite takes by itself
    #[arg(long)]
    repetitions: Option<usize>,

    /// Leave out the gateways of others, which are installed from npm and PyPI; a quick run does
    #[arg(long)]
    no_peers: bool,

    /// Measure an unoptimised build, where the suite allows it: its times mean little, and the
    /// report says so
    #[arg(long)]
    unoptimised: bool,

    /// Let the suite `gateway` measure this program in place of building one: an older one, or one
    /// with symbols
    #[arg(long)]
    program: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Starting, and reading configuration
    Startup,
    /// What the pipeline adds to a call
    Calls,
    /// What a change of one server costs
    Catalogue,
    /// Finding tools, and a pool of two thousand
    Search,
    /// Calls through the gateway, beside other gateways
    Gateway,
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Suite::Startup => "startup",
            Suite::Calls => "calls",
            Suite::Catalogue => "catalogue",
            Suite::Search => "search",
            Suite::Gateway => "gateway",
        }
    }

    fn measure(self, workspace: &Workspace, options: &Options) -> Result<Report> {
        let quick = options.quick;
        let profile = if options.unoptimised {
            Profile::Debug
        } else {
            Profile::Release
        };
        let times = |few: usize, many: usize| {
            let usual = if quick { few } else { many };
            options.repetitions.unwrap_or(usual)
        };
        match self {
            Suite::Startup => startup::measure(workspace, times(QUICK_STARTS, 400)),
            // Medians of 200 wobble by 0.03 from run to run.
            Suite::Calls => calls::measure(workspace, profile, times(200, 2000)),
            Suite::Catalogue => catalogue::measure(workspace, profile, times(30, 200)),
            Suite::Search => search::measure(workspace, profile, times(10, 50)),
            Suite::Gateway => gateway::measure(
                workspace,
                &gateway::Thoroughness {
                    repetitions: times(8, 40),
                    sessions: if quick { 2_000 } else { 10_000 },
                    peers: !quick && !options.no_peers,
                },
                options.program.as_deref(),
            ),
        }
    }
}

/// The table of how long starting takes, for a chore that shows it beside its own figures.
pub(crate) fn startup_table(workspace: &Workspace) -> Result<String> {
    let report = startup::measure(workspace, QUICK_STARTS)?;
    Ok(report::markdown(workspace, &report))
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    for suite in Suite::value_variants() {
        if !options.suites.is_empty() && !options.suites.contains(suite) {
            continue;
        }
        let report = suite.measure(workspace, options)?;
        let name = if options.quick {
            format!("{}-quick", suite.name())
        } else {
            suite.name().to_owned()
        };
        report::publish(workspace, &name, &report)?;
    }
    Ok(())
}
