//! `cargo xtask fuzz`: builds the fuzz targets with coverage feedback and runs them.
//!
//! Owns the flags of the instrumented build and of the runs. What is asserted stands in
//! `fuzz/targets/`. The stable compiler suffices: LLVM's coverage pass is asked for directly, and
//! no sanitizer is used, for this is safe Rust and every promise is an assertion.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::command;
use crate::workspace::Workspace;

/// What makes coverage visible to libFuzzer, on every crate that is linked.
const INSTRUMENTATION: [&str; 7] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

#[derive(Args)]
pub(crate) struct Options {
    /// The target to run; all of them when none is given
    #[arg(value_enum)]
    target: Option<Target>,
    /// How long each target runs
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// How many compilers run side by side
    #[arg(long)]
    jobs: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Text and JSON of servers
    Cleaning,
    /// Names that models see
    Names,
    /// Permission rules
    Rules,
    /// Answers that are looked through instead of read
    Answers,
    /// Outlines of results
    Outline,
    /// Files of results
    Spill,
    /// Event streams of servers
    EventStream,
    /// Answers of servers over HTTP
    HttpAnswer,
    /// What servers send on a WebSocket
    Websocket,
    /// Sealed values that clients bring back
    Sealed,
    /// Connections of clients to the gateway
    HttpFront,
    /// Lines of a client over stdin
    StdioFront,
    /// Results and errors on their way between the eras
    Eras,
}

impl Target {
    fn as_str(self) -> &'static str {
        match self {
            Target::Cleaning => "cleaning",
            Target::Names => "names",
            Target::Rules => "rules",
            Target::Answers => "answers",
            Target::Outline => "outline",
            Target::Spill => "spill",
            Target::EventStream => "event-stream",
            Target::HttpAnswer => "http-answer",
            Target::Websocket => "websocket",
            Target::Sealed => "sealed",
            Target::HttpFront => "http-front",
            Target::StdioFront => "stdio-front",
            Target::Eras => "eras",
        }
    }
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let targets: Vec<Target> = match options.target {
        Some(target) => vec![target],
        None => Target::value_variants().to_vec(),
    };
    let host = host_triple()?;
    build(workspace, &targets, &host, options.jobs)?;
    let mut summaries = Vec::new();
    for target in targets {
        summaries.push(fuzz(workspace, target, &host, options.seconds)?);
    }
    println!();
    for summary in summaries {
        println!("{summary}");
    }
    Ok(())
}

/// Naming the target keeps the flags away from build scripts and macros, which have no libFuzzer.
fn build(workspace: &Workspace, targets: &[Target], host: &str, jobs: Option<u32>) -> Result<()> {
    let mut command = workspace.cargo();
    command
        .current_dir(workspace.path("fuzz"))
        .args(["build", "--locked", "--target", host, "--target-dir"])
        .arg(output(workspace))
        .env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\u{1f}"));
    for target in targets {
        command.args(["--bin", target.as_str()]);
    }
    if let Some(jobs) = jobs {
        command.arg("--jobs").arg(jobs.to_string());
    }
    command::run(command).context("the fuzz targets do not build")
}

fn fuzz(workspace: &Workspace, target: Target, host: &str, seconds: u64) -> Result<String> {
    let name = target.as_str();
    let place = output(workspace);
    // What a run learns stays below `target`, for the next run; the seeds are only read.
    let corpus = place.join("corpus").join(name);
    let findings = place.join("findings").join(name);
    for directory in [&corpus, &findings] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make `{}`", directory.display()))?;
    }
    let transcript = command::run_and_record(fuzzer(
        &place.join(host).join("debug").join(name),
        &[corpus, workspace.path("fuzz/corpus-seeds").join(name)],
        &findings,
        seconds,
    ))?;
    if !transcript.status.success() {
        bail!(
            "`{name}` has a finding ({}); the input is in `{}`",
            command::describe(transcript.status),
            findings.display()
        );
    }
    summary(name, &transcript.lines)
}

fn fuzzer(program: &Path, corpora: &[PathBuf], findings: &Path, seconds: u64) -> Command {
    let mut prefix = findings.as_os_str().to_owned();
    // libFuzzer puts the name of a finding right behind this.
    prefix.push("/");
    let mut artifacts = std::ffi::OsString::from("-artifact_prefix=");
    artifacts.push(prefix);
    let mut command = Command::new(program);
    command
        .args(corpora)
        .arg(artifacts)
        .arg(format!("-max_total_time={seconds}"))
        .args([
            "-fork=0",
            "-max_len=4096",
            // At full length from the start: limits such as 2,048 characters are never met else.
            "-len_control=0",
            "-rss_limit_mb=2048",
            "-timeout=25",
            "-print_final_stats=1",
        ]);
    command
}

fn output(workspace: &Workspace) -> PathBuf {
    workspace.path("target/fuzz")
}

fn host_triple() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("`rustc` cannot be run")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("`rustc -vV` names no host")
}

/// One line for a report. A run whose coverage never grew has tested nothing and is an error.
fn summary(name: &str, lines: &[String]) -> Result<String> {
    let covered: Vec<u64> = lines.iter().filter_map(|line| coverage(line)).collect();
    let first = covered.first().copied().unwrap_or_default();
    let last = covered.last().copied().unwrap_or_default();
    if last == 0 {
        bail!("`{name}` ran without coverage feedback: the build is not instrumented");
    }
    let done = lines
        .iter()
        .rev()
        .find_map(|line| line.strip_prefix("Done "))
        .with_context(|| format!("`{name}` did not say how much it ran"))?;
    Ok(format!("{name}: {done}, coverage {first} to {last}"))
}

/// The number behind `cov:` in a line of libFuzzer.
fn coverage(line: &str) -> Option<u64> {
    let words = line.split_ascii_whitespace();
    iter::zip(words.clone(), words.skip(1))
        .find(|(word, _)| *word == "cov:")
        .and_then(|(_, number)| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_summed_up_in_one_line() {
        let lines = [
            "#2\tINITED cov: 90 ft: 91 corp: 1/1b exec/s: 0 rss: 40Mb",
            "#812\tNEW    cov: 431 ft: 900 corp: 40/2Kb lim: 11 exec/s: 0 rss: 41Mb",
            "Done 52340 runs in 601 second(s)",
        ]
        .map(str::to_owned);
        assert_eq!(
            summary("names", &lines).unwrap(),
            "names: 52340 runs in 601 second(s), coverage 90 to 431"
        );
    }

    #[test]
    fn a_run_without_coverage_is_an_error() {
        let lines = ["Done 52340 runs in 601 second(s)".to_owned()];
        let error = summary("names", &lines).unwrap_err().to_string();
        assert!(error.contains("not instrumented"), "{error}");
    }

    #[test]
    fn every_target_has_its_source_its_seeds_and_its_entry() {
        let workspace = Workspace::find().unwrap();
        let manifest = fs::read_to_string(workspace.path("fuzz/Cargo.toml")).unwrap();
        for target in Target::value_variants() {
            let name = target.as_str();
            let source = format!("targets/{name}.rs");
            assert!(workspace.path("fuzz").join(&source).is_file(), "{source}");
            assert!(manifest.contains(&source), "{source}");
            let seeds = fs::read_dir(workspace.path("fuzz/corpus-seeds").join(name)).unwrap();
            assert!(seeds.count() > 1, "{name} has no seeds");
        }
    }
}
