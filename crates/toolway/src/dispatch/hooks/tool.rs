//! A hook that is a tool of a server.
//!
//! Owns how its arguments are filled in, who may answer, and how its result is read as a hook's
//! output. Its call passes the rules like any other, but the runner lets it pass no hooks: a hook on
//! a hook's own tool would never end. The user wrote this very call into their settings, which
//! permits it, for the tool as it was: one that changed is refused, because no user is asked within
//! a hook's time; and so is a server that a repository brought, of that name or spelled like it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use toolway_config::Permissions;
use toolway_types::name::as_word;
use toolway_types::{ServerName, ToolKey, text};
use toolway_wire::view::{ContentBlock, ResourceBody};

use super::reply;
use crate::call::{
    CallError, CallFault, CallOptions, CallerKind, Consent, RefusedBy, ToolOutcome, ToolRequest,
    ToolTarget,
};
use crate::catalog::Catalog;
use crate::dispatch::Dispatch;

/// Who this is in the audit.
const CALLER: &str = "hook";

/// The longest name of a tool in a message, in characters.
const MAX_NAME: usize = 100;
/// The most of a difference in a message, in characters.
const MAX_CHANGE: usize = 500;

/// A tool to call.
pub(super) struct HookTool {
    key: ToolKey,
    arguments: Map<String, Value>,
}

impl HookTool {
    /// The tool, with `${path}` in its arguments filled in from what the hook is told.
    pub(super) fn new(
        server: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        input: &impl Serialize,
    ) -> Result<Self, String> {
        let server = ServerName::new(server).map_err(|error| error.to_string())?;
        let told = serde_json::to_value(input).map_err(|error| error.to_string())?;
        let mut arguments = arguments.clone();
        for argument in arguments.values_mut() {
            fill(argument, &told)?;
        }
        Ok(Self {
            key: ToolKey::new(server, tool),
            arguments,
        })
    }

    /// Whether no server that a repository brought could answer in place of the one that was named.
    pub(super) fn require_own_server(
        &self,
        catalog: &Catalog,
        permissions: &Permissions,
    ) -> Result<(), String> {
        let found = catalog.find(&ToolTarget::Key(self.key.clone())).ok();
        let answering = found.map(|tool| &tool.key.server);
        let servers = [Some(&self.key.server), answering];
        let mut brought = servers.into_iter().flatten();
        match brought.find_map(|server| permissions.repository_server(server)) {
            None => Ok(()),
            Some(brought) => Err(format!(
                "`{}` here comes from {}, and a repository's server decides nothing",
                brought.server, brought.origin
            )),
        }
    }

    pub(super) fn server(&self) -> &ServerName {
        &self.key.server
    }

    /// Calls it, for what it says. Boxed, because a hook is part of a call, and this is one.
    pub(super) fn call<'a>(
        self,
        calls: &'a Dispatch<'a>,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<String, String>> {
        async move {
            self.require_own_server(calls.catalog, calls.permissions)?;
            let request = ToolRequest::new(ToolTarget::Key(self.key), self.arguments);
            let options = CallOptions {
                timeout: Some(timeout),
                ..CallOptions::new(Consent::Typed)
            };
            let caller = Arc::new(calls.caller.acting_as(CallerKind::Hook, CALLER));
            let calls = Dispatch {
                caller: &caller,
                ..calls.clone()
            };
            match calls.forward(request, options).await {
                Ok(outcome) => read(&outcome),
                Err(error) => Err(failure(&error)),
            }
        }
        .boxed()
    }
}

/// Why its call has no answer, with what to do where only a person can.
fn failure(error: &CallError) -> String {
    let CallError::Failed(key, CallFault::Refused(RefusedBy::Changed { difference })) = error
    else {
        return reply::one_line(&error.to_string());
    };
    let ToolKey { server, tool } = key;
    let tool = text::clean_line(tool);
    let lines = difference.lines.join(" | ");
    let lines = text::clean_line(&lines);
    format!(
        "its tool `{}` of server `{server}` is not defined any more as it was when it was \
         permitted ({}); once you have read that, accept it with `toolway call {} {} … \
         --accept-change`",
        text::cut(&tool, MAX_NAME),
        text::cut(&lines, MAX_CHANGE),
        as_word(server.as_str()),
        as_word(&tool),
    )
}

fn read(outcome: &ToolOutcome) -> Result<String, String> {
    let mut said = String::new();
    for block in &outcome.result().content {
        if let ContentBlock::Text { text }
        | ContentBlock::Resource {
            body: ResourceBody::Text(text),
            ..
        } = block
        {
            said.push_str(text);
            said.push('\n');
        }
    }
    if outcome.is_error {
        return Err(format!("it answered an error: {}", reply::one_line(&said)));
    }
    if said.trim().is_empty()
        && let Some(structured) = &outcome.result().structured
    {
        structured.get().clone_into(&mut said);
    }
    Ok(said)
}

/// Fills in every `${path}` of every string. One that is the whole string keeps its type.
fn fill(value: &mut Value, told: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => {
            if let Some(filled) = filled(text, told)? {
                *value = filled;
            }
        }
        Value::Array(items) => {
            for item in items {
                fill(item, told)?;
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                fill(member, told)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn filled(text: &str, told: &Value) -> Result<Option<Value>, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let path = &rest[start + 2..start + length];
        let found = path
            .split('.')
            .try_fold(told, |at, step| match at {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                _ => at.get(step),
            })
            .ok_or_else(|| format!("there is no `{path}` for its `input`"))?;
        if start == 0 && length + 1 == text.len() {
            return Ok(Some(found.clone()));
        }
        whole.push_str(&rest[..start]);
        match found {
            Value::String(found) => whole.push_str(found),
            other => whole.push_str(&other.to_string()),
        }
        rest = &rest[start + length + 1..];
    }
    if rest.len() == text.len() {
        return Ok(None);
    }
    whole.push_str(rest);
    Ok(Some(Value::String(whole)))
}
