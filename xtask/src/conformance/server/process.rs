//! The processes a server is made of: the fixture, its neighbours, and the gateway before them.
//!
//! Owns starting them, hearing where they listen, and ending them: a server ends with its input, the
//! gateway when it is told to, and neither may have to be killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::target::Eras;
use crate::command;

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The exit code of a program that SIGTERM ended, as a shell counts it.
const BY_SIGTERM: i32 = 143;

/// What `tests/conformance/fixture/server.mjs` can be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Fixture,
    Decoy,
    Empty,
}

/// The programs that servers are started from.
pub(super) struct Programs {
    pub(super) node: PathBuf,
    pub(super) script: PathBuf,
    /// The folder with the SDK.
    pub(super) modules: PathBuf,
    /// Built only where a gateway is judged.
    pub(super) toolway: Option<PathBuf>,
}

impl Programs {
    /// The words that start a server, listening or on stdio.
    fn words(&self, kind: Kind, eras: Eras, way: &str) -> Vec<String> {
        let kind = match kind {
            Kind::Fixture => "fixture",
            Kind::Decoy => "decoy",
            Kind::Empty => "empty",
        };
        let paths = [&self.script, &self.modules].map(|path| path.display().to_string());
        let words = [kind, eras.word(), way].map(str::to_owned);
        paths.into_iter().chain(words).collect()
    }

    /// The entry of a server that the gateway starts itself.
    pub(super) fn entry(&self, kind: Kind, eras: Eras) -> Value {
        json!({ "command": self.node, "args": self.words(kind, eras, "stdio") })
    }

    /// A server that listens.
    pub(super) fn listen(&self, kind: Kind, eras: Eras, log: &Path) -> Result<Process> {
        let mut command = Command::new(&self.node);
        command
            .args(self.words(kind, eras, "0"))
            .stdin(Stdio::piped());
        let mut process = Process::start(command, log)?;
        process.url = process
            .url
            .strip_prefix("listening on ")
            .with_context(|| format!("a server said `{}`", process.url))?
            .to_owned();
        Ok(process)
    }

    /// `toolway serve` before those servers, in a home of its own.
    pub(super) fn serve(&self, servers: &Map<String, Value>, log: &Path) -> Result<Gateway> {
        let toolway = self.toolway.as_ref().context("no gateway was built")?;
        let home = tempfile::tempdir().context("cannot create a temporary home")?;
        let config = home.path().join("servers.json");
        fs::write(&config, json!({ "mcpServers": servers }).to_string())?;
        let mut command = Command::new(toolway);
        command
            .args(["serve", "--http", "127.0.0.1:0", "--no-token"])
            .arg("--mcp-config")
            .arg(&config)
            .arg("--strict-mcp-config")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path())
            .env("TOOLWAY_HOME", home.path().join("toolway"))
            .current_dir(home.path())
            .stdin(Stdio::null());
        let process = Process::start(command, log)?;
        if !process.url.starts_with("http://") {
            bail!("`toolway serve` said `{}` and no address", process.url);
        }
        Ok(Gateway {
            process,
            _home: home,
        })
    }
}

/// A process that said where it listens; killed when dropped, unless it was ended.
pub(super) struct Process {
    child: Child,
    pub(super) url: String,
}

impl Process {
    /// Starts it and reads the first line it prints.
    fn start(mut command: Command, log: &Path) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder)?;
        }
        let errors = File::create(log).with_context(|| format!("`{}`", log.display()))?;
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("`{name}` cannot be run"))?;
        let stdout = child.stdout.take().context("it has no output")?;
        let mut process = Self {
            child,
            url: String::new(),
        };
        let mut reader = BufReader::new(stdout);
        if reader.read_line(&mut process.url)? == 0 {
            bail!("`{name}` ended without a word; see `{}`", log.display());
        }
        process.url = process.url.trim_end().to_owned();
        // Whatever else it prints must not stop it.
        thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        Ok(process)
    }

    /// Closes its input and waits for its end.
    pub(super) fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.wait().context("a server whose input was closed")?;
        if !status.success() {
            bail!("a server ended with {}", command::describe(status));
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if started.elapsed() > PATIENCE {
                bail!("it did not end within {} s", PATIENCE.as_secs());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, as a rule.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A gateway and its home.
pub(super) struct Gateway {
    process: Process,
    _home: TempDir,
}

impl Gateway {
    /// Where its merged view is.
    pub(super) fn url(&self) -> &str {
        &self.process.url
    }

    /// Tells it to end (SIGTERM) and waits until it has.
    pub(super) fn end(mut self) -> Result<()> {
        let pid = self.process.child.id().to_string();
        let mut kill = Command::new("kill");
        kill.args(["-TERM", &pid]);
        if !kill.status().context("`kill` cannot be run")?.success() {
            bail!("`toolway serve` was gone before it was told to end");
        }
        let status = self
            .process
            .wait()
            .context("`toolway serve` after SIGTERM")?;
        if !status.success() && status.code() != Some(BY_SIGTERM) {
            let ended = command::describe(status);
            bail!("`toolway serve` ended with {ended} after SIGTERM");
        }
        Ok(())
    }
}
