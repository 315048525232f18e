//! Protocol headers of the modern era, mirrored from the body.
//!
//! Owns `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*` and the base64 sentinel
//! for values a header cannot carry. Where a tool's schema asks for parameter headers is read in
//! [`param`].

pub mod param;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use serde_json::value::RawValue;

use crate::era::{self, meta_key};
use crate::lenient;
use crate::members::RawMembers;
use crate::view::Tool;

pub use param::{
    HeaderMismatch, HeaderParam, ParamKind, asks_for_headers, check_params, header_params,
};

/// `MCP-Protocol-Version`
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Method`
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// `Mcp-Session-Id`, legacy only.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// Why headers cannot be made, or a tool's wish for them cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The parameters or the schema cannot be read.
    #[error("the {0} cannot be read for headers")]
    Unreadable(&'static str),
    /// The annotation stands where it may not.
    #[error("`x-mcp-header` may only stand on properties reached through `properties` ({0})")]
    Misplaced(String),
    /// The annotation is not a usable header name.
    #[error("property `{property}`: `x-mcp-header` must be a header name")]
    Name {
        /// The property, dotted.
        property: String,
    },
    /// Two annotations differ only in case, or not at all.
    #[error("property `{property}`: the header name `{name}` is already taken")]
    Taken {
        /// The property, dotted.
        property: String,
        /// The name.
        name: String,
    },
    /// Only strings, integers and booleans can be mirrored.
    #[error("property `{property}`: only string, integer and boolean properties can be mirrored")]
    Type {
        /// The property, dotted.
        property: String,
    },
    /// The argument does not have the annotated type.
    #[error("argument `{property}` cannot be mirrored: it is not of the annotated type")]
    Argument {
        /// The property, dotted.
        property: String,
    },
    /// The value of a header is wrapped as base64 and is not.
    #[error("the header value is wrapped as base64 but is not base64 of UTF-8 text")]
    Sentinel,
}

/// The headers of one modern request. `tool` is the tool a `tools/call` calls.
pub fn modern(
    method: &str,
    params: Option<&RawValue>,
    tool: Option<&Tool>,
) -> Result<Vec<(HeaderName, HeaderValue)>, HeaderFault> {
    let unreadable = |_| HeaderFault::Unreadable("parameters");
    let members = RawMembers::read(params.map_or("{}", RawValue::get)).map_err(unreadable)?;
    let mut headers = vec![
        (PROTOCOL_VERSION, version(&members)),
        (METHOD, encode(method)),
    ];
    if let Some(name) = name_member(method)
        .and_then(|member| members.value(member))
        .and_then(lenient::string)
    {
        headers.push((NAME, encode(&name)));
    }
    if let Some(tool) = tool.filter(|_| method == era::method::TOOLS_CALL) {
        let wanted = header_params(&tool.input_schema)?;
        if !wanted.is_empty() {
            headers.extend(param::mirror(&wanted, members.value("arguments"))?);
        }
    }
    Ok(headers)
}

/// The header of a legacy request after the handshake.
pub fn legacy(version: &str) -> Vec<(HeaderName, HeaderValue)> {
    vec![(PROTOCOL_VERSION, encode(version))]
}

/// Which member of the parameters `Mcp-Name` mirrors.
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// The version the body itself names, so that header and body cannot disagree.
fn version(params: &RawMembers<'_>) -> HeaderValue {
    let named = params
        .value("_meta")
        .and_then(|meta| RawMembers::read(meta.get()).ok())
        .and_then(|meta| {
            meta.value(meta_key::PROTOCOL_VERSION)
                .and_then(lenient::string)
        });
    named.map_or(HeaderValue::from_static(era::MODERN), |version| {
        encode(&version)
    })
}

/// A value as a header carries it: as it is, or wrapped in the sentinel when it holds anything
/// but visible ASCII and inner spaces, or looks like the sentinel itself.
pub fn encode(value: &str) -> HeaderValue {
    let visible = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let plain = visible && value.trim_matches(' ') == value && !looks_wrapped(value);
    if let (true, Ok(header)) = (plain, HeaderValue::from_str(value)) {
        return header;
    }
    let wrapped = format!("{SENTINEL_START}{}{SENTINEL_END}", STANDARD.encode(value));
    // Base64 and the sentinel are visible ASCII, so this never falls back.
    HeaderValue::from_str(&wrapped).unwrap_or(HeaderValue::from_static(""))
}

/// The value a header carries. Only the exact wrapper is one.
pub fn decode(header: &str) -> Result<String, HeaderFault> {
    let Some(inner) = header
        .strip_prefix(SENTINEL_START)
        .and_then(|rest| rest.strip_suffix(SENTINEL_END))
    else {
        return Ok(header.to_owned());
    };
    let bytes = STANDARD.decode(inner).map_err(|_| HeaderFault::Sentinel)?;
    String::from_utf8(bytes).map_err(|_| HeaderFault::Sentinel)
}

fn looks_wrapped(value: &str) -> bool {
    // Whatever the case: a reader that folds it must not decode what was never encoded.
    value
        .get(..SENTINEL_START.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SENTINEL_START))
        && value.ends_with(SENTINEL_END)
}

#[cfg(test)]
mod tests;
