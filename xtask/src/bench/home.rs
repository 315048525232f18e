//! Temporary homes: one in which exactly 20 files configure exactly 500 servers, spread over the
//! scopes as a heavy user's would be, and one with a single server.
//!
//! Owns the files. Nothing of the 500 is ever started: the suites only ask for the plan.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub(super) const FILES: usize = 20;
pub(super) const SERVERS: usize = 500;
const SERVERS_IN_A_FILE: usize = SERVERS / FILES;

/// One user file; then as many nested projects, plugins and `--mcp-config` files.
const PROJECTS: usize = 6;
const PLUGINS: usize = 8;
const EXTRA: usize = FILES - 1 - PROJECTS - PLUGINS;

/// The home and what a command line needs to know about it.
pub(super) struct Home {
    /// Removes everything when the suite is done.
    folder: TempDir,
    cwd: PathBuf,
    files: Vec<PathBuf>,
    extra: Vec<PathBuf>,
}

impl Home {
    pub(super) fn create() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a temporary home")?;
        // The walk up compares real paths; a symbolic link in between would hide the home.
        let root = folder
            .path()
            .canonicalize()
            .context("the temporary home has no real path")?;
        let mut files = Vec::new();
        let mut add = |path: PathBuf| -> Result<PathBuf> {
            write(&path, &servers(files.len()))?;
            files.push(path.clone());
            Ok(path)
        };
        let config = root.join(".config/toolway");
        add(config.join("settings.json"))?;
        for plugin in 0..PLUGINS {
            add(config.join(format!("plugins/plugin-{plugin}/.mcp.json")))?;
        }
        let mut cwd = root.join("code");
        for project in 0..PROJECTS {
            cwd = cwd.join(format!("nested-{project}"));
            add(cwd.join(".mcp.json"))?;
        }
        let extra = (0..EXTRA)
            .map(|number| add(root.join(format!("extra/servers-{number}.json"))))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            folder,
            cwd,
            files,
            extra,
        })
    }

    /// A home whose user has one server, a program with its arguments.
    pub(super) fn with_server(name: &str, program: &Path, arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a temporary home")?;
        let cwd = folder
            .path()
            .canonicalize()
            .context("the temporary home has no real path")?;
        let settings = cwd.join(".config/toolway/settings.json");
        let server = json!({ "command": program, "args": arguments });
        write(
            &settings,
            &[(name.to_owned(), server)].into_iter().collect(),
        )?;
        Ok(Self {
            folder,
            cwd,
            files: vec![settings],
            extra: Vec::new(),
        })
    }

    /// The floor: start, read the same bytes, end.
    pub(super) fn cat(&self) -> Command {
        let mut command = self.enter(Path::new("cat"));
        command.args(&self.files);
        command
    }

    /// `toolway list --no-connect`, with the files no directory would lead it to.
    pub(super) fn list(&self, binary: &Path) -> Command {
        let mut command = self.enter(binary);
        command.args(["list", "--no-connect"]);
        for file in &self.extra {
            command.arg("--mcp-config").arg(file);
        }
        command
    }

    /// A program started in the innermost project, seeing this home and nothing of the real one.
    pub(super) fn enter(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.root())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(&self.cwd);
        command
    }

    fn root(&self) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap_or_else(|_| self.folder.path().to_path_buf())
    }
}

fn write(path: &Path, servers: &Map<String, Value>) -> Result<()> {
    let named = || format!("cannot write `{}`", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(named)?;
    }
    let text =
        serde_json::to_string_pretty(&json!({ "mcpServers": servers })).with_context(named)?;
    fs::write(path, text).with_context(named)
}

/// Half of them local, half remote, all different: duplicates would be folded into one.
fn servers(file: usize) -> Map<String, Value> {
    (0..SERVERS_IN_A_FILE)
        .map(|number| {
            let name = format!("server-{file:02}-{number:02}");
            let definition = if number % 2 == 0 {
                json!({
                    "command": "npx",
                    "args": ["-y", format!("@example/{name}"), "--root", "${HOME}/data"],
                    "env": { "LOG_LEVEL": "warn", "INSTANCE": name },
                })
            } else {
                json!({
                    "type": "http",
                    "url": format!("https://{name}.example.com/mcp"),
                    "headers": { "X-Instance": name },
                })
            };
            (name, definition)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn exactly_twenty_files_hold_five_hundred_different_servers() {
        let home = Home::create().unwrap();
        assert_eq!(home.files.len(), FILES);
        let mut names = BTreeSet::new();
        for file in &home.files {
            let value: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            names.extend(value["mcpServers"].as_object().unwrap().keys().cloned());
        }
        assert_eq!(names.len(), SERVERS);
    }

    #[test]
    fn the_floor_reads_every_file() {
        let home = Home::create().unwrap();
        let output = home.cat().output().unwrap();
        let bytes: u64 = home
            .files
            .iter()
            .map(|file| fs::metadata(file).unwrap().len())
            .sum();
        assert_eq!(output.stdout.len() as u64, bytes);
    }
}
