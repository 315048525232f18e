//! `cargo xtask conformance client`: the official suite judges the library.
//!
//! Owns the order: install, build the adapter, run every scenario of every suite at every
//! revision in both modes, hold the outcome against what is recorded, print the table. What a
//! scenario's verdict is worth is `conformance/verdict.rs`; what is recorded is
//! `conformance/record.rs`; `tests/conformance/README.md` says how to read it all.

mod case;
mod record;
mod suite;
mod table;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};

use self::case::{Case, Client, Mode};
use self::record::{ExpectedChecks, ExpectedFailures};
use self::suite::{SUITES, Suite};
use self::table::{Outcome, Row};
use crate::workspace::Workspace;

/// Scenarios at once; each is a Node process and a client that mostly wait for each other.
const AT_ONCE: usize = 2;

/// Scenarios that measure time, which a busy neighbour would spoil: they run one at a time.
const ALONE: &[&str] = &["sse-retry"];

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    side: Side,
}

#[derive(clap::Subcommand)]
enum Side {
    /// Judge the client side: the adapter of the testkit, which embeds the library
    Client(ClientOptions),
}

/// What to run.
#[derive(clap::Args, Default)]
pub(crate) struct ClientOptions {
    /// Run only cases whose `suite/revision/mode/scenario` contains this
    #[arg(long)]
    filter: Option<String>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    match &options.side {
        Side::Client(options) => client(workspace, options),
    }
}

/// Runs the client side; an outcome that nobody recorded is an error.
pub(crate) fn client(workspace: &Workspace, options: &ClientOptions) -> Result<()> {
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
    failures.all_name_a_case(&cases)?;
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
    report(&outcomes, &results)
}

/// Says what was not expected; that is what fails the run.
fn report(outcomes: &[(Case<'_>, Outcome)], results: &Path) -> Result<()> {
    let mut unexpected = 0;
    for (case, outcome) in outcomes {
        match outcome {
            Outcome::Passed | Outcome::ExpectedFailure => continue,
            Outcome::Failed(reasons) => {
                println!("failed: {}", case.id());
                for reason in reasons {
                    println!("    {reason}");
                }
            }
            Outcome::UnexpectedPass { line } => println!(
                "passed, though a failure is expected: {}\n    take it out of line {line} of \
                 tests/conformance/expected-failures.txt",
                case.id()
            ),
        }
        unexpected += 1;
    }
    if unexpected > 0 {
        bail!(
            "{unexpected} of {} cases did not end as recorded; what was seen lies in `{}`",
            outcomes.len(),
            results.display()
        );
    }
    Ok(())
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
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let outcome = judge(case, client, checks, failures, results);
                    if let Ok(mut done) = done.lock() {
                        done.push((index, outcome));
                    }
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .map_err(|_| anyhow::anyhow!("a thread that ran scenarios panicked"))?;
    done.sort_by_key(|(index, _)| *index);
    done.into_iter()
        .map(|(index, outcome)| Ok((cases[index].clone(), outcome?)))
        .collect()
}

fn judge(
    case: &Case<'_>,
    client: &Client,
    checks: &ExpectedChecks,
    failures: &ExpectedFailures,
    results: &Path,
) -> Result<Outcome> {
    let seen = case.run(client, &results.join(case.id()))?;
    let verdict = verdict::judge(&seen, checks.of(case));
    Ok(match (verdict, failures.line_of(case)) {
        (Ok(()), None) => Outcome::Passed,
        (Ok(()), Some(line)) => Outcome::UnexpectedPass { line },
        (Err(_), Some(_)) => Outcome::ExpectedFailure,
        (Err(reasons), None) => Outcome::Failed(reasons),
    })
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
        .filter(|case| case.mode == Mode::Auto && checks.of(case).is_some())
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

fn remove(folder: &PathBuf) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", folder.display()))
        }
        _ => Ok(()),
    }
}
