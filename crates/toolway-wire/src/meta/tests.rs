//! Splicing `_meta`: other members keep their bytes, existing members win.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;

fn raw_of(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

fn modern() -> RequestMeta<'static> {
    let info = to_raw_value(&json!({"name": "toolway"})).expect("JSON");
    RequestMeta::modern("2026-07-28", Box::leak(info), Box::leak(raw_of("{}")))
}

#[test]
fn other_members_keep_their_bytes() {
    let params =
        raw_of(r#"{ "name" : "x", "arguments":{"n":1e2,"big":123456789012345678901234567890} }"#);
    let spliced = modern().splice(Some(&params)).expect("an object");
    assert!(spliced.get().starts_with(
        r#"{ "name" : "x", "arguments":{"n":1e2,"big":123456789012345678901234567890},"_meta":{"#
    ));
    let value: Value = serde_json::from_str(spliced.get()).expect("JSON");
    assert_eq!(value["_meta"][meta_key::PROTOCOL_VERSION], "2026-07-28");
    assert_eq!(value["_meta"][meta_key::CLIENT_INFO]["name"], "toolway");
}

#[test]
fn absent_empty_and_null_parameters_get_a_meta() {
    for (params, expected) in [
        (None, r#"{"_meta":{"progressToken":4}}"#),
        (Some("{ }"), r#"{"_meta":{"progressToken":4}}"#),
        (
            Some(r#"{"_meta":null,"a":1}"#),
            r#"{"_meta":{"progressToken":4},"a":1}"#,
        ),
        (
            Some(r#"{"_meta":{ },"a":1}"#),
            r#"{"_meta":{"progressToken":4},"a":1}"#,
        ),
    ] {
        let params = params.map(raw_of);
        let spliced = RequestMeta::new()
            .with_progress_token(4)
            .splice(params.as_deref())
            .expect("an object");
        assert_eq!(spliced.get(), expected);
    }
}

#[test]
fn a_member_the_caller_set_wins() {
    let params = raw_of(r#"{"a":1,"_meta":{"progressToken":"mine","traceparent":"t"},"z":2}"#);
    let spliced = modern()
        .with_progress_token(9)
        .splice(Some(&params))
        .expect("an object");
    let value: Value = serde_json::from_str(spliced.get()).expect("JSON");
    assert_eq!(value["_meta"]["progressToken"], "mine");
    assert_eq!(value["_meta"]["traceparent"], "t");
    assert_eq!(value["_meta"][meta_key::PROTOCOL_VERSION], "2026-07-28");
    assert_eq!((&value["a"], &value["z"]), (&json!(1), &json!(2)));
}

#[test]
fn parameters_that_cannot_carry_a_meta_are_refused() {
    let error = modern().splice(Some(&raw_of("[1]"))).expect_err("an array");
    assert!(matches!(error, MetaError::Params(_)));
    let error = modern()
        .splice(Some(&raw_of(r#"{"_meta":7}"#)))
        .expect_err("a number");
    assert_eq!(error, MetaError::NotAnObject);
    let twice = raw_of(r#"{"_meta":{},"_meta":{}}"#);
    assert!(matches!(
        modern().splice(Some(&twice)),
        Err(MetaError::Params(_))
    ));
}
