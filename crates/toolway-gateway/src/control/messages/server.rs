//! Servers: which there are, where they stand, and messages of those that live in the program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway::types::{Era, Scope};

use super::{ControlSource, ControlTool, or_default};

/// A server, as a program sees it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlServer {
    /// Its name.
    pub name: String,
    /// `pending`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub status: &'static str,
    /// The scope that it is configured in.
    pub scope: Scope,
    /// Where its entry stands.
    pub source: ControlSource,
    /// Where its definition came from: one of a set that may grow.
    pub provenance: &'static str,
    /// How it is reached.
    pub transport: Option<&'static str>,
    /// The family of protocols that it speaks.
    pub era: Option<Era>,
    /// Which protocol it speaks.
    pub protocol_version: Option<String>,
    /// What it says of itself.
    pub server_info: Option<Value>,
    /// What went wrong.
    pub error: Option<String>,
    /// Why it may not connect.
    pub reason: Option<String>,
    /// Whether it rests until it is needed.
    pub resting: bool,
    /// What it says to models.
    pub instructions: Option<String>,
    /// How many tools it offers.
    pub tool_count: Option<usize>,
    /// Those, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ControlTool>>,
}

/// The parameters of `toolway/servers`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServersParams {
    /// Only this one.
    pub server: Option<String>,
    /// Only what this agent sees.
    pub agent: Option<String>,
    /// Whether their tools are wanted too.
    #[serde(deserialize_with = "or_default")]
    pub tools: bool,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize)]
pub struct ServersAnswered {
    /// In order of name.
    pub servers: Vec<ControlServer>,
}

/// The parameters of `toolway/servers/set`.
#[derive(Debug, Clone, Deserialize)]
pub struct SetServers {
    /// All servers that the program brings, by name.
    pub servers: Map<String, Value>,
}

/// The answer to it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServersSet {
    /// New ones, and those that are defined in another way.
    pub added: Vec<String>,
    /// Those that are gone, and those that are defined in another way.
    pub removed: Vec<String>,
    /// Why others cannot be.
    pub errors: BTreeMap<String, String>,
}

/// The parameters of a request about one server.
#[derive(Debug, Clone, Deserialize)]
pub struct ServerParams {
    /// Its name.
    pub server: String,
}

/// The answer to one.
#[derive(Debug, Clone, Serialize)]
pub struct ServerAnswered {
    /// As it stands now.
    pub server: ControlServer,
}

/// The parameters of `toolway/servers/login` and `toolway/servers/logout`.
#[derive(Debug, Clone, Deserialize)]
pub struct LoginParams {
    /// The server's name.
    pub server: String,
    /// The account, where there are several.
    #[serde(default)]
    pub account: Option<String>,
    /// `browser` or `device`.
    #[serde(default)]
    pub method: Option<String>,
}

/// The answer to `toolway/servers/login`.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginStarted {
    /// The page to visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The code to type there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether it is done already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged_in: Option<bool>,
}

/// The parameters of `toolway/servers/approve` and `toolway/servers/reject`.
#[derive(Debug, Clone, Deserialize)]
pub struct DecideParams {
    /// The server's name.
    pub server: String,
    /// Of what was looked at.
    #[serde(default)]
    pub digest: Option<String>,
}

/// What a decision would cover.
#[derive(Debug, Clone, Serialize)]
pub struct UndecidedServer {
    /// The entry, secrets hidden.
    pub definition: Map<String, Value>,
    /// What a decision names.
    pub digest: String,
    /// Where the entry stands.
    pub source: ControlSource,
    /// The variables that it reads.
    pub variables: Vec<String>,
}

/// The answer to a decision, or to a look before it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum DecidedServer {
    /// It was decided.
    Decided(Box<ServerAnswered>),
    /// There is something to look at.
    Undecided(UndecidedServer),
}

/// The parameters of `toolway/servers/message`, in both directions.
#[derive(Debug, Deserialize, Serialize)]
pub struct MessageParams<'a> {
    /// The server that lives in the program.
    pub server: std::borrow::Cow<'a, str>,
    /// Which connection to it, counted from 1.
    pub connection: u64,
    /// The message.
    #[serde(borrow)]
    pub message: &'a RawValue,
}

/// The parameters of `toolway/servers/closed`.
#[derive(Debug, Serialize)]
pub struct ClosedConnection<'a> {
    /// The server.
    pub server: &'a str,
    /// The connection that is over.
    pub connection: u64,
}

/// The answer to it, in both directions.
#[derive(Debug, Deserialize, Serialize)]
pub struct MessageReply<'a> {
    /// The answer to the request inside; absent where it was no request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a RawValue>,
}
