//! Requests that a caller passes on: parameters and results as the bytes they came in.
//!
//! Owns asking for resources, prompts and completion so, and the steps of a task that its caller
//! follows itself. Calls of tools are passed on by `Attached::call`
//! ([`ToolRequest::of_params`], [`ResultDelivery::Raw`](crate::ResultDelivery::Raw)). Each request
//! is judged as any other (`dispatch/offered.rs`), on what is read of it; what is not judged only
//! travels along.
//!
//! Invariant: which methods can be asked for is closed on both sides, and none of them runs a tool.
//! A step of a task needs no permission of its own: the call that became the task had it.

use std::mem;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_types::{ServerName, ToolKey, Untrusted};
use toolway_wire::era::method;
use toolway_wire::view::{self, ResultType};
use toolway_wire::{CarriedParams, ParamsError, RawJson};

use super::Attached;
use crate::call::{
    CallError, CallFault, CallOptions, Continuations, Problem, ToolOutcome, ToolTarget,
};
use crate::dispatch::send::{self, PreparedRequest};
use crate::offering::Offering;
use crate::route::PassedOn;

/// What can be asked of a server beside calls, with parameters as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedMethod {
    /// `resources/read`
    ReadResource,
    /// `resources/directory/read`, of the skills extension
    ReadDirectory,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
}

impl PassedMethod {
    fn name(self) -> &'static str {
        match self {
            Self::ReadResource => method::RESOURCES_READ,
            Self::ReadDirectory => method::DIRECTORY_READ,
            Self::GetPrompt => method::PROMPTS_GET,
            Self::Complete => method::COMPLETION_COMPLETE,
        }
    }

    fn offering(self) -> Offering {
        match self {
            Self::ReadResource | Self::ReadDirectory => Offering::ReadResource,
            Self::GetPrompt => Offering::GetPrompt,
            Self::Complete => Offering::Complete,
        }
    }

    /// The members of its parameters that are judged.
    fn judged(self) -> &'static [&'static str] {
        match self {
            Self::ReadResource | Self::ReadDirectory => &["uri"],
            Self::GetPrompt => &["name", "arguments"],
            Self::Complete => &["ref", "argument", "context"],
        }
    }
}

/// What a server answered, as it came.
#[derive(Debug)]
pub struct PassedAnswer {
    /// The whole MCP result, byte for byte as the server sent it.
    pub raw: RawJson,
    /// What a person should know about it and cannot see there.
    pub warnings: Vec<String>,
}

/// A task that a call has become, and that its caller follows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedTask {
    server: ServerName,
    id: String,
}

impl PassedTask {
    /// A task by an id that was given out before. Who makes one vouches that a call of the same
    /// caller became this task: a gateway gives ids out sealed, and opens the seal.
    pub fn vouched(server: ServerName, id: String) -> Self {
        Self { server, id }
    }

    /// The server that works on it.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The server's name for it.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl ToolOutcome {
    /// The task that the call has become, where that was passed on.
    pub fn task(&self) -> Option<PassedTask> {
        if !view::task::may_be(&self.raw) {
            return None;
        }
        let made = match ResultType::peek(&self.raw) {
            Ok(ResultType::Task) => view::task::task(&self.raw),
            _ => view::task::created(&self.raw)?,
        };
        Some(PassedTask {
            server: self.server.clone(),
            id: made.ok()?.id,
        })
    }
}

/// What a caller can do with a task of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStep {
    /// `tasks/get`: how far it is.
    Get,
    /// `tasks/result`: what it has come to (legacy era).
    Result,
    /// `tasks/update`: input that it wants (modern era).
    Update,
    /// `tasks/cancel`: it is not wanted any more.
    Cancel,
}

impl TaskStep {
    fn method(self) -> &'static str {
        match self {
            Self::Get => method::TASKS_GET,
            Self::Result => method::TASKS_RESULT,
            Self::Update => method::TASKS_UPDATE,
            Self::Cancel => method::TASKS_CANCEL,
        }
    }
}

impl Attached {
    /// Asks a server for something beside calls, with parameters as bytes, and gives its result as
    /// bytes. Rules, hooks and the audit see it like [`Attached::read_resource_as`] and its like.
    pub async fn pass_on(
        &self,
        server: &ServerName,
        method: PassedMethod,
        params: &RawJson,
        options: &CallOptions,
    ) -> Result<PassedAnswer, CallError> {
        let (offering, judged) = (method.offering(), method.judged());
        let unusable = |message: String| invalid(offering.of(server), message);
        let all = known(params).map_err(|error| unusable(error.to_string()))?;
        let mut asked = Map::new();
        for name in judged {
            if let Some(raw) = all.get(name) {
                let value = serde_json::from_str(raw.get());
                let value: Value = value.map_err(|error| unusable(error.to_string()))?;
                asked.insert((*name).to_owned(), value);
            }
        }
        let (entry, permitted) = self.judge(offering, server, asked.clone(), options).await?;
        let mut warnings = Vec::new();
        let answer = match permitted {
            Ok(mut permitted) => {
                warnings = mem::take(&mut permitted.warnings);
                let mut members = Vec::new();
                for (name, value) in permitted.params() {
                    // Bytes are sent as they came where nobody wrote others.
                    let raw = all.get(name).filter(|_| asked.get(name) == Some(value));
                    let json = raw.map_or_else(|| value.to_string(), ToString::to_string);
                    members.push((name.as_str(), json));
                }
                let mut named = ["uri", "name"].into_iter();
                let named = named.find_map(|key| permitted.text(key));
                let key = ToolKey::new(server.clone(), named.unwrap_or(method.name()));
                let carried = all.without(judged);
                self.send_members(&key, method.name(), &members, carried, options)
                    .await
            }
            Err(error) => Err(error),
        };
        entry.finish_read(&answer).await;
        let raw = answer?;
        Ok(PassedAnswer { raw, warnings })
    }

    /// Asks a server something that the protocol does not have, or that only an extension has.
    /// Rules, hooks and the audit know it as `CallMcpMethod`, and skills as such; a method that the
    /// protocol has is refused, because it would be judged as something else there.
    pub async fn pass_on_other(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<PassedAnswer, CallError> {
        let is_skills = SKILL_METHODS.contains(&method);
        let offering = if is_skills {
            Offering::ListSkills
        } else {
            Offering::OtherMethod
        };
        let unusable = |message: String| invalid(offering.of(server), message);
        if !is_skills && is_of_protocol(method) {
            return Err(unusable(format!("`{method}` is a method of the protocol")));
        }
        let none = RawJson::from(send::raw_value(b"{}".to_vec()).unwrap_or_default());
        let params = params.unwrap_or(&none);
        let carried = carried(params).map_err(|error| unusable(error.to_string()))?;
        let mut asked = Map::new();
        if !is_skills {
            let read = serde_json::from_str(params.get());
            let read: Value = read.map_err(|error| unusable(error.to_string()))?;
            asked.insert("method".to_owned(), method.into());
            asked.insert("params".to_owned(), read);
        }
        let before = asked.get("params").cloned();
        let (entry, permitted) = self.judge(offering, server, asked, options).await?;
        let mut warnings = Vec::new();
        let answer = match permitted {
            // What a hook wrote cannot be told from what the client did, so it is not sent.
            Ok(permitted) if permitted.params().get("params") != before.as_ref() => Err(unusable(
                "a hook rewrote parameters that are only passed on".to_owned(),
            )),
            Ok(mut permitted) => {
                warnings = mem::take(&mut permitted.warnings);
                let key = ToolKey::new(server.clone(), method);
                self.send_members(&key, method, &[], carried, options).await
            }
            Err(error) => Err(error),
        };
        entry.finish_read(&answer).await;
        let raw = answer?;
        Ok(PassedAnswer { raw, warnings })
    }

    /// Tells a server something that the protocol does not have. Judged as
    /// [`Attached::pass_on_other`] is; nothing is answered.
    pub async fn pass_on_notice(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let key = Offering::OtherMethod.of(server);
        let unusable = |message: String| invalid(key.clone(), message);
        // A server may take a notification for the request of that name.
        let bare = method.strip_prefix("notifications/").unwrap_or(method);
        let plain = bare.trim_start_matches('/').to_ascii_lowercase();
        if is_of_protocol(bare) || OWN_NOTICES.contains(&plain.as_str()) {
            let refusal = format!("`{method}` is a notification of the protocol");
            return Err(unusable(refusal));
        }
        let none = RawJson::from(send::raw_value(b"{}".to_vec()).unwrap_or_default());
        let params = params.unwrap_or(&none);
        // What stands twice could be judged by one of both and heeded by the other (SEC-22).
        let carried = carried(params).map_err(|error| unusable(error.to_string()))?;
        let read = serde_json::from_str(params.get());
        let read: Value = read.map_err(|error| unusable(error.to_string()))?;
        let mut asked = Map::new();
        asked.insert("method".to_owned(), method.into());
        asked.insert("params".to_owned(), read);
        let before = asked.clone();
        let (entry, permitted) = self
            .judge(Offering::OtherMethod, server, asked, options)
            .await?;
        let told = match permitted {
            Ok(permitted) if *permitted.params() != before => Err(unusable(
                "a hook rewrote parameters that are only passed on".to_owned(),
            )),
            Ok(_) => {
                let key = ToolKey::new(server.clone(), method);
                let snapshot = self.snapshot_with(server, options).await?;
                let route = snapshot.route(server)?;
                let general = snapshot.general_limits();
                let params = written(&[], &carried);
                let params = params.map_err(|error| unusable(error.to_string()))?;
                let request = PreparedRequest {
                    key: &key,
                    method,
                    params,
                };
                send::notify(&*route, request, options, general, &self.party.side).await
            }
            Err(error) => Err(error),
        };
        let told = told.map(|()| none);
        entry.finish_read(&told).await;
        told.map(drop)
    }

    /// Takes a step with a task that a call of this caller has become. Of `params` all but the id
    /// travels along: input for the task, `_meta`.
    pub async fn pass_on_task(
        &self,
        task: &PassedTask,
        step: TaskStep,
        params: &RawJson,
        options: &CallOptions,
    ) -> Result<PassedAnswer, CallError> {
        let key = ToolKey::new(task.server.clone(), step.method());
        let carried = known(params).map_err(|error| invalid(key.clone(), error.to_string()))?;
        self.await_server(&ToolTarget::Key(key.clone()), options)
            .await?;
        // What a task says of itself is the caller's to read, whatever it is.
        let options = &CallOptions {
            continuations: Continuations::PassOn,
            ..options.clone()
        };
        let members = [("taskId", Value::from(task.id.as_str()).to_string())];
        let carried = carried.without(&["taskId"]);
        let sent = self.send_members(&key, step.method(), &members, carried, options);
        Ok(PassedAnswer {
            raw: sent.await?,
            warnings: Vec::new(),
        })
    }

    /// Sends a request of these members, each as JSON, and of what travels along.
    async fn send_members(
        &self,
        key: &ToolKey,
        method: &str,
        members: &[(&str, String)],
        carried: CarriedParams,
        options: &CallOptions,
    ) -> Result<RawJson, CallError> {
        let carried = send::of_this_hop(carried, PassedOn::of(options.continuations));
        let params = written(members, &carried);
        let params = params.map_err(|error| invalid(key.clone(), error.to_string()))?;
        let snapshot = self.snapshot_with(&key.server, options).await?;
        let route = snapshot.route(&key.server)?;
        let general = snapshot.general_limits();
        let request = PreparedRequest {
            key,
            method,
            params,
        };
        let answer = send::request(&*route, request, options, general, &self.party.side).await?;
        // Whoever passes it on writes members before and behind those that are there.
        if !answer.get().trim_start().starts_with('{') {
            let what = Untrusted::new("something that is no object".to_owned());
            return Err(CallError::Failed(key.clone(), CallFault::Malformed(what)));
        }
        Ok(answer)
    }
}

/// Parameters of these members, each as JSON, and of what travels along.
fn written(
    members: &[(&str, String)],
    carried: &CarriedParams,
) -> Result<Box<RawValue>, serde_json::Error> {
    let mut params = b"{".to_vec();
    for (place, (name, json)) in members.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        params.extend_from_slice(format!("{comma}\"{name}\":{json}").as_bytes());
    }
    let from = params.len();
    carried.write(&mut params);
    if members.is_empty() && params.len() > from {
        // Nothing stands before the first of them.
        params.remove(from);
    }
    params.push(b'}');
    send::raw_value(params)
}

/// Notifications that are for one hop of the protocol alone.
const OWN_NOTICES: [&str; 4] = ["cancelled", "progress", "message", "initialized"];

/// The methods by which skills are listed.
const SKILL_METHODS: [&str; 2] = [method::SKILLS_LIST, method::SKILLS_GET];

/// What the methods of the protocol begin with.
const FAMILIES: [&str; 11] = [
    "tools/",
    "resources/",
    "prompts/",
    "completion/",
    "logging/",
    "tasks/",
    "sampling/",
    "elicitation/",
    "roots/",
    "subscriptions/",
    "server/",
];

/// Whether a method is one that the protocol has, or may have, to any reader: one that does not look at
/// the case of letters, or at what surrounds them, is told nothing that it could take for such a one.
fn is_of_protocol(method: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    if !method.chars().all(is_plain) {
        return true;
    }
    let method = method.to_ascii_lowercase();
    let method = method.trim_start_matches('/');
    let is_notification = method.starts_with("notifications/");
    is_notification
        || method.is_empty()
        || matches!(method, method::INITIALIZE | method::PING)
        || FAMILIES.iter().any(|family| method.starts_with(family))
}

/// All members of parameters whose members we know, nothing of them judged yet.
fn known(params: &RawJson) -> Result<CarriedParams, ParamsError> {
    let ([], carried) = CarriedParams::split_known(params, [])?;
    Ok(carried)
}

/// All members of parameters, nothing of them judged yet.
fn carried(params: &RawJson) -> Result<CarriedParams, ParamsError> {
    let ([], carried) = CarriedParams::split(params, [])?;
    Ok(carried)
}

fn invalid(key: ToolKey, message: String) -> CallError {
    let message = Untrusted::new(message).line().into_owned();
    let path = String::new();
    CallError::Failed(key, CallFault::Invalid(vec![Problem { path, message }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_21_a_method_of_the_protocol_is_one_in_any_letters() {
        for method in [
            "tools/call",
            "Tools/Call",
            "tools//call",
            "/tools/call",
            " tools/call",
            "tools/call ",
            "tool\u{17f}/call",
            "tasks/list\u{0}",
            "tasks/list",
            "NOTIFICATIONS/cancelled",
            "Initialize",
            "",
        ] {
            assert!(is_of_protocol(method), "{method:?}");
        }
        for method in ["made/up", "vendor.tools/call", "x", "toolset/list"] {
            assert!(!is_of_protocol(method), "{method:?}");
        }
    }
}
