//! Agents: callers with servers of their own.
//!
//! Owns when an agent starts: once every server that it requires is connected, or not at all. What
//! it sees is a view (`view.rs`), and what it holds is an attachment (`attached.rs`).

use std::fmt;

use futures_util::future::join_all;
use toolway_types::{ServerName, name::as_word};

use super::{AttachOptions, Attached, Host, ServerObstacle, ViewSpec};
use crate::call::Caller;

/// What an agent is to have.
#[derive(Default)]
pub struct AgentSpec {
    /// Its servers and rules. Those of the host that it names are shared with everybody; its own
    /// end with it.
    pub view: ViewSpec,
    /// The servers without which it does not start.
    pub required: Vec<ServerName>,
    /// What it can be asked, and where it works. What it sees is `view`, whatever stands here.
    pub attach: AttachOptions,
}

/// Why an agent does not start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the agent `{agent}` does not start: {}", Obstacles(.obstacles))]
pub struct AgentError {
    /// What is shown of it.
    pub agent: String,
    /// Every server that it requires and does not have, and why.
    pub obstacles: Vec<(ServerName, ServerObstacle)>,
}

struct Obstacles<'a>(&'a [(ServerName, ServerObstacle)]);

impl fmt::Display for Obstacles<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (server, obstacle)) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { "; " };
            write!(
                formatter,
                "{gap}its server `{}` {obstacle}",
                as_word(server.as_str())
            )?;
        }
        Ok(())
    }
}

impl Host {
    /// Lets an agent in, once the servers that it requires are connected. One that is missing, or
    /// that cannot be connected, keeps it from starting; what it had of its own is gone then.
    ///
    /// An agent with one server of its own, an object of this program, which ends with it:
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use serde_json::{Value, json};
    /// use toolway::config::Plan;
    /// use toolway::types::ServerName;
    /// use toolway::{AgentSpec, Caller, CallerKind, Host, HostOptions, InProcessServer, ViewSpec};
    /// use toolway::{CallOptions, Consent, ToolRequest, ToolTarget};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock: InProcessServer = Arc::new(|mut end| Box::pin(async move {
    ///     while let Some(message) = end.incoming.recv().await {
    ///         let asked: Value = serde_json::from_slice(&message).unwrap_or_default();
    ///         let (member, value) = match asked["method"].as_str() {
    ///             Some("initialize") => ("result", json!({
    ///                 "protocolVersion": "2025-11-25",
    ///                 "capabilities": { "tools": {} },
    ///                 "serverInfo": { "name": "clock", "version": "1" },
    ///             })),
    ///             Some("tools/list") => ("result", json!({
    ///                 "tools": [{ "name": "now", "inputSchema": { "type": "object" } }],
    ///             })),
    ///             Some("tools/call") => ("result", json!({
    ///                 "content": [{ "type": "text", "text": "noon" }],
    ///             })),
    ///             // A notification, which nobody answers.
    ///             _ if asked["id"].is_null() => continue,
    ///             _ => ("error", json!({ "code": -32601, "message": "not here" })),
    ///         };
    ///         let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], member: value });
    ///         if end.outgoing.send(answer.to_string().into()).await.is_err() {
    ///             return;
    ///         }
    ///     }
    /// }));
    /// let host = Host::start(Plan::default(), HostOptions::default());
    /// let name = ServerName::new("clock")?;
    /// let spec = AgentSpec {
    ///     view: ViewSpec {
    ///         objects: vec![(name.clone(), clock)],
    ///         // None of the host's.
    ///         ..ViewSpec::nothing()
    ///     },
    ///     required: vec![name],
    ///     ..AgentSpec::default()
    /// };
    /// let agent = host.agent(Caller::new(CallerKind::Agent, "clerk"), spec).await?;
    /// let tool = ToolTarget::Exposed("mcp__clock__now".to_owned());
    /// let request = ToolRequest::new(tool, serde_json::Map::new());
    /// let outcome = agent.call(request, CallOptions::new(Consent::Typed)).await?;
    /// assert!(outcome.raw.to_string().contains("noon"));
    /// assert!(host.snapshot().server("clock").is_none(), "it is the agent's alone");
    /// agent.detach().await;
    /// host.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn agent(&self, caller: Caller, spec: AgentSpec) -> Result<Attached, AgentError> {
        let named = spec.view.servers.clone().unwrap_or_default();
        let view = self.view(spec.view).await;
        if !spec.required.is_empty() {
            view.wake(&spec.required).await;
        }
        join_all(spec.required.iter().map(|name| view.ready(name.as_str()))).await;
        let obstacle = |name: &ServerName| Some((name.clone(), view.obstacle(name)?));
        let obstacles: Vec<_> = spec.required.iter().filter_map(obstacle).collect();
        if !obstacles.is_empty() {
            view.end().await;
            return Err(AgentError {
                agent: caller.shown.to_string(),
                obstacles,
            });
        }
        for (server, obstacle) in named.iter().filter_map(obstacle) {
            if obstacle == ServerObstacle::Missing {
                tracing::warn!(agent = %caller.shown, %server, "the agent names a server that is not configured");
            }
        }
        let options = AttachOptions {
            view: Some(view),
            ..spec.attach
        };
        Ok(self.attach(caller, options))
    }
}

impl Attached {
    /// Ends it, and the servers that are its own; returns when they are gone. Dropping it does the
    /// same without waiting.
    pub async fn detach(self) {
        self.background.end();
        self.party.view.end_unless_shared().await;
    }
}
