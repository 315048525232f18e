//! The beginning: who the program is, what it answers, and what it brings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ControlServer, or_default};

/// The parameters of `toolway/initialize`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Initialize {
    /// Who it is.
    pub client: Option<ProgramInfo>,
    /// What it answers.
    #[serde(deserialize_with = "or_default")]
    pub asks: Asks,
    /// The servers that it brings, by name.
    #[serde(deserialize_with = "or_default")]
    pub servers: Map<String, Value>,
    /// Whether it has those only.
    #[serde(deserialize_with = "or_default")]
    pub strict: bool,
    /// What it wants to be asked before and after calls.
    #[serde(deserialize_with = "or_default")]
    pub hooks: Vec<ProgramHook>,
    /// Where it works: directories, or `file:` addresses.
    #[serde(deserialize_with = "or_default")]
    pub roots: Vec<String>,
    /// Whether it is told what happens.
    #[serde(deserialize_with = "or_default")]
    pub events: bool,
}

/// Who a program is, by its own word.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ProgramInfo {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
}

/// Which questions are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Asks {
    /// Whether a call may run.
    #[serde(deserialize_with = "or_default")]
    pub permission: bool,
    /// A server's form.
    #[serde(deserialize_with = "or_default")]
    pub form: bool,
    /// A page that a server wants visited.
    #[serde(deserialize_with = "or_default")]
    pub url: bool,
}

/// A hook that lives in the program.
#[derive(Debug, Clone, Deserialize)]
pub struct ProgramHook {
    /// `PreToolUse`, …
    pub event: String,
    /// Which tools it is about; all of them when absent.
    #[serde(default, deserialize_with = "or_default")]
    pub matcher: String,
    /// By which the program knows it.
    pub callback: String,
    /// The longest that it may take, in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
}

/// The answer to `toolway/initialize`.
#[derive(Debug, Clone, Serialize)]
pub struct Initialized {
    /// The version of this protocol.
    pub protocol: u32,
    /// Toolway's own.
    pub version: &'static str,
    /// The process that serves the program.
    pub pid: u32,
    /// The servers that it brought and has.
    pub added: Vec<String>,
    /// Why it does not have the others.
    pub errors: BTreeMap<String, String>,
    /// Every server, as it stands now.
    pub servers: Vec<ControlServer>,
}
