//! The gateway's other side: what it sends to servers, and what of their answers arrives.
//!
//! A client on an official SDK is judged by the suite's mock servers, alone and with `toolway serve`
//! between, which must not cost it anything. Owns the order and the ways. What a real run shows is
//! the client side's record; that doing nothing passes nothing is tried there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::outcome::{self, Outcome};
use super::record::{CaseKey, ExpectedChecks, ExpectedFailures};
use super::suite::{self, EXTENSION, JUDGE, Suite};
use super::{grid, remove, run as running, verdict, workers};
use crate::install;
use crate::workspace::{Profile, Workspace};

/// Scenarios at once.
const AT_ONCE: usize = 2;

/// Scenarios that measure time, which a busy neighbour would spoil.
const ALONE: &[&str] = &["sse-retry"];

const FAILURES: &str = "tests/conformance/upstream/expected-failures.txt";

/// At each of these the SDK's client is told which one to speak.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28", EXTENSION];

/// How the client reaches the mock server: itself, or through the gateway over HTTP or stdio.
const WAYS: &[&str] = &[DIRECT, "http", "stdio"];
const DIRECT: &str = "direct";

/// What to run.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Run only cases whose `through/revision/scenario` contains this
    #[arg(long)]
    filter: Option<String>,
    /// How the client reaches the mock servers, or `all`: direct, http, stdio
    #[arg(long, value_delimiter = ',')]
    through: Vec<String>,
}

#[derive(Clone)]
struct Case {
    way: &'static str,
    revision: &'static str,
    scenario: String,
}

impl Case {
    fn id(&self) -> String {
        format!("{}/{}/{}", self.way, self.revision, self.scenario)
    }

    fn key(&self) -> CaseKey {
        CaseKey {
            suite: JUDGE.version.to_owned(),
            scenario: self.scenario.clone(),
            revision: self.revision.to_owned(),
            mode: self.way.to_owned(),
        }
    }
}

/// Runs the SDK's client; an outcome that nobody recorded is an error.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    println!("\n$ cargo xtask conformance upstream");
    let ways = named(&options.through)?;
    let node = suite::install_node(workspace)?;
    let suite = Suite::install(workspace, &JUDGE, &node)?;
    let adapter = Adapter {
        node,
        script: workspace.path("tests/conformance/fixture/client.mjs"),
        modules: install::sdk(workspace)?,
        toolway: match ways[..] {
            [DIRECT] => None,
            _ => Some(workspace.build_binary(Profile::Debug)?),
        },
    };
    let checks = workspace.path("tests/conformance/expected-checks.json");
    let checks = ExpectedChecks::read(&checks)?;
    let failures = ExpectedFailures::read(&workspace.path(FAILURES))?;
    let results = workspace.path("target/conformance/upstream-results");
    remove(&results)?;

    let all = cases(&suite)?;
    failures.all_name_a_case(&all.iter().map(Case::key).collect::<Vec<_>>())?;
    let filter = options.filter.as_deref().unwrap_or_default();
    let (alone, together): (Vec<Case>, Vec<Case>) = all
        .into_iter()
        .filter(|case| ways.contains(&case.way) && case.id().contains(filter))
        .partition(|case| ALONE.contains(&case.scenario.as_str()));
    if alone.is_empty() && together.is_empty() {
        bail!("no case contains `{filter}`");
    }
    let judge = |(): &mut (), case: &Case| {
        let mut command = suite.command();
        command
            .args(["client", "--scenario", &case.scenario, "--command"])
            .arg(adapter.words(case.way)?);
        if case.revision != EXTENSION {
            command.args(["--spec-version", case.revision]);
        }
        let seen =
            running::observe(command, &results.join(case.id())).with_context(|| case.id())?;
        let key = case.key();
        let verdict = verdict::judge(&seen, checks.of(&key));
        Ok((case.clone(), Outcome::of(verdict, failures.line_of(&key))))
    };
    let mut outcomes = workers::run(&together, AT_ONCE, || Ok(()), judge, |()| Ok(()))?;
    outcomes.extend(workers::run(&alone, 1, || Ok(()), judge, |()| Ok(()))?);
    let entries = outcomes.iter().map(|(case, outcome)| grid::Entry {
        column: case.way,
        revision: case.revision,
        scenario: &case.scenario,
        outcome,
    });
    grid::print("a client on the SDK", &ways, entries);
    let named = outcomes.iter().map(|(case, outcome)| (case.id(), outcome));
    outcome::report(named, FAILURES, &results)
}

/// The ways that were named; `all` names every one, nothing the direct one.
fn named(words: &[String]) -> Result<Vec<&'static str>> {
    if let Some(stranger) = words
        .iter()
        .find(|word| *word != "all" && !WAYS.contains(&word.as_str()))
    {
        bail!(
            "`--through` knows no `{stranger}`: it knows all, {}",
            WAYS.join(", ")
        );
    }
    let is_named =
        |way: &&str| words.is_empty() || words.iter().any(|word| word == "all" || word == *way);
    Ok(WAYS.iter().copied().filter(is_named).collect())
}

/// Logins are between a client and its server, and the gateway has its own: they are judged on the
/// client side.
fn cases(suite: &Suite) -> Result<Vec<Case>> {
    let scenarios = suite.scenarios("--client")?;
    let mut cases = Vec::new();
    for way in WAYS {
        for revision in REVISIONS {
            let at_revision = scenarios.iter().filter(|(scenario, revisions)| {
                !scenario.starts_with("auth/") && revisions.iter().any(|known| known == revision)
            });
            cases.extend(at_revision.map(|(scenario, _)| Case {
                way,
                revision,
                scenario: scenario.clone(),
            }));
        }
    }
    Ok(cases)
}

/// The client, which starts the gateway itself where there is to be one.
struct Adapter {
    node: PathBuf,
    script: PathBuf,
    modules: PathBuf,
    toolway: Option<PathBuf>,
}

impl Adapter {
    /// The suite splits this at blanks and a shell joins it again, so quotes hold.
    fn words(&self, way: &str) -> Result<String> {
        let quoted = |path: &Path| format!("'{}'", path.display());
        let mut words = vec![
            quoted(&self.node),
            quoted(&self.script),
            quoted(&self.modules),
            way.to_owned(),
        ];
        if way != DIRECT {
            let toolway = self.toolway.as_deref().context("no gateway was built")?;
            words.push(quoted(toolway));
        }
        Ok(words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_chosen_by_name() {
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        assert_eq!(named(&words(&["all"])).unwrap(), WAYS);
        assert_eq!(named(&[]).unwrap(), WAYS);
        assert_eq!(
            named(&words(&["stdio", DIRECT])).unwrap(),
            [DIRECT, "stdio"]
        );
        assert!(named(&words(&["sideways"])).is_err());
    }
}
