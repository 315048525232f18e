//! Steps of a task that a call of a client has become.
//!
//! Owns opening the id that was given out and writing it into the answer. Tasks are passed on between
//! a client and a server of the same era only; all others are followed by the host.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway::types::Era;
use toolway::{CallOptions, TaskStep};
use toolway_wire::era::method;
use toolway_wire::view::task;
use toolway_wire::{RpcError, error};

use super::super::answers::{self, Caching};
use super::super::endpoint::era_of;
use super::super::sealing;
use super::HostedClient;
use crate::conversation::{Answer, IncomingRequest};

impl HostedClient {
    pub(super) async fn task_step(&self, request: &IncomingRequest) -> Answer {
        if request.era == Era::Modern && !follows_tasks(request) {
            return missing_capability();
        }
        let Some(params) = &request.params else {
            return answers::invalid("parameters are missing");
        };
        let (task, id) = match sealing::open_task(self, params) {
            Ok(opened) => opened,
            Err(answer) => return answer,
        };
        let step = match request.method.as_str() {
            method::TASKS_GET => TaskStep::Get,
            method::TASKS_RESULT => TaskStep::Result,
            method::TASKS_UPDATE => TaskStep::Update,
            _ => TaskStep::Cancel,
        };
        let mut options = CallOptions::new(self.endpoint.consent());
        options.trace.clone_from(&request.trace);
        if request.era == Era::Modern {
            options.capabilities.clone_from(&request.head.capabilities);
        }
        let from = era_of(&self.endpoint.view.snapshot(), task.server());
        match self
            .attached
            .pass_on_task(&task, step, params, &options)
            .await
        {
            Ok(answer) => {
                let result = match step {
                    // The result of the call itself.
                    TaskStep::Result => answer.raw,
                    TaskStep::Get | TaskStep::Update | TaskStep::Cancel => {
                        sealing::with_task_id(&answer.raw, &id)
                    }
                };
                answers::complete(result, from, request.era, Caching::Unsaid)
            }
            Err(error) => answers::failed(&error),
        }
    }
}

/// Whether a modern client says that it follows tasks.
fn follows_tasks(request: &IncomingRequest) -> bool {
    let declared = request.head.capabilities.as_ref();
    let declared: Option<Value> =
        declared.and_then(|declared| serde_json::from_str(declared.get()).ok());
    declared.is_some_and(|declared| declared["extensions"][task::EXTENSION].is_object())
}

fn missing_capability() -> Answer {
    let mut refusal = RpcError::new(
        error::MISSING_CLIENT_CAPABILITY,
        format!(
            "the client does not declare the extension `{}`",
            task::EXTENSION
        ),
    );
    let required = json!({ "extensions": { (task::EXTENSION): {} } });
    refusal.data = to_raw_value(&json!({ "requiredCapabilities": required })).ok();
    refusal.into()
}
