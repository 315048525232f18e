//! What the program is asked: whether a call may run, what servers want to know, and hooks.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ControlSource;

/// The parameters of `toolway/ask/permission`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskPermission<'a> {
    /// What tells the question from others.
    pub id: String,
    /// The server of the tool.
    pub server: AskedServer<'a>,
    /// The tool's own name.
    pub tool: &'a str,
    /// The name that models see.
    pub name: &'a str,
    /// The server's title for it.
    pub title: Option<&'a str>,
    /// The server's words for it.
    pub description: Option<String>,
    /// The arguments as they will be sent.
    pub arguments: &'a Map<String, Value>,
    /// The rule that wants somebody asked.
    pub rule: Option<&'a str>,
    /// Why else somebody is asked.
    pub reason: Option<&'a str>,
    /// How the tool differs from what it was when it was permitted.
    pub changed: Vec<String>,
    /// Whether the server itself calls the tool destructive.
    pub destructive: Option<bool>,
    /// Whether no should be what is chosen in a hurry.
    pub default_to_no: bool,
    /// The agent that calls.
    pub agent: Option<&'a str>,
    /// The answers that there are.
    pub choices: Vec<&'static str>,
    /// The rules that answers would keep.
    pub suggestions: Vec<SuggestedRule>,
}

/// The server that a question is about.
#[derive(Debug, Serialize)]
pub struct AskedServer<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its definition came from.
    pub provenance: &'static str,
    /// Where that stands.
    pub source: Option<ControlSource>,
}

/// A rule that an answer would keep.
#[derive(Debug, Serialize)]
pub struct SuggestedRule {
    /// The rule.
    pub rule: String,
    /// What it does.
    pub behavior: &'static str,
    /// The answer that keeps it.
    pub remember: &'static str,
}

/// The answer to `toolway/ask/permission`.
#[derive(Debug, Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub enum PermissionReply {
    /// It may run.
    Allow {
        /// With these arguments instead.
        #[serde(default, rename = "updatedArguments")]
        updated_arguments: Option<Map<String, Value>>,
        /// For how long.
        #[serde(default)]
        remember: Option<RememberWord>,
    },
    /// It may not.
    Deny {
        /// Why; whoever calls is told.
        #[serde(default)]
        message: Option<String>,
    },
}

/// How long a yes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RememberWord {
    /// As long as the program runs.
    Session,
    /// As a rule for the tool.
    AlwaysTool,
    /// As a rule for the server.
    AlwaysServer,
}

/// The parameters of `toolway/ask/elicitation`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskElicitation<'a> {
    /// What tells the question from others.
    pub id: String,
    /// The server that asks.
    pub server: AskedServer<'a>,
    /// `form` or `url`.
    pub mode: &'static str,
    /// What it says it needs.
    pub message: String,
    /// The fields, as a JSON Schema of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<&'a RawValue>,
    /// The page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<&'a str>,
    /// The server's name for the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<&'a str>,
    /// What the server calls itself, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent whose call it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
}

/// The answer to it.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ElicitationReply {
    /// Yes, with the fields of a form.
    Accept {
        /// Those.
        #[serde(default)]
        content: Option<Map<String, Value>>,
    },
    /// No.
    Decline,
    /// It was put away.
    Cancel,
}

/// The parameters of `toolway/hook`.
#[derive(Debug, Serialize)]
pub struct HookCall<'a, T> {
    /// By which the program knows the hook.
    pub callback: &'a str,
    /// What happens.
    pub event: &'static str,
    /// What a hook program reads on stdin.
    pub input: &'a T,
}
