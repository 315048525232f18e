//! `Mcp-Param-*`: whether the headers of a modern call say what its arguments say.
//!
//! Owns the check for clients of ours: a proxy on the way decides by the headers, and the server by
//! the arguments (SEC-28). Which arguments have headers is written in the tool's schema.

use toolway::RawJson;
use toolway::catalog::CatalogTool;
use toolway::types::Era;
use toolway_wire::headers::{self, HeaderMismatch};
use toolway_wire::{RpcError, error, request_head};

use crate::conversation::{Answer, IncomingRequest};

/// Refuses a call whose headers and arguments differ.
pub(super) fn check(
    tool: &CatalogTool,
    request: &IncomingRequest,
    params: &RawJson,
) -> Result<(), Box<Answer>> {
    let (Era::Modern, Some(sent)) = (request.era, &request.headers) else {
        return Ok(());
    };
    let schema = &tool.received().input_schema;
    if !headers::asks_for_headers(schema) {
        return Ok(());
    }
    let arguments = request_head::raw_param(params, "arguments");
    match headers::check_params(schema, arguments, sent) {
        Ok(()) => Ok(()),
        Err(HeaderMismatch { header }) => {
            let message = format!("the header `{header}` does not match the arguments");
            Err(Box::new(
                RpcError::new(error::HEADER_MISMATCH, message).into(),
            ))
        }
    }
}
