//! What a server asks of the client: a user's input, and the rounds of the modern era.
//!
//! Owns the shapes of `elicitation/create` and of a result that requires input. What may be asked,
//! and who answers, is the session's.

use serde_json::value::RawValue;

use super::{ViewError, object, optional, with_members};
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;

/// The parameters of `elicitation/create`, of every revision that has it.
#[derive(Debug, Clone)]
pub enum ElicitRequest {
    /// To be answered by filling in a form. Also what a request without a mode is.
    Form {
        /// What the server says, as received.
        message: String,
        /// The fields, untouched.
        schema: Box<RawValue>,
    },
    /// To be answered by visiting a page.
    Url {
        /// What the server says, as received.
        message: String,
        /// The page, as received.
        url: String,
        /// The server's name for it; legacy only.
        id: Option<String>,
    },
}

/// Views the parameters of `elicitation/create`.
pub fn elicit_request(params: &RawValue) -> Result<ElicitRequest, ViewError> {
    let members = object(params)?;
    let message = optional(&members, "message").unwrap_or_default();
    let mode = members.value("mode").map(lenient::text);
    match mode.as_deref() {
        None | Some("form") => Ok(ElicitRequest::Form {
            message,
            schema: members
                .owned("requestedSchema")
                .filter(|schema| schema.get().starts_with('{'))
                .ok_or(ViewError::Missing("requestedSchema"))?,
        }),
        Some("url") => Ok(ElicitRequest::Url {
            message,
            url: optional(&members, "url").ok_or(ViewError::Missing("url"))?,
            id: optional(&members, "elicitationId"),
        }),
        Some(_) => Err(ViewError::Missing("mode")),
    }
}

/// A result that is no answer yet: the server needs something first (modern era).
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// What it needs, in its order; empty when it only wants to be asked again.
    pub requests: Vec<InputRequest>,
    /// What must be sent back with the answer, byte for byte.
    pub state: Option<Box<RawValue>>,
}

/// One thing a server needs.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// The server's name for it, under which the answer is given.
    pub key: String,
    /// What is asked, by method.
    pub method: String,
    /// Its parameters, untouched.
    pub params: Box<RawValue>,
}

/// Views a result that requires input.
pub fn input_required(result: &(impl JsonText + ?Sized)) -> Result<InputRequired, ViewError> {
    let members = object(result)?;
    Ok(InputRequired {
        requests: input_requests(&members)?,
        state: members.owned("requestState"),
    })
}

/// The member `inputRequests`. One that cannot be read is an error: all must be answered.
pub(super) fn input_requests(members: &RawMembers<'_>) -> Result<Vec<InputRequest>, ViewError> {
    let unusable = || ViewError::Missing("inputRequests");
    let Some(requests) = members.value("inputRequests") else {
        return Ok(Vec::new());
    };
    let requests = RawMembers::read(requests.get()).map_err(|_| unusable())?;
    requests
        .entries()
        .map(|(key, request)| {
            let request = object(request).map_err(|_| unusable())?;
            Ok(InputRequest {
                key: key.to_owned(),
                method: optional(&request, "method").ok_or_else(unusable)?,
                params: request.owned("params").unwrap_or_else(empty),
            })
        })
        .collect()
}

/// The parameters of a request, with the answers to what its last result required. Every byte of
/// the parameters, of the answers and of the state stays as it is.
pub fn with_input(
    params: &RawValue,
    responses: Option<&RawValue>,
    state: Option<&RawValue>,
) -> Result<Box<RawValue>, ViewError> {
    let added = [("inputResponses", responses), ("requestState", state)];
    let added = added
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    with_members(params, added)
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn elicit(value: &serde_json::Value) -> Result<ElicitRequest, ViewError> {
        elicit_request(&to_raw_value(value).expect("JSON"))
    }

    #[test]
    fn a_request_without_a_mode_is_a_form() {
        for value in [
            json!({ "message": "who?", "requestedSchema": { "type": "object" } }),
            json!({ "mode": "form", "message": "who?", "requestedSchema": { "type": "object" } }),
        ] {
            let Ok(ElicitRequest::Form { message, schema }) = elicit(&value) else {
                panic!("{value}")
            };
            assert_eq!(message, "who?");
            assert_eq!(schema.get(), r#"{"type":"object"}"#);
        }
    }

    #[test]
    fn a_url_is_read_with_and_without_an_id() {
        let url = "https://example.com/pay";
        for (value, wanted) in [
            (
                json!({ "mode": "url", "message": "pay", "url": url, "elicitationId": "e" }),
                Some("e"),
            ),
            (json!({ "mode": "url", "message": "pay", "url": url }), None),
        ] {
            let Ok(ElicitRequest::Url { url: read, id, .. }) = elicit(&value) else {
                panic!("{value}")
            };
            assert_eq!((read.as_str(), id.as_deref()), (url, wanted));
        }
    }

    #[test]
    fn what_cannot_be_asked_is_an_error() {
        for value in [
            json!({ "mode": "smoke", "message": "m" }),
            json!({ "mode": "url", "message": "m" }),
            json!({ "message": "m" }),
            json!({ "message": "m", "requestedSchema": true }),
            json!([]),
        ] {
            assert!(elicit(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn required_input_keeps_its_order_and_its_state_byte_for_byte() {
        let text = r#"{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"},
            "a":{"method":"elicitation/create","params":{"message" : "x"}}},"requestState":"\u0041 \"b\"é"}"#;
        let result = RawValue::from_string(text.to_owned()).expect("JSON");
        let required = input_required(&result).expect("readable");
        let keys: Vec<_> = required.requests.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["b", "a"]);
        assert_eq!(required.requests[0].params.get(), "{}");
        assert_eq!(required.requests[1].params.get(), r#"{"message" : "x"}"#);
        let state = required.state.expect("a state");
        assert_eq!(state.get(), r#""\u0041 \"b\"é""#);
    }

    #[test]
    fn input_is_added_without_touching_anything_else() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        for (params, wanted) in [
            (
                r#"{ "name" : "x" }"#,
                r#"{ "name" : "x" ,"inputResponses":{"k": 1},"requestState":"\u0041"}"#,
            ),
            (
                "{}",
                r#"{"inputResponses":{"k": 1},"requestState":"\u0041"}"#,
            ),
        ] {
            let (responses, state) = (raw(r#"{"k": 1}"#), raw(r#""\u0041""#));
            let with = with_input(&raw(params), Some(&responses), Some(&state));
            assert_eq!(with.expect("an object").get(), wanted);
        }
        let only_state = with_input(&raw(r#"{"a":1}"#), None, Some(&raw("\"s\"")));
        assert_eq!(
            only_state.expect("an object").get(),
            r#"{"a":1,"requestState":"s"}"#
        );
        let neither = with_input(&raw(r#"{"a":1}"#), None, None).expect("an object");
        assert_eq!(neither.get(), r#"{"a":1}"#);
    }

    #[test]
    fn absent_requests_and_state_are_absent_and_unreadable_ones_an_error() {
        let read = |text: &str| {
            let result = RawValue::from_string(text.to_owned()).expect("JSON");
            input_required(&result)
        };
        let required = read(r#"{"requestState":null}"#).expect("readable");
        assert!(required.requests.is_empty() && required.state.is_none());
        for text in [
            r#"{"inputRequests":[]}"#,
            r#"{"inputRequests":{"a":7}}"#,
            r#"{"inputRequests":{"a":{}}}"#,
            r#"{"inputRequests":{"a":{"method":"x"},"a":{"method":"y"}}}"#,
        ] {
            assert_eq!(
                read(text).unwrap_err(),
                ViewError::Missing("inputRequests"),
                "{text}"
            );
        }
    }
}
