//! Reading a resource and rendering a prompt.
//!
//! Owns the two requests and their results. What there is to read and to render stands in the
//! catalogue. No permission is asked: the embedding program does this of its own accord, and
//! nothing here runs a tool.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway_types::{ServerName, ToolKey, Untrusted};
use toolway_wire::era::method;
use toolway_wire::view;

use super::Host;
use crate::call::{CallError, CallOptions, Consent, ToolTarget};
use crate::dispatch::send::{self, Lines};

/// What a resource holds.
#[derive(Debug)]
pub struct ResourceOutcome {
    /// The whole MCP result, byte for byte as the server sent it.
    pub raw: Box<RawValue>,
    /// The same, read.
    pub result: view::ReadResult,
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
        what: Untrusted::new(error.to_string()),
    }
}
