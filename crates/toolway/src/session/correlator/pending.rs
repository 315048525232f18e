//! The map of requests that wait for an answer.
//!
//! Owns that each of them ends exactly once: by its answer, by giving up, or with the channel.
//! What an id means on the wire, and what the server is told, is not decided here.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use toolway_transport::CloseReason;
use toolway_wire::RawJson;

use crate::call::questions::QuestionAsker;
use crate::call::{CallerSide, ProgressSink, RequestOrigin};
use crate::error::{RequestError, RequestResult};
use crate::lock::lock;

/// What is done with an answer to a request that was cancelled.
pub(in crate::session) type LateAnswerHandler = Box<dyn FnOnce(&RawJson) + Send>;

/// How many requests that were given up are remembered for the sake of a late answer. Most
/// servers send none.
const LEFT_LEN: usize = 256;

/// How many requests that were given up are remembered for the sake of a late question.
const GIVEN_UP_LEN: usize = 64;

/// For how long: a server may ask for a request before it hears that nobody waits for it.
const GIVEN_UP_FOR: Duration = Duration::from_secs(30);

/// All requests in flight on one channel.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<PendingState>);

#[derive(Default)]
struct PendingState {
    /// By ids of our own making, which nobody can choose.
    requests: HashMap<u64, PendingRequest, foldhash::fast::RandomState>,
    /// Given up, but an answer would still mean something; oldest first.
    left: VecDeque<(u64, LateAnswerHandler)>,
    /// Given up by callers, and not answered since; oldest first.
    given_up: VecDeque<GivenUpRequest>,
    closed: Option<CloseReason>,
}

struct PendingRequest {
    answer: oneshot::Sender<RequestResult>,
    progress: Option<ProgressSink>,
    origin: Option<Arc<RequestOrigin>>,
    last_sign: Instant,
}

/// A request that was taken out, and is to be answered.
pub(super) struct WaitingRequest(PendingRequest);

impl WaitingRequest {
    pub(super) fn settle(self, answer: RequestResult) {
        // Nobody may wait any more.
        let _ = self.0.answer.send(answer);
    }
}

/// A request that its caller does not wait for any more.
struct GivenUpRequest {
    id: u64,
    /// What its caller is asked through, by which it is known.
    asker: Weak<QuestionAsker>,
    at: Instant,
}

impl PendingState {
    /// A server may still ask for this one.
    fn give_up(&mut self, id: u64, origin: &RequestOrigin) {
        if self.given_up.len() == GIVEN_UP_LEN {
            self.given_up.pop_front();
        }
        self.given_up.push_back(GivenUpRequest {
            id,
            asker: Arc::downgrade(&origin.caller.asker),
            at: Instant::now(),
        });
    }

    /// Whether the server may still ask for a request that another caller than this one gave up.
    fn may_ask_for_others(&self, caller: Option<&Arc<CallerSide>>) -> bool {
        let is_of = |given_up: &GivenUpRequest| {
            let asker = given_up.asker.as_ptr();
            caller.is_some_and(|caller| std::ptr::eq(asker, Arc::as_ptr(&caller.asker)))
        };
        let mut given_up = self.given_up.iter();
        given_up.any(|it| it.at.elapsed() < GIVEN_UP_FOR && !is_of(it))
    }
}

/// What caused a question of the server.
pub(super) enum QuestionCause {
    /// Requests of one caller; none where it is no caller's.
    Requests(Vec<Arc<RequestOrigin>>),
    /// One of several callers' requests, and nothing says which.
    Unclear,
}

impl PendingRequests {
    /// Takes a request in, unless the channel has ended.
    pub(super) fn register(
        &self,
        id: u64,
        progress: Option<ProgressSink>,
        origin: Option<Arc<RequestOrigin>>,
    ) -> Result<oneshot::Receiver<RequestResult>, RequestError> {
        let (answer, receiver) = oneshot::channel();
        let mut state = lock(&self.0);
        if let Some(reason) = &state.closed {
            return Err(RequestError::Closed(reason.clone()));
        }
        let waiter = PendingRequest {
            answer,
            progress,
            origin,
            last_sign: Instant::now(),
        };
        state.requests.insert(id, waiter);
        Ok(receiver)
    }

    /// Ends one request; false when none is pending under this id.
    pub(super) fn settle(&self, id: u64, answer: RequestResult) -> bool {
        let waiter = {
            let mut state = lock(&self.0);
            let waiter = state.requests.remove(&id);
            if waiter.is_none() {
                state.given_up.retain(|given_up| given_up.id != id);
            }
            waiter
        };
        let waited_for = waiter.is_some();
        if let Some(waiter) = waiter {
            let _ = waiter.answer.send(answer);
        }
        waited_for
    }

    /// The one who waits under this id, who waits no more; nobody, and nothing changes, when there is
    /// none.
    pub(super) fn take(&self, id: u64) -> Option<WaitingRequest> {
        let waiter = lock(&self.0).requests.remove(&id);
        waiter.map(WaitingRequest)
    }

    /// Gives one request up; false when it had ended already.
    pub(super) fn forget(&self, id: u64) -> bool {
        lock(&self.0).requests.remove(&id).is_some()
    }

    /// Gives one request up, and has `late` see its answer if one still comes. False when it had
    /// ended already; `late` stays where it is then.
    pub(super) fn leave(&self, id: u64, late: &mut Option<LateAnswerHandler>) -> bool {
        let mut state = lock(&self.0);
        let Some(request) = state.requests.remove(&id) else {
            return false;
        };
        if let Some(origin) = &request.origin {
            state.give_up(id, origin);
        }
        if let Some(late) = late.take() {
            if state.left.len() == LEFT_LEN {
                state.left.pop_front();
            }
            state.left.push_back((id, late));
        }
        true
    }

    /// Who wants to see the answer to a request that was given up.
    pub(super) fn late(&self, id: u64) -> Option<LateAnswerHandler> {
        let mut state = lock(&self.0);
        let place = state.left.iter().position(|(left, _)| *left == id)?;
        state.left.remove(place).map(|(_, late)| late)
    }

    /// The one request in flight, when there is exactly one.
    pub(super) fn only(&self) -> Option<u64> {
        let state = lock(&self.0);
        let mut ids = state.requests.keys().copied();
        match (ids.next(), ids.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// Whose question it is that the server asks now: of the request on whose stream it came, or,
    /// where nothing says, of the only caller that has requests in flight, if no other has just
    /// given one up. A request of the host's own is no caller's; with none of any caller in flight it
    /// is for `own`, whose connection it is.
    pub(super) fn cause(
        &self,
        during: Option<u64>,
        own: Option<&Arc<CallerSide>>,
    ) -> QuestionCause {
        let state = lock(&self.0);
        let of = |request: &PendingRequest| request.origin.clone();
        if let Some(id) = during {
            // A request that has ended is nobody's any more, and no other's.
            return match state.requests.get(&id) {
                Some(request) => QuestionCause::Requests(of(request).into_iter().collect()),
                None => QuestionCause::Unclear,
            };
        }
        let mut requests: Vec<_> = state.requests.iter().collect();
        // The newest first: that is more likely to be the one that is worked on.
        requests.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(**id));
        let origins: Vec<_> = requests.into_iter().filter_map(|(_, it)| of(it)).collect();
        let is_of_one = |pair: &[Arc<RequestOrigin>]| pair[0].caller.is_same(&pair[1].caller);
        let asked = origins.first().map(|origin| &origin.caller).or(own);
        if origins.windows(2).all(is_of_one) && !state.may_ask_for_others(asked) {
            QuestionCause::Requests(origins)
        } else {
            QuestionCause::Unclear
        }
    }

    /// Of the request on whose stream something came, what it was sent for: nothing in the list
    /// where it is the host's own. Nothing at all when it has ended.
    pub(super) fn origin(&self, id: u64) -> Option<Vec<Arc<RequestOrigin>>> {
        let state = lock(&self.0);
        let request = state.requests.get(&id)?;
        Some(request.origin.clone().into_iter().collect())
    }

    /// Notes a sign of life of one request, and says who listens for it.
    pub(super) fn stir(&self, id: u64) -> Option<ProgressSink> {
        let mut state = lock(&self.0);
        let waiter = state.requests.get_mut(&id)?;
        waiter.last_sign = Instant::now();
        waiter.progress.clone()
    }

    /// When a request last showed that it is alive. One that has just been answered is.
    pub(super) fn last_sign(&self, id: u64) -> Instant {
        let state = lock(&self.0);
        let waiter = state.requests.get(&id);
        waiter.map_or_else(Instant::now, |waiter| waiter.last_sign)
    }

    /// Ends every request, and every later one at once; false when that had happened already.
    pub(super) fn close(&self, reason: &CloseReason) -> bool {
        let requests = {
            let mut state = lock(&self.0);
            if state.closed.is_some() {
                return false;
            }
            state.closed = Some(reason.clone());
            state.left.clear();
            state.given_up.clear();
            std::mem::take(&mut state.requests)
        };
        for waiter in requests.into_values() {
            let _ = waiter
                .answer
                .send(Err(RequestError::Closed(reason.clone())));
        }
        true
    }

    /// Why the channel ended.
    pub(super) fn close_reason(&self) -> CloseReason {
        lock(&self.0).closed.clone().unwrap_or(CloseReason::Asked)
    }
}

#[cfg(test)]
mod tests;
