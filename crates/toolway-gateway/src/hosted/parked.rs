//! Asking a modern client: its call is parked, and answered with what is asked.
//!
//! Owns questions that wait for the client's next request, and the calls that wait with them. A
//! parked call goes on when the client sends its request again with answers; it ends with its time,
//! with its client, and when a client parks too many.
//!
//! A parked call is not driven: nothing but an answer can bring it further, and whatever happened
//! to its server meanwhile is found out then.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use toolway::types::{ServerName, limits};
use toolway::{
    ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, PermissionAnswer,
    PermissionQuestion, Prompter, Root,
};
use toolway_wire::era::method;
use toolway_wire::{RawJson, RpcError, error, scan};

use super::capabilities::ClientCapabilities;
use super::questions;
use crate::conversation::{AnswerFuture, IncomingRequest};
use crate::outlet::Outlet;

/// How long a call stays parked.
pub(super) const PARKED_FOR: Duration = limits::gateway::PARKED_TIME;

/// How many calls of one client are parked at a time; one more ends the oldest.
const MAX_PARKED: usize = limits::gateway::PARKED;

/// The questions of one call.
#[derive(Debug, Default)]
pub(super) struct CallQuestions {
    state: Mutex<QuestionState>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct QuestionState {
    count: u64,
    waiting: Vec<WaitingQuestion>,
}

#[derive(Debug)]
struct WaitingQuestion {
    key: String,
    method: &'static str,
    params: Box<RawValue>,
    answer: oneshot::Sender<RawJson>,
}

impl CallQuestions {
    fn state(&self) -> MutexGuard<'_, QuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer of the client's next request.
    async fn ask(&self, method: &'static str, params: Box<RawValue>) -> Option<RawJson> {
        let (sender, answer) = oneshot::channel();
        let key = {
            let mut state = self.state();
            state.count += 1;
            let key = format!("q{}", state.count);
            state.waiting.push(WaitingQuestion {
                key: key.clone(),
                method,
                params,
                answer: sender,
            });
            key
        };
        let _taken_back = TakenBack(self, key);
        self.asked.notify_one();
        answer.await.ok()
    }

    /// Resolves when something is asked.
    pub(super) async fn asked(&self) {
        loop {
            if !self.state().waiting.is_empty() {
                return;
            }
            self.asked.notified().await;
        }
    }

    /// The result of a call that asks all this now, to be continued by what the handle says.
    pub(super) fn input_required(&self, handle: &str) -> Option<RawJson> {
        let state = self.state();
        let requests = state.waiting.iter().map(|question| {
            let WaitingQuestion { method, params, .. } = question;
            (question.key.as_str(), ParkedQuestion { method, params })
        });
        let result = ParkedAnswer {
            result_type: "input_required",
            input_requests: requests.collect(),
            request_state: handle,
        };
        to_raw_value(&result).ok().map(RawJson::from)
    }

    /// Takes the answers of `inputResponses`; those to nothing that was asked are ignored.
    pub(super) fn answer(&self, responses: &RawJson) {
        let mut state = self.state();
        for (key, answer) in scan::members(responses.get()) {
            let Some(key) = scan::text(key) else { continue };
            let place = state.waiting.iter().position(|it| it.key == key);
            let answer = RawValue::from_string(answer.to_owned());
            if let (Some(place), Ok(answer)) = (place, answer) {
                let question = state.waiting.swap_remove(place);
                let _ = question.answer.send(answer.into());
            }
        }
    }
}

/// A question as it is written for the client, in the server's own words.
#[derive(Serialize)]
struct ParkedQuestion<'a> {
    method: &'static str,
    params: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ParkedAnswer<'a> {
    result_type: &'static str,
    input_requests: BTreeMap<&'a str, ParkedQuestion<'a>>,
    request_state: &'a str,
}

/// A question goes away with whoever asked it.
struct TakenBack<'a>(&'a CallQuestions, String);

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.0.state().waiting.retain(|it| it.key != self.1);
    }
}

/// Asks a modern client because of one of its requests.
pub(super) struct ParkingAsker {
    pub(super) questions: Arc<CallQuestions>,
    pub(super) capabilities: ClientCapabilities,
}

impl ClientHandler for ParkingAsker {
    fn offers(&self) -> ClientOffers {
        self.capabilities.offers()
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        let request = match request {
            // Only the legacy era has names for questions.
            Elicitation::Url {
                message,
                url,
                rights,
                ..
            } => Elicitation::Url {
                message,
                url,
                id: None,
                rights,
            },
            form @ Elicitation::Form { .. } => form,
        };
        Box::pin(async move {
            let params = questions::elicitation_params(&request);
            let answer = self.questions.ask(method::ELICITATION_CREATE, params).await;
            answer.map_or(ElicitationAnswer::Cancel, |answer| {
                questions::elicitation_answer(&answer)
            })
        })
    }

    fn roots<'a>(&'a self, _server: &'a ServerName) -> Option<BoxFuture<'a, Vec<Root>>> {
        if !self.capabilities.roots {
            return None;
        }
        Some(Box::pin(async move {
            let none = RawValue::from_string("{}".to_owned()).unwrap_or_default();
            let answer = self.questions.ask(method::ROOTS_LIST, none).await;
            answer.map_or_else(Vec::new, |answer| questions::read_roots(&answer))
        }))
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            match self.questions.ask(method::SAMPLING_CREATE, request).await {
                Some(answer) => Ok(answer.as_raw().to_owned()),
                None => Err(RpcError::new(error::INTERNAL_ERROR, "nobody answered")),
            }
        })
    }
}

impl Prompter for ParkingAsker {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async move {
            let params = questions::permission_params(question);
            let answer = self.questions.ask(method::ELICITATION_CREATE, params).await;
            answer.map_or(PermissionAnswer::Unanswered, |answer| {
                questions::permission_answer(&answer)
            })
        })
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn shares_answers(&self) -> bool {
        false
    }
}

/// Where a call says something before its answer: the outlet of the request that waits for it now,
/// and the token that this request knows its progress by.
#[derive(Debug, Clone)]
pub(super) struct CurrentOutlet(Arc<Mutex<(Outlet, Option<RawJson>)>>);

impl CurrentOutlet {
    pub(super) fn new(outlet: Outlet, request: &IncomingRequest) -> Self {
        Self(Arc::new(Mutex::new((outlet, progress_token(request)))))
    }

    pub(super) fn get(&self) -> Outlet {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.0.clone()
    }

    /// The same, if the request wants to hear of progress.
    pub(super) fn for_progress(&self) -> Option<(Outlet, RawJson)> {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some((current.0.clone(), current.1.clone()?))
    }

    /// Another request waits for the call from now on.
    pub(super) fn set(&self, outlet: Outlet, request: &IncomingRequest) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (outlet, progress_token(request));
    }
}

/// Copied: it must not keep the whole request alive.
fn progress_token(request: &IncomingRequest) -> Option<RawJson> {
    request.head.progress_token.as_ref().map(RawJson::detached)
}

/// A call that waits for its client.
pub(super) struct ParkedCall {
    pub(super) call: AnswerFuture,
    pub(super) questions: Arc<CallQuestions>,
    pub(super) outlet: CurrentOutlet,
}

/// The parked calls of one client.
#[derive(Default)]
pub(super) struct ParkedCalls(Mutex<HashMap<u64, (Instant, ParkedCall)>>);

impl ParkedCalls {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, (Instant, ParkedCall)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks a call under this number.
    pub(super) fn park(&self, number: u64, call: ParkedCall) {
        let ended = {
            let mut calls = self.calls();
            let oldest = calls.iter().min_by_key(|(_, (until, _))| *until);
            let oldest = oldest.map(|(number, _)| *number);
            let ended = oldest.filter(|_| calls.len() >= MAX_PARKED);
            let ended = ended.and_then(|number| calls.remove(&number));
            calls.insert(number, (Instant::now() + PARKED_FOR, call));
            ended
        };
        // Its end takes its time outside of the lock.
        drop(ended);
    }

    /// Takes a call out, to go on with it.
    pub(super) fn take(&self, number: u64) -> Option<ParkedCall> {
        let (_, call) = self.calls().remove(&number)?;
        Some(call)
    }

    /// Ends what has been parked for too long.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let over: Vec<ParkedCall> = {
            let mut calls = self.calls();
            let over = calls.extract_if(|_, (until, _)| *until <= now);
            over.map(|(_, (_, call))| call).collect()
        };
        drop(over);
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.calls());
        drop(all);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.calls().len()
    }
}
