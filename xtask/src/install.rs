//! Installs what the tests talk to: the real peers below `target/peers`, the conformance suites
//! below `target/conformance`, gateways that are measured below `target/bench-peers`, programs of
//! the package registry below `target/tools`, and the shells that completions are tried in.
//!
//! Owns what lies there: folders of packages, virtual environments, and a stamp for each. Which
//! versions is said in `tests/peers` and `tests/conformance`; how they are started is the
//! business of the tests.

pub(crate) mod shells;
mod stamp;
mod tool;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::stamp::Installation;
use self::tool::{GO_ON, require, twice};
use crate::command;
use crate::workspace::Workspace;

/// Makes `target/peers` match the manifests; does nothing when it already does.
pub(crate) fn peers(workspace: &Workspace) -> Result<()> {
    let home = workspace.path("target/peers");
    let _lock = lock(&home)?;
    let manifests = workspace.path("tests/peers");
    let modules = home.join("node_modules");
    Npm {
        what: "the npm peers",
        manifests: &manifests,
        home: &home,
        stamp: home.join("npm.stamp"),
        proof: [
            "@modelcontextprotocol/server-everything/dist/index.js",
            "@modelcontextprotocol/server-filesystem/dist/index.js",
            "@modelcontextprotocol/server-memory/dist/index.js",
            "@modelcontextprotocol/client/dist/index.mjs",
            "@modelcontextprotocol/server/dist/index.mjs",
            "@modelcontextprotocol/node/dist/index.mjs",
            "@modelcontextprotocol/sdk/dist/esm/server/auth/router.js",
            "express/index.js",
            "oidc-provider/lib/index.js",
        ]
        .map(|file| modules.join(file))
        .to_vec(),
        omit: &[],
    }
    .install()?;
    // Clients that are programs have dependencies of their own, which must not meet the others'.
    let programs = home.join("programs");
    fs::create_dir_all(&programs)
        .with_context(|| format!("cannot create `{}`", programs.display()))?;
    let modules = programs.join("node_modules");
    Npm {
        what: "the clients from npm",
        manifests: &manifests.join("programs"),
        home: &programs,
        stamp: programs.join("npm.stamp"),
        proof: [
            "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            "@openai/codex/bin/codex.js",
            "mcporter/dist/cli.js",
        ]
        .map(|file| modules.join(file))
        .to_vec(),
        omit: &[],
    }
    .install()?;
    typescript(&manifests, &home)?;
    Venv {
        requirements: "requirements.txt",
        constraints: "constraints.txt",
        name: "venv",
        programs: &[
            "python",
            "mcp-server-time",
            "mcp-server-git",
            "fastmcp",
            "flask",
            "django-admin",
        ],
    }
    .install(&manifests, &home)?;
    rust_client(workspace, &home)?;
    // FastMCP 4 needs version 2 of the SDK, so version 1 lives on its own.
    Venv {
        requirements: "requirements-sdk1.txt",
        constraints: "constraints-sdk1.txt",
        name: "venv-sdk1",
        programs: &["python", "mcp", "uvicorn", "mypy", "hatchling"],
    }
    .install(&manifests, &home)
}

/// What TypeScript is compiled with, and whose server objects our package takes.
fn typescript(manifests: &Path, home: &Path) -> Result<()> {
    let own = home.join("typescript");
    fs::create_dir_all(&own).with_context(|| format!("cannot create `{}`", own.display()))?;
    let modules = own.join("node_modules");
    Npm {
        what: "the TypeScript compiler and what it is tried on",
        manifests: &manifests.join("typescript"),
        home: &own,
        stamp: own.join("npm.stamp"),
        proof: [
            "typescript/bin/tsc",
            "@types/node/package.json",
            "@anthropic-ai/claude-agent-sdk/sdk.mjs",
            "@modelcontextprotocol/sdk/dist/esm/server/mcp.js",
            "@modelcontextprotocol/server/dist/index.mjs",
        ]
        .map(|file| modules.join(file))
        .to_vec(),
        // The agent SDK's programs for every platform; its helpers do without.
        omit: &["--omit=optional"],
    }
    .install()
}

/// Builds the client on the official Rust SDK, whose dependencies nothing else here needs.
fn rust_client(workspace: &Workspace, home: &Path) -> Result<()> {
    let own = workspace.path("tests/peers/clients/rust");
    let built = home.join("rust");
    let mut facts = Vec::new();
    for name in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        facts.push(read(&own.join(name))?);
    }
    let program = built.join("debug/rust-client");
    let installation = Installation::new(home.join("rust.stamp"), &facts, vec![program]);
    if installation.is_current() {
        return Ok(());
    }
    installation.begin()?;
    twice("the client on the Rust SDK", || {
        let mut cargo = workspace.cargo();
        cargo
            .args(["build", "--quiet", "--locked", "--target-dir"])
            .arg(&built)
            .current_dir(&own);
        cargo
    })?;
    installation.finish()
}

/// Makes `target/bench-peers` hold the gateways from npm that Toolway is measured beside; the folder
/// of their modules.
pub(crate) fn npm_gateways(workspace: &Workspace) -> Result<PathBuf> {
    let home = workspace.path("target/bench-peers");
    let _lock = lock(&home)?;
    let modules = home.join("node_modules");
    Npm {
        what: "the gateways from npm",
        manifests: &workspace.path("bench/gateway/peers"),
        home: &home,
        stamp: home.join("npm.stamp"),
        proof: [
            "mcp-proxy/dist/bin/mcp-proxy.mjs",
            "supergateway/dist/index.js",
        ]
        .map(|file| modules.join(file))
        .to_vec(),
        omit: &[],
    }
    .install()?;
    Ok(modules)
}

/// The same for those from `PyPI`; the folder of their programs.
pub(crate) fn python_gateways(workspace: &Workspace) -> Result<PathBuf> {
    let home = workspace.path("target/bench-peers");
    let _lock = lock(&home)?;
    Venv {
        requirements: "requirements.txt",
        constraints: "constraints.txt",
        name: "venv",
        programs: &["python", "mcp-proxy"],
    }
    .install(&workspace.path("bench/gateway/peers"), &home)?;
    Ok(home.join("venv/bin"))
}

/// Makes one folder below `target/conformance` match its manifest in `tests/conformance`, and
/// returns the file asked for, which is there.
pub(crate) fn conformance(workspace: &Workspace, name: &str, file: &str) -> Result<PathBuf> {
    let home = workspace.path("target/conformance").join(name);
    let _lock = lock(&home)?;
    let wanted = home.join("node_modules").join(file);
    Npm {
        what: "the conformance suite",
        manifests: &workspace.path("tests/conformance").join(name),
        home: &home,
        stamp: home.join("npm.stamp"),
        proof: vec![wanted.clone()],
        omit: &[],
    }
    .install()?;
    Ok(wanted)
}

/// Makes `target/conformance/sdk` hold the SDK that our own server and client for the suite are
/// written on, and returns that folder.
pub(crate) fn sdk(workspace: &Workspace) -> Result<PathBuf> {
    conformance(
        workspace,
        "sdk",
        "@modelcontextprotocol/server/dist/index.cjs",
    )?;
    Ok(workspace.path("target/conformance/sdk"))
}

/// Makes `target/tools` hold one version of a program from the package registry, and returns it.
pub(crate) fn cargo_tool(workspace: &Workspace, name: &str, version: &str) -> Result<PathBuf> {
    let home = workspace.path("target/tools");
    let _lock = lock(&home)?;
    let program = home.join("bin").join(name);
    let stamp = home.join(format!("{name}.stamp"));
    let installation = Installation::new(stamp, &[version.to_owned()], vec![program.clone()]);
    if !installation.is_current() {
        installation.begin()?;
        twice(name, || {
            let mut cargo = workspace.cargo();
            // It runs for a second: what compiles fastest is fastest.
            cargo
                .args([
                    "install",
                    "--quiet",
                    "--locked",
                    "--force",
                    "--profile",
                    "dev",
                ])
                .args(["--version", version, "--root"])
                .arg(&home)
                .arg(name);
            cargo
        })?;
        installation.finish()?;
    }
    Ok(program)
}

/// Two runs at once would pull packages away from under each other.
fn lock(home: &Path) -> Result<File> {
    fs::create_dir_all(home).with_context(|| format!("cannot create `{}`", home.display()))?;
    let lock = File::create(home.join(".lock"))
        .with_context(|| format!("cannot create a lock in `{}`", home.display()))?;
    lock.lock()
        .with_context(|| format!("cannot lock `{}`", home.display()))?;
    Ok(lock)
}

/// A folder that npm fills.
struct Npm<'a> {
    what: &'a str,
    manifests: &'a Path,
    home: &'a Path,
    stamp: PathBuf,
    proof: Vec<PathBuf>,
    /// Which kinds of packages npm is told to leave out.
    omit: &'a [&'a str],
}

impl Npm<'_> {
    fn install(self) -> Result<()> {
        let names = ["package.json", "package-lock.json"];
        let mut facts = Vec::new();
        for name in names {
            facts.push(read(&self.manifests.join(name))?);
        }
        let installation = Installation::new(self.stamp, &facts, self.proof);
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
        for name in names {
            fs::copy(self.manifests.join(name), self.home.join(name))
                .with_context(|| format!("cannot copy `{name}` to `{}`", self.home.display()))?;
        }
        twice(self.what, || {
            let mut npm = Command::new("npm");
            // No package here needs its install scripts, so none may run.
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(self.omit)
                .current_dir(self.home);
            npm
        })?;
        installation.finish()
    }
}

/// A virtual environment of Python.
struct Venv<'a> {
    requirements: &'a str,
    constraints: &'a str,
    name: &'a str,
    programs: &'a [&'a str],
}

impl Venv<'_> {
    fn install(&self, manifests: &Path, home: &Path) -> Result<()> {
        let venv = home.join(self.name);
        let requirements = manifests.join(self.requirements);
        let version = require("python3", &["--version"], "install Python 3.10 or newer")?;
        if !new_enough(&version) {
            bail!(
                "the Python peers need Python 3.10 or newer, and `python3` is `{version}`: put a \
                 newer one first on `PATH`, {GO_ON}"
            );
        }
        let facts = [
            read(&requirements)?,
            read(&manifests.join(self.constraints))?,
            version,
            // Its scripts name the interpreter by its full path: a copied folder must be made
            // anew.
            venv.display().to_string(),
        ];
        let programs = self.programs.iter().map(|name| venv.join("bin").join(name));
        let stamp = home.join(format!("{}.stamp", self.name));
        let installation = Installation::new(stamp, &facts, programs.collect());
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
    fn python_versions_compare_by_number() {
        assert!(new_enough("Python 3.10.0"));
        assert!(new_enough("Python 3.14.1"));
        assert!(!new_enough("Python 3.9.2"));
        assert!(!new_enough("Python 2.7.18"));
    }
}
