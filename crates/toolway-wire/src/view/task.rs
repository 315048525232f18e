//! A call that became a task: by the extension `io.modelcontextprotocol/tasks` in the modern era,
//! by the revision 2025-11-25 in the legacy one.
//!
//! Owns the shape of a task as `tools/call`, `tasks/get` and the notifications about it show it.
//! How a task is followed to its end is the session's.

use std::time::Duration;

use serde_json::value::RawValue;

use super::elicit::{InputRequest, input_requests};
use super::{ViewError, object, optional, with_members};
use crate::error::RpcError;
use crate::lenient;
use crate::raw_json::JsonText;
use crate::scan::{self, LoneMember, RareName};

/// The extension's name among the capabilities of either side.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

static TASK: RareName = RareName::new("task");

/// A task at one moment.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// The server's name for it.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What the server says about it, as received.
    pub message: Option<String>,
    /// How often the server wants to be asked at most.
    pub poll_interval: Option<Duration>,
}

/// How far a task is.
#[derive(Debug, Clone)]
pub enum TaskStatus {
    /// The server works on it.
    Working,
    /// It needs something first; what, is told by `tasks/get` only.
    InputRequired(Vec<InputRequest>),
    /// It is done; the result of the call. Absent in the answer that makes the task.
    Completed(Option<Box<RawValue>>),
    /// It ended with a JSON-RPC error.
    Failed(RpcError),
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// The word on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired(_) => "input_required",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Views a task.
pub fn task(result: &(impl JsonText + ?Sized)) -> Result<TaskView, ViewError> {
    let members = object(result)?;
    let id = optional(&members, "taskId").ok_or(ViewError::Missing("taskId"))?;
    let message = optional(&members, "statusMessage");
    let status = match optional(&members, "status").as_deref() {
        Some("working") => TaskStatus::Working,
        Some("input_required") => TaskStatus::InputRequired(input_requests(&members)?),
        Some("completed") => TaskStatus::Completed(members.owned("result")),
        Some("failed") => TaskStatus::Failed(match members.value("error") {
            Some(error) => RpcError::read(error),
            None => RpcError::new(
                crate::error::INTERNAL_ERROR,
                message
                    .clone()
                    .unwrap_or_else(|| "the task failed".to_owned()),
            ),
        }),
        Some("cancelled") => TaskStatus::Cancelled,
        _ => return Err(ViewError::Missing("status")),
    };
    Ok(TaskView {
        id,
        status,
        message,
        poll_interval: members
            .value("pollIntervalMs")
            .or_else(|| members.value("pollInterval"))
            .and_then(lenient::unsigned)
            .map(Duration::from_millis),
    })
}

/// The task that a legacy call has become; none when the result is the call's own.
pub fn created(result: &(impl JsonText + ?Sized)) -> Option<Result<TaskView, ViewError>> {
    let is_absent = !TASK.may_stand_in(result.json())
        || scan::lone_member(result.json(), "task") == LoneMember::Absent;
    if is_absent {
        return None;
    }
    let members = object(result).ok()?;
    members.value("task").map(task)
}

/// Whether a result may be a task of either era; only a closer look can say that it is.
pub fn may_be(result: &(impl JsonText + ?Sized)) -> bool {
    TASK.may_stand_in(result.json())
}

/// The parameters of a legacy call that is to become a task, which is kept for this long.
pub fn with_task(params: &RawValue, kept_for: Duration) -> Result<Box<RawValue>, ViewError> {
    let wish = RawValue::from_string(format!(r#"{{"ttl":{}}}"#, kept_for.as_millis()))
        .map_err(|error| ViewError::NotAnObject(error.to_string()))?;
    with_members(params, [("task", &*wish)])
}

/// Whether a legacy call wants to become a task.
pub fn is_wanted(params: &RawValue) -> bool {
    if !TASK.may_stand_in(params.get()) {
        return false;
    }
    match scan::lone_member(params.get(), "task") {
        LoneMember::Absent => false,
        _ => object(params).is_ok_and(|members| members.value("task").is_some()),
    }
}

/// Which task a notification is about.
pub fn task_id(params: &RawValue) -> Option<String> {
    optional(&object(params).ok()?, "taskId")
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Result<TaskView, ViewError> {
        task(&to_raw_value(value).expect("JSON"))
    }

    #[test]
    fn every_status_is_read_with_what_belongs_to_it() {
        let made = read(&json!({
            "resultType": "task", "taskId": "t", "status": "working", "statusMessage": "digging",
            "createdAt": "2026-08-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 5000,
        }))
        .expect("a task");
        assert_eq!(made.id, "t");
        assert_eq!(made.message.as_deref(), Some("digging"));
        assert_eq!(made.poll_interval, Some(Duration::from_secs(5)));
        assert!(matches!(made.status, TaskStatus::Working));

        let waiting = read(&json!({
            "taskId": "t", "status": "input_required",
            "inputRequests": { "k": { "method": "roots/list" } },
        }));
        let Ok(TaskStatus::InputRequired(requests)) = waiting.map(|task| task.status) else {
            panic!("it waits")
        };
        assert_eq!(requests[0].key, "k");

        let done = read(&json!({ "taskId": "t", "status": "completed", "result": { "x": 1 } }));
        let Ok(TaskStatus::Completed(Some(result))) = done.map(|task| task.status) else {
            panic!("it is done")
        };
        assert_eq!(result.get(), r#"{"x":1}"#);

        let failed = read(
            &json!({ "taskId": "t", "status": "failed", "error": { "code": -5, "message": "no" } }),
        );
        let Ok(TaskStatus::Failed(error)) = failed.map(|task| task.status) else {
            panic!("it failed")
        };
        assert_eq!(error, RpcError::new(-5, "no"));
    }

    #[test]
    fn a_failure_without_an_error_is_still_a_failure_and_no_status_is_an_error() {
        let failed = read(&json!({ "taskId": "t", "status": "failed", "statusMessage": "broke" }));
        let Ok(TaskStatus::Failed(error)) = failed.map(|task| task.status) else {
            panic!("it failed")
        };
        assert_eq!(error.message, "broke");
        for (value, missing) in [
            (json!({ "taskId": "t", "status": "dreaming" }), "status"),
            (json!({ "taskId": "t" }), "status"),
            (json!({ "status": "working" }), "taskId"),
        ] {
            assert_eq!(read(&value).unwrap_err(), ViewError::Missing(missing));
        }
    }
}
