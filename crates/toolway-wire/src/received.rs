//! A message that was read, with parts that are slices of it.
//!
//! Owns the form. Reading is `plain.rs` and `envelope.rs`.

use crate::error::RpcError;
use crate::id::Id;
use crate::raw_json::RawJson;

/// One message whose parts are slices of it.
#[derive(Debug)]
pub enum ReceivedMessage {
    /// The peer asks something and waits for an answer.
    Request {
        /// Its id, to be echoed.
        id: Id,
        /// The method.
        method: String,
        /// The parameters, untouched.
        params: Option<RawJson>,
    },
    /// The peer tells something.
    Notification {
        /// The method.
        method: String,
        /// The parameters, untouched.
        params: Option<RawJson>,
    },
    /// The peer answers.
    Response {
        /// Which request it answers; absent when the peer could not read the request's id.
        id: Option<Id>,
        /// The result, untouched, or the error.
        outcome: Result<RawJson, RpcError>,
    },
}
