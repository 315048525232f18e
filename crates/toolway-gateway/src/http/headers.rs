//! Which era a request over HTTP is written in, and whether its headers say what its body says.
//!
//! A proxy on the way decides by headers and the service by the body, so in the modern era the
//! two must agree. `Mcp-Param-*` is not checked here: only the service knows its tools' schemas.

use axum::http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolway_types::Era;
use toolway_wire::era::{self, meta_key};
use toolway_wire::headers::{self, METHOD, NAME, PROTOCOL_VERSION};

use crate::error::RequestRefusal;

/// The era of a request, or why it cannot be served.
pub(super) fn check(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Era, RequestRefusal> {
    let header = value(headers, &PROTOCOL_VERSION, "MCP-Protocol-Version")?;
    let Some(version) = body_version(params) else {
        return match header
            .as_deref()
            .map(|version| (version, era::of_version(version)))
        {
            None | Some((_, Some(Era::Legacy))) => Ok(Era::Legacy),
            Some((_, Some(Era::Modern))) => Err(RequestRefusal::NoMeta),
            // A version of neither era. `initialize` settles it in its own way.
            Some(_) if method == era::method::INITIALIZE => Ok(Era::Legacy),
            Some((version, None)) => Err(RequestRefusal::Version {
                requested: version.to_owned(),
            }),
        };
    };
    same(header, &version, "MCP-Protocol-Version")?;
    same(value(headers, &METHOD, "Mcp-Method")?, method, "Mcp-Method")?;
    if let Some(name) = headers::name_member(method).and_then(|member| text(params, member)) {
        same(value(headers, &NAME, "Mcp-Name")?, &name, "Mcp-Name")?;
    }
    Ok(Era::Modern)
}

fn same(header: Option<String>, body: &str, name: &'static str) -> Result<(), RequestRefusal> {
    match header {
        None => Err(RequestRefusal::HeaderMissing { header: name }),
        Some(header) if header == body => Ok(()),
        Some(_) => Err(RequestRefusal::HeaderMismatch { header: name }),
    }
}

/// The decoded value; one that stands twice or cannot be decoded matches nothing.
fn value(
    headers: &HeaderMap,
    name: &HeaderName,
    shown: &'static str,
) -> Result<Option<String>, RequestRefusal> {
    let mismatch = || RequestRefusal::HeaderMismatch { header: shown };
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(mismatch());
    }
    let text = first.to_str().map_err(|_| mismatch())?;
    headers::decode(text).map(Some).map_err(|_| mismatch())
}

fn body_version(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: serde_json::Map<String, Value>,
    }
    let params: Params = serde_json::from_str(params?.get()).ok()?;
    params
        .meta
        .get(meta_key::PROTOCOL_VERSION)?
        .as_str()
        .map(str::to_owned)
}

fn text(params: Option<&RawValue>, member: &str) -> Option<String> {
    // Owned keys: a borrowed one could not be read where the body spells it with escapes.
    let params: std::collections::HashMap<String, &RawValue> =
        serde_json::from_str(params?.get()).ok()?;
    serde_json::from_str(params.get(member)?.get()).ok()
}
