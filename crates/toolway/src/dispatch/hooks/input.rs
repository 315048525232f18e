//! What a hook is told: one JSON object on its stdin, in the shape that hooks of other hosts know.
//!
//! Owns the names of its members. What is absent for an event is left out.

use serde::Serialize;
use serde_json::{Map, Value};
use toolway_config::HookEvent;
use toolway_types::ServerName;

use crate::call::Caller;
use crate::catalog::CatalogTool;
use crate::client_handler::{Elicitation, ElicitationAnswer};

/// What a hook is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HookInput {
    /// The event's name.
    pub hook_event_name: &'static str,
    /// The same for everything that one host does.
    pub session_id: String,
    /// The directory the host works in.
    pub cwd: String,
    /// Who asks for the call, or whose call caused the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<HookCaller>,
    /// The tool, by the name models see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The arguments of the call; after it, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Map<String, Value>>,
    /// The whole MCP result, after a call that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_response: Option<Value>,
    /// Why there is none, after a call that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The server's name, as configured.
    pub server: String,
    /// The tool's own name, as its server spells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The server that asks; the same as `server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_server_name: Option<String>,
    /// What the server says it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How it asks: `form` or `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
    /// The form's fields, as a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// The page to visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The server's name for the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// What was answered: `accept`, `decline` or `cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    /// The fields of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// A caller, as a hook is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookCaller {
    /// What tells it from other callers.
    pub id: String,
    /// `person`, `agent`, `client` or `hook`.
    pub kind: &'static str,
    /// For whom it acts.
    pub principal: String,
    /// What people are shown of it.
    pub shown: String,
}

impl From<&Caller> for HookCaller {
    fn from(caller: &Caller) -> Self {
        Self {
            id: caller.id.to_string(),
            kind: caller.kind.as_str(),
            principal: caller.principal.to_string(),
            shown: caller.shown.to_string(),
        }
    }
}

impl HookInput {
    fn new(event: HookEvent, server: &ServerName) -> Self {
        Self {
            hook_event_name: event.as_str(),
            session_id: String::new(),
            cwd: String::new(),
            caller: None,
            tool_name: None,
            tool_input: None,
            tool_response: None,
            error: None,
            server: server.as_str().to_owned(),
            tool: None,
            mcp_server_name: None,
            message: None,
            mode: None,
            requested_schema: None,
            url: None,
            elicitation_id: None,
            action: None,
            content: None,
        }
    }

    /// About a call.
    pub(super) fn call(
        event: HookEvent,
        tool: &CatalogTool,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Self {
        Self {
            caller: Some(caller.into()),
            tool_name: Some(tool.name.clone()),
            tool_input: Some(arguments),
            tool: Some(tool.key.tool.clone()),
            ..Self::new(event, &tool.key.server)
        }
    }

    /// About a server's question.
    pub(super) fn question(
        event: HookEvent,
        server: &ServerName,
        request: &Elicitation,
        caller: &Caller,
    ) -> Self {
        let asked = Self {
            caller: Some(caller.into()),
            mcp_server_name: Some(server.as_str().to_owned()),
            ..Self::new(event, server)
        };
        match request {
            Elicitation::Form { message, schema } => Self {
                message: Some(message.as_received().to_owned()),
                mode: Some("form"),
                requested_schema: serde_json::from_str(schema.get()).ok(),
                ..asked
            },
            Elicitation::Url {
                message, url, id, ..
            } => Self {
                message: Some(message.as_received().to_owned()),
                mode: Some("url"),
                url: Some(url.as_str().to_owned()),
                elicitation_id: id.clone(),
                ..asked
            },
        }
    }

    /// About the answer to it.
    pub(super) fn answered(mut self, answer: &ElicitationAnswer) -> Self {
        let (action, content) = match answer {
            ElicitationAnswer::Accept(content) => ("accept", content.clone()),
            ElicitationAnswer::Decline => ("decline", None),
            ElicitationAnswer::Cancel => ("cancel", None),
        };
        self.action = Some(action);
        self.content = content;
        self
    }
}
