//! Asking a legacy client: a request of ours on the stream of the call that caused it.
//!
//! Owns the requests to one client that wait for its answer. Each has an id of its own; a question
//! that is answered elsewhere, or whose call ends, is taken back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;
use toolway::types::ServerName;
use toolway::{
    ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, PermissionAnswer,
    PermissionQuestion, Prompter, Root,
};
use toolway_wire::era::method;
use toolway_wire::{Id, RawJson, RpcError, envelope, error};

use super::capabilities::ClientCapabilities;
use super::questions;
use crate::outlet::Outlet;

/// The requests to one client that wait for its answer.
#[derive(Debug, Default)]
pub(super) struct ClientQuestions {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<RawJson, RpcError>>>>,
}

impl ClientQuestions {
    /// The client answered.
    pub(super) fn answered(&self, id: &Id, outcome: Result<RawJson, RpcError>) {
        let waiting = id.as_ours().and_then(|id| self.waiting().remove(&id));
        if let Some(waiting) = waiting {
            // Whoever asked may be gone.
            let _ = waiting.send(outcome);
        } else {
            tracing::debug!("a client answered what it was not asked");
        }
    }

    /// A number that was not used before.
    fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks the client something over this outlet.
    pub(super) async fn ask(
        &self,
        outlet: &Outlet,
        method: &str,
        params: &RawValue,
    ) -> Result<RawJson, RpcError> {
        let id = self.next();
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id, sender);
        let mut question = AskedQuestion {
            all: self,
            outlet,
            id,
            is_sent: false,
        };
        let unread = |_| RpcError::new(error::INTERNAL_ERROR, "the client does not read");
        outlet
            .ask(envelope::request(id, method, params))
            .map_err(unread)?;
        question.is_sent = true;
        let gone = |_| RpcError::new(error::INTERNAL_ERROR, "the client is gone");
        answer.await.map_err(gone)?
    }

    fn waiting(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<RawJson, RpcError>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is taken back when nobody waits for its answer any more.
struct AskedQuestion<'a> {
    all: &'a ClientQuestions,
    outlet: &'a Outlet,
    id: u64,
    is_sent: bool,
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        let is_open = self.all.waiting().remove(&self.id).is_some();
        if is_open && self.is_sent {
            let params = json!({ "requestId": self.id, "reason": "no longer needed" });
            let params = to_raw_value(&params).ok();
            let taken_back = envelope::notification(method::CANCELLED, params.as_deref());
            self.outlet.notify(taken_back);
        }
    }
}

/// Asks a legacy client because of one of its requests.
pub(super) struct StreamAsker {
    pub(super) questions: Arc<ClientQuestions>,
    pub(super) capabilities: Arc<ClientCapabilities>,
    pub(super) outlet: Outlet,
}

impl StreamAsker {
    async fn ask(&self, method: &str, params: &RawValue) -> Result<RawJson, RpcError> {
        self.questions.ask(&self.outlet, method, params).await
    }
}

impl ClientHandler for StreamAsker {
    fn offers(&self) -> ClientOffers {
        self.capabilities.offers()
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        mut request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        if let Elicitation::Url { id, .. } = &mut request {
            // Modern servers have none, and legacy clients take no page without.
            id.get_or_insert_with(|| format!("page-{}", self.questions.next()));
        }
        Box::pin(async move {
            let params = questions::elicitation_params(&request);
            match self.ask(method::ELICITATION_CREATE, &params).await {
                Ok(result) => questions::elicitation_answer(&result),
                Err(_) => ElicitationAnswer::Cancel,
            }
        })
    }

    fn roots<'a>(&'a self, _server: &'a ServerName) -> Option<BoxFuture<'a, Vec<Root>>> {
        if !self.capabilities.roots {
            return None;
        }
        Some(Box::pin(async move {
            let none = RawValue::from_string("{}".to_owned()).unwrap_or_default();
            match self.ask(method::ROOTS_LIST, &none).await {
                Ok(result) => questions::read_roots(&result),
                Err(_) => Vec::new(),
            }
        }))
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            let result = self.ask(method::SAMPLING_CREATE, &request).await?;
            Ok(result.as_raw().to_owned())
        })
    }
}

impl Prompter for StreamAsker {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async move {
            let params = questions::permission_params(question);
            match StreamAsker::ask(self, method::ELICITATION_CREATE, &params).await {
                Ok(result) => questions::permission_answer(&result),
                Err(_) => PermissionAnswer::Unanswered,
            }
        })
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn shares_answers(&self) -> bool {
        false
    }
}
