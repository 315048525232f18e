//! One request of a client that a server answers: a call, a resource, a prompt, completion.
//!
//! Owns carrying the request out, and writing names of ours into the answer. Which server is meant is
//! `work/finding.rs`. What may run is the host's to decide. How questions reach the client meanwhile
//! is `client/legacy.rs`'s and `client/modern.rs`'s.

mod finding;

use std::sync::Arc;

use toolway::config::ResultForm;
use toolway::toolway_rows::CallEnd;
use toolway::types::{Era, ServerName};
use toolway::{
    CallError, CallOptions, Continuations, PassedMethod, RawJson, ResultDelivery, ToolOutcome,
    ToolRequest, ToolTarget,
};
use toolway_wire::edit::{self, Replacement, rewritten};
use toolway_wire::era::method;
use toolway_wire::view::ResultType;
use toolway_wire::{error, request_head, scan};

use self::finding::{UnclearWork, WaitedFor, WorkFinder};
use super::answers::{self, Caching};
use super::capabilities;
use super::endpoint::{era_of, facts};
use super::party::ClientParty;
use super::sealing;
use crate::conversation::{Answer, IncomingRequest};

/// What is asked of a server.
pub(super) enum AskedOfServer {
    Call(ToolRequest),
    Other(PassedMethod, RawJson),
}

/// What continues an earlier request.
const CONTINUING: [&str; 2] = ["requestState", "inputResponses"];

/// A request on its way to a server.
pub(super) struct ServerWork {
    pub(super) asked: AskedOfServer,
    pub(super) method: &'static str,
    /// The client's parameters, by which its request is known again.
    pub(super) params: RawJson,
    pub(super) server: ServerName,
    /// The era of the client.
    pub(super) to: Era,
    /// The address that the client knows a resource by, where the server has another.
    shown_address: Option<String>,
}

impl ServerWork {
    /// Finds out what a client wants of which server.
    pub(super) fn prepare(
        client: &ClientParty,
        request: &IncomingRequest,
        method: &'static str,
    ) -> Result<Self, UnclearWork> {
        Self::find(client, request, method, WaitedFor::None)
    }

    fn find(
        client: &ClientParty,
        request: &IncomingRequest,
        method: &'static str,
        waited_for: WaitedFor,
    ) -> Result<Self, UnclearWork> {
        let params = request.params.clone();
        let params = params.ok_or_else(|| answers::invalid("parameters are missing"))?;
        let snapshot = client.endpoint.view.snapshot();
        let finder = WorkFinder {
            client,
            request,
            snapshot: &snapshot,
            params,
            method,
            waited_for,
        };
        match method {
            method::TOOLS_CALL => finder.call(),
            method::RESOURCES_READ => finder.read(PassedMethod::ReadResource),
            method::DIRECTORY_READ => finder.read(PassedMethod::ReadDirectory),
            method::PROMPTS_GET => finder.prompt(),
            _ => finder.completion(),
        }
    }

    /// Puts the server's own `requestState` in the place of the sealed one.
    pub(super) fn set_state(&mut self, state: RawJson) {
        match &mut self.asked {
            AskedOfServer::Call(call) => {
                let carried = std::mem::take(&mut call.carried);
                call.carried = carried.with("requestState", state);
            }
            AskedOfServer::Other(_, params) => {
                *params = rewritten(params, |name| match name {
                    "requestState" => Replacement::Json(Some(state.get())),
                    _ => Replacement::Kept,
                });
            }
        }
    }

    /// Takes away what would continue an earlier request: a client of the legacy era is given nothing
    /// to go on from, so what it says there is none of ours (SEC-26).
    pub(super) fn begin_anew(&mut self) {
        match &mut self.asked {
            AskedOfServer::Call(call) => {
                call.carried = std::mem::take(&mut call.carried).without(&CONTINUING);
            }
            AskedOfServer::Other(_, params) => {
                let is_continuing = |(key, _): (&str, &str)| {
                    scan::text(key).is_some_and(|key| CONTINUING.contains(&&*key))
                };
                if scan::members(params.get()).any(is_continuing) {
                    *params = rewritten(params, |name| {
                        if CONTINUING.contains(&name) {
                            Replacement::Json(None)
                        } else {
                            Replacement::Kept
                        }
                    });
                }
            }
        }
    }

    /// What is not the last word is the client's to go on from, where the server speaks its era.
    pub(super) fn continuations(&self) -> Continuations {
        Continuations::PassOnWithin(self.to)
    }

    /// Carries it out.
    pub(super) async fn perform(self, client: Arc<ClientParty>, options: CallOptions) -> Answer {
        let Self {
            asked,
            method,
            params,
            server,
            to,
            shown_address,
        } = self;
        let era_of_server = |server: &ServerName, answer: &RawJson| {
            let snapshot = client.endpoint.view.snapshot();
            // One that has just come may have answered before it is shown as connected.
            let known = facts(&snapshot, server).map(|facts| facts.era);
            known.unwrap_or_else(|| answers::era_of_result(answer))
        };
        let timer = client.core.metrics.server(&server).begin();
        match asked {
            AskedOfServer::Call(call) => {
                let wants_task = call.carried.get("task").is_some();
                let _under_way = client.record.begin(call.target.clone());
                match client.attached.call(call, options).await {
                    Ok(outcome) => {
                        timer.finish(if outcome.is_error {
                            CallEnd::ToolError
                        } else {
                            CallEnd::Answered
                        });
                        // The host's own tools answer as the legacy era does.
                        let from = if outcome.server.is_built_in() {
                            Era::Legacy
                        } else {
                            era_of_server(&outcome.server, &outcome.raw)
                        };
                        let answered = AnsweredCall {
                            client: &client,
                            params: &params,
                            from,
                            to,
                            wants_task,
                        };
                        answered.answer(outcome)
                    }
                    Err(error) => {
                        timer.finish(answers::end_of(&error));
                        answers::failed_call(&renamed(&client, &params, error), to)
                    }
                }
            }
            AskedOfServer::Other(asked, sent) => {
                match client
                    .attached
                    .pass_on(&server, asked, &sent, &options)
                    .await
                {
                    Ok(answer) => {
                        timer.finish(CallEnd::Answered);
                        let raw = match &shown_address {
                            Some(shown) => readdressed(&answer.raw, shown),
                            None => answer.raw,
                        };
                        let passed = PassedResult {
                            client: &client,
                            server: &server,
                            method,
                            params: &params,
                            from: era_of_server(&server, &raw),
                            to,
                        };
                        passed.answer(raw)
                    }
                    Err(error) => {
                        timer.finish(answers::end_of(&error));
                        let from = era_of(&client.endpoint.view.snapshot(), &server);
                        failed_other(&error, method, from, to)
                    }
                }
            }
        }
    }
}

/// An error with the names that the client knows tools by.
fn renamed(client: &ClientParty, params: &RawJson, error: CallError) -> CallError {
    let catalog = Arc::clone(&client.endpoint.view.snapshot().catalog);
    let shown = |names: Vec<String>| {
        let found = names.into_iter().filter_map(|name| {
            let tool = catalog.find(&ToolTarget::Exposed(name)).ok()?;
            client.endpoint.shown_tool(&catalog, tool)
        });
        found.collect()
    };
    let target = || {
        let name = request_head::text_param(Some(params), "name").unwrap_or_default();
        ToolTarget::Exposed(name.into_owned())
    };
    match error {
        CallError::Unknown { suggestions, .. } => CallError::Unknown {
            target: target(),
            suggestions: shown(suggestions),
        },
        CallError::Ambiguous { candidates, .. } => CallError::Ambiguous {
            target: target(),
            candidates: shown(candidates),
        },
        other => other,
    }
}

/// The answer to a read, with the address that the client knows.
pub(super) fn readdressed(result: &RawJson, shown: &str) -> RawJson {
    let contents = scan::members(result.get()).find(|(key, _)| *key == "\"contents\"");
    let Some((_, contents)) = contents else {
        return result.clone();
    };
    let Ok(items) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(contents) else {
        return result.clone();
    };
    let mut out = b"[".to_vec();
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        edit::rewrite(item.get(), &mut out, |name| match name {
            "uri" => Replacement::Text(Some(shown)),
            _ => Replacement::Kept,
        });
    }
    out.push(b']');
    let contents = String::from_utf8(out).unwrap_or_default();
    rewritten(result, |name| match name {
        "contents" => Replacement::Json(Some(&contents)),
        _ => Replacement::Kept,
    })
}

/// An error that a server of one era gave, for a client of another.
fn failed_other(error: &CallError, method: &str, from: Era, to: Era) -> Answer {
    let answer = answers::failed(error);
    let Answer::Error(mut refusal) = answer else {
        return answer;
    };
    let is_of_server = matches!(
        error,
        toolway::CallError::Failed(_, toolway::CallFault::Protocol { .. })
    );
    if method == method::RESOURCES_READ && from != to && is_of_server {
        // "No such resource" has a code of its own in the legacy era only.
        match (to, refusal.code) {
            (Era::Modern, error::RESOURCE_NOT_FOUND) => refusal.code = error::INVALID_PARAMS,
            (Era::Legacy, error::INVALID_PARAMS) => refusal.code = error::RESOURCE_NOT_FOUND,
            _ => {}
        }
    }
    refusal.into()
}

/// What a call gave, on its way to the client.
struct AnsweredCall<'a> {
    client: &'a ClientParty,
    params: &'a RawJson,
    from: Era,
    to: Era,
    wants_task: bool,
}

impl AnsweredCall<'_> {
    fn answer(self, mut outcome: ToolOutcome) -> Answer {
        let server = outcome.server.clone();
        if self.client.endpoint.options.results == ResultForm::Bounded
            && let Some(bounded) = outcome.bounded.take()
            && answers::kind(&outcome.raw) == ResultType::Complete
        {
            let result = serde_json::json!({
                "content": bounded.blocks,
                "isError": outcome.is_error,
            });
            return answers::own(&result, self.to);
        }
        let task = (self.wants_task || self.from == Era::Modern)
            .then(|| outcome.task())
            .flatten();
        let raw = outcome.passed_on().clone();
        if let Some(task) = task {
            return sealing::task(self.client, &task, &raw);
        }
        let passed = PassedResult {
            client: self.client,
            server: &server,
            method: method::TOOLS_CALL,
            params: self.params,
            from: self.from,
            to: self.to,
        };
        passed.answer(raw)
    }
}

/// A server's result, on its way to the client.
struct PassedResult<'a> {
    client: &'a ClientParty,
    server: &'a ServerName,
    method: &'static str,
    params: &'a RawJson,
    from: Era,
    to: Era,
}

impl PassedResult<'_> {
    fn answer(self, raw: RawJson) -> Answer {
        let is_input = self.from == Era::Modern
            && self.to == Era::Modern
            && answers::kind(&raw) == ResultType::InputRequired;
        if is_input {
            if let Some(refusal) = capabilities::undeclared(self.params, &raw) {
                return refusal.into();
            }
            return sealing::input_required(
                self.client,
                self.server,
                self.method,
                self.params,
                &raw,
            );
        }
        let caching = match self.method {
            method::RESOURCES_READ | method::DIRECTORY_READ => Caching::Said,
            _ => Caching::Unsaid,
        };
        answers::complete(raw, self.from, self.to, caching)
    }
}

/// How results are wanted.
pub(super) fn delivery(results: ResultForm) -> ResultDelivery {
    match results {
        ResultForm::Raw => ResultDelivery::Raw,
        ResultForm::Bounded => ResultDelivery::Bounded,
    }
}
