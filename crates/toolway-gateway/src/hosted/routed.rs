//! What a host that serves clients declares to servers of the legacy era, whose sessions clients
//! share: all that can be routed to one of them.
//!
//! Owns that declaration. Questions go to the client whose request caused them; one that nobody's
//! request caused has nobody to answer it.

use futures_util::future::{BoxFuture, ready};
use serde_json::value::RawValue;
use toolway::types::ServerName;
use toolway::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, RpcError};
use toolway_wire::error;

/// The client handler of a host that serves clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoutedQuestions;

impl ClientHandler for RoutedQuestions {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            url: true,
            sampling: RawValue::from_string("{}".to_owned()).ok(),
            roots: true,
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(ready(ElicitationAnswer::Cancel))
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        let nobody = RpcError::new(error::METHOD_NOT_FOUND, "nobody asked for this");
        Box::pin(ready(Err(nobody)))
    }
}
