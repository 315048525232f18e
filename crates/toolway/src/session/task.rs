//! A call that became a task at the server, followed to its result.
//!
//! Owns polling, the input that a modern task may want on the way, and cancelling a task that is
//! not followed to its end. News of a task only make the next poll come at once: what counts is
//! what `tasks/get` says. How a legacy task begins and ends is `legacy_task.rs`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;
use toolway_transport::SendFailure;
use toolway_types::{Budget, BudgetExceeded, Era, Untrusted};
use toolway_wire::RawJson;
use toolway_wire::era::method;
use toolway_wire::view::ViewError;
use toolway_wire::view::elicit::InputRequest;
use toolway_wire::view::task::{TaskStatus, TaskView, task};
use tracing::debug;

use super::correlator::{Deadline, MAX_QUESTIONS};
use super::freshness::spread;
use super::modern::{self, ModernRequest};
use super::{Session, input, legacy, refine};
use crate::call::{Progress, ProgressSink};
use crate::error::{RequestError, RequestResult};

/// How often a task is looked at when its server does not say.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest interval a server can ask for.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
/// The longest one: a task that is done should not go unnoticed for long.
const LONGEST_INTERVAL: Duration = Duration::from_mins(5);
/// The longest that one look may take.
const POLL_LIMIT: Duration = Duration::from_mins(1);
/// How many looks in a row may fail on the way before the task is given up.
pub(super) const MAX_FAILURES: u32 = 3;
/// How often a task may ask for input. More than a request may: a task lives longer.
const MAX_UPDATES: usize = 64;

/// What the names of all that a task asks for may be together: each is remembered to its end.
const KEYS: Budget = Budget::new(1 << 20, MAX_UPDATES * MAX_QUESTIONS);

/// Follows the task that `made` describes until the call has its result.
pub(super) async fn follow(
    session: &Session,
    made: &RawJson,
    deadline: Deadline,
    progress: Option<ProgressSink>,
) -> RequestResult {
    let mut current = read(made)?;
    let mut follower = TaskFollower::new(session, &current.id, deadline);
    let mut teller = TaskProgress::new(progress);
    let mut answered = HashSet::new();
    let mut keys = KEYS;
    let mut updates = 0;
    // What makes a task need not say all about it; only `tasks/get` does.
    let mut is_seed = true;
    loop {
        teller.tell(&current);
        let interval = interval(current.poll_interval);
        let pause = match current.status {
            TaskStatus::Completed(Some(result)) => return follower.done(Ok(result.into())),
            TaskStatus::Failed(error) => return follower.done(Err(RequestError::Rpc(error))),
            TaskStatus::Cancelled => return follower.done(Err(RequestError::TaskCancelled)),
            TaskStatus::Completed(None) if is_seed => Duration::ZERO,
            TaskStatus::Completed(None) => {
                let problem = "a completed task without a result".to_owned();
                return follower.done(Err(RequestError::Malformed(problem)));
            }
            TaskStatus::Working => interval,
            TaskStatus::InputRequired(requests) if requests.is_empty() && is_seed => Duration::ZERO,
            TaskStatus::InputRequired(requests) => {
                let fresh: Vec<InputRequest> = requests
                    .into_iter()
                    .filter(|request| !answered.contains(&request.key))
                    .collect();
                if !fresh.is_empty() {
                    updates += 1;
                    if updates > MAX_UPDATES {
                        return Err(RequestError::TooManyRounds {
                            rounds: MAX_UPDATES,
                        });
                    }
                    for request in &fresh {
                        keys.take(request.key.len()).map_err(too_much)?;
                    }
                    follower.update(&fresh).await?;
                    answered.extend(fresh.into_iter().map(|request| request.key));
                }
                interval
            }
        };
        follower.pause(pause).await?;
        current = follower.look(interval).await?;
        is_seed = false;
    }
}

fn too_much(_: BudgetExceeded) -> RequestError {
    RequestError::Malformed("a task that asks for too much input".to_owned())
}

fn read(result: &RawJson) -> Result<TaskView, RequestError> {
    task(result).map_err(|error| unusable(&error))
}

pub(super) fn unusable(error: &ViewError) -> RequestError {
    RequestError::Malformed(format!("an unusable task: {error}"))
}

/// Waits for a task. Dropped before the task is done, it cancels the task at the server.
pub(super) struct TaskFollower<'a> {
    session: &'a Session,
    id: String,
    deadline: Deadline,
    news: Arc<Notify>,
    is_done: bool,
}

impl<'a> TaskFollower<'a> {
    pub(super) fn new(session: &'a Session, id: &str, deadline: Deadline) -> Self {
        debug!(task = %Untrusted::new(id), "the call became a task");
        Self {
            session,
            id: id.to_owned(),
            deadline,
            news: session.correlator().follow(id),
            is_done: false,
        }
    }

    /// It has ended, and so: there is nothing to cancel.
    pub(super) fn done(&mut self, outcome: RequestResult) -> RequestResult {
        self.is_done = true;
        outcome
    }

    /// Waits, unless there are news.
    pub(super) async fn pause(&self, pause: Duration) -> Result<(), RequestError> {
        let waited = async {
            tokio::select! {
                () = tokio::time::sleep(spread(pause)) => {}
                () = self.news.notified() => {}
            }
        };
        self.session.between(self.deadline, waited).await
    }

    /// Looks how far it is.
    pub(super) async fn look(&self, interval: Duration) -> Result<TaskView, RequestError> {
        let result = self.ask(method::TASKS_GET, self.named(), interval).await?;
        let task = read(&result)?;
        if task.id == self.id {
            Ok(task)
        } else {
            let problem = "an answer about another task than was asked for".to_owned();
            Err(RequestError::Malformed(problem))
        }
    }

    /// Gets the result of a legacy task that has ended.
    pub(super) async fn fetch(&mut self, interval: Duration) -> RequestResult {
        self.is_done = true;
        self.ask(method::TASKS_RESULT, self.named(), interval).await
    }

    /// Waits for the result of a legacy task, for as long as the call may take: a user may have to
    /// be asked meanwhile.
    pub(super) async fn wait(&self) -> RequestResult {
        let params = self.named();
        let params = params.map_err(|error| RequestError::Malformed(error.to_string()))?;
        self.request(method::TASKS_RESULT, &params, self.deadline.absolute())
            .await
    }

    fn named(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(&json!({ "taskId": self.id }))
    }

    async fn request(&self, method: &str, params: &RawValue, deadline: Deadline) -> RequestResult {
        let session = self.session;
        let sent = match session.facts().era {
            Era::Legacy => legacy::request(session, method, params, deadline, None).await,
            Era::Modern => {
                modern::request(session, ModernRequest::new(method, params, deadline)).await
            }
        };
        sent.map_err(refine)
    }

    /// Answers what the task wants to know.
    async fn update(&self, requests: &[InputRequest]) -> Result<(), RequestError> {
        let responses = input::answers(self.session, requests, self.deadline).await?;
        let params = to_raw_value(&json!({ "taskId": self.id, "inputResponses": responses }));
        let update = self.ask(method::TASKS_UPDATE, params, USUAL_INTERVAL);
        update.await.map(drop)
    }

    /// Asks, and again when the question or its answer got lost on the way: the task goes on
    /// meanwhile, and neither looking nor answering twice does any harm.
    async fn ask(
        &self,
        method: &str,
        params: serde_json::Result<Box<RawValue>>,
        interval: Duration,
    ) -> RequestResult {
        let params = params.map_err(|error| RequestError::Malformed(error.to_string()))?;
        let mut failures = 0;
        loop {
            let deadline = self.deadline.within(POLL_LIMIT);
            let error = match self.request(method, &params, deadline).await {
                Err(error) if got_lost(&error) => error,
                outcome => return outcome,
            };
            failures += 1;
            if failures >= MAX_FAILURES {
                return Err(error);
            }
            debug!(%error, "the task could not be asked after");
            self.pause(interval).await?;
        }
    }
}

impl Drop for TaskFollower<'_> {
    fn drop(&mut self) {
        let session = self.session;
        session.correlator().unfollow(&self.id);
        if self.is_done {
            return;
        }
        match session.facts().era {
            Era::Legacy => legacy::cancel_task(session, &self.id),
            Era::Modern => modern::cancel_task(session, &self.id),
        }
    }
}

/// Whether asking again may help. Where the server is gone it does not: that ends the connection,
/// and the task with it, as far as we are concerned.
pub(super) fn got_lost(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::TimedOut
            | RequestError::Send(
                SendFailure::TimedOut { .. }
                    | SendFailure::Unreachable { refused: false, .. }
                    | SendFailure::Cut(_)
                    | SendFailure::Status {
                        status: 429 | 500..,
                        ..
                    }
            )
    )
}

/// What the server wishes for, within reason.
pub(super) fn interval(wished: Option<Duration>) -> Duration {
    wished
        .unwrap_or(USUAL_INTERVAL)
        .clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
}

/// Turns changes of a task into progress of the call.
pub(super) struct TaskProgress {
    progress: Option<ProgressSink>,
    told: Option<(&'static str, Option<String>)>,
    count: u32,
}

impl TaskProgress {
    pub(super) fn new(progress: Option<ProgressSink>) -> Self {
        Self {
            progress,
            told: None,
            count: 0,
        }
    }

    pub(super) fn tell(&mut self, task: &TaskView) {
        let Some(progress) = &self.progress else {
            return;
        };
        let news = (task.status.as_str(), task.message.clone());
        if self.told.as_ref() == Some(&news) {
            return;
        }
        self.count += 1;
        let message = news.1.clone().unwrap_or_else(|| news.0.to_owned());
        progress(Progress {
            progress: f64::from(self.count),
            total: None,
            message: Some(Untrusted::new(message)),
            raw: None,
        });
        self.told = Some(news);
    }
}
