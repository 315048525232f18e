//! Which era a request over HTTP is written in, and whether its headers say what its body says.
//!
//! A proxy on the way decides by headers and the service by the body, so in the modern era the
//! two must agree. `Mcp-Param-*` is not checked here: only the service knows its tools' schemas.

use http::{HeaderMap, HeaderName};
use toolway_types::Era;
use toolway_wire::headers::{self, METHOD, NAME, PROTOCOL_VERSION};
use toolway_wire::{RawJson, RequestHead, era, request_head};

use super::lookup::values;
use crate::conversation;
use crate::error::RequestRefusal;

/// The era of a request, or why it cannot be served.
pub(super) fn check(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawJson>,
    head: &RequestHead,
) -> Result<Era, RequestRefusal> {
    let header = value(headers, &PROTOCOL_VERSION, "MCP-Protocol-Version")?;
    let Some(version) = &head.version else {
        return match header
            .as_deref()
            .map(|version| (version, era::of_version(version)))
        {
            None if method == era::method::DISCOVER => Err(RequestRefusal::NoMeta),
            None | Some((_, Some(Era::Legacy))) => Ok(Era::Legacy),
            Some((_, Some(Era::Modern))) => Err(RequestRefusal::NoMeta),
            // A version of neither era. `initialize` settles it in its own way.
            Some(_) if method == era::method::INITIALIZE => Ok(Era::Legacy),
            Some((version, None)) => Err(RequestRefusal::Version {
                requested: version.to_owned(),
            }),
        };
    };
    same(header, version, "MCP-Protocol-Version")?;
    same(value(headers, &METHOD, "Mcp-Method")?, method, "Mcp-Method")?;
    if let Some(name) =
        headers::name_member(method).and_then(|member| request_head::text_param(params, member))
    {
        same(value(headers, &NAME, "Mcp-Name")?, &name, "Mcp-Name")?;
    }
    if method == era::method::INITIALIZE && era::MODERN_VERSIONS.contains(&version.as_str()) {
        // Header and body say that it is modern, where there is no such method.
        return Ok(Era::Modern);
    }
    conversation::era_of(head, method)
}

/// Whether the header names a revision at all, for messages that have no `_meta` to agree with.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), RequestRefusal> {
    let header = value(headers, &PROTOCOL_VERSION, "MCP-Protocol-Version")?;
    match header {
        Some(version) if era::of_version(&version).is_none() => {
            Err(RequestRefusal::Version { requested: version })
        }
        _ => Ok(()),
    }
}

/// Whether the client knows events without data: those that it can come back with.
pub(super) fn knows_priming(headers: &HeaderMap) -> bool {
    // Revisions are dates, so they compare as text.
    let version = values(headers, &PROTOCOL_VERSION).next();
    version.is_some_and(|version| version.as_bytes() >= "2025-11-25".as_bytes())
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
    let mut values = values(headers, name);
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(mismatch());
    }
    let text = first.to_str().map_err(|_| mismatch())?;
    headers::decode(text).map(Some).map_err(|_| mismatch())
}
