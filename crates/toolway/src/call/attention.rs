//! Questions to the user, counted.
//!
//! Owns that permission is asked for one call at a time, whichever calls run beside each other, and
//! knows whether a question to the user is open. How questions are asked is the front-end's affair;
//! how servers' questions take turns with each other and with these as well: one with several
//! windows may show several.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use toolway_types::ServerName;
use toolway_wire::RpcError;

use super::{PermissionAnswer, PermissionQuestion, Prompter};
use crate::client_handler::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer};

/// How many questions to a person are open.
#[derive(Clone)]
pub(crate) struct Attention(Arc<watch::Sender<usize>>);

impl Default for Attention {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Attention {
    /// The same prompter, one question at a time.
    pub(crate) fn of_prompter(&self, prompter: Arc<dyn Prompter>) -> Arc<dyn Prompter> {
        Arc::new(CountedPrompter {
            prompter,
            turn: Mutex::new(()),
            attention: self.clone(),
        })
    }

    /// The same client handler; questions to the user are counted.
    pub(crate) fn of_client_handler(
        &self,
        client_handler: Arc<dyn ClientHandler>,
    ) -> Arc<dyn ClientHandler> {
        Arc::new(CountedClientHandler {
            client_handler,
            attention: self.clone(),
        })
    }

    /// Waits for so much time in which no question to a user is open.
    pub(crate) async fn unasked(&self, time: Duration) {
        let mut open = self.0.subscribe();
        let mut left = time;
        loop {
            // Never an error: we hold the sender.
            let _ = open.wait_for(|open| *open == 0).await;
            let begun = Instant::now();
            tokio::select! {
                biased;
                _ = open.wait_for(|open| *open > 0) => {
                    left = left.saturating_sub(begun.elapsed());
                }
                () = tokio::time::sleep(left) => return,
            }
        }
    }

    /// A question is open until what is given is dropped.
    pub(crate) fn open(&self) -> OpenQuestion<'_> {
        self.0.send_modify(|open| *open += 1);
        OpenQuestion(&self.0)
    }
}

/// A question is open until this is dropped.
pub(crate) struct OpenQuestion<'a>(&'a watch::Sender<usize>);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

struct CountedPrompter {
    prompter: Arc<dyn Prompter>,
    turn: Mutex<()>,
    attention: Attention,
}

impl Prompter for CountedPrompter {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async move {
            let _open = self.attention.open();
            let _turn = self.turn.lock().await;
            self.prompter.ask(question).await
        })
    }
}

struct CountedClientHandler {
    client_handler: Arc<dyn ClientHandler>,
    attention: Attention,
}

impl ClientHandler for CountedClientHandler {
    fn offers(&self) -> ClientOffers {
        self.client_handler.offers()
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let _open = self.attention.open();
            self.client_handler.elicit(server, request).await
        })
    }

    fn visited<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, ()> {
        self.client_handler.visited(server)
    }

    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        self.client_handler.sample(server, request)
    }
}
