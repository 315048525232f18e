//! Starting `toolway-chaos`, the program that acts on a [`Script`].
//!
//! Owns finding (and when needed building) the program, and the server entry that starts it over
//! stdio. Its life as a server that listens is `listening.rs`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::listening::{ListeningServer, ListeningTransport};
use crate::{Script, peers};

/// A server with a script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptedServer {
    script: Script,
}

impl ScriptedServer {
    /// A server that does what the script says.
    pub fn new(script: Script) -> Self {
        Self { script }
    }

    /// What it was told.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The program, built when it is missing or older than its source.
    pub fn program() -> &'static Path {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        PROGRAM.get_or_init(|| find_or_build("toolway-chaos"))
    }

    /// The program's arguments.
    pub fn args(&self) -> Vec<String> {
        let script = serde_json::to_string(&self.script).expect("a script is plain data");
        vec!["--script".to_owned(), script]
    }

    /// The entry of this server in a configuration file, over stdio.
    pub fn entry(&self) -> Value {
        json!({ "command": Self::program(), "args": self.args() })
    }

    /// The same entry with a declared environment.
    pub fn entry_with_env<'a>(&self, env: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
        let mut entry = self.entry();
        entry["env"] = env
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        entry
    }

    /// Starts it as a Streamable HTTP server on a free loopback port.
    pub fn serve_http(&self) -> ListeningServer {
        ListeningServer::start(self.clone(), ListeningTransport::Http)
    }

    /// Starts it as a legacy HTTP+SSE server on a free loopback port.
    pub fn serve_sse(&self) -> ListeningServer {
        ListeningServer::start(self.clone(), ListeningTransport::Sse)
    }

    /// Starts it as a WebSocket server on a free loopback port.
    pub fn serve_ws(&self) -> ListeningServer {
        ListeningServer::start(self.clone(), ListeningTransport::WebSocket)
    }
}

/// A test of another crate gets no path to this crate's programs from Cargo, so look beside the
/// running test (`target/<profile>/deps/<test>`) or example.
pub(crate) fn find_or_build(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let profile = own
        .ancestors()
        .find(|path| {
            let name = path.file_name();
            name == Some(OsStr::new("deps")) || name == Some(OsStr::new("examples"))
        })
        .and_then(Path::parent)
        .unwrap_or_else(|| {
            panic!(
                "`{}` is not below a `deps` or `examples` folder",
                own.display()
            )
        });
    let program = profile.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if modified(&program).is_none_or(|built| built < newest_source()) {
        build(name, profile);
    }
    program
}

fn build(name: &str, profile: &Path) {
    let target = profile
        .parent()
        .expect("a profile folder lies in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--quiet",
            "--package",
            "toolway-testkit",
            "--bin",
            name,
        ])
        .arg("--target-dir")
        .arg(target)
        .current_dir(peers::workspace());
    if profile.file_name() == Some(OsStr::new("release")) {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "cannot build {name}: {status}");
}

fn newest_source() -> SystemTime {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut newest = modified(&own.join("Cargo.toml")).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut folders = vec![own.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            newest = newest.max(modified(&path).unwrap_or(SystemTime::UNIX_EPOCH));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    newest
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
