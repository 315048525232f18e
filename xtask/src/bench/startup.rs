//! How long the command line takes to start, to read a large configuration and to make one call,
//! beside `/bin/true` doing nothing, `cat` reading the same files and the least program that makes
//! such a call (`bench/floor.rs`).
//!
//! Owns the choice of candidates and targets. The one server that is started is the floor's.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::home::{FILES, Home, SERVERS};
use super::paired::{self, Candidate};
use super::report::{Report, Row};
use crate::workspace::{Profile, Workspace};

/// (candidate, floor, most it may cost in floors)
const COMPARISONS: &[(&str, &str, f64)] = &[
    ("toolway --help", "cat, 20 files", 5.0),
    (
        "toolway list --no-connect, 500 servers in 20 files",
        "cat, 20 files",
        5.0,
    ),
    ("toolway --version", "/bin/true", 3.0),
    (COLD_CALL, "floor one-shot", 4.0),
];

const COLD_CALL: &str = "toolway call, cold, one stdio server";

pub(super) fn measure(workspace: &Workspace, repetitions: usize) -> Result<Report> {
    let binary = workspace.build_binary(Profile::Release)?;
    let home = Home::create()?;
    confirm(&home, &binary)?;
    let programs = tempfile::tempdir().context("cannot create a folder for the floor")?;
    let floor = workspace.compile("bench/floor.rs", programs.path())?;
    let one = Home::with_server("floor", &floor, &["serve"])?;
    confirm_call(&one, &binary)?;
    let with = |argument: &str| {
        let mut command = home.enter(&binary);
        command.arg(argument);
        command
    };
    let candidate = |name: &str, command| Candidate {
        name: name.to_owned(),
        command,
    };
    let candidates = vec![
        candidate("/bin/true", home.enter(Path::new("/bin/true"))),
        candidate("toolway --version", with("--version")),
        candidate("cat, 20 files", home.cat()),
        candidate("toolway --help", with("--help")),
        candidate(
            "toolway list --no-connect, 500 servers in 20 files",
            home.list(&binary),
        ),
        candidate("floor one-shot", {
            let mut command = one.enter(&floor);
            command.arg("call");
            command
        }),
        candidate(COLD_CALL, call(&one, &binary)),
    ];
    println!(
        "\nmeasuring: {} candidates, {repetitions} repetitions",
        candidates.len()
    );
    let all = paired::measure(candidates, repetitions)?;
    let times_of = |name: &str| {
        let found = all.iter().find(|times| times.name == name);
        found
            .map(|times| times.times.as_slice())
            .with_context(|| format!("`{name}` was not run"))
    };
    let mut rows = Vec::new();
    for &(name, floor, target) in COMPARISONS {
        let (of, beside) = (times_of(name)?, times_of(floor)?);
        rows.push(Row {
            name: name.to_owned(),
            floor: floor.to_owned(),
            time: paired::median(of),
            floor_time: paired::median(beside),
            ratio: paired::ratios(of, beside),
            target,
        });
    }
    Ok(Report {
        title: "Starting and reading configuration".to_owned(),
        repetitions,
        rows,
        notes: String::new(),
        facts: Value::Null,
    })
}

/// One call of the only server, which is started for it: nothing is kept running.
fn call(home: &Home, binary: &Path) -> Command {
    let mut command = home.enter(binary);
    command.args(["call", "floor", "echo"]);
    command
}

/// A call that fails would look fast for the wrong reason.
fn confirm_call(home: &Home, binary: &Path) -> Result<()> {
    let output = call(home, binary)
        .output()
        .context("cannot run `toolway call`")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || said.trim() != "hello" {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`toolway call` did not say hello but {said:?}: {}",
            errors.trim()
        );
    }
    Ok(())
}

/// A listing that misses files would look fast for the wrong reason.
fn confirm(home: &Home, binary: &Path) -> Result<()> {
    let output = home
        .list(binary)
        .arg("--json")
        .output()
        .context("cannot run `toolway list`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`toolway list --no-connect` fails in the prepared home: {}",
            said.trim()
        );
    }
    let listing: Value = serde_json::from_slice(&output.stdout)
        .context("`toolway list --no-connect --json` printed no JSON")?;
    let found = listing["servers"].as_array().map_or(0, Vec::len);
    if found != SERVERS {
        bail!("the prepared home has {SERVERS} servers in {FILES} files, `toolway` lists {found}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_calls_its_own_server() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::find().unwrap();
        let floor = workspace.compile("bench/floor.rs", folder.path()).unwrap();
        let one = Home::with_server("floor", &floor, &["serve"]).unwrap();
        let output = one.enter(&floor).arg("call").output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "hello");
        assert!(output.status.success());
    }
}
