//! `cargo xtask clients`: judges the packages for Python and TypeScript against the program as it is
//! now.
//!
//! Owns how they are compiled, type-checked and tested, below `target/clients`; the examples of
//! `docs/packages.md` are among what is tested. What the tests say is theirs
//! (`clients/python/tests`, `clients/typescript/tests`), what they need installs `install.rs`.

mod examples;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use self::examples::Language;
use crate::command;
use crate::workspace::{Profile, Workspace};

/// Both packages; the installed peers must be there.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let bench = Bench::set_up(workspace)?;
    bench.python()?;
    bench.typescript()
}

/// What both need.
struct Bench<'a> {
    workspace: &'a Workspace,
    toolway: PathBuf,
    /// Everything that is made here.
    home: PathBuf,
    peers: PathBuf,
}

impl<'a> Bench<'a> {
    fn set_up(workspace: &'a Workspace) -> Result<Self> {
        let home = workspace.path("target/clients");
        // What an earlier run left must not be tested.
        for name in ["python", "typescript"] {
            let old = home.join(name);
            if old.exists() {
                fs::remove_dir_all(&old)
                    .with_context(|| format!("cannot remove `{}`", old.display()))?;
            }
        }
        Ok(Self {
            workspace,
            toolway: workspace.build_binary(Profile::Debug)?,
            home,
            peers: workspace.path("target/peers"),
        })
    }

    fn python(&self) -> Result<()> {
        let package = self.workspace.path("clients/python");
        let examples = self.home.join("python/examples");
        examples::write(self.workspace, Language::Python, &examples)?;
        // Each half of the tests is read with the SDK that it is written for.
        let second = self.peers.join("venv/bin/python");
        let halves: [&[&str]; 2] = [
            &["--exclude", "sdk2_", "src", "tests"],
            &["tests/sdk2_objects.py", "--python-executable"],
        ];
        for (half, more) in halves.into_iter().zip([&examples, &second]) {
            let mut mypy = Command::new(self.peers.join("venv-sdk1/bin/mypy"));
            mypy.args(["--strict", "--cache-dir"])
                .arg(self.home.join("mypy"))
                .args(half)
                .arg(more)
                .current_dir(&package);
            command::run(mypy)?;
        }
        // Version 1 of the SDK and what rests on it, then version 2 and FastMCP.
        for (environment, pattern) in [("venv-sdk1", "test_*.py"), ("venv", "sdk2_*.py")] {
            let mut python = Command::new(self.peers.join(environment).join("bin/python"));
            python
                .args(["-W", "error::ResourceWarning"])
                .args([
                    "-m", "unittest", "discover", "-s", "tests", "-t", ".", "-p", pattern,
                ])
                .env("PYTHONPATH", package.join("src"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("TOOLWAY_EXAMPLES", &examples)
                .current_dir(&package);
            command::run(self.with_toolway(python))?;
        }
        Ok(())
    }

    /// The package is compiled beside the modules that its tests need, as it is where people
    /// install it.
    fn typescript(&self) -> Result<()> {
        let package = self.workspace.path("clients/typescript");
        let stage = self.home.join("typescript");
        for name in ["src", "tests"] {
            copy(&package.join(name), &stage.join(name))?;
        }
        for name in ["package.json", "tsconfig.json"] {
            fs::copy(package.join(name), stage.join(name))
                .with_context(|| format!("cannot copy `{name}`"))?;
        }
        let modules = self.peers.join("typescript/node_modules");
        symlink(&modules, stage.join("node_modules")).context("cannot link the modules")?;
        examples::write(
            self.workspace,
            Language::TypeScript,
            &stage.join("examples"),
        )?;
        for project in ["tsconfig.json", "tests/tsconfig.json"] {
            let mut tsc = Command::new("node");
            tsc.arg(modules.join("typescript/bin/tsc"))
                .args(["-p", project])
                .current_dir(&stage);
            command::run(tsc)?;
        }
        let mut node = Command::new("node");
        node.args(["--test", "--test-reporter=spec"])
            .args(tests(&package.join("tests"))?)
            .env("TOOLWAY_EXAMPLES", stage.join("examples"))
            .current_dir(&stage);
        command::run(self.with_toolway(node))
    }

    fn with_toolway(&self, mut command: Command) -> Command {
        command.env("TOOLWAY_BIN", &self.toolway);
        command
    }
}

/// What the tests in a folder are compiled to; all of them are named, for versions of Node.js differ
/// in how they look for tests.
fn tests(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
    let mut tests = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".test.ts")) {
            tests.push(format!("built/tests/{stem}.test.js"));
        }
    }
    tests.sort();
    Ok(tests)
}

/// A folder with everything below it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create `{}`", to.display()))?;
    let entries =
        fs::read_dir(from).with_context(|| format!("cannot list `{}`", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy `{}`", entry.path().display()))?;
        }
    }
    Ok(())
}
