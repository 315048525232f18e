//! The client side: the adapter of the testkit, which embeds the library.
//!
//! Owns the order: install, build the adapter, run every scenario of every suite at every revision
//! in both modes, hold the outcome against what is recorded, print the table.

use std::path::Path;

use anyhow::{Result, bail};

use super::case::{Case, Client, Mode};
use super::outcome::{self, Outcome};
use super::record::{ExpectedChecks, ExpectedFailures};
use super::suite::{self, SUITES, Suite};
use super::table::{self, Row};
use super::{remove, verdict, workers};
use crate::workspace::Workspace;

/// Scenarios at once; each is a Node process and a client that mostly wait for each other.
const AT_ONCE: usize = 2;

/// Scenarios that measure time, which a busy neighbour would spoil: they run one at a time.
const ALONE: &[&str] = &["sse-retry"];

/// What to run.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Run only cases whose `suite/revision/mode/scenario` contains this
    #[arg(long)]
    filter: Option<String>,
}

/// Runs the client side; an outcome that nobody recorded is an error.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    println!("\n$ cargo xtask conformance client");
    let node = suite::install_node(workspace)?;
    let suites = SUITES
        .iter()
        .map(|kind| Suite::install(workspace, kind, &node))
        .collect::<Result<Vec<_>>>()?;
    let adapter = workspace.build_conformance()?;
    let folder = workspace.path("tests/conformance");
    let checks = ExpectedChecks::read(&folder.join("expected-checks.json"))?;
    let failures = ExpectedFailures::read(&folder.join("expected-failures.txt"))?;
    let results = workspace.path("target/conformance/results");
    remove(&results)?;

    let mut cases = Vec::new();
    for suite in &suites {
        cases.extend(suite.cases()?);
    }
    failures.all_name_a_case(&cases.iter().map(Case::key).collect::<Vec<_>>())?;
    a_client_that_does_nothing_must_pass_nothing(&cases, &checks, &results)?;
    if let Some(filter) = &options.filter {
        cases.retain(|case| case.id().contains(filter));
        if cases.is_empty() {
            bail!("no case contains `{filter}`");
        }
    }
    let (alone, together): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .partition(|case| ALONE.contains(&case.scenario.as_str()));
    let client = Client::Adapter(adapter);
    let mut outcomes = judge_all(&together, AT_ONCE, &client, &checks, &failures, &results)?;
    outcomes.extend(judge_all(&alone, 1, &client, &checks, &failures, &results)?);
    table::print(&Row::sum_up(&outcomes));
    outcome::report(
        outcomes.iter().map(|(case, outcome)| (case.id(), outcome)),
        "tests/conformance/expected-failures.txt",
        &results,
    )
}

/// Runs cases, some at once; the outcomes come in the order of the cases.
fn judge_all<'a>(
    cases: &[Case<'a>],
    at_once: usize,
    client: &Client,
    checks: &ExpectedChecks,
    failures: &ExpectedFailures,
    results: &Path,
) -> Result<Vec<(Case<'a>, Outcome)>> {
    let judge = |(): &mut (), case: &Case<'a>| {
        let seen = case.run(client, &results.join(case.id()))?;
        let key = case.key();
        let verdict = verdict::judge(&seen, checks.of(&key));
        Ok((case.clone(), Outcome::of(verdict, failures.line_of(&key))))
    };
    workers::run(cases, at_once, || Ok(()), judge, |()| Ok(()))
}

/// The suites call "no check failed" a pass, so `true` passes several. Should it ever pass one
/// here, the whole table is worth nothing, so this is tried before it.
fn a_client_that_does_nothing_must_pass_nothing(
    cases: &[Case<'_>],
    checks: &ExpectedChecks,
    results: &Path,
) -> Result<()> {
    let recorded: Vec<_> = cases
        .iter()
        // It has no modes.
        .filter(|case| case.mode == Mode::Auto && checks.of(&case.key()).is_some())
        .cloned()
        .collect();
    if recorded.is_empty() {
        bail!("expected-checks.json records no case that exists");
    }
    let none = ExpectedFailures::default();
    let results = results.join("idle");
    let outcomes = judge_all(&recorded, AT_ONCE, &Client::Idle, checks, &none, &results)?;
    let passed = outcomes
        .iter()
        .find(|(_, outcome)| matches!(outcome, Outcome::Passed));
    if let Some((case, _)) = passed {
        bail!(
            "`true` passes {}: the verdict is read wrongly, so no table is printed",
            case.id()
        );
    }
    println!("`true` as the client passes none of {}", outcomes.len());
    Ok(())
}
