//! How long the command line takes to start, to read a large configuration and to make one call,
//! beside `/bin/true` doing nothing, `cat` reading the same files and the least program that makes
//! such a call (`bench/floor.rs`).
//!
//! Owns the choice of candidates and targets. The one server that is started is the floor's.

use std::path::Path;
use std::process::{Child, Command};

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
    (WARM_CALL, ROUND_TRIP, 2.0),
];

const COLD_CALL: &str = "toolway call, cold, one stdio server";
const WARM_CALL: &str = "toolway call, warm daemon";
const ROUND_TRIP: &str = "floor, one local round trip";

pub(super) fn measure(workspace: &Workspace, repetitions: usize) -> Result<Report> {
    let binary = workspace.build_binary(Profile::Release)?;
    let home = Home::create()?;
    confirm(&home, &binary)?;
    let programs = tempfile::tempdir().context("cannot create a folder for the floor")?;
    let floor = workspace.compile("bench/floor.rs", programs.path())?;
    let one = Home::with_server("floor", &floor, &["serve"])?;
    confirm_call(&one, &binary)?;
    let socket = programs.path().join("socket");
    let mut listening = one.enter(&floor);
    let _listening = EndedWithThis(listening.arg("listen").arg(&socket).spawn()?);
    let warm = Home::with_server("floor", &floor, &["serve"])?;
    let daemon = RunningDaemon::start(&warm, &binary)?;
    confirm_call(&warm, &binary)?;
    daemon.confirm_kept()?;
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
        candidate(ROUND_TRIP, {
            let mut command = one.enter(&floor);
            command.arg("ask").arg(&socket);
            command
        }),
        candidate(WARM_CALL, call(&warm, &binary)),
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

/// A process that ends with this.
struct EndedWithThis(Child);

impl Drop for EndedWithThis {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The daemon of one home, ended with this.
struct RunningDaemon<'a> {
    home: &'a Home,
    binary: &'a Path,
}

impl<'a> RunningDaemon<'a> {
    fn start(home: &'a Home, binary: &'a Path) -> Result<Self> {
        let started = Self { home, binary };
        started.say("start")?;
        Ok(started)
    }

    fn say(&self, word: &str) -> Result<String> {
        let mut command = self.home.enter(self.binary);
        let output = command.args(["daemon", word]).output()?;
        if !output.status.success() {
            bail!("`toolway daemon {word}` fails");
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A call that starts a server all the same would look slow for the wrong reason.
    fn confirm_kept(&self) -> Result<()> {
        if !self.say("status")?.contains("floor") {
            bail!("the daemon does not keep the server that was called");
        }
        Ok(())
    }
}

impl Drop for RunningDaemon<'_> {
    fn drop(&mut self) {
        // Nothing more can be done about one that does not end.
        let _ = self.say("stop");
    }
}

/// One call of the only server, which is started for it unless a daemon keeps it.
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
