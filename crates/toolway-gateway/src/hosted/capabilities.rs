//! What a client can be asked, by what it declared.
//!
//! Owns reading the capabilities of a client, of either era, and what it must not be asked.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway::ClientOffers;
use toolway_wire::era::method;
use toolway_wire::view::elicit::{self, ElicitRequest};
use toolway_wire::{RawJson, RequestHead, RpcError, error};

/// What a client can be asked.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientCapabilities {
    pub(super) form: bool,
    pub(super) url: bool,
    pub(super) sampling: Option<Box<RawValue>>,
    pub(super) roots: bool,
}

impl ClientCapabilities {
    pub(super) fn read(declared: Option<&RawJson>) -> Self {
        let declared: Value = declared
            .and_then(|declared| serde_json::from_str(declared.get()).ok())
            .unwrap_or_default();
        let elicitation = declared["elicitation"].as_object();
        let has_mode = |mode| elicitation.is_some_and(|modes| modes.contains_key(mode));
        let sampling = &declared["sampling"];
        Self {
            // Without a mode, forms are meant.
            form: has_mode("form") || elicitation.is_some_and(serde_json::Map::is_empty),
            url: has_mode("url"),
            sampling: (sampling.is_object())
                .then(|| to_raw_value(sampling).ok())
                .flatten(),
            roots: declared["roots"].is_object(),
        }
    }

    /// The same for the host.
    pub(super) fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: self.form,
            url: self.url,
            sampling: self.sampling.clone(),
            roots: self.roots,
        }
    }
}

/// What a client is told in the place of a result that asks for what it did not declare in this
/// request; nothing where it declared all of it.
pub(super) fn undeclared(params: &RawJson, result: &RawJson) -> Option<RpcError> {
    let head = RequestHead::read(Some(params)).ok()?;
    let declared = ClientCapabilities::read(head.capabilities.as_ref());
    let asked = elicit::input_required(result).ok()?;
    let (what, required) = asked.requests.iter().find_map(|request| {
        let (is_declared, required) = match request.method.as_str() {
            method::SAMPLING_CREATE => (declared.sampling.is_some(), json!({ "sampling": {} })),
            method::ROOTS_LIST => (declared.roots, json!({ "roots": {} })),
            method::ELICITATION_CREATE => match elicit::elicit_request(&request.params) {
                Ok(ElicitRequest::Url { .. }) => {
                    (declared.url, json!({ "elicitation": { "url": {} } }))
                }
                _ => (declared.form, json!({ "elicitation": { "form": {} } })),
            },
            // What we do not know may be an extension's, which client and server agreed on.
            _ => (true, Value::Null),
        };
        (!is_declared).then_some((request.method.as_str(), required))
    })?;
    let mut refusal = RpcError::new(
        error::MISSING_CLIENT_CAPABILITY,
        format!("the server wants `{what}`, which the client does not declare"),
    );
    refusal.data = to_raw_value(&json!({ "requiredCapabilities": required })).ok();
    Some(refusal)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn an_empty_elicitation_means_forms() {
        let read = |json: &'static str| {
            let declared = RawJson::read(&Bytes::from_static(json.as_bytes())).unwrap();
            let it = ClientCapabilities::read(Some(&declared));
            (it.form, it.url, it.sampling.is_some(), it.roots)
        };
        assert_eq!(read("{}"), (false, false, false, false));
        assert_eq!(
            read(r#"{"elicitation":{},"roots":{}}"#),
            (true, false, false, true)
        );
        assert_eq!(
            read(
                r#"{"elicitation":{"url":{}},"sampling":{},
                "extensions":{"io.modelcontextprotocol/tasks":{}}}"#
            ),
            (false, true, true, false)
        );
    }
}
