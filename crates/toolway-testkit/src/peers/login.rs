//! The real peers that want a login, and the authorization servers behind them.
//!
//! Owns their processes. What they offer is said in `tests/peers`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{dir, python_program, sdk1_program, workspace};

/// An authorization server of other people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// oidc-provider, on Node.js.
    Oidc,
    /// django-oauth-toolkit.
    Django,
    /// Authlib, in Flask.
    Authlib,
}

/// Such a server on a free loopback port; killed when dropped.
#[derive(Debug)]
pub struct ProviderPeer {
    issuer: String,
    _process: PeerProcess,
}

impl ProviderPeer {
    /// Starts it; the options are those of its script in `tests/peers`.
    pub fn start(which: ProviderKind, options: &Value) -> Self {
        let mut command = match which {
            ProviderKind::Oidc => node("oidc_provider.mjs"),
            ProviderKind::Django => python("django_authority.py"),
            ProviderKind::Authlib => python("authlib_authority.py"),
        };
        command.args(["0", &options.to_string()]);
        let (process, line) = PeerProcess::start(command);
        let places: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{which:?} printed `{line}`: {error}"));
        let issuer = places["issuer"].as_str().expect("it names its issuer");
        Self {
            issuer: issuer.to_owned(),
            _process: process,
        }
    }

    /// The issuer's name.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// A script that Node.js runs, and where its packages are.
fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(path(script)).arg(dir());
    command
}

/// A script for the Python environment.
fn python(script: &str) -> Command {
    let mut command = Command::new(python_program("python"));
    command.arg(path(script));
    command
}

fn path(script: &str) -> PathBuf {
    workspace().join("tests/peers").join(script)
}

/// A server that wants a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectedKind {
    /// The TypeScript SDK, which checks signed tokens itself.
    TypeScriptSigned,
    /// The TypeScript SDK, which asks the provider about each token.
    TypeScriptOpaque,
    /// FastMCP, which checks signed tokens itself.
    FastMcp,
}

/// Such a server on a free loopback port; killed when dropped.
#[derive(Debug)]
pub struct ProtectedPeer {
    url: String,
    _process: PeerProcess,
}

impl ProtectedPeer {
    /// Starts it behind this issuer.
    pub fn start(which: ProtectedKind, issuer: &str) -> Self {
        let mut command = match which {
            ProtectedKind::TypeScriptSigned | ProtectedKind::TypeScriptOpaque => {
                let signed = which == ProtectedKind::TypeScriptSigned;
                let mut command = node("typescript_protected.mjs");
                command.args([issuer, if signed { "jwks" } else { "introspection" }]);
                command
            }
            ProtectedKind::FastMcp => {
                let mut command = python("fastmcp_protected.py");
                command.arg(issuer);
                command
            }
        };
        command.arg("0");
        let (process, url) = PeerProcess::listening(command);
        Self {
            url,
            _process: process,
        }
    }

    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A server that is its own authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnAuthorityKind {
    /// The official Python SDK, version 1.
    PythonSdk1,
    /// The official Python SDK, version 2.
    PythonSdk2,
    /// The official TypeScript SDK, version 1.
    TypeScriptSdk1,
    /// FastMCP: what it keeps in memory, or a proxy before another server.
    FastMcp,
}

/// Such a server on a free loopback port; killed when dropped.
#[derive(Debug)]
pub struct OwnAuthorityPeer {
    url: String,
    _process: PeerProcess,
}

impl OwnAuthorityPeer {
    /// Starts it; the options are those of its script in `tests/peers`.
    pub fn start(which: OwnAuthorityKind, options: &Value) -> Self {
        let mut command = match which {
            OwnAuthorityKind::PythonSdk1 => {
                let mut command = Command::new(sdk1_program("python"));
                command.arg(path("sdk_authority.py"));
                command
            }
            OwnAuthorityKind::PythonSdk2 => python("sdk_authority.py"),
            OwnAuthorityKind::TypeScriptSdk1 => node("typescript_authority.mjs"),
            OwnAuthorityKind::FastMcp => python("fastmcp_authority.py"),
        };
        command.args(["0", &options.to_string()]);
        let (process, url) = PeerProcess::listening(command);
        Self {
            url,
            _process: process,
        }
    }

    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A process that says where it is, and is killed when dropped.
#[derive(Debug)]
struct PeerProcess(Child);

impl PeerProcess {
    /// Starts a server, and waits until it says where it listens.
    fn listening(command: Command) -> (Self, String) {
        let (process, line) = Self::start(command);
        let url = line.strip_prefix("listening on ");
        (process, url.expect("it says where it listens").to_owned())
    }

    /// Starts it, and waits for its first line.
    fn start(mut command: Command) -> (Self, String) {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdout = child.stdout.take().expect("stdout is piped");
        let process = Self(child);
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("its output is text");
        assert!(!line.is_empty(), "{command:?} ended at once");
        (process, line.trim_end().to_owned())
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
