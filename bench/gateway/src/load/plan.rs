//! What is measured: the plan, as `cargo xtask bench gateway` writes it.
//!
//! Owns the plan as data. Words of a command may hold marks: `{server}` stands for the words that
//! start the server, `{line}` for the same as one line of a shell, `{config}` for a file that
//! configures all servers, `{count}` for how many there are, `{port}` for a free port, `{home}` for
//! a folder of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The program behind every gateway.
    pub server: PathBuf,
    /// How often everything is measured.
    pub repetitions: usize,
    /// How many idle sessions are opened.
    pub sessions: usize,
    pub gateways: Vec<GatewayPlan>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GatewayPlan {
    pub name: String,
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files of its home, written before it starts.
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// Where it listens; without it, its first line says so.
    #[serde(default)]
    pub address: Option<String>,
    pub era: Era,
    /// What stands before the names of the first server's tools.
    #[serde(default)]
    pub prefix: String,
    /// The most tools that one server may have; more are spread over several.
    #[serde(default)]
    pub most_tools: Option<usize>,
    /// Whether several servers can be behind it.
    #[serde(default)]
    pub takes_many: bool,
    /// Whether it lists the tools of the first server alone.
    #[serde(default)]
    pub lists_one: bool,
    /// Whether its sessions are counted.
    #[serde(default)]
    pub keeps_sessions: bool,
    /// Whether it is measured with large catalogues too.
    #[serde(default)]
    pub grows: bool,
    /// A failure of it is told in the figures instead of ending the run.
    #[serde(default)]
    pub is_optional: bool,
}

/// How clients, and the server behind, speak.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// `initialize`, and a session where the gateway has them.
    Legacy,
    /// 2026-07-28: every request says all that is needed.
    Modern,
}

/// What is behind a gateway.
#[derive(Clone, Copy)]
pub struct Behind {
    pub servers: usize,
    /// Tools of each.
    pub tools: usize,
}

impl Behind {
    pub const ONE: Self = Self {
        servers: 1,
        tools: 10,
    };

    /// So many tools in all, over as few servers as the gateway allows.
    #[must_use]
    pub fn tools(count: usize, gateway: &GatewayPlan) -> Self {
        let most = gateway.most_tools.unwrap_or(count).min(count);
        let servers = count.div_ceil(most);
        Self {
            servers,
            tools: count / servers,
        }
    }
}
