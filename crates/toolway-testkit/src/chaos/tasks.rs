//! Calls that become tasks, in the way of each era.
//!
//! Owns the tasks and the steps that clients take with them. The tool that makes one is among those
//! of `drama.rs`; legacy clients get one only where the script has legacy tasks.

use serde_json::{Value, json};

use super::server::{ChaosServer, MethodCall, MethodFault, MethodOutcome};
use super::tools::{self, text};

/// A task under way: how many more times it is asked for before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptedTask {
    Working { polls: u64, interval: u64 },
    Cancelled,
}

/// The tool that makes one.
pub(super) fn tool(properties: &Value) -> Value {
    let mut tool = tools::tool("task", "Answers with a task", properties, &[]);
    tool["execution"] = json!({ "taskSupport": "optional" });
    tool
}

/// Makes a task of a call where its client can follow one.
pub(super) fn start(
    server: &ChaosServer,
    asked: &MethodCall<'_>,
    polls: u64,
    interval: u64,
) -> MethodOutcome {
    let capabilities = &asked.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let knows = capabilities["extensions"]["io.modelcontextprotocol/tasks"].is_object();
    let wants = asked.params["task"].is_object() && server.script().offers;
    let is_wanted = if asked.modern { knows } else { wants };
    if !is_wanted {
        return MethodOutcome::Result(text("done at once"));
    }
    let id = format!("task-{}", server.fresh());
    server
        .memory()
        .tasks
        .insert(id.clone(), ScriptedTask::Working { polls, interval });
    let made = shape(asked, &id, "working", interval);
    if !asked.modern {
        return MethodOutcome::Result(json!({ "task": made }));
    }
    let mut result = made;
    result["resultType"] = json!("task");
    MethodOutcome::Result(result)
}

fn shape(asked: &MethodCall<'_>, id: &str, status: &str, interval: u64) -> Value {
    let (ttl, poll) = if asked.modern {
        ("ttlMs", "pollIntervalMs")
    } else {
        ("ttl", "pollInterval")
    };
    json!({ "taskId": id, "status": status, "createdAt": "2026-08-01T00:00:00Z",
        "lastUpdatedAt": "2026-08-01T00:00:00Z", ttl: 60_000, poll: interval })
}

/// `tasks/get`, `tasks/cancel` and the rest.
pub(super) fn step(
    server: &ChaosServer,
    method: &str,
    asked: &MethodCall<'_>,
) -> Result<MethodOutcome, MethodFault> {
    let id = asked.params["taskId"].as_str().unwrap_or_default();
    let shape = |status, interval| shape(asked, id, status, interval);
    let mut memory = server.memory();
    let Some(task) = memory.tasks.get_mut(id) else {
        return Err(MethodFault(-32602, format!("unknown task `{id}`")));
    };
    let legacy = !asked.modern;
    Ok(MethodOutcome::Result(match (method, *task) {
        ("tasks/get", ScriptedTask::Working { polls: 0, interval }) => {
            let mut done = shape("completed", interval);
            if asked.modern {
                done["result"] = text("the task is done");
            }
            done
        }
        ("tasks/get", ScriptedTask::Working { polls, interval }) => {
            *task = ScriptedTask::Working {
                polls: polls - 1,
                interval,
            };
            shape("working", interval)
        }
        ("tasks/get", ScriptedTask::Cancelled) => shape("cancelled", 1),
        ("tasks/result", ScriptedTask::Working { .. }) if legacy => {
            let mut done = text("the task is done");
            let related = json!({ "taskId": id });
            done["_meta"] = json!({ "io.modelcontextprotocol/related-task": related });
            done
        }
        ("tasks/cancel", _) => {
            *task = ScriptedTask::Cancelled;
            if legacy {
                shape("cancelled", 1)
            } else {
                json!({})
            }
        }
        _ => return Err(MethodFault(-32601, format!("method not found: {method}"))),
    }))
}
