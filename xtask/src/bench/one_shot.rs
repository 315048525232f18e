//! One call of one stdio server, with nothing running before: the floor of `bench/one_shot.rs` and
//! a temporary home in which `toolway` makes the same call of the same server.
//!
//! Owns both commands, and that they come to the same. Which ratio is wanted is the suite's
//! business.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::command;
use crate::workspace::Workspace;

/// The home and the floor.
pub(super) struct OneShot {
    /// Removes everything when the suite is done.
    folder: TempDir,
    floor: PathBuf,
}

impl OneShot {
    pub(super) fn create(workspace: &Workspace) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a temporary home")?;
        let floor = folder.path().join("one_shot");
        let mut rustc = Command::new("rustc");
        rustc
            .args(["-O", "--edition", "2024", "-o"])
            .arg(&floor)
            .arg(workspace.path("bench/one_shot.rs"));
        command::run(rustc).context("the floor of a one-shot call does not build")?;
        let settings = folder.path().join(".config/toolway");
        fs::create_dir_all(&settings).context("cannot create the settings")?;
        let servers = json!({ "floor": { "command": floor, "args": ["serve"] } });
        let text = json!({ "mcpServers": servers }).to_string();
        fs::write(settings.join("settings.json"), text).context("cannot write the settings")?;
        Ok(Self { folder, floor })
    }

    /// Start, spawn the server, greet it, call one tool, end.
    pub(super) fn floor(&self) -> Command {
        let mut command = self.enter(&self.floor);
        command.arg("call");
        command
    }

    /// The same by `toolway`.
    pub(super) fn call(&self, binary: &Path) -> Command {
        let mut command = self.enter(binary);
        command.args(["call", "floor", "ping"]);
        command
    }

    /// A call that fails early would look fast for the wrong reason.
    pub(super) fn confirm(&self, binary: &Path) -> Result<()> {
        for mut command in [self.floor(), self.call(binary)] {
            let name = command.get_program().to_string_lossy().into_owned();
            let output = command
                .output()
                .with_context(|| format!("`{name}` cannot be run"))?;
            if output.stdout != b"pong\n" {
                let said = String::from_utf8_lossy(&output.stderr);
                bail!(
                    "`{name}` does not answer the one-shot call: {}",
                    said.trim()
                );
            }
        }
        Ok(())
    }

    fn enter(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.folder.path());
        command
    }
}
