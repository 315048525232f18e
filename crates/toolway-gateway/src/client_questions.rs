//! Requests of ours to one client that wait for its answer.
//!
//! Owns their ids, which answer is whose, and that one nobody waits for any more is taken back. What is
//! asked, and what an answer means, is whoever's asks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;
use toolway_wire::era::method;
use toolway_wire::{Id, RawJson, RpcError, envelope, error};

use crate::outlet::Outlet;

/// The requests to one client that wait for its answer.
#[derive(Debug, Default)]
pub(crate) struct ClientQuestions {
    next: AtomicU64,
    waiting: Mutex<WaitingRequests>,
}

#[derive(Debug, Default)]
struct WaitingRequests {
    by_id: HashMap<u64, oneshot::Sender<Result<RawJson, RpcError>>>,
    /// Nobody answers any more.
    is_over: bool,
}

impl ClientQuestions {
    /// The client answered.
    pub(crate) fn answered(&self, id: &Id, outcome: Result<RawJson, RpcError>) {
        let waiting = id.as_ours().and_then(|id| self.waiting().by_id.remove(&id));
        if let Some(waiting) = waiting {
            // Whoever asked may be gone.
            let _ = waiting.send(outcome);
        } else {
            tracing::debug!("a client answered what it was not asked");
        }
    }

    /// A number that was not used before.
    pub(crate) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The client says nothing any more: whoever waits hears that, and so does whoever asks from now
    /// on.
    pub(crate) fn end(&self) {
        let mut waiting = self.waiting();
        waiting.is_over = true;
        waiting.by_id.clear();
    }

    /// Asks the client something over this outlet.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        outlet: &Outlet,
        method: &str,
        params: &RawValue,
    ) -> Result<RawJson, RpcError> {
        self.put(outlet, method, params)?.answer().await
    }

    /// The same; when this returns, the question waits to be read.
    pub(crate) fn put(
        self: &Arc<Self>,
        outlet: &Outlet,
        method: &str,
        params: &RawValue,
    ) -> Result<PutQuestion, RpcError> {
        let id = self.next();
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.is_over {
                return Err(gone());
            }
            waiting.by_id.insert(id, sender);
        }
        let mut question = PutQuestion {
            all: Arc::clone(self),
            outlet: outlet.clone(),
            id,
            is_sent: false,
            answer,
        };
        let unread = |_| RpcError::new(error::INTERNAL_ERROR, "the client does not read");
        outlet
            .ask(envelope::request(id, method, params))
            .map_err(unread)?;
        question.is_sent = true;
        Ok(question)
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone() -> RpcError {
    RpcError::new(error::INTERNAL_ERROR, "the client is gone")
}

/// A question that is taken back when nobody waits for its answer any more.
pub(crate) struct PutQuestion {
    all: Arc<ClientQuestions>,
    outlet: Outlet,
    id: u64,
    is_sent: bool,
    answer: oneshot::Receiver<Result<RawJson, RpcError>>,
}

impl PutQuestion {
    /// What the client says to it.
    pub(crate) async fn answer(mut self) -> Result<RawJson, RpcError> {
        (&mut self.answer).await.map_err(|_| gone())?
    }
}

impl Drop for PutQuestion {
    fn drop(&mut self) {
        let is_open = self.all.waiting().by_id.remove(&self.id).is_some();
        if is_open && self.is_sent {
            let params = json!({ "requestId": self.id, "reason": "no longer needed" });
            let params = to_raw_value(&params).ok();
            let taken_back = envelope::notification(method::CANCELLED, params.as_deref());
            self.outlet.notify(taken_back);
        }
    }
}
