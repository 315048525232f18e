//! One scenario at one revision in one mode, and running it in a process of its own.
//!
//! Owns how the suite is started and where its findings lie. Alone, because only then does the
//! suite look at the client's exit code and time. What the findings mean is `verdict.rs`.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::suite::{ANY, EXTENSION, Suite};
use super::verdict::{Check, Seen};

/// The client ends itself after 25 s and the suite gives up after 30 s; more is a hang.
const LONGEST: Duration = Duration::from_mins(1);

/// What an adapter without a revision to obey is pinned to: what such mocks speak.
const STABLE: &str = "2025-11-25";

/// How the client finds the revision to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// It is told.
    Pinned,
    /// It finds out.
    Auto,
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Mode::Pinned => "pinned",
            Mode::Auto => "auto",
        })
    }
}

/// Who is judged.
pub(super) enum Client {
    /// The adapter of the testkit.
    Adapter(PathBuf),
    /// A program that does nothing, successfully.
    Idle,
}

impl Client {
    /// The suite splits this at blanks and a shell joins it again, so quotes hold.
    fn words(&self, mode: Mode) -> String {
        match self {
            Client::Adapter(program) => format!("'{}' {mode}", program.display()),
            Client::Idle => "true".to_owned(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Case<'a> {
    pub(super) suite: &'a Suite,
    pub(super) scenario: String,
    pub(super) revision: String,
    pub(super) mode: Mode,
}

impl Case<'_> {
    /// `suite/revision/mode/scenario`.
    pub(super) fn id(&self) -> String {
        format!(
            "{}/{}/{}/{}",
            self.suite.kind.version, self.revision, self.mode, self.scenario
        )
    }

    /// Runs it; what it leaves behind stays in `folder`.
    pub(super) fn run(&self, client: &Client, folder: &Path) -> Result<Seen> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let said = folder.join("suite.txt");
        let log = File::create(&said).with_context(|| format!("`{}`", said.display()))?;
        let mut command = self.suite.command();
        command
            .args(["client", "--scenario", &self.scenario, "--command"])
            .arg(client.words(self.mode))
            .arg("--output-dir")
            .arg(folder)
            .current_dir(folder)
            .stdout(log.try_clone()?)
            .stderr(log);
        if let Some(revision) = self.suite.spec_version(&self.revision) {
            command.args(["--spec-version", revision]);
        }
        if self.revision == ANY || self.revision == EXTENSION {
            // An old suite does not say which revision its mocks speak.
            command.env("MCP_CONFORMANCE_PROTOCOL_VERSION", STABLE);
        }
        let mut child = command
            .spawn()
            .context("the conformance suite cannot be run")?;
        let status = wait(&mut child).with_context(|| self.id())?;
        let said = fs::read(&said).with_context(|| format!("`{}`", said.display()))?;
        Ok(Seen {
            status,
            said: String::from_utf8_lossy(&said).into_owned(),
            checks: checks_in(folder)?,
        })
    }
}

/// None when it had to be ended.
fn wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The one `checks.json` below the folder, whatever the suite called its own folder.
fn checks_in(folder: &Path) -> Result<Option<Vec<Check>>> {
    let Some(file) = find(folder, "checks.json") else {
        return Ok(None);
    };
    let text = fs::read_to_string(&file).with_context(|| format!("`{}`", file.display()))?;
    Check::read_all(&text)
        .map(Some)
        .with_context(|| format!("`{}`", file.display()))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut below = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            below.push(path);
        } else if entry.file_name() == name {
            return Some(path);
        }
    }
    below.iter().find_map(|folder| find(folder, name))
}
