//! The user at the keyboard, played: says yes to every form and keeps its defaults.
//!
//! Owns the answers to what servers ask. No model is offered, so none is asked.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use toolway::types::ServerName;
use toolway::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, RpcError};

use crate::specimen::{self, Fields};

pub(crate) struct Person;

impl ClientHandler for Person {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            url: false,
            sampling: None,
            roots: false,
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        let answer = match request {
            Elicitation::Form { schema, .. } => serde_json::from_str(schema.get())
                .map(|schema| specimen::object(&schema, Fields::All))
                .map_or(ElicitationAnswer::Cancel, |fields| {
                    ElicitationAnswer::Accept(Some(fields))
                }),
            Elicitation::Url { .. } => ElicitationAnswer::Decline,
        };
        std::future::ready(answer).boxed()
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        let error = RpcError {
            code: -32601,
            message: "no model is offered".into(),
            data: None,
        };
        std::future::ready(Err(error)).boxed()
    }
}
