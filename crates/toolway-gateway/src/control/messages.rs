//! What travels between Toolway and a program: the parameters and answers of `toolway/…`.
//!
//! Owns the shapes, one file for each noun; `docs/control.schema.json` describes the same, and a test
//! holds one to the other. What a request means is not owned here.

mod agent;
mod beginning;
mod call;
mod looking;
mod question;
mod server;

use serde::{Deserialize, Deserializer};
use toolway::types::Origin;

pub use self::agent::{AgentParams, AgentServer, StartAgent, StartedAgent};
pub use self::beginning::{Asks, Initialize, Initialized, ProgramHook, ProgramInfo};
pub use self::call::{
    CallParams, ControlTool, ControlTools, ResultsWanted, ToolsParams, text_result,
};
pub use self::looking::{
    AuditLines, AuditParams, ContextRow, ExplainParams, HookListing, ListParams, LogLines,
    LogsParams, PermissionListing, PermissionRow, PromptParams, PromptsListed, ReadParams,
    ResourcesListed, ServerContext,
};
pub use self::question::{
    AskElicitation, AskPermission, AskedServer, ElicitationReply, HookCall, PermissionReply,
    RememberWord, SuggestedRule,
};
pub use self::server::{
    ClosedConnection, ControlServer, DecideParams, DecidedServer, LoginParams, LoginStarted,
    MessageParams, MessageReply, ServerAnswered, ServerParams, ServersAnswered, ServersParams,
    ServersSet, SetServers, UndecidedServer,
};

use serde::Serialize;

/// Where something stands, as programs are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlSource {
    /// The file, or what else it is.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl From<&Origin> for ControlSource {
    fn from(origin: &Origin) -> Self {
        Self {
            file: origin.path(),
            line: origin.line(),
        }
    }
}

/// Nothing to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Done {}

/// What is null is as if it were absent.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
