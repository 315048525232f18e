//! Reading a resource, rendering a prompt, and completing what either takes.
//!
//! Owns the requests and their results. What there is to read and to render stands in the
//! catalogue; hearing that a resource changed is `following.rs`. No permission is asked: the
//! embedding program does this of its own accord, and nothing here runs a tool.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway_types::{ConnectionState, ServerName, ToolKey, Untrusted};
use toolway_wire::era::method;
use toolway_wire::view;

use super::Host;
use crate::call::{CallError, CallOptions, Consent, SavedFile, ToolTarget};
use crate::dispatch::result::contents;
use crate::dispatch::send::{self, Lines};

/// What a resource holds.
#[derive(Debug)]
pub struct ResourceOutcome {
    /// The whole MCP result, byte for byte as the server sent it.
    pub raw: Box<RawValue>,
    /// The same, read.
    pub result: view::ReadResult,
}

impl ResourceOutcome {
    /// The bytes of one part, decoded; what is wrong with it otherwise.
    pub fn bytes(&self, part: usize) -> Result<Vec<u8>, String> {
        let part = self.result.contents.get(part);
        contents::bytes(part.ok_or("there is no such part")?)
    }
}

/// What values are to be suggested for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    /// An argument of a prompt, by the prompt's own name.
    Prompt(String),
    /// A variable of a resource template, by the template.
    Template(String),
}

/// Suggested values, the best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Suggestions {
    /// The values, as received.
    pub values: Vec<Untrusted>,
    /// How many there are in all, where the server says.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// A rendered prompt.
#[derive(Debug)]
pub struct PromptOutcome {
    /// The whole MCP result, byte for byte as the server sent it.
    pub raw: Box<RawValue>,
    /// The same, read.
    pub result: view::PromptResult,
}

impl Host {
    /// Reads a resource, listed or not. A server that is still connecting is waited for. Where an
    /// error names a tool, it is the URI. Dropping the future tells the server.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<ResourceOutcome, CallError> {
        let params = json!({ "uri": uri });
        let raw = self.fetch(server, uri, method::RESOURCES_READ, &params);
        let raw = raw.await?;
        let result = view::read_result(&raw).map_err(|error| malformed(server, uri, &error))?;
        Ok(ResourceOutcome { raw, result })
    }

    /// Saves the binary parts of what was read in the private directory. Gives the files, whose
    /// `block` is the place of the part, and one sentence for each that could not be saved.
    pub async fn save_resource(&self, read: &ResourceOutcome) -> (Vec<SavedFile>, Vec<String>) {
        contents::save(&read.result.contents, &self.reach.output_dir).await
    }

    /// Asks for values that an argument could have, given how it begins and what the other
    /// arguments are. A server that does not complete has none to suggest, and is not asked.
    pub async fn complete(
        &self,
        server: &ServerName,
        reference: &CompletionReference,
        argument: &str,
        value: &str,
        context: &BTreeMap<String, String>,
    ) -> Result<Suggestions, CallError> {
        let (kind, key, name) = match reference {
            CompletionReference::Prompt(name) => ("ref/prompt", "name", name),
            CompletionReference::Template(template) => ("ref/resource", "uri", template),
        };
        let options = CallOptions::new(Consent::Typed);
        let target = ToolTarget::Key(ToolKey::new(server.clone(), name));
        self.await_server(&target, &options).await?;
        if let Some(ConnectionState::Connected(facts)) = self
            .snapshot()
            .server(server.as_str())
            .map(|shown| &shown.state)
            && facts
                .capabilities
                .get("completions")
                .is_none_or(Value::is_null)
        {
            return Ok(Suggestions::default());
        }
        let mut params = json!({
            "ref": { "type": kind, key: name },
            "argument": { "name": argument, "value": value },
        });
        if !context.is_empty() {
            params["context"] = json!({ "arguments": context });
        }
        let raw = self.fetch(server, name, method::COMPLETION_COMPLETE, &params);
        let found =
            view::completion(&raw.await?).map_err(|error| malformed(server, name, &error))?;
        Ok(Suggestions {
            values: found.values.into_iter().map(Untrusted::new).collect(),
            total: found.total,
            has_more: found.has_more,
        })
    }

    /// Renders a prompt. A server that is still connecting is waited for. Where an error names a
    /// tool, it is the prompt. Dropping the future tells the server.
    pub async fn get_prompt(
        &self,
        server: &ServerName,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptOutcome, CallError> {
        let params = json!({ "name": name, "arguments": arguments });
        let raw = self.fetch(server, name, method::PROMPTS_GET, &params);
        let raw = raw.await?;
        let result = view::prompt_result(&raw).map_err(|error| malformed(server, name, &error))?;
        Ok(PromptOutcome { raw, result })
    }

    /// Asks a server for something that needs nobody's consent. `what` names it in errors.
    pub(crate) async fn fetch(
        &self,
        server: &ServerName,
        what: &str,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, CallError> {
        // Nobody has to consent, so the consent is never looked at.
        let options = CallOptions::new(Consent::Typed);
        let key = ToolKey::new(server.clone(), what);
        self.await_server(&ToolTarget::Key(key), &options).await?;
        let picture = self.snapshot();
        let line = picture.line(server)?;
        let params = to_raw_value(params).map_err(|error| malformed(server, what, &error))?;
        let options = send::options(&options, &*line, picture.general_limits());
        let limit = options.timeout;
        line.request(method, params, options)
            .await
            .map_err(|error| send::explain(error, &ToolKey::new(server.clone(), what), limit))
    }
}

fn malformed(server: &ServerName, what: &str, error: &dyn std::fmt::Display) -> CallError {
    CallError::Malformed {
        server: server.clone(),
        tool: Untrusted::new(what),
        what: Untrusted::new(format!("something that is no result: {error}")),
    }
}
