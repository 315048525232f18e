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
