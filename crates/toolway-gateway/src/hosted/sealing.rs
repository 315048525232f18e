//! Values that leave the gateway and come back: which server they are of, and for whom.
//!
//! Owns what is sealed and how it is opened again: `requestState` of servers, handles of parked
//! calls, ids of tasks. How a seal is made is `seal.rs`'s.

use std::time::Duration;

use serde_json::value::to_raw_value;
use toolway::types::{ServerName, limits};
use toolway::{PassedTask, RawJson};
use toolway_wire::edit::{Replacement, rewritten};
use toolway_wire::{RpcError, error, request_head, scan};

use super::answers;
use super::party::ClientParty;
use super::request_identity::identity;
use crate::conversation::Answer;
use crate::seal::{SealBinding, SealPurpose};

/// How long a client may take to answer what a server asks.
const STATE_LASTS: Duration = limits::gateway::STATE_TIME;

/// How long the id of a task is good for.
const TASK_LASTS: Duration = limits::gateway::TASK_TIME;

/// What a handle of a parked call begins with, which a server's state does not.
const PARKED: &str = "p.";
const STATE: &str = "s.";

/// What a client sent back.
pub(super) enum OpenedState {
    /// A parked call.
    Parked(u64),
    /// The state of a server.
    Server(RawJson),
}

/// A result that asks for input, with the server's state sealed.
pub(super) fn input_required(
    client: &ClientParty,
    server: &ServerName,
    method: &str,
    params: &RawJson,
    result: &RawJson,
) -> Answer {
    let state = scan::members(result.get()).find(|(key, _)| *key == "\"requestState\"");
    let Some((_, state)) = state else {
        return Answer::result(result.clone());
    };
    let content = format!("{server}\0{state}");
    let request = identity(method, params);
    let binding = binding(client, SealPurpose::RequestState, &request);
    match client
        .core
        .seal
        .seal(&binding, STATE_LASTS, content.as_bytes())
    {
        Ok(sealed) => {
            let sealed = format!("{STATE}{sealed}");
            Answer::result(rewritten(result, |name| match name {
                "requestState" => Replacement::Text(Some(&sealed)),
                _ => Replacement::Kept,
            }))
        }
        Err(problem) => broken(&problem),
    }
}

/// The handle of a call that is parked under this number.
pub(super) fn parked(
    client: &ClientParty,
    method: &str,
    params: &RawJson,
    number: u64,
) -> Result<String, Answer> {
    let request = identity(method, params);
    let binding = binding(client, SealPurpose::ParkedCall, &request);
    let sealed = client
        .core
        .seal
        .seal(&binding, STATE_LASTS, &number.to_be_bytes());
    match sealed {
        Ok(sealed) => Ok(format!("{PARKED}{sealed}")),
        Err(problem) => Err(broken(&problem)),
    }
}

/// Opens `requestState` of a request, which must be of this server.
pub(super) fn open(
    client: &ClientParty,
    method: &str,
    params: &RawJson,
    server: &ServerName,
    state: &str,
) -> Result<OpenedState, Answer> {
    let request = identity(method, params);
    if let Some(sealed) = state.strip_prefix(PARKED) {
        let binding = binding(client, SealPurpose::ParkedCall, &request);
        let opened = client.core.seal.open(&binding, sealed);
        let number = opened.ok().and_then(|it| it.try_into().ok());
        let number = number.map(u64::from_be_bytes).ok_or_else(refused)?;
        return Ok(OpenedState::Parked(number));
    }
    let sealed = state.strip_prefix(STATE).ok_or_else(refused)?;
    let binding = binding(client, SealPurpose::RequestState, &request);
    let opened = client.core.seal.open(&binding, sealed);
    let opened = opened.map_err(|_| refused())?;
    let opened = String::from_utf8(opened).map_err(|_| refused())?;
    let (of, state) = opened.split_once('\0').ok_or_else(refused)?;
    if of != server.as_str() {
        return Err(refused());
    }
    let state = RawJson::read(&state.to_owned().into()).map_err(|_| refused())?;
    Ok(OpenedState::Server(state))
}

/// A result that is a task, with its id sealed.
pub(super) fn task(client: &ClientParty, task: &PassedTask, result: &RawJson) -> Answer {
    let content = format!("{}\0{}", task.server(), task.id());
    let binding = binding(client, SealPurpose::Task, &[]);
    match client
        .core
        .seal
        .seal(&binding, TASK_LASTS, content.as_bytes())
    {
        Ok(sealed) => Answer::result(with_task_id(result, &sealed)),
        Err(problem) => broken(&problem),
    }
}

/// The task that a client means by the id in its parameters, and that id.
pub(super) fn open_task(
    client: &ClientParty,
    params: &RawJson,
) -> Result<(PassedTask, String), Answer> {
    let unknown = || answers::invalid("no such task");
    let sealed = request_head::text_param(Some(params), "taskId").ok_or_else(unknown)?;
    let binding = binding(client, SealPurpose::Task, &[]);
    let opened = client.core.seal.open(&binding, &sealed);
    let opened = opened.map_err(|_| unknown())?;
    let opened = String::from_utf8(opened).map_err(|_| unknown())?;
    let (server, id) = opened.split_once('\0').ok_or_else(unknown)?;
    let server = ServerName::new(server).map_err(|_| unknown())?;
    if !client.endpoint.scope.has(&server) {
        return Err(unknown());
    }
    let task = PassedTask::vouched(server, id.to_owned());
    Ok((task, sealed.into_owned()))
}

/// The same result under the id that the client knows: in the result itself, or in its `task`.
pub(super) fn with_task_id(result: &RawJson, id: &str) -> RawJson {
    let inner = scan::members(result.get()).find(|(key, _)| *key == "\"task\"");
    let inner = inner.and_then(|(_, task)| RawJson::read(&task.to_owned().into()).ok());
    let named = |json: &RawJson| {
        rewritten(json, |name| match name {
            "taskId" => Replacement::Text(Some(id)),
            _ => Replacement::Kept,
        })
    };
    match inner {
        Some(task) => {
            let task = named(&task);
            rewritten(result, |name| match name {
                "task" => Replacement::Json(Some(task.get())),
                _ => Replacement::Kept,
            })
        }
        None => named(result),
    }
}

fn binding<'a>(
    client: &'a ClientParty,
    purpose: SealPurpose,
    request: &'a [u8],
) -> SealBinding<'a> {
    SealBinding {
        purpose,
        principal: &client.sealed_for,
        request,
    }
}

fn refused() -> Answer {
    let mut refusal = RpcError::new(
        error::INVALID_PARAMS,
        "`requestState` is none that was given out for this request, or it is too old",
    );
    refusal.data = to_raw_value(&serde_json::json!({ "member": "requestState" })).ok();
    refusal.into()
}

fn broken(problem: &dyn std::fmt::Display) -> Answer {
    tracing::error!(%problem, "a value could not be sealed");
    RpcError::new(error::INTERNAL_ERROR, "a value could not be sealed").into()
}
