//! A legacy call of a tool that requires a task (2025-11-25), followed to its result.
//!
//! Owns asking for the task, and getting its result when it has ended or wants something: a server
//! asks its questions on the stream of that request, and they are answered where every question of
//! a legacy server is (`correlator/questions.rs`). Polling a task, and cancelling it at the server,
//! is the same as in the modern era (`task.rs`).
//!
//! A tool that merely allows a task is called as usual: an answer that is waited for needs no
//! second request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use toolway_wire::era::method;
use toolway_wire::view::task::{TaskStatus, TaskView, created, with_task};

use super::Session;
use super::correlator::Deadline;
use super::task::{MAX_FAILURES, TaskFollower, TaskProgress, got_lost, interval, unusable};
use crate::call::ProgressSink;
use crate::error::{RequestError, RequestResult};
use crate::session::url_elicitation;

/// The shortest time for which a server is asked to keep a task: its result has to be fetched.
const KEPT_AT_LEAST: Duration = Duration::from_mins(1);
/// The longest one. Servers count it with timers, and some timers have no room for more than a
/// few weeks.
const KEPT_AT_MOST: Duration = Duration::from_hours(24);

/// Calls a tool as a task, within this time, and follows it.
pub(super) async fn drive(
    session: &Session,
    params: &RawValue,
    (timeout, deadline): (Duration, Deadline),
    progress: Option<ProgressSink>,
    is_task: Option<&AtomicBool>,
) -> RequestResult {
    let kept_for = timeout.clamp(KEPT_AT_LEAST, KEPT_AT_MOST);
    let params =
        with_task(params, kept_for).map_err(|error| RequestError::Malformed(error.to_string()))?;
    let answer = url_elicitation::drive(
        session,
        method::TOOLS_CALL,
        &params,
        deadline,
        progress.clone(),
    )
    .await?;
    let Some(made) = created(&answer) else {
        // It was done at once.
        return Ok(answer);
    };
    let made = made.map_err(|error| unusable(&error))?;
    if let Some(is_task) = is_task {
        is_task.store(true, Ordering::Relaxed);
    }
    follow(session, made, deadline, progress).await
}

async fn follow(
    session: &Session,
    made: TaskView,
    deadline: Deadline,
    progress: Option<ProgressSink>,
) -> RequestResult {
    let mut current = made;
    let mut follower = TaskFollower::new(session, &current.id, deadline);
    let mut teller = TaskProgress::new(progress);
    let mut failures = 0;
    loop {
        teller.tell(&current);
        let interval = interval(current.poll_interval);
        match current.status {
            TaskStatus::Working => follower.pause(interval).await?,
            TaskStatus::Cancelled => return follower.done(Err(RequestError::TaskCancelled)),
            TaskStatus::Completed(_) => return follower.fetch(interval).await,
            TaskStatus::Failed(_) => {
                let answer = follower.fetch(interval).await;
                return answer.map_err(|error| explained(error, current.message));
            }
            // Questions come on the stream of the request for the result.
            TaskStatus::InputRequired(_) => match follower.wait().await {
                Err(error) if got_lost(&error) => {
                    failures += 1;
                    if failures >= MAX_FAILURES {
                        return Err(error);
                    }
                    follower.pause(interval).await?;
                }
                outcome => return follower.done(outcome),
            },
        }
        current = follower.look(interval).await?;
    }
}

/// What a server says of a task that failed often says more than the error that it ends with.
fn explained(error: RequestError, message: Option<String>) -> RequestError {
    match (error, message) {
        (RequestError::Rpc(mut error), Some(message)) if !error.message.contains(&message) => {
            error.message = format!("{}: {message}", error.message);
            RequestError::Rpc(error)
        }
        (error, _) => error,
    }
}
