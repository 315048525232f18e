//! The server's own requests while they are being answered.
//!
//! Owns the questions in flight: how many there may be, and that each is answered once, or not at
//! all when the server takes it back. Each is a task of its own, so that neither the loop that
//! reads nor another question waits for a person, and a client handler that panics costs only its
//! own answer. Dropping this ends them all.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use toolway_types::{Budget, BudgetExceeded, limits};
use toolway_wire::era::meta_key;
use toolway_wire::meta::RequestMeta;
use toolway_wire::{Id, RpcError, envelope, error};
use tracing::debug;

use crate::session::correlator::deadline::{QuestionGuard, QuestionsInProgress};
use crate::session::correlator::pending::QuestionCause;
use crate::session::inbound::{AskedMessage, Reception};
use crate::session::question::ServerQuestion;
use crate::tasks::{self, Task};

/// How many questions of one server may be open at once, because of one caller.
pub(in crate::session) const MAX_QUESTIONS: usize = limits::call::QUESTIONS;

/// What they may hold together.
const ROOM: Budget = Budget::new(16 << 20, MAX_QUESTIONS);

/// The same because of all callers: one that leaves its questions open keeps no other from being asked,
/// as long as there are few of its kind.
const ROOM_OF_ALL: Budget = Budget::new(64 << 20, 16 * MAX_QUESTIONS);

/// Who caused a question: the caller's id; none where it is no caller's.
type QuestionCauser = Option<Arc<str>>;

pub(super) struct Questions {
    open: HashMap<Id, OpenServerQuestion>,
    room: Budget,
    /// What is left for each caller that caused an open one.
    rooms: HashMap<QuestionCauser, Budget>,
    count: u64,
    answers: mpsc::UnboundedSender<Ready>,
    ready: mpsc::UnboundedReceiver<Ready>,
}

/// The request that a question came as.
struct QuestionSource {
    id: Id,
    /// The task that it belongs to, which the answer has to name.
    task: Option<Box<RawValue>>,
}

impl QuestionSource {
    fn answer(&self, outcome: Result<Box<RawValue>, RpcError>) -> Bytes {
        let id = &self.id;
        let result = match outcome {
            Ok(result) => result,
            Err(refusal) => return envelope::error_response(Some(id), &refusal),
        };
        let Some(task) = &self.task else {
            return envelope::response(id, &result);
        };
        let mut meta = RequestMeta::new();
        meta.set(meta_key::RELATED_TASK, task);
        // A result that is no object cannot say it, and is what it is.
        let named = meta.splice(Some(&result));
        envelope::response(id, &named.unwrap_or(result))
    }
}

struct OpenServerQuestion {
    number: u64,
    size: usize,
    causer: QuestionCauser,
    _task: Task<()>,
}

/// An answer that is ready to be sent. The number tells questions apart whose ids a server uses
/// twice.
struct Ready {
    id: Id,
    number: u64,
    bytes: Bytes,
}

impl Questions {
    pub(super) fn new() -> Self {
        let (answers, ready) = mpsc::unbounded_channel();
        Self {
            open: HashMap::new(),
            room: ROOM_OF_ALL,
            rooms: HashMap::new(),
            count: 0,
            answers,
            ready,
        }
    }

    /// Takes a question on; gives what can be said to it at once.
    pub(super) fn take(
        &mut self,
        asked: AskedMessage,
        cause: QuestionCause,
        reception: &Reception,
        asking: &watch::Sender<QuestionsInProgress>,
    ) -> Option<Bytes> {
        let AskedMessage {
            id,
            method,
            params,
            size,
            task,
        } = asked;
        let from = QuestionSource { id, task };
        let causer = match &cause {
            QuestionCause::Requests(requests) => {
                let first = requests.first();
                first.map(|request| Arc::clone(&request.caller.caller.id))
            }
            QuestionCause::Unclear => None,
        };
        let client_side = match cause {
            QuestionCause::Requests(requests) => reception.client_side().during(&requests),
            QuestionCause::Unclear => reception.of_unclear_caller(),
        };
        let declared = reception.answered_by(&client_side);
        let question = match ServerQuestion::read(&method, &params, &declared) {
            Ok(question) => question,
            Err(refusal) => return Some(from.answer(Err(refusal.to_rpc()))),
        };
        let refuse = |code, why: &str| Some(from.answer(Err(RpcError::new(code, why))));
        if self.open.contains_key(&from.id) {
            return refuse(error::INVALID_REQUEST, "this id is in use");
        }
        if matches!(question, ServerQuestion::Roots) {
            client_side.habits.note_asked_for_roots();
            if **client_side.roots.borrow() != **reception.client_side().roots.borrow() {
                client_side.habits.note_others_roots();
            }
        }
        if !question.takes_time(&client_side) {
            let outcome = question.put(&client_side).now_or_never();
            return outcome.map(|outcome| from.answer(outcome));
        }
        match self.make_room(&causer, size) {
            Ok(()) => {}
            Err(BudgetExceeded::Items) => {
                return refuse(error::INTERNAL_ERROR, "too many questions at once");
            }
            Err(BudgetExceeded::Bytes) => {
                return refuse(error::INTERNAL_ERROR, "too much asked at once");
            }
        }
        self.count += 1;
        let number = self.count;
        let thinking = QuestionGuard::start(asking);
        let id = from.id.clone();
        let mut reply = QuestionReply {
            from,
            number,
            answers: Some(self.answers.clone()),
        };
        let task = tasks::spawn("question", async move {
            let outcome = question.put(&client_side).await;
            drop(thinking);
            reply.send(outcome);
        });
        let task = OpenServerQuestion {
            number,
            size,
            causer,
            _task: task,
        };
        self.open.insert(id, task);
        None
    }

    /// Takes room for one of this size, of its causer's and of all.
    fn make_room(&mut self, causer: &QuestionCauser, size: usize) -> Result<(), BudgetExceeded> {
        let mut own = self.rooms.get(causer).copied().unwrap_or(ROOM);
        own.take(size)?;
        self.room.take(size)?;
        self.rooms.insert(causer.clone(), own);
        Ok(())
    }

    /// The next answer that the server still wants.
    pub(super) async fn next(&mut self) -> Bytes {
        loop {
            let Some(ready) = self.ready.recv().await else {
                // Never: we hold a sender.
                return std::future::pending().await;
            };
            let wanted = self.open.get(&ready.id);
            if wanted.is_some_and(|open| open.number == ready.number) {
                self.close(&ready.id);
                return ready.bytes;
            }
        }
    }

    /// The server does not want this one answered any more.
    pub(super) fn withdraw(&mut self, id: &Id) {
        if self.close(id) {
            debug!("the server took its question back");
        }
    }

    /// One is not open any more; false when it was not before.
    fn close(&mut self, id: &Id) -> bool {
        let closed = self.open.remove(id);
        if let Some(open) = &closed {
            self.room.give_back(open.size);
            if let Some(own) = self.rooms.get_mut(&open.causer) {
                own.give_back(open.size);
                if *own == ROOM {
                    self.rooms.remove(&open.causer);
                }
            }
        }
        closed.is_some()
    }
}

/// The one answer to a question. A client handler that panics gives an error, not silence.
struct QuestionReply {
    from: QuestionSource,
    number: u64,
    answers: Option<mpsc::UnboundedSender<Ready>>,
}

impl QuestionReply {
    fn send(&mut self, outcome: Result<Box<RawValue>, RpcError>) {
        let Some(answers) = self.answers.take() else {
            return;
        };
        let _ = answers.send(Ready {
            id: self.from.id.clone(),
            number: self.number,
            bytes: self.from.answer(outcome),
        });
    }
}

impl Drop for QuestionReply {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.send(Err(RpcError::new(
                error::INTERNAL_ERROR,
                "an internal error kept the question from being answered",
            )));
        }
    }
}
