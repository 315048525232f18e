//! What is said over the daemon's socket.
//!
//! Owns the methods and the shapes of their parameters and results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolway_wire::error;

/// The methods.
pub mod method {
    /// Runs a command on the streams that come with the request.
    pub const RUN: &str = "toolway/run";
    /// Said before a command begins: from here on it may have done something.
    pub const BEGUN: &str = "toolway/run/begun";
    /// Said while a command runs that goes on for as long as its client: the daemon is about to end.
    /// What is under way is finished; what comes next belongs elsewhere.
    pub const MOVING: &str = "toolway/run/moving";
    /// A signal for the command.
    pub const SIGNAL: &str = "toolway/run/signal";
    /// What the daemon is doing.
    pub const STATUS: &str = "toolway/daemon/status";
    /// Has it end: with what runs, or after that.
    pub const STOP: &str = "toolway/daemon/stop";
}

/// A command line, and what it means where it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// What was typed behind the program's name.
    pub words: Vec<String>,
    /// Where.
    pub directory: String,
    /// The variables there.
    pub environment: BTreeMap<String, String>,
    /// Which build of the program asks.
    pub build: String,
    /// What its process sees of the machine.
    pub namespaces: String,
    /// What is taken from the mode of files that are made there.
    pub umask: u32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The exit code.
    pub exit: u8,
    /// The signal that it ended by, if it did not end by itself.
    pub signal: Option<i32>,
}

/// A signal that is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalNote {
    /// Its number.
    pub signal: i32,
}

/// Why a daemon is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyMoving {
    /// One of a newer build takes its place.
    Replaced,
    /// Somebody stopped it: none takes its place.
    Stopped,
}

/// Why a command is not run here. Nothing of it has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunRefusal {
    /// The daemon is of an older build, or its file was replaced: it ends after what it runs.
    Outdated,
    /// The daemon is of a newer build.
    Newer,
    /// It sees another part of the machine.
    Elsewhere,
    /// It is on its way out.
    Ending,
    /// As much runs as can.
    Busy,
    /// It is no command that a daemon runs.
    NotHere,
}

/// A refusal, as it is said.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunRefused {
    /// In words.
    pub message: String,
    /// As a word.
    pub data: RefusalData,
}

/// What stands beside the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct RefusalData {
    /// Why.
    pub reason: RunRefusal,
}

/// A request or a notification, as far as the daemon reads it.
#[derive(Debug, Deserialize)]
pub struct DaemonRequest {
    /// Absent in a notification.
    pub id: Option<Value>,
    /// What is asked.
    pub method: String,
    /// With what.
    #[serde(default)]
    pub params: Value,
}

impl RunRefusal {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Outdated => {
                "the daemon is of an older build, and ends when nothing runs any more"
            }
            Self::Newer => "the daemon is of a newer build",
            Self::Elsewhere => "the daemon sees another part of this machine",
            Self::Ending => "the daemon is ending",
            Self::Busy => "the daemon runs as many commands as it can",
            Self::NotHere => "that is no command that the daemon runs",
        }
    }

    /// As an error of the protocol.
    pub(super) fn as_error(self) -> Value {
        json!({
            "code": error::INVALID_REQUEST,
            "message": self.words(),
            "data": { "reason": self },
        })
    }
}

/// A message as a line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A request as a line.
pub(super) fn request(method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let params = serde_json::to_value(params)?;
    let id = 1;
    Ok(line(
        &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
    ))
}

/// A notification as a line.
pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}
