//! Where the repository lies, which files it tracks, and how its binary is built.
//!
//! Owns every use of `git`, of `cargo build` and of `rustc`. Does not decide what to do with the files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The example that the conformance suites judge.
const CONFORMANCE: &str = "toolway-conformance";

/// What `cargo run` says about the package that it runs.
const OF_THIS_PACKAGE: [&str; 6] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// The repository this xtask was built from.
pub(crate) struct Workspace {
    root: PathBuf,
}

/// How the binary is compiled.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Quick to build: for generating documents.
    Debug,
    /// What people run: for measuring.
    Release,
}

impl Workspace {
    /// The manifest directory is known at compile time, so the chores work from any folder.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("xtask lies in no workspace")?;
        if !root.join("Cargo.toml").is_file() {
            bail!(
                "the repository has moved since xtask was built: run `touch xtask/src/main.rs` \
                 and try again"
            );
        }
        Ok(Self {
            root: root.to_path_buf(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// `cargo` in the root; rustup's variables are inherited, so toolchain overrides hold. Those of
    /// this package are not: build scripts that look at their own would run again, and most of the
    /// workspace would be compiled after them.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root);
        for variable in OF_THIS_PACKAGE {
            command.env_remove(variable);
        }
        command
    }

    /// Files git tracks or would track, relative to the root and sorted: a new file obeys the
    /// rules before it is added.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&self.root)
            .output()
            .context("`git` cannot be run; it lists the files to check")?;
        if !output.status.success() {
            bail!(
                "`git ls-files` failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let listing = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut files: Vec<String> = listing
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Builds `toolway` and returns the executable as cargo reports it, wherever its target
    /// directory is.
    pub(crate) fn build_binary(&self, profile: Profile) -> Result<PathBuf> {
        let words: &[&str] = match profile {
            Profile::Release => &["--release", "--package", "toolway-cli", "--bin", "toolway"],
            // An example beside it lets all of the workspace decide on features, those for tests
            // included: what the tests need later is then not compiled twice.
            Profile::Debug => &["--workspace", "--bin", "toolway", "--example", CONFORMANCE],
        };
        self.build(words, "toolway")
    }

    /// Builds the program that the conformance suites judge, with the same features.
    pub(crate) fn build_conformance(&self) -> Result<PathBuf> {
        self.build(&["--workspace", "--example", CONFORMANCE], CONFORMANCE)
    }

    /// Builds an example of one crate as it is measured.
    pub(crate) fn build_measured(
        &self,
        package: &str,
        name: &str,
        profile: Profile,
    ) -> Result<PathBuf> {
        let mut words = vec!["--package", package, "--all-features", "--example", name];
        if matches!(profile, Profile::Release) {
            words.push("--release");
        }
        self.build(&words, name)
    }

    /// Builds a program of the testkit that has much to do.
    pub(crate) fn build_test_program(&self, name: &str) -> Result<PathBuf> {
        let words = ["--release", "--package", "toolway-testkit", "--bin", name];
        self.build(&words, name)
    }

    /// Compiles a program of one file that depends on nothing, optimised, into a folder.
    pub(crate) fn compile(&self, source: &str, folder: &Path) -> Result<PathBuf> {
        let name = Path::new(source).file_stem();
        let program = folder.join(name.with_context(|| format!("`{source}` has no name"))?);
        let output = Command::new("rustc")
            .args(["--edition", "2024", "-C", "opt-level=3", "-o"])
            .arg(&program)
            .arg(self.path(source))
            .output()
            .context("`rustc` cannot be run")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`{source}` does not compile: {}", said.trim());
        }
        Ok(program)
    }

    /// The program as people run it, where a build left it.
    pub(crate) fn released_binary(&self) -> Option<PathBuf> {
        let binary = self.path("target/release/toolway");
        binary.is_file().then_some(binary)
    }

    fn build(&self, words: &[&str], name: &str) -> Result<PathBuf> {
        let output = self
            .cargo()
            .args(["build", "--locked"])
            .args(words)
            .arg("--message-format=json-render-diagnostics")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("`cargo build` cannot be run")?;
        if !output.status.success() {
            bail!("`{name}` does not build");
        }
        executable_in(&String::from_utf8_lossy(&output.stdout), name)
            .with_context(|| format!("`cargo build` named no executable called `{name}`"))
    }
}

fn executable_in(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_read_from_the_messages_of_cargo() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"toolway"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"toolway"},"executable":"/t/toolway"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(
            executable_in(messages, "toolway"),
            Some(PathBuf::from("/t/toolway"))
        );
        assert_eq!(executable_in("{}", "toolway"), None);
    }
}
