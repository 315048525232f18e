//! Envelopes: what is tolerated, what is refused, and that ours survive the way back.

use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("JSON")
}

fn response_of(text: &str) -> (Option<Id>, Result<String, RpcError>) {
    match parse(text.as_bytes()) {
        Ok(Message::Response { id, outcome }) => {
            (id, outcome.map(|result| result.get().to_owned()))
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn the_three_kinds_are_told_apart() {
    assert!(matches!(
        parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
        Ok(Message::Request { id: Id::Text(id), method, params: None }) if id == "a" && method == "ping"
    ));
    assert!(matches!(
        parse(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#),
        Ok(Message::Notification { params: Some(params), .. }) if params.get() == r#"{"a":1}"#
    ));
    assert_eq!(
        response_of(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#),
        (Some(Id::Number(3)), Ok("{}".to_owned()))
    );
}

#[test]
fn what_real_servers_send_is_tolerated() {
    let ok = (Some(Id::Number(7)), Ok("[1]".to_owned()));
    for text in [
        "\u{FEFF}{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[1]}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[1]}\r\n",
        r#"{"jsonrpc":"2.0","id":7.0,"result":[1],"error":null}"#,
        r#"{"id":7,"result":[1],"extra":true}"#,
    ] {
        assert_eq!(response_of(text), ok, "{text}");
    }
    let (id, outcome) =
        response_of(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#);
    assert_eq!((id, outcome), (None, Err(RpcError::new(-32700, "x"))));
}

#[test]
fn a_malformed_error_is_still_an_error() {
    for (text, code, message) in [
        (
            r#"{"id":1,"error":"boom"}"#,
            crate::error::INTERNAL_ERROR,
            "boom",
        ),
        (
            r#"{"id":1,"error":{"code":"-5","message":{"a":1}}}"#,
            -5,
            r#"{"a":1}"#,
        ),
        (r#"{"id":1,"error":{}}"#, crate::error::INTERNAL_ERROR, ""),
        (
            r#"{"id":1,"error":{"code":2,"message":"m"},"result":{}}"#,
            2,
            "m",
        ),
    ] {
        assert_eq!(
            response_of(text).1,
            Err(RpcError::new(code, message)),
            "{text}"
        );
    }
}

#[test]
fn rel_22_our_ids_come_back_in_any_type() {
    for text in ["7", "7.0", "7e0", "\"7\""] {
        let (id, _) = response_of(&format!(r#"{{"id":{text},"result":1}}"#));
        assert_eq!(id.and_then(|id| id.as_ours()), Some(7), "{text}");
    }
    for text in ["-7", "\"+7\"", "\"07\"", "\"x\"", "\"7.0\""] {
        let (id, _) = response_of(&format!(r#"{{"id":{text},"result":1}}"#));
        assert_eq!(id.and_then(|id| id.as_ours()), None, "{text}");
    }
    for text in ["true", "[]", "{}", "7.5", "1e300"] {
        let bytes = format!(r#"{{"id":{text},"result":1}}"#);
        assert_eq!(
            parse(bytes.as_bytes()).expect_err("no id"),
            EnvelopeError::Id,
            "{text}"
        );
    }
}

#[test]
fn sec_22_doubled_members_are_refused() {
    for (text, name) in [
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"result":1}"#, "id"),
        (r#"{"method":"a","met\u0068od":"b"}"#, "method"),
        (r#"{"method":"a","x":1,"x":2}"#, "x"),
    ] {
        assert_eq!(
            parse(text.as_bytes()).expect_err("doubled"),
            EnvelopeError::Doubled(name.to_owned())
        );
    }
}

#[test]
fn sec_22_a_doubled_key_is_found_wherever_it_stands() {
    for (text, name) in [
        (r#"{"name":"safe"}"#, None),
        (
            r#"{"a":{"x":1},"b":[{"x":1},{"x":"x"},"x","x"],"x":"a"}"#,
            None,
        ),
        (r#"{"a":"\"a\":1,\"a\":2","b":"\\"}"#, None),
        (r#"{"a":{},"b":[],"":0}"#, None),
        (r#"{"a":[{"name":"safe","name":"danger"}]}"#, Some("name")),
        (r#"{"a":[1,{"b":{}},2],"b":1,"a":2}"#, Some("a")),
        (r#"{"n\u0061me":1,"name":2}"#, Some("name")),
        (r#"{"":1,"":2}"#, Some("")),
        (
            r#"{"x":-1e999,"y":"\ud800","name":1,"name":2}"#,
            Some("name"),
        ),
        (
            r#"{"\ud800":1,"\uD800":2}"#,
            Some("\u{FFFD}\u{FFFD}\u{FFFD}"),
        ),
        (r#"{"\ud800":1,"\ud801":2}"#, None),
    ] {
        assert_eq!(scan::doubled_key(text).as_deref(), name, "{text}");
    }
}

proptest! {
    #[test]
    fn sec_22_what_a_serializer_writes_has_no_doubled_key(
        keys in proptest::collection::hash_set(".{0,6}", 0..12)
    ) {
        let members: serde_json::Map<String, Value> =
            keys.iter().map(|key| (key.clone(), json!([{ key: { key: key } }]))).collect();
        let text = Value::from(members).to_string();
        prop_assert_eq!(scan::doubled_key(&text), None);
        if let Some(key) = keys.iter().next() {
            let doubled = format!("[{},{}:0}}]", &text[..text.len() - 1], json!(key));
            prop_assert_eq!(scan::doubled_key(&doubled), Some(key.clone()));
        }
    }
}

#[test]
fn sec_21_members_match_by_exact_case() {
    assert!(matches!(
        parse(br#"{"jsonrpc":"2.0","method":"safe","Method":"danger"}"#),
        Ok(Message::Notification { method, .. }) if method == "safe"
    ));
    for text in [
        r#"{"Method":"x"}"#,
        r#"{"METHOD":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"Method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"ERROR":{"code":1,"message":"x"}}"#,
        // A letter that is an `s` where case is ignored.
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"re\u{17f}ult\":{}}",
    ] {
        let refused = parse(text.as_bytes()).expect_err("no member that counts");
        assert_eq!(refused, EnvelopeError::NotRpc, "{text}");
    }
    assert!(matches!(
        parse(br#"{"ID":2,"Id":3,"id":1,"METHOD":"danger","method":"safe","Params":{"a":2},"params":{"a":1}}"#),
        Ok(Message::Request { id: Id::Number(1), method, params: Some(params) })
            if method == "safe" && params.get() == r#"{"a":1}"#
    ));
    // An id of other letters is none: this is a notification, which gets no answer.
    assert!(matches!(
        parse(br#"{"jsonrpc":"2.0","ID":1,"method":"x"}"#),
        Ok(Message::Notification { .. })
    ));
    assert_eq!(
        response_of(
            r#"{"id":1,"result":{"a":1},"Result":{"a":2},"Error":{"code":1,"message":"x"}}"#
        ),
        (Some(Id::Number(1)), Ok(r#"{"a":1}"#.to_owned()))
    );
}

#[test]
fn sec_21_what_we_send_has_each_member_once_in_the_letters_that_count() {
    let params = raw(&json!({ "name": "safe", "Name": "danger" }));
    let sent = request(1, "tools/call", &params);
    let members: Value = serde_json::from_slice(&sent).expect("JSON");
    let mut names: Vec<&String> = members.as_object().expect("an object").keys().collect();
    names.sort();
    assert_eq!(names, ["id", "jsonrpc", "method", "params"]);
    assert_eq!(members["params"]["name"], "safe");
}

#[test]
fn sec_30_depth_is_bounded() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        parse(format!(r#"{{"id":1,"result":{open}{close}}}"#).as_bytes()).map(|_| ())
    };
    assert_eq!(nested(63), Ok(()));
    assert_eq!(nested(64), Err(EnvelopeError::TooDeep));
    assert_eq!(nested(1_000_000), Err(EnvelopeError::TooDeep));
    let brackets_in_text = format!(r#"{{"id":1,"result":"\"{}"}}"#, "[".repeat(1000));
    assert!(parse(brackets_in_text.as_bytes()).is_ok());
}

#[test]
fn what_is_no_message_is_refused() {
    assert_eq!(
        parse(b"\xff{}").expect_err("bytes"),
        EnvelopeError::Encoding
    );
    for text in ["", "hello", "[]", "7", "{\"a\":1", "{} {}"] {
        assert!(
            matches!(parse(text.as_bytes()), Err(EnvelopeError::Json(_))),
            "{text}"
        );
    }
    for text in [
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"result":1}"#,
        r#"{"level":"info","msg":"x"}"#,
    ] {
        assert_eq!(
            parse(text.as_bytes()).expect_err("not RPC"),
            EnvelopeError::NotRpc,
            "{text}"
        );
    }
}

#[test]
fn a_batch_is_split() {
    let parts = split_batch(br#" [{"id":1,"result":1}, {"method":"x"}]"#).expect("a batch");
    assert_eq!(parts.len(), 2);
    assert!(parse(parts[1].get().as_bytes()).is_ok());
    assert!(split_batch(b"{}").is_none());
}

#[test]
fn what_is_written_stands_on_one_line() {
    let pretty = RawValue::from_string("{\r\n  \"a\": \"x\\ny\"\n}".to_owned()).expect("JSON");
    let bytes = request(1, "tools/call", &pretty);
    assert!(!bytes.contains(&b'\n') && !bytes.contains(&b'\r'));
    match parse(&bytes) {
        Ok(Message::Request {
            params: Some(params),
            ..
        }) => {
            let value: Value = serde_json::from_str(params.get()).expect("JSON");
            assert_eq!(value, json!({"a": "x\ny"}));
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn parsing_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        // Whatever is accepted is JSON to any other reader too.
        if parse(&bytes).is_ok() {
            prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
        }
    }

    #[test]
    fn parsing_nearly_json_never_panics(text in r#"[\{\}\[\]",:0-9a-z\\u "]{0,80}"#) {
        let whole = format!(r#"{{"jsonrpc":"2.0","id":{text}}}"#);
        if let Ok(message) = parse(whole.as_bytes()) {
            prop_assert!(serde_json::from_str::<Value>(&whole).is_ok(), "{:?}", message);
        }
    }

    #[test]
    fn a_request_survives_the_way(id in any::<u64>(), method in any::<String>(), text in any::<String>()) {
        let params = raw(&json!({"text": text}));
        let bytes = request(id, &method, &params);
        match parse(&bytes) {
            Ok(Message::Request { id: read, method: name, params: Some(read_params) }) => {
                prop_assert_eq!(read.as_ours(), Some(id));
                prop_assert_eq!(&*name, method.as_str());
                prop_assert_eq!(read_params.get(), params.get());
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn an_answer_survives_the_way(id in prop_oneof![any::<i64>().prop_map(Id::Number), any::<String>().prop_map(Id::Text)], text in any::<String>(), code in any::<i64>()) {
        let result = raw(&json!([text]));
        match parse(&response(&id, &result)) {
            Ok(Message::Response { id: read, outcome: Ok(read_result) }) => {
                prop_assert_eq!(read.as_ref(), Some(&id));
                prop_assert_eq!(read_result.get(), result.get());
            }
            other => prop_assert!(false, "{:?}", other),
        }
        let error = RpcError { code, message: text, data: Some(result) };
        match parse(&error_response(Some(&id), &error)) {
            Ok(Message::Response { id: read, outcome: Err(read_error) }) => {
                prop_assert_eq!(read.as_ref(), Some(&id));
                prop_assert_eq!(read_error, error);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
