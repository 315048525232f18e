//! The project's own chores: `cargo xtask test | conformance | tidy | deny | release | figures |
//! docs | bench | fuzz | soak`.
//!
//! Owns the command line of these chores and nothing of the product. It depends on none of the
//! product's crates on purpose, so that it builds in seconds on a fresh machine and still runs
//! while the product does not compile.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person, or the CI log, in front of it"
)]

mod bench;
mod clients;
mod command;
mod conformance;
mod deny;
mod docs;
mod figures;
mod fuzz;
mod install;
mod release;
mod shape;
mod soak;
mod test;
mod tidy;
mod tree;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Chores of the Toolway repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install the real peers, then run every check and every test
    Test(test::Options),
    /// Install the real peers and nothing else
    Peers,
    /// Compile, type-check and test the packages for Python and TypeScript
    Clients,
    /// Let the official conformance suite judge the library and the gateway
    Conformance(conformance::Options),
    /// Check the rules of the house that no compiler knows
    Tidy,
    /// Check the licences, origins and bans of dependencies by `deny.toml`
    Deny,
    /// Build the program as people install it, check its size and run its demo
    Release,
    /// Count the shape of the product: lines, names, cycles of modules
    Figures(figures::Options),
    /// Generate the CLI reference, the man pages and the config schema
    Docs(docs::Options),
    /// Measure against the floors, in one run
    Bench(bench::Options),
    /// Look for inputs that break a promise
    Fuzz(fuzz::Options),
    /// Make many calls through the gateway while servers crash and lists change
    Soak(soak::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = Workspace::find().and_then(|workspace| match arguments.chore {
        Chore::Test(options) => test::run(&workspace, &options),
        Chore::Peers => install::peers(&workspace),
        Chore::Clients => install::peers(&workspace).and_then(|()| clients::run(&workspace)),
        Chore::Conformance(options) => conformance::run(&workspace, &options),
        Chore::Tidy => tidy::run(&workspace),
        Chore::Deny => deny::run(&workspace),
        Chore::Release => release::run(&workspace),
        Chore::Figures(options) => figures::run(&workspace, &options),
        Chore::Docs(options) => docs::run(&workspace, &options),
        Chore::Bench(options) => bench::run(&workspace, &options),
        Chore::Fuzz(options) => fuzz::run(&workspace, &options),
        Chore::Soak(options) => soak::run(&workspace, &options),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
