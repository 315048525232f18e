//! The server side: a fixture on an official SDK is judged alone and behind the gateway.
//!
//! Owns the order: install, start what is judged, run every scenario against it, hold the outcome
//! against what is recorded, print the table. The ways to the fixture are `server/target.rs`, what is
//! started for each `server/stack.rs`, what is recorded `server/record.rs`.

mod http;
mod process;
mod record;
mod shim;
mod stack;
mod target;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use self::process::Programs;
use self::record::ExpectedShown;
use self::stack::Stack;
use self::target::{TARGETS, Target};
use super::outcome::{self, Outcome};
use super::record::{CaseKey, ExpectedFailures};
use super::suite::{self, EXTENSION, JUDGE, Suite};
use super::{grid, remove, run as running, workers};
use crate::install;
use crate::workspace::{Profile, Workspace};

/// Scenarios at once, each against processes of its own.
const AT_ONCE: usize = 2;

/// Scenarios that give an answer only so much time, which a busy neighbour would take from it.
const ALONE: &[&str] = &["server-stateless", "server-sse-polling"];

const FAILURES: &str = "tests/conformance/server/expected-failures.txt";

/// What to run.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Run only cases whose `through/revision/scenario` contains this
    #[arg(long)]
    filter: Option<String>,
    /// How the fixture is reached, or `all`: direct, http, stdio, merged, legacy-http and so on
    #[arg(long, value_delimiter = ',')]
    through: Vec<String>,
}

/// One scenario at one revision, by one way.
#[derive(Debug, Clone)]
struct Judged<'a> {
    target: &'a Target,
    revision: &'static str,
    scenario: String,
}

impl Judged<'_> {
    fn id(&self) -> String {
        format!("{}/{}/{}", self.target.name, self.revision, self.scenario)
    }

    fn key(&self) -> CaseKey {
        CaseKey {
            suite: JUDGE.version.to_owned(),
            scenario: self.scenario.clone(),
            revision: self.revision.to_owned(),
            mode: self.target.name.to_owned(),
        }
    }
}

/// Runs the server side; an outcome that nobody recorded is an error.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    println!("\n$ cargo xtask conformance server");
    let targets = target::named(&options.through)?;
    let judge = Judge::install(workspace, &targets)?;
    let all = judge.cases()?;
    let keys: Vec<CaseKey> = all.iter().map(Judged::key).collect();
    judge.failures.all_name_a_case(&keys)?;
    let filter = options.filter.as_deref().unwrap_or_default();
    let cases: Vec<Judged<'_>> = all
        .into_iter()
        .filter(|case| targets.contains(&case.target) && case.id().contains(filter))
        .collect();
    if cases.is_empty() {
        bail!("no case contains `{filter}`");
    }
    judge.a_server_without_anything_must_pass_nothing(&cases)?;
    let mut outcomes = Vec::new();
    for target in &targets {
        let of_target = cases.iter().filter(|case| case.target == *target).cloned();
        let (alone, together): (Vec<_>, Vec<_>) =
            of_target.partition(|case| ALONE.contains(&case.scenario.as_str()));
        outcomes.extend(judge.judge_all(&together, AT_ONCE)?);
        outcomes.extend(judge.judge_all(&alone, 1)?);
    }
    let columns: Vec<&str> = targets.iter().map(|target| target.name).collect();
    let entries = outcomes.iter().map(|(case, outcome)| grid::Entry {
        column: case.target.name,
        revision: case.revision,
        scenario: &case.scenario,
        outcome,
    });
    grid::print("server side", &columns, entries);
    let named = outcomes.iter().map(|(case, outcome)| (case.id(), outcome));
    outcome::report(named, FAILURES, &judge.results)
}

/// Everything a verdict needs.
struct Judge {
    suite: Suite,
    programs: Programs,
    shown: ExpectedShown,
    failures: ExpectedFailures,
    results: std::path::PathBuf,
    /// So that what workers write down lies in folders of their own.
    stacks: AtomicUsize,
}

impl Judge {
    fn install(workspace: &Workspace, targets: &[&Target]) -> Result<Self> {
        let node = suite::install_node(workspace)?;
        let has_gateway = targets.iter().any(|target| !target.is_direct());
        let toolway = has_gateway.then(|| workspace.build_binary(Profile::Debug));
        let results = workspace.path("target/conformance/server-results");
        remove(&results)?;
        let folder = workspace.path("tests/conformance");
        Ok(Self {
            suite: Suite::install(workspace, &JUDGE, &node)?,
            programs: Programs {
                node,
                script: folder.join("fixture/server.mjs"),
                modules: install::sdk(workspace)?,
                toolway: toolway.transpose()?,
            },
            shown: ExpectedShown::read(&folder.join("server/expected-checks.json"))?,
            failures: ExpectedFailures::read(&workspace.path(FAILURES))?,
            results,
            stacks: AtomicUsize::new(0),
        })
    }

    /// Every case of every column, whether it is run or not.
    fn cases(&self) -> Result<Vec<Judged<'static>>> {
        let scenarios = self.suite.scenarios("--server")?;
        let mut cases = Vec::new();
        for target in TARGETS {
            for revision in target.revisions {
                let at_revision = scenarios
                    .iter()
                    .filter(|(_, revisions)| revisions.iter().any(|known| known == revision));
                cases.extend(at_revision.map(|(scenario, _)| Judged {
                    target,
                    revision,
                    scenario: scenario.clone(),
                }));
            }
        }
        Ok(cases)
    }

    /// Runs cases of one column, some at once; the outcomes come in the order of the cases.
    fn judge_all<'a>(
        &self,
        cases: &[Judged<'a>],
        at_once: usize,
    ) -> Result<Vec<(Judged<'a>, Outcome)>> {
        let Some(first) = cases.first() else {
            return Ok(Vec::new());
        };
        let target = first.target;
        let begin = || Stack::start(target, &self.programs, &self.logs(target.name));
        let each = |stack: &mut Stack, case: &Judged<'a>| {
            let verdict = self.judge(case, &stack.url, &self.results.join(case.id()))?;
            let line = self.failures.line_of(&case.key());
            Ok((case.clone(), Outcome::of(verdict, line)))
        };
        workers::run(cases, at_once, begin, each, Stack::end)
            .with_context(|| format!("the fixture through `{}`", target.name))
    }

    fn judge(
        &self,
        case: &Judged<'_>,
        url: &str,
        folder: &Path,
    ) -> Result<Result<(), Vec<String>>> {
        let mut command = self.suite.command();
        command.args(["server", "--url", url, "--scenario", &case.scenario]);
        if case.revision != EXTENSION {
            command.args(["--spec-version", case.revision]);
        }
        let seen = running::observe(command, folder).with_context(|| case.id())?;
        let shown = self.shown.of(case.revision, &case.scenario);
        Ok(record::judge(&seen, shown, case.target.is_direct()))
    }

    /// A server that has nothing passes much of the suite, which compares little. Should it ever pass
    /// here what is not about the protocol alone, the table is worth nothing.
    fn a_server_without_anything_must_pass_nothing(&self, cases: &[Judged<'_>]) -> Result<()> {
        let mut tried: Vec<Judged<'_>> = Vec::new();
        for case in cases {
            let is_new = tried
                .iter()
                .all(|other| (other.revision, &other.scenario) != (case.revision, &case.scenario));
            let is_about_having = self
                .shown
                .of(case.revision, &case.scenario)
                .is_some_and(|shown| !shown.is_protocol());
            if is_new && is_about_having {
                tried.push(case.clone());
            }
        }
        let begin = || Stack::empty(&self.programs, &self.logs("empty"));
        let each = |stack: &mut Stack, case: &Judged<'_>| {
            let folder = self.results.join("empty").join(case.revision);
            self.judge(case, &stack.url, &folder.join(&case.scenario))
        };
        let verdicts = workers::run(&tried, AT_ONCE, begin, each, Stack::end)
            .context("a server that has nothing")?;
        let passed = tried
            .iter()
            .zip(&verdicts)
            .find(|(_, verdict)| verdict.is_ok());
        if let Some((case, _)) = passed {
            bail!(
                "a server that has nothing passes {} at {}: the verdict is read wrongly, so no \
                 table is printed",
                case.scenario,
                case.revision
            );
        }
        println!("a server that has nothing passes none of {}", tried.len());
        Ok(())
    }

    fn logs(&self, name: &str) -> std::path::PathBuf {
        let number = self.stacks.fetch_add(1, Ordering::Relaxed);
        self.results.join(format!("processes/{name}-{number}"))
    }
}
