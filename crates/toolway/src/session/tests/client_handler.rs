//! A client handler that does what a test tells it.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Map;
use tokio::sync::Semaphore;
use toolway_wire::RpcError;

use crate::call::{Caller, CallerSide};
use crate::client_handler::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer};
use crate::session::tests::*;

/// Answers every form with these fields, every URL with a yes, and every model's question with
/// its own parameters; each only when the gate lets it through.
pub(super) struct Scripted {
    pub offers: ClientOffers,
    pub fields: Map<String, Value>,
    pub gate: Semaphore,
    pub asked: Mutex<Vec<String>>,
    pub thinking: AtomicUsize,
}

/// Counts those who think, even when their thought is dropped.
struct Thought<'a>(&'a AtomicUsize);

impl Drop for Thought<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scripted {
    /// Offers everything and answers at once.
    pub(super) fn new() -> Self {
        Self {
            offers: ClientOffers {
                roots: false,
                form: true,
                url: true,
                sampling: Some(raw("{}")),
            },
            fields: Map::new(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            asked: Mutex::default(),
            thinking: AtomicUsize::new(0),
        }
    }

    /// Offers everything and answers once for each permit that the test adds.
    pub(super) fn gated() -> Self {
        Self {
            gate: Semaphore::new(0),
            ..Self::new()
        }
    }

    pub(super) fn fields(mut self, fields: Value) -> Self {
        self.fields = serde_json::from_value(fields).expect("an object");
        self
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("not poisoned").clone()
    }

    pub(super) fn thinking(&self) -> usize {
        self.thinking.load(Ordering::SeqCst)
    }

    async fn think(&self, about: String) {
        self.thinking.fetch_add(1, Ordering::SeqCst);
        let _thought = Thought(&self.thinking);
        self.asked.lock().expect("not poisoned").push(about);
        self.gate.acquire().await.expect("never closed").forget();
    }
}

impl ClientHandler for Scripted {
    fn offers(&self) -> ClientOffers {
        self.offers.clone()
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let (about, answer) = match request {
                Elicitation::Form { message, .. } => (
                    format!("{server} form {message}"),
                    Some(self.fields.clone()),
                ),
                Elicitation::Url {
                    message, url, id, ..
                } => {
                    let id = id.unwrap_or_default();
                    (format!("{server} url {message} {url} {id}"), None)
                }
            };
            self.think(about).await;
            ElicitationAnswer::Accept(answer)
        })
    }

    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            self.think(format!("{server} model")).await;
            assert!(!request.get().contains("panic"), "on purpose");
            if request.get().contains("forbidden") {
                return Err(RpcError::new(-1, "no model today"));
            }
            Ok(request)
        })
    }
}

/// A caller with this client handler and no roots.
pub(super) fn answering(client_handler: &Arc<Scripted>) -> Arc<CallerSide> {
    let handler = Arc::clone(client_handler) as Arc<dyn ClientHandler>;
    Arc::new(CallerSide::new(
        Caller::default(),
        Some(handler),
        Vec::new(),
    ))
}

/// A program with this client handler and no roots.
pub(super) fn answered_by(client_handler: &Arc<Scripted>) -> ClientSide {
    ClientSide {
        client_handler: Some(Arc::clone(client_handler) as Arc<dyn ClientHandler>),
        roots: watch::channel(Arc::from([])).1,
        ..client_side()
    }
}
