//! A modern request, driven to its end: rounds of input, stale headers, tasks.
//!
//! Owns the loop around one request of a caller's: a result that requires input is answered
//! (`input.rs`) and the request sent again; headers that the server does not accept are made anew
//! once; a result that is a task is followed (`task.rs`). The caller sees one request and one answer.
//!
//! Invariants: every retry has an id of its own; `requestState` goes back byte for byte, once, with
//! the request it came from, and nowhere else; all rounds share one deadline, and none outlives the
//! channel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use toolway_types::{BytePool, Untrusted, limits};
use toolway_wire::RawJson;
use toolway_wire::era::{may_require_input, method};
use toolway_wire::error::HEADER_MISMATCH;
use toolway_wire::view::elicit::{self, input_required};
use toolway_wire::view::{self, ResultType, Tool};
use tracing::debug;

use super::correlator::Deadline;
use super::modern::{self, ModernRequest};
use super::{Session, input, list, refine, task};
use crate::error::{RequestError, RequestResult};
use crate::listing::ListKind;
use crate::route::PassedOn;

/// How often a server may ask for input before one request is given up.
pub(super) const MAX_ROUNDS: usize = limits::call::ROUNDS;
/// The first pause before a server that asks for nothing is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest that listing the tools again may take.
const RELIST_LIMIT: Duration = Duration::from_mins(1);

/// Sends a request and does what its results ask for, until there is an answer.
pub(super) async fn drive(
    session: &Session,
    request: ModernRequest<'_>,
    is_task: Option<&AtomicBool>,
) -> RequestResult {
    let freshness = session.reception().freshness();
    // What is passed on may continue an earlier request, and such answers are not kept.
    let is_kept = request.passed_on == PassedOn::default();
    if is_kept && let Some(answer) = freshness.get(request.method, request.params) {
        return Ok(answer);
    }
    let first = ModernRequest {
        progress: request.progress.clone(),
        ..request
    };
    let outcome = modern::request(session, first).await.map_err(refine);
    if request.passed_on.tasks && request.method.starts_with("tasks/") {
        return outcome;
    }
    if let Ok(result) = &outcome
        && matches!(ResultType::peek(result), Ok(ResultType::Complete))
    {
        if is_kept {
            freshness.put(request.method, request.params, result);
        }
        return outcome;
    }
    // Boxed: a request that is answered at once must not carry the room for the rest along.
    Box::pin(go_on(session, request, is_task, outcome)).await
}

/// Does what the first result, and those after it, ask for.
async fn go_on(
    session: &Session,
    request: ModernRequest<'_>,
    is_task: Option<&AtomicBool>,
    mut outcome: RequestResult,
) -> RequestResult {
    let mut params = None;
    let mut relisted = None;
    let mut rounds = 0;
    let passed_on = request.passed_on;
    loop {
        let result = match outcome {
            Err(RequestError::Rpc(error)) if error.code == HEADER_MISMATCH => {
                // Once: a server that refuses fresh headers means something else.
                let stale = request.tool.filter(|_| relisted.is_none());
                let mismatch = RequestError::Rpc(error);
                relisted = Some(relist(session, stale, request.deadline, mismatch).await?);
                None
            }
            outcome => Some(outcome?),
        };
        if let Some(result) = result {
            let kind = ResultType::peek(&result).map_err(|error| {
                RequestError::Malformed(format!("the result is unusable: {error}"))
            })?;
            match kind {
                ResultType::Complete => {
                    if rounds == 0 && passed_on == PassedOn::default() {
                        let freshness = session.reception().freshness();
                        freshness.put(request.method, request.params, &result);
                    }
                    return Ok(result);
                }
                ResultType::InputRequired
                    if passed_on.input && may_require_input(request.method) =>
                {
                    return Ok(result);
                }
                ResultType::InputRequired if may_require_input(request.method) => {
                    rounds += 1;
                    if rounds > MAX_ROUNDS {
                        return Err(RequestError::TooManyRounds { rounds: MAX_ROUNDS });
                    }
                    params = Some(with_input(session, &request, &result, rounds).await?);
                }
                ResultType::Task if request.method == method::TOOLS_CALL && session.has_tasks() => {
                    if let Some(is_task) = is_task {
                        is_task.store(true, Ordering::Relaxed);
                    }
                    if passed_on.tasks {
                        return Ok(result);
                    }
                    return task::follow(session, &result, request.deadline, request.progress)
                        .await;
                }
                ResultType::InputRequired => return Err(unexpected("input_required")),
                ResultType::Task => return Err(unexpected("task")),
                ResultType::Unknown(other) => return Err(unexpected(&other)),
            }
        }
        let round = ModernRequest {
            params: params.as_deref().unwrap_or(request.params),
            progress: request.progress.clone(),
            tool: relisted.as_ref().or(request.tool),
            ..request
        };
        outcome = modern::request(session, round).await.map_err(refine);
    }
}

/// Anything that we did not ask for is invalid.
fn unexpected(name: &str) -> RequestError {
    let name = Untrusted::new(name);
    RequestError::Malformed(format!("the result has the unexpected type `{name}`"))
}

/// The parameters of the next try: those of the request, and what a result asks for.
async fn with_input(
    session: &Session,
    request: &ModernRequest<'_>,
    result: &RawJson,
    round: usize,
) -> Result<Box<RawValue>, RequestError> {
    let required =
        input_required(result).map_err(|error| RequestError::Malformed(error.to_string()))?;
    let deadline = request.deadline;
    let responses = if required.requests.is_empty() {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << (round - 1).min(16))
            .min(LONGEST_PAUSE);
        session.between(deadline, tokio::time::sleep(pause)).await?;
        None
    } else {
        Some(input::answers(session, &required.requests, deadline).await?)
    };
    elicit::with_input(
        request.params,
        responses.as_deref(),
        required.state.as_deref(),
    )
    .map_err(|error| RequestError::Malformed(error.to_string()))
}

/// Lists the tools again after the server refused the headers of a call, which are made from a
/// tool's schema: ours was old. The catalogue is told to catch up too.
async fn relist(
    session: &Session,
    stale: Option<&Tool>,
    deadline: Deadline,
    mismatch: RequestError,
) -> Result<Tool, RequestError> {
    let Some(stale) = stale else {
        return Err(mismatch);
    };
    debug!("the server refused the headers of a call: listing its tools again");
    session.suspect(ListKind::Tools);
    let room = BytePool::new(view::LIST.bytes);
    // Boxed, because a list is fetched with requests, and this is part of one.
    let listing = Box::pin(list::fetch(
        session,
        method::TOOLS_LIST,
        &view::TOOLS,
        RELIST_LIMIT,
        &room,
    ));
    let Ok(listing) = deadline.unless_over(listing).await? else {
        return Err(mismatch);
    };
    let mut fresh = listing.items.iter();
    let fresh = fresh.find(|tool| tool.name == stale.name);
    fresh.cloned().ok_or(mismatch)
}
