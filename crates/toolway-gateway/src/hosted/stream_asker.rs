//! Asking a legacy client: a request of ours on the stream of the call that caused it.
//!
//! Owns which request it is and what its answer means. A question that is answered elsewhere, or whose
//! call ends, is taken back (`client_questions.rs`).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use toolway::types::ServerName;
use toolway::{
    ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, PermissionAnswer,
    PermissionQuestion, Prompter, Root,
};
use toolway_wire::era::method;
use toolway_wire::{RawJson, RpcError};

use super::capabilities::ClientCapabilities;
use super::questions;
use crate::client_questions::ClientQuestions;
use crate::outlet::Outlet;

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
