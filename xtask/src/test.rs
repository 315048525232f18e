//! `cargo xtask test`: peers, formatting, lints, tidy, dependencies, generated documents,
//! conformance, the packages, the released program, then every test.
//!
//! Owns the order and the verdict; a secret in what the tests printed is a failure too. A failed
//! check does not hide the ones after it: everything runs, the failures are listed, and the exit
//! code is theirs. The test runner comes last so that its closing lines are read first.

mod count;
mod secrets;

use std::fs;
use std::io::ErrorKind;

use anyhow::{Result, bail};

use self::count::Count;
use crate::command::{self, Transcript};
use crate::workspace::Workspace;
use crate::{clients, conformance, deny, docs, install, release, tidy};

/// Nextest's filter for tests that need real peers; `cargo test` skips by the bare prefix.
const NOT_PEERS: &str = "not test(/(^|::)peers::/)";

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out the tests that talk to real peers and the conformance suites, and do not
    /// install those
    #[arg(long)]
    no_peers: bool,
    /// Run only tests whose name contains this, and none of the checks
    filter: Option<String>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if !options.no_peers {
        install::peers(workspace)?;
        install::shells::install();
    }
    let mut failures = Vec::new();
    let mut note = |name: &'static str, outcome: Result<()>| {
        if let Err(error) = outcome {
            eprintln!("{name} failed: {error:#}");
            failures.push(name);
        }
    };
    if options.filter.is_none() {
        note("fmt", cargo(workspace, &["fmt", "--all", "--check"]));
        note("tidy", tidy::run(workspace));
        note(
            "clippy",
            cargo(
                workspace,
                &[
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--all-features",
                    "--locked",
                    "--",
                    "-D",
                    "warnings",
                ],
            ),
        );
        note("deny", deny::run(workspace));
        note("docs", docs::run(workspace, &docs::Options { check: true }));
        if !options.no_peers {
            let client = conformance::ClientOptions::default();
            note(
                "conformance client",
                conformance::client(workspace, &client),
            );
            let server = conformance::ServerOptions::default();
            note(
                "conformance server",
                conformance::server(workspace, &server),
            );
            let upstream = conformance::UpstreamOptions::default();
            note(
                "conformance upstream",
                conformance::upstream(workspace, &upstream),
            );
            note("packages", clients::run(workspace));
        }
        note("release", release::run(workspace));
    }
    let mut total = Some(Count::default());
    let report = workspace.root().join(secrets::REPORT);
    // One that an earlier run left says nothing about this one.
    if let Err(error) = fs::remove_file(&report)
        && error.kind() != ErrorKind::NotFound
    {
        bail!("`{}` cannot be removed: {error}", report.display());
    }
    let has_nextest = has_nextest(workspace);
    for (name, transcript) in [
        ("doc tests", doc_tests(workspace, options)?),
        ("tests", tests(workspace, options, has_nextest)?),
    ] {
        if !transcript.status.success() {
            let ended = command::describe(transcript.status);
            note(name, Err(anyhow::anyhow!("{ended}")));
        }
        // A run that did not come to its tests has no report, and says so itself.
        let is_kept = name == "tests" && has_nextest;
        let report = (is_kept && (transcript.status.success() || report.exists()))
            .then_some(report.as_path());
        note("secrets", secrets::check(report, &transcript.lines));
        total = total.and_then(|sum| Some(sum + count::of(&transcript)?));
    }
    if !failures.is_empty() {
        println!("\nfailed: {}", failures.join(", "));
    }
    // Only a sum that every runner's own closing lines bear out is worth printing.
    if let Some(total) = total {
        println!("\n{total}");
    }
    if failures.is_empty() {
        Ok(())
    } else {
        bail!("{} failed", failures.join(", "))
    }
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(arguments);
    command::run(command)
}

/// Nextest does not run documentation examples; cargo does.
fn doc_tests(workspace: &Workspace, options: &Options) -> Result<Transcript> {
    let mut command = workspace.cargo();
    command.args(["test", "--workspace", "--doc", "--locked", "--no-fail-fast"]);
    command.args(&options.filter);
    command::run_and_record(command)
}

fn tests(workspace: &Workspace, options: &Options, has_nextest: bool) -> Result<Transcript> {
    let mut command = workspace.cargo();
    if has_nextest {
        command.args([
            "nextest",
            "run",
            "--workspace",
            "--locked",
            "--no-fail-fast",
        ]);
        if options.no_peers {
            command.args(["-E", NOT_PEERS]);
        }
        command.args(&options.filter);
    } else {
        println!("\ncargo-nextest is not installed: running `cargo test` instead");
        // Documentation examples ran already, hence every target but those.
        command.args([
            "test",
            "--workspace",
            "--all-targets",
            "--locked",
            "--no-fail-fast",
        ]);
        command.args(&options.filter);
        if options.no_peers {
            command.args(["--", "--skip", "peers::"]);
        }
    }
    command::run_and_record(command)
}

fn has_nextest(workspace: &Workspace) -> bool {
    let mut command = workspace.cargo();
    command.args(["nextest", "--version"]);
    command.output().is_ok_and(|output| output.status.success())
}
