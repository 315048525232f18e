//! How long the command line takes to start, to read a large configuration and to make one call,
//! beside `/bin/true` doing nothing, `cat` reading the same files and the least client there is.
//!
//! Owns the choice of candidates and targets.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::home::{FILES, Home, SERVERS};
use super::one_shot::OneShot;
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
    (
        "toolway call, one stdio server, cold",
        "the floor of a one-shot call",
        4.0,
    ),
];

pub(super) fn measure(workspace: &Workspace, repetitions: usize) -> Result<Report> {
    let binary = workspace.build_binary(Profile::Release)?;
    let home = Home::create()?;
    confirm(&home, &binary)?;
    let one_shot = OneShot::create(workspace)?;
    one_shot.confirm(&binary)?;
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
        candidate("the floor of a one-shot call", one_shot.floor()),
        candidate(
            "toolway call, one stdio server, cold",
            one_shot.call(&binary),
        ),
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
        title: "Starting, reading configuration and making one call".to_owned(),
        repetitions,
        rows,
        notes: String::new(),
        facts: Value::Null,
    })
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
