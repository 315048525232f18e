//! `toolway serve` as tests start it: over HTTP until it is told to end, or by a client itself.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::TempHome;

use crate::support::{command, program};

/// One that listens; ended with its test.
pub(crate) struct Gateway {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Where all servers are.
    pub(crate) url: String,
    /// The token in its file, which clients show; empty where there is none.
    pub(crate) token: String,
}

impl Gateway {
    /// Starts one on a port of the system's choosing.
    pub(crate) fn start(home: &TempHome, words: &[&str]) -> Self {
        let mut all = vec!["serve", "--http", "127.0.0.1:0"];
        all.extend(words);
        let mut child = command(home, &all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut gateway = Self {
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            url: String::new(),
            token: String::new(),
        };
        gateway.stdout.read_line(&mut gateway.url).unwrap();
        gateway.url.truncate(gateway.url.trim_end().len());
        let token = home.config_home().join("state/gateway-token");
        gateway.token = std::fs::read_to_string(token).unwrap_or_default();
        gateway.token.truncate(gateway.token.trim_end().len());
        assert!(gateway.url.starts_with("http"), "{}", gateway.rest());
        gateway
    }

    /// What a client script is told of it.
    pub(crate) fn target(&self) -> Value {
        json!({ "url": self.url, "token": self.token })
    }

    /// The entry of it, or of one server behind it, in another home.
    pub(crate) fn entry(&self) -> Value {
        let headers = json!({ "Authorization": format!("Bearer {}", self.token) });
        json!({ "type": "http", "url": self.url, "headers": headers })
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Waits for its end; the code that a shell would see, and all that it said after the address.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let rest = self.rest();
        let status = self.child.wait().unwrap();
        (toolway_testkit::shell_code(status), rest)
    }

    fn rest(&mut self) -> String {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said).unwrap();
        }
        said
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).unwrap();
        // It may have ended by itself.
        let _ = kill_process(Pid::from_raw(id).unwrap(), Signal::TERM);
        drop(self.child.wait());
    }
}

/// What a client script is told of a `toolway serve` that it starts itself.
pub(crate) fn started_by_clients(home: &TempHome, words: &[&str]) -> Value {
    let mut all = vec!["serve"];
    all.extend(words);
    let made = command(home, &all);
    let env: serde_json::Map<String, Value> = made
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), json!(value?.to_str()?))))
        .collect();
    json!({ "command": program(), "args": all, "env": env })
}
