//! The real peers that want a login, and the authorization server behind them.
//!
//! Owns their processes. What they offer is said in `tests/peers`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{dir, python_program, sdk1_program, workspace};

/// oidc-provider on a free loopback port; killed when dropped.
#[derive(Debug)]
pub struct OidcProvider {
    issuer: String,
    _process: Process,
}

impl OidcProvider {
    /// Starts it; the options are those of `tests/peers/oidc_provider.mjs`.
    pub fn start(options: &Value) -> Self {
        let mut command = Command::new("node");
        command
            .arg(workspace().join("tests/peers/oidc_provider.mjs"))
            .arg(dir())
            .args(["0", &options.to_string()]);
        let (process, line) = Process::start(command);
        let places: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("oidc-provider printed `{line}`: {error}"));
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

/// A server that wants a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protected {
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
    _process: Process,
}

impl ProtectedPeer {
    /// Starts it behind this issuer.
    pub fn start(which: Protected, issuer: &str) -> Self {
        let scripts = workspace().join("tests/peers");
        let mut command = match which {
            Protected::TypeScriptSigned | Protected::TypeScriptOpaque => {
                let signed = which == Protected::TypeScriptSigned;
                let mut command = Command::new("node");
                command
                    .arg(scripts.join("typescript_protected.mjs"))
                    .arg(dir())
                    .args([issuer, if signed { "jwks" } else { "introspection" }]);
                command
            }
            Protected::FastMcp => {
                let mut command = Command::new(python_program("python"));
                command
                    .arg(scripts.join("fastmcp_protected.py"))
                    .arg(issuer);
                command
            }
        };
        command.arg("0");
        let (process, line) = Process::start(command);
        let url = line.strip_prefix("listening on ");
        Self {
            url: url.expect("it says where it listens").to_owned(),
            _process: process,
        }
    }

    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A version of the official Python SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonSdk {
    /// `mcp` 1.x.
    One,
    /// `mcp` 2.x.
    Two,
}

/// A server on the Python SDK behind the SDK's own authorization server, on a free loopback port;
/// killed when dropped.
#[derive(Debug)]
pub struct SdkAuthority {
    url: String,
    _process: Process,
}

impl SdkAuthority {
    /// Starts it; the options are those of `tests/peers/sdk_authority.py`.
    pub fn start(version: PythonSdk, options: &Value) -> Self {
        let python = match version {
            PythonSdk::One => sdk1_program("python"),
            PythonSdk::Two => python_program("python"),
        };
        let mut command = Command::new(python);
        command
            .arg(workspace().join("tests/peers/sdk_authority.py"))
            .args(["0", &options.to_string()]);
        let (process, line) = Process::start(command);
        let url = line.strip_prefix("listening on ");
        Self {
            url: url.expect("it says where it listens").to_owned(),
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
struct Process(Child);

impl Process {
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

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
