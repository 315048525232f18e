//! Installs the real peers (packages of npm and Python) below `target/peers`.
//!
//! Owns what lies there: `node_modules`, `venv`, and a stamp for each. Which versions is said in
//! `tests/peers`; how they are started is the business of the tests. A stamp holds the whole
//! manifest it was installed from and is written last, so an interrupted install is done again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::Workspace;

const MANIFESTS: &str = "tests/peers";
const GO_ON: &str = "or run `cargo xtask test --no-peers` to leave the real peers out";

/// Makes `target/peers` match the manifests; does nothing when it already does.
pub(crate) fn peers(workspace: &Workspace) -> Result<()> {
    let home = workspace.path("target/peers");
    fs::create_dir_all(&home).with_context(|| format!("cannot create `{}`", home.display()))?;
    // Two runs at once would pull node_modules away from under each other.
    let lock = File::create(home.join(".lock")).context("cannot create the lock of the peers")?;
    lock.lock().context("cannot lock the peers' folder")?;
    let manifests = workspace.path(MANIFESTS);
    node(&manifests, &home)?;
    python(&manifests, &home)
}

/// One folder of installed packages, as its stamp knows it.
struct Installation {
    stamp: PathBuf,
    wanted: String,
    /// Files that must be there whatever the stamp says.
    proof: Vec<PathBuf>,
}

impl Installation {
    fn new(stamp: PathBuf, facts: &[String], proof: Vec<PathBuf>) -> Self {
        Self {
            stamp,
            wanted: facts.join("\n"),
            proof,
        }
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.stamp).is_ok_and(|found| found == self.wanted)
            && self.proof.iter().all(|file| file.exists())
    }

    fn begin(&self) -> Result<()> {
        match fs::remove_file(&self.stamp) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", self.stamp.display()))
            }
            _ => Ok(()),
        }
    }

    fn finish(&self) -> Result<()> {
        if let Some(missing) = self.proof.iter().find(|file| !file.exists()) {
            bail!("the install succeeded but left no `{}`", missing.display());
        }
        fs::write(&self.stamp, &self.wanted)
            .with_context(|| format!("cannot write `{}`", self.stamp.display()))
    }
}

fn node(manifests: &Path, home: &Path) -> Result<()> {
    let mut facts = Vec::new();
    for name in ["package.json", "package-lock.json"] {
        facts.push(read(&manifests.join(name))?);
    }
    let servers = ["everything", "filesystem", "memory"].map(|name| {
        home.join(format!(
            "node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
        ))
    });
    let installation = Installation::new(home.join("npm.stamp"), &facts, servers.to_vec());
    require("node", &["--version"], "install Node.js 20 or newer")?;
    if installation.is_current() {
        return Ok(());
    }
    require(
        "npm",
        &["--version"],
        "install npm, which comes with Node.js",
    )?;
    installation.begin()?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(manifests.join(name), home.join(name))
            .with_context(|| format!("cannot copy `{name}` to the peers' folder"))?;
    }
    twice("the npm peers", || {
        let mut npm = Command::new("npm");
        // No package here needs its install scripts, so none may run.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(home);
        npm
    })?;
    installation.finish()
}

fn python(manifests: &Path, home: &Path) -> Result<()> {
    let venv = home.join("venv");
    let requirements = manifests.join("requirements.txt");
    let version = require("python3", &["--version"], "install Python 3.10 or newer")?;
    if !new_enough(&version) {
        bail!(
            "the Python peers need Python 3.10 or newer, and `python3` is `{version}`: put a \
             newer one first on `PATH`, {GO_ON}"
        );
    }
    let facts = [
        read(&requirements)?,
        read(&manifests.join("constraints.txt"))?,
        version,
        // Its scripts name the interpreter by its full path: a copied folder must be made anew.
        venv.display().to_string(),
    ];
    let programs = ["python", "mcp-server-time", "mcp-server-git", "fastmcp"]
        .map(|name| venv.join("bin").join(name));
    let installation = Installation::new(home.join("venv.stamp"), &facts, programs.to_vec());
    if installation.is_current() {
        return Ok(());
    }
    require(
        "python3",
        &["-c", "import venv, ensurepip"],
        "install Python's `venv` module (Debian and Ubuntu: `apt-get install python3-venv`)",
    )?;
    installation.begin()?;
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&venv);
    command::run(create).context("cannot create the virtual environment of the peers")?;
    twice("the Python peers", || {
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ])
        .arg("--requirement")
        .arg(&requirements);
        pip
    })?;
    installation.finish()
}

/// Registries fail now and then; a second failure is a real one.
fn twice(what: &str, command: impl Fn() -> Command) -> Result<()> {
    if let Err(error) = command::run(command()) {
        eprintln!("installing {what} failed ({error:#}); trying once more");
        command::run(command()).with_context(|| {
            format!("cannot install {what}: check the network and the messages above, {GO_ON}")
        })?;
    }
    Ok(())
}

/// What the tool prints, or what is missing and how to go on.
fn require(program: &str, arguments: &[&str], fix: &str) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => bail!(
            "`{program} {}` failed ({}): {fix}, {GO_ON}",
            arguments.join(" "),
            command::describe(output.status)
        ),
        Err(error) => bail!("`{program}` cannot be run ({error}): {fix}, {GO_ON}"),
    }
}

/// Reads `Python 3.11.7`.
fn new_enough(version: &str) -> bool {
    let mut numbers = version
        .trim_start_matches("Python ")
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or_default());
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    (major, minor) >= (3, 10)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_current_only_with_the_same_manifest_and_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let proof = folder.path().join("server.js");
        let stamp = folder.path().join("stamp");
        let of = |facts: &str| {
            Installation::new(stamp.clone(), &[facts.to_owned()], vec![proof.clone()])
        };
        let installation = of("version 1");
        assert!(!installation.is_current(), "nothing is installed yet");
        assert!(
            installation.finish().is_err(),
            "the promised file is missing"
        );
        fs::write(&proof, "").unwrap();
        installation.finish().unwrap();
        assert!(installation.is_current());
        assert!(!of("version 2").is_current(), "the manifest changed");
        fs::remove_file(&proof).unwrap();
        assert!(!installation.is_current(), "somebody deleted the packages");
    }

    #[test]
    fn an_interrupted_install_leaves_no_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let installation = Installation::new(folder.path().join("stamp"), &[], Vec::new());
        installation.finish().unwrap();
        installation.begin().unwrap();
        assert!(!installation.is_current());
    }

    #[test]
    fn a_missing_tool_is_named_with_the_way_to_go_on() {
        let error = require("toolway-no-such-tool", &["--version"], "install it").unwrap_err();
        let message = error.to_string();
        assert!(message.contains("`toolway-no-such-tool`"), "{message}");
        assert!(message.contains("install it"), "{message}");
        assert!(message.contains("--no-peers"), "{message}");
    }

    #[test]
    fn a_failing_install_is_tried_twice_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let outcome = twice("the test", || {
            let mut sh = Command::new("sh");
            sh.arg("-c").arg("echo try >> \"$0\"; exit 1").arg(&log);
            sh
        });
        assert!(outcome.is_err());
        assert_eq!(fs::read_to_string(&log).unwrap(), "try\ntry\n");
    }

    #[test]
    fn python_versions_compare_by_number() {
        assert!(new_enough("Python 3.10.0"));
        assert!(new_enough("Python 3.14.1"));
        assert!(!new_enough("Python 3.9.2"));
        assert!(!new_enough("Python 2.7.18"));
    }
}
