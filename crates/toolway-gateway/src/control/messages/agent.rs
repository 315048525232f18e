//! Agents: what they are to have.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Asks, ControlServer, or_default};

/// The parameters of `toolway/agents/start`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartAgent {
    /// What is shown of it.
    pub name: String,
    /// Its servers; all that the program sees when absent.
    #[serde(default)]
    pub servers: Option<Vec<AgentServer>>,
    /// Those without which it does not start.
    #[serde(default, deserialize_with = "or_default")]
    pub required: Vec<String>,
    /// The tools that it has at all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Those that it has not.
    #[serde(default, deserialize_with = "or_default")]
    pub disallowed_tools: Vec<String>,
    /// What the program answers for it; as for itself when absent.
    #[serde(default)]
    pub asks: Option<Asks>,
}

/// A server of an agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum AgentServer {
    /// One that the program sees.
    Shared(String),
    /// Its own, by name.
    Own(Map<String, Value>),
}

/// The answer to it.
#[derive(Debug, Clone, Serialize)]
pub struct StartedAgent {
    /// By which requests name it.
    pub agent: String,
    /// Its servers.
    pub servers: Vec<ControlServer>,
    /// Those that it names and that are not there.
    pub missing: Vec<String>,
}

/// The parameters of `toolway/agents/end`.
#[derive(Debug, Clone, Deserialize)]
pub struct AgentParams {
    /// The agent.
    pub agent: String,
}
