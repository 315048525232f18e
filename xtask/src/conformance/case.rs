//! One scenario for a client, at one revision in one mode.
//!
//! Owns how the suite is told which client to judge. Running it is `run.rs`.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::record::CaseKey;
use super::run;
use super::suite::{ANY, EXTENSION, Suite};
use super::verdict::Seen;

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

    pub(super) fn key(&self) -> CaseKey {
        CaseKey {
            suite: self.suite.kind.version.to_owned(),
            scenario: self.scenario.clone(),
            revision: self.revision.clone(),
            mode: self.mode.to_string(),
        }
    }

    /// Runs it; what it leaves behind stays in `folder`.
    pub(super) fn run(&self, client: &Client, folder: &Path) -> Result<Seen> {
        let mut command = self.suite.command();
        command
            .args(["client", "--scenario", &self.scenario, "--command"])
            .arg(client.words(self.mode));
        if let Some(revision) = self.suite.spec_version(&self.revision) {
            command.args(["--spec-version", revision]);
        }
        if self.revision == ANY || self.revision == EXTENSION {
            // An old suite does not say which revision its mocks speak.
            command.env("MCP_CONFORMANCE_PROTOCOL_VERSION", STABLE);
        }
        run::observe(command, folder).with_context(|| self.id())
    }
}
