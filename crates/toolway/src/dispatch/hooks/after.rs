//! The hooks after a call.
//!
//! Owns what they are told and what is made of it: context, warnings, other output in the place
//! of the result. They cannot undo a call, so one that fails is a warning. They see the answer
//! before it is bounded and saved, so that what they put in its place is bounded and saved too.

use std::mem;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use toolway_config::HookEvent;
use toolway_config::permission::names_of_tool;
use toolway_wire::RawJson;
use toolway_wire::view::{self, ResultType};
use tracing::warn;

use super::runner::{HookName, HookResult};
use super::{HookDecision, HookInput, HookedCall, any, reply};
use crate::audit::ActingHook;
use crate::call::{CallError, ToolOutcome};
use crate::dispatch::Dispatch;

/// What is to be done once a call has ended.
pub(in crate::dispatch) struct AfterCall<'a> {
    dispatch: &'a Dispatch<'a>,
    context: Vec<String>,
    warnings: Vec<String>,
    /// What the hooks are told; nothing when no hook is concerned.
    call: Option<ToldOutcome>,
    /// The server's own result, and who put another in its place.
    replaced: Option<(RawJson, HookName)>,
}

struct ToldOutcome {
    names: Vec<String>,
    input: HookInput,
    done: bool,
}

impl<'a> AfterCall<'a> {
    /// Takes note of a call before it is sent; nothing when nothing is to be done afterwards.
    pub(in crate::dispatch) fn of(
        call: &HookedCall<'_>,
        dispatch: &'a Dispatch<'a>,
    ) -> Option<Box<Self>> {
        let told = ToldOutcome::of(call, dispatch);
        if told.is_none() && call.context().is_empty() {
            return None;
        }
        Some(Box::new(Self {
            dispatch,
            context: call.context().to_vec(),
            warnings: Vec::new(),
            call: told,
            replaced: None,
        }))
    }

    /// Runs the hooks on an answer, or on the lack of one. What they put in the place of an answer
    /// stands there then.
    pub(in crate::dispatch) async fn look(&mut self, answer: Result<&mut RawJson, &mut CallError>) {
        if self.call.is_none() {
            return;
        }
        match answer {
            Ok(answer) => self.answered(answer).await,
            Err(error) => self.failed(error).await,
        }
    }

    async fn answered(&mut self, answer: &mut RawJson) {
        // One that is no result fails in the next stage, and is a failure then.
        let Ok(result) = view::tool_result(answer) else {
            return;
        };
        if result.result_type != ResultType::Complete {
            return;
        }
        let event = if result.is_error {
            HookEvent::PostToolUseFailure
        } else {
            HookEvent::PostToolUse
        };
        let response: Value = serde_json::from_str(answer.get()).unwrap_or_default();
        let error = result
            .is_error
            .then(|| "the tool answered an error".to_owned());
        let heard = self.run(event, Some(response), error).await;
        if let Some((hook, output)) = self.take(heard) {
            match shown(output, result.is_error) {
                Some(shown) => self.replaced = Some((mem::replace(answer, shown), hook)),
                None => self
                    .warnings
                    .push(format!("the output that {hook} gave is no result")),
            }
        }
    }

    /// The hook that put something in the place of the result, where one did.
    pub(in crate::dispatch) fn replaced_by(&self) -> Option<ActingHook> {
        let (_, hook) = self.replaced.as_ref()?;
        Some(hook.acting())
    }

    /// Adds what the hooks said to the outcome.
    pub(in crate::dispatch) async fn conclude(
        mut self,
        outcome: Result<ToolOutcome, CallError>,
    ) -> Result<ToolOutcome, CallError> {
        let mut outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                if self.call.is_some() {
                    self.failed(&error).await;
                }
                return Err(error);
            }
        };
        outcome.context = self.context;
        outcome.warnings.extend(self.warnings);
        if let Some((raw, hook)) = self.replaced {
            outcome.replaced(raw, hook.to_string());
        }
        Ok(outcome)
    }

    /// Tells the hooks of a call without an answer. There is nowhere to put what they say.
    async fn failed(&mut self, error: &CallError) {
        let event = HookEvent::PostToolUseFailure;
        let heard = self.run(event, None, Some(error.to_string())).await;
        for HookResult { hook, said } in heard {
            if let Err(failure) = said {
                warn!("{hook} failed: {failure}");
            }
        }
    }

    /// Runs the hooks of an event, once for each call.
    async fn run(
        &mut self,
        event: HookEvent,
        response: Option<Value>,
        error: Option<String>,
    ) -> Vec<HookResult> {
        let Some(told) = self.call.as_mut().filter(|told| !told.done) else {
            return Vec::new();
        };
        told.done = true;
        let dispatch = self.dispatch;
        let concerned = dispatch
            .runner
            .concerned(dispatch.hooks, event, &told.names);
        if concerned.is_empty() {
            return Vec::new();
        }
        let input = HookInput {
            hook_event_name: event.as_str(),
            tool_response: response,
            error,
            ..told.input.clone()
        };
        let means = dispatch.means();
        dispatch.runner.run(concerned, event, input, means).await
    }

    /// Keeps what was said; gives the output that is to be shown.
    fn take(&mut self, heard: Vec<HookResult>) -> Option<(HookName, Value)> {
        let mut output: Option<(HookName, Value)> = None;
        for HookResult { hook, said } in heard {
            let said = match said {
                Ok(said) => said,
                Err(failure) => {
                    self.warnings.push(format!("{hook} failed: {failure}"));
                    continue;
                }
            };
            self.context.extend(said.context());
            if said.decision == Some(HookDecision::Deny) {
                let reason = said.reason.as_deref().unwrap_or("it gives no reason");
                self.context
                    .push(reply::context(&format!("{hook} objects: {reason}")));
            }
            if let Some(message) = &said.system_message {
                self.warnings
                    .push(format!("{hook} says: {}", reply::one_line(message)));
            }
            if let Some(value) = said.updated_tool_output {
                if let Some((other, _)) = &output {
                    self.warnings.push(format!(
                        "{other} replaced the output, and so did {hook}: the latter's is shown"
                    ));
                }
                output = Some((hook, value));
            }
        }
        output
    }
}

impl ToldOutcome {
    fn of(call: &HookedCall<'_>, dispatch: &Dispatch<'_>) -> Option<Self> {
        let names = names_of_concerned(call, dispatch)?;
        let input = HookInput::call(
            HookEvent::PostToolUse,
            call.tool(),
            call.arguments().clone(),
            &dispatch.caller.caller,
        );
        Some(Self {
            names,
            input,
            done: false,
        })
    }
}

/// Whether a hook looks at what comes of a call.
pub(in crate::dispatch) fn looks_at_results(
    call: &HookedCall<'_>,
    dispatch: &Dispatch<'_>,
) -> bool {
    names_of_concerned(call, dispatch).is_some()
}

/// The names of a tool whose results a hook looks at; nothing of any other one.
fn names_of_concerned(call: &HookedCall<'_>, dispatch: &Dispatch<'_>) -> Option<Vec<String>> {
    if !any(dispatch.hooks, dispatch.runner) {
        return None;
    }
    let tool = call.tool();
    let names = names_of_tool(&tool.key, &tool.name);
    let concerned = |event| {
        let concerned = dispatch.runner.concerned(dispatch.hooks, event, &names);
        !concerned.is_empty()
    };
    let events = [HookEvent::PostToolUse, HookEvent::PostToolUseFailure];
    events.into_iter().any(concerned).then_some(names)
}

/// Output of a hook's as a result: a text, content blocks, or a result of its own.
fn shown(output: Value, is_error: bool) -> Option<RawJson> {
    let mut result = match output {
        Value::String(text) => content(&json!([{ "type": "text", "text": text }])),
        Value::Array(blocks) => content(&Value::Array(blocks)),
        Value::Object(result)
            if result.contains_key("content") || result.contains_key("structuredContent") =>
        {
            result
        }
        other => content(&json!([{ "type": "text", "text": other.to_string() }])),
    };
    if is_error && !result.contains_key("isError") {
        result.insert("isError".to_owned(), Value::Bool(true));
    }
    let result = to_raw_value(&result).ok()?;
    let view = view::tool_result(&result).ok()?;
    (view.result_type == ResultType::Complete).then(|| result.into())
}

fn content(blocks: &Value) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".to_owned(), blocks.clone());
    result
}
