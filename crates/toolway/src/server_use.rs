//! Whether a server is used by those who see it in one view: what decides that it may rest.
//!
//! Owns the count of requests in flight and of those that began, in one word, and the tasks that
//! callers follow themselves. A request costs two additions here, and no timer and no look at a
//! clock: who looks every few seconds sees whether the word is another one than before. When a server
//! may rest is the supervisor's to say (`supervisor/rest.rs`).
//!
//! Invariant: a server that was put to rest lets no request in, and one that has a request in flight
//! is not put to rest. Both are decided by the same word, so there is no moment in between.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;
use toolway_wire::era::method;
use toolway_wire::view::task::{self, TaskStatus};

use crate::error::RequestResult;
use crate::lock::lock;

/// Set once it was put to rest, for good.
const RESTING: u64 = 1 << 31;
/// The requests in flight.
const IN_FLIGHT: u64 = RESTING - 1;
/// One request more that began. They are counted above all else, and may start anew.
const ONE_BEGUN: u64 = 1 << 32;

/// How long a task is taken for followed that nobody asked for any more.
const FOLLOWED_FOR: Duration = Duration::from_hours(1);
/// How many tasks are kept in mind.
const MAX_TASKS: usize = 256;

/// The use of one server, from one rest to the next.
#[derive(Debug, Default)]
pub(crate) struct ServerUse {
    word: AtomicU64,
    /// The tasks that callers follow, and when they were last asked for.
    tasks: Mutex<BTreeMap<String, Instant>>,
}

/// A request in flight, until it is dropped.
pub(crate) struct UseInFlight<'a>(&'a ServerUse);

/// What the word was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UseReading(u64);

impl UseReading {
    /// Whether requests are in flight.
    pub(crate) fn is_busy(self) -> bool {
        self.0 & IN_FLIGHT > 0
    }
}

impl ServerUse {
    /// Lets a request in; `None` once the server was put to rest.
    pub(crate) fn enter(&self) -> Option<UseInFlight<'_>> {
        let before = self.word.fetch_add(ONE_BEGUN + 1, Ordering::AcqRel);
        let entered = UseInFlight(self);
        (before & RESTING == 0).then_some(entered)
    }

    /// How it is now.
    pub(crate) fn read(&self) -> UseReading {
        UseReading(self.word.load(Ordering::Acquire))
    }

    /// Puts it to rest, if nothing has happened since that reading and nothing is in flight.
    pub(crate) fn rest(&self, since: UseReading) -> bool {
        let UseReading(word) = since;
        !since.is_busy()
            && self
                .word
                .compare_exchange(word, word | RESTING, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Takes note of what came of a request whose caller follows tasks itself.
    pub(crate) fn note_task(&self, asked: &str, params: &RawValue, outcome: &RequestResult) {
        let is_over = matches!(asked, method::TASKS_RESULT | method::TASKS_CANCEL);
        let mut tasks = lock(&self.tasks);
        if is_over && outcome.is_ok() {
            if let Some(id) = task::task_id(params) {
                tasks.remove(&id);
            }
            return;
        }
        let Ok(raw) = outcome else {
            return;
        };
        if !task::may_be(raw) {
            return;
        }
        let told = task::task(raw).ok();
        let Some(told) = told.or_else(|| task::created(raw)?.ok()) else {
            return;
        };
        match told.status {
            TaskStatus::Working | TaskStatus::InputRequired(_) => {
                if tasks.len() < MAX_TASKS || tasks.contains_key(&told.id) {
                    tasks.insert(told.id, Instant::now());
                }
            }
            // What it came to is in the answer, or is asked for next.
            TaskStatus::Completed(_) | TaskStatus::Failed(_) | TaskStatus::Cancelled => {
                tasks.remove(&told.id);
            }
        }
    }

    /// Whether a caller follows a task.
    pub(crate) fn has_tasks(&self, now: Instant) -> bool {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|_, asked| now.saturating_duration_since(*asked) < FOLLOWED_FOR);
        !tasks.is_empty()
    }
}

impl Drop for UseInFlight<'_> {
    fn drop(&mut self) {
        self.0.word.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;
    use toolway_wire::RawJson;

    use super::*;

    #[test]
    fn a_request_in_flight_keeps_it_awake_and_a_resting_one_lets_none_in() {
        let usage = ServerUse::default();
        let before = usage.read();
        let request = usage.enter().expect("it is awake");
        assert!(usage.read().is_busy());
        assert!(!usage.rest(usage.read()), "it is in use");
        drop(request);
        assert!(!usage.rest(before), "it was used since");
        let now = usage.read();
        assert_ne!(now, before);
        assert!(usage.rest(now));
        assert!(usage.enter().is_none());
        assert!(!usage.read().is_busy(), "who was turned away is not in it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_followed_is_forgotten_when_it_ends_or_nobody_asks() {
        let usage = ServerUse::default();
        let params = to_raw_value(&json!({ "taskId": "1" })).expect("JSON");
        let note = |method: &str, answer: serde_json::Value| {
            let raw = to_raw_value(&answer).expect("JSON");
            usage.note_task(method, &params, &Ok(RawJson::from(raw)));
        };
        let status = |status: &str| json!({ "taskId": "1", "status": status });
        let follows = || usage.has_tasks(Instant::now());
        note("tools/call", json!({ "content": [] }));
        assert!(!follows());
        note("tools/call", json!({ "task": status("working") }));
        assert!(follows());
        note("tasks/get", status("completed"));
        assert!(!follows());
        note("tools/call", status("working"));
        note("tasks/cancel", json!({}));
        assert!(!follows());
        note("tools/call", status("working"));
        tokio::time::advance(FOLLOWED_FOR).await;
        assert!(!follows());
    }
}
