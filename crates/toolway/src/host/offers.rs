//! Reading a resource, rendering a prompt, and completing what either takes.
//!
//! Owns the requests and their results. What there is to read and to render stands in the
//! catalogue; hearing that a resource changed is `following.rs`. Each request is judged first
//! (`dispatch/offered.rs`): rules and hooks count, and without options that of a person is taken for
//! one that was typed.

use std::collections::BTreeMap;
use std::mem;

use serde_json::{Map, Value, json};
use toolway_types::{ConnectionState, ServerName, ToolKey, Untrusted};
use toolway_wire::era::method;
use toolway_wire::{RawJson, view};

use super::{Attached, Host};
use crate::audit::AuditEntry;
use crate::call::{CallError, CallFault, CallOptions, SavedFile, ToolTarget};
use crate::dispatch::offered::PermittedOffering;
use crate::dispatch::result::contents;
use crate::dispatch::send::{self, PreparedRequest};
use crate::offering::{Offering, PriorConsent};
use crate::pins::PinnedInstructions;
use crate::route::Routes;

/// What a resource holds.
#[derive(Debug)]
pub struct ResourceOutcome {
    /// The whole MCP result, byte for byte as the server sent it.
    pub raw: RawJson,
    /// The same, read.
    pub result: view::ReadResult,
    /// What a person should know about it and cannot see there.
    pub warnings: Vec<String>,
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
    pub raw: RawJson,
    /// The same, read.
    pub result: view::PromptResult,
    /// What a person should know about it and cannot see there.
    pub warnings: Vec<String>,
}

impl Attached {
    /// Reads a resource, listed or not. A caller that is a person is taken for one who typed its
    /// address; any other needs the permission that a model needs. A server that is
    /// still connecting is waited for. Where an error of the server names a tool, it is the URI.
    /// Dropping the future tells the server.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<ResourceOutcome, CallError> {
        self.read_resource_as(server, uri, &self.usual_options())
            .await
    }

    /// As [`Attached::read_resource`], under these conditions.
    pub async fn read_resource_as(
        &self,
        server: &ServerName,
        uri: &str,
        options: &CallOptions,
    ) -> Result<ResourceOutcome, CallError> {
        let params = members(json!({ "uri": uri }));
        let offering = Offering::ReadResource;
        let (raw, warnings) = self
            .fetch(offering, server, method::RESOURCES_READ, params, options)
            .await?;
        let result = view::read_result(&raw).map_err(|error| malformed(server, uri, &error))?;
        Ok(ResourceOutcome {
            raw,
            result,
            warnings,
        })
    }

    /// Saves the binary parts of what was read in the private directory. Gives the files, whose
    /// `block` is the place of the part, and one sentence for each that could not be saved.
    pub async fn save_resource(&self, read: &ResourceOutcome) -> (Vec<SavedFile>, Vec<String>) {
        contents::save(&read.result.contents, &self.core.output_dir).await
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
        let options = self.usual_options();
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
        let (offering, method) = (Offering::Complete, method::COMPLETION_COMPLETE);
        let (raw, _) = self
            .fetch(offering, server, method, members(params), &options)
            .await?;
        let found = view::completion(&raw).map_err(|error| malformed(server, name, &error))?;
        Ok(Suggestions {
            values: found.values.into_iter().map(Untrusted::new).collect(),
            total: found.total,
            has_more: found.has_more,
        })
    }

    /// Renders a prompt, under the same conditions as [`Attached::read_resource`]. A server that is still connecting is
    /// waited for. Where an error of the server names a tool, it is the prompt. Dropping the
    /// future tells the server.
    pub async fn get_prompt(
        &self,
        server: &ServerName,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptOutcome, CallError> {
        self.get_prompt_as(server, name, arguments, &self.usual_options())
            .await
    }

    /// As [`Attached::get_prompt`], under these conditions.
    pub async fn get_prompt_as(
        &self,
        server: &ServerName,
        name: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<PromptOutcome, CallError> {
        let params = members(json!({ "name": name, "arguments": arguments }));
        let offering = Offering::GetPrompt;
        let (raw, warnings) = self
            .fetch(offering, server, method::PROMPTS_GET, params, options)
            .await?;
        let result = view::prompt_result(&raw).map_err(|error| malformed(server, name, &error))?;
        Ok(PromptOutcome {
            raw,
            result,
            warnings,
        })
    }

    /// Has a request judged, and sends it. Gives the answer, and what a person should know.
    async fn fetch(
        &self,
        offering: Offering,
        server: &ServerName,
        method: &str,
        params: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<(RawJson, Vec<String>), CallError> {
        let (entry, permitted) = self.judge(offering, server, params, options).await?;
        let (answer, warnings) = match permitted {
            Ok(mut permitted) => {
                let warnings = mem::take(&mut permitted.warnings);
                let params = Value::Object(permitted.params().clone());
                let sent = self.request(&permitted, method, &params, options).await;
                (sent, warnings)
            }
            Err(error) => (Err(error), Vec::new()),
        };
        entry.finish_read(&answer).await;
        Ok((answer?, warnings))
    }

    /// Waits for a server, and has it judged whether this may be asked of it.
    pub(super) async fn judge(
        &self,
        offering: Offering,
        server: &ServerName,
        params: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<(AuditEntry, Result<PermittedOffering, CallError>), CallError> {
        self.await_server(&ToolTarget::Key(offering.of(server)), options)
            .await?;
        let snapshot = self.snapshot();
        let prompter = self
            .party
            .side
            .asker
            .prompter(options.asked.prompter.as_ref());
        let dispatch = self
            .core
            .dispatch(&self.party, &snapshot, prompter.as_ref());
        let asked =
            dispatch.permit_offering(offering, server, params, PriorConsent::Wanted, options);
        Ok(asked.await)
    }

    /// Has it judged whether this may be asked of a server, without asking yet.
    pub(crate) async fn permit_offering(
        &self,
        offering: Offering,
        server: &ServerName,
        params: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<PermittedOffering, CallError> {
        let (entry, permitted) = self.judge(offering, server, params, options).await?;
        entry.finish_judged(&permitted).await;
        permitted
    }

    /// Sends what was permitted, one request or several.
    pub(crate) async fn request(
        &self,
        permitted: &PermittedOffering,
        method: &str,
        params: &Value,
        options: &CallOptions,
    ) -> Result<RawJson, CallError> {
        let server = permitted.server();
        let named = ["uri", "name"]
            .into_iter()
            .find_map(|key| permitted.text(key));
        let key = ToolKey::new(server.clone(), named.unwrap_or(method));
        let snapshot = self.snapshot_with(server, options).await?;
        let route = snapshot.route(server)?;
        let general = snapshot.general_limits();
        let caller = &self.party.side;
        let request = PreparedRequest::new(&key, method, params)?;
        send::request(&*route, request, options, general, caller).await
    }
}

impl Host {
    /// Takes what a server says to models now as what it may say, and connects to it anew. One that
    /// rests is woken.
    pub async fn accept_instructions(&self, server: &ServerName) -> Result<(), CallError> {
        let snapshot = self.snapshot_with(server, &self.usual_options()).await?;
        let shown = snapshot.server(server.as_str()).map(|shown| &shown.state);
        let Some(ConnectionState::Connected(facts)) = shown else {
            return Ok(());
        };
        let Some(definition) = snapshot.routes.definition(server) else {
            return Ok(());
        };
        let said = facts.instructions.as_ref().map(Untrusted::as_received);
        let said = PinnedInstructions::of(server, definition, said.unwrap_or_default());
        said.accept(self.core.runner.pins()).await;
        // A server that is gone by now has nothing to say.
        let _ = self.reconnect(server.as_str()).await;
        Ok(())
    }
}

/// The members of what is written as an object.
fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn malformed(server: &ServerName, what: &str, error: &dyn std::fmt::Display) -> CallError {
    CallError::Failed(
        ToolKey::new(server.clone(), what),
        CallFault::Malformed(Untrusted::new(format!(
            "something that is no result: {error}"
        ))),
    )
}
