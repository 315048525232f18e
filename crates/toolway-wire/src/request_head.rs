//! What a client's request says of itself in `_meta`, read once for everybody who asks.
//!
//! Owns reading it. Whether it fits the headers, and what follows from it, is the gateway's.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::era::meta_key;
use crate::members::RawMembers;
use crate::meta;
use crate::params::ParamsError;
use crate::raw_json::RawJson;
use crate::scan;

/// What `_meta` of a client's request says, as slices of its message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The revision that it is written in; only modern requests say so.
    pub version: Option<String>,
    /// What the client can be asked because of it.
    pub capabilities: Option<RawJson>,
    /// Who asks.
    pub client_info: Option<RawJson>,
    /// From which level on it wants to hear the log.
    pub log_level: Option<RawJson>,
    /// By which token it wants to hear of progress.
    pub progress_token: Option<RawJson>,
    /// The W3C trace context that it is part of.
    pub traceparent: Option<RawJson>,
    /// What those before noted of that trace.
    pub tracestate: Option<RawJson>,
    /// What travels with the request through all who work on it.
    pub baggage: Option<RawJson>,
}

impl RequestHead {
    /// Reads the parameters of a request. What has another type than it should is taken for absent,
    /// but for `_meta` itself.
    pub fn read(params: Option<&RawJson>) -> Result<Self, ParamsError> {
        let Some(params) = params else {
            return Ok(Self::default());
        };
        if !params.get().starts_with('{') {
            let found = serde_json::from_str::<RawMembers<'_>>(params.get()).err();
            let found = found.map(|error| error.to_string()).unwrap_or_default();
            return Err(ParamsError::NotAnObject(found));
        }
        if !meta::has_meta(params.get()) {
            return Ok(Self::default());
        }
        let Some(members) = params.members_of("_meta") else {
            return Ok(Self::default());
        };
        let mut head = Self::default();
        for (name, value) in members.map_err(|_| ParamsError::Meta)? {
            let slot = match &*name {
                meta_key::PROTOCOL_VERSION => {
                    head.version = serde_json::from_str(value.get()).ok();
                    continue;
                }
                meta_key::CLIENT_CAPABILITIES if value.get().starts_with('{') => {
                    &mut head.capabilities
                }
                meta_key::CLIENT_INFO if value.get().starts_with('{') => &mut head.client_info,
                meta_key::LOG_LEVEL => &mut head.log_level,
                meta_key::PROGRESS_TOKEN => &mut head.progress_token,
                meta_key::TRACEPARENT => &mut head.traceparent,
                meta_key::TRACESTATE => &mut head.tracestate,
                meta_key::BAGGAGE => &mut head.baggage,
                _ => continue,
            };
            *slot = Some(value);
        }
        Ok(head)
    }
}

/// A member of the parameters of a request, as it stands there; nothing for `null`. Whoever took the
/// request has seen that no member stands twice.
pub fn raw_param<'a>(params: &'a RawJson, name: &str) -> Option<&'a RawValue> {
    serde_json::from_str(scan::member(params.get(), name)?).ok()
}

/// A text among the parameters of a request; nothing where it is absent or no text.
pub fn text_param<'a>(params: Option<&'a RawJson>, name: &str) -> Option<Cow<'a, str>> {
    scan::text(scan::member(params?.get(), name)?)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn params(text: &'static str) -> RawJson {
        RawJson::read(&Bytes::from_static(text.as_bytes())).expect("JSON")
    }

    #[test]
    fn a_request_says_of_itself_what_it_is() {
        let params = params(
            r#"{"name":"a\u0062","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{"roots":{}},"progressToken":"p",
            "io.modelcontextprotocol/clientInfo":7,"other":1}}"#,
        );
        let head = RequestHead::read(Some(&params)).expect("an object");
        assert_eq!(head.version.as_deref(), Some("2026-07-28"));
        assert_eq!(head.capabilities.expect("some").get(), r#"{"roots":{}}"#);
        assert_eq!(head.progress_token.expect("one").get(), r#""p""#);
        assert_eq!(head.client_info, None);
        assert_eq!(text_param(Some(&params), "name").as_deref(), Some("ab"));
        assert_eq!(text_param(Some(&params), "_meta"), None);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(RequestHead::read(Some(&params("[1]"))).is_err());
        assert_eq!(
            RequestHead::read(Some(&params(r#"{"_meta":1}"#))),
            Err(ParamsError::Meta)
        );
        assert_eq!(RequestHead::read(None), Ok(RequestHead::default()));
    }
}
