//! Plain messages beside the parser: what is taken here says the same there.
//!
//! Owns the comparison, over messages and over all changes of one byte in them.

use super::*;
use crate::envelope;

/// What a message says, in a form that can be compared.
fn shown(message: &ReceivedMessage) -> String {
    match message {
        ReceivedMessage::Request { id, method, params } => {
            format!("request {id} {method} {params:?}")
        }
        ReceivedMessage::Notification { method, params } => format!("told {method} {params:?}"),
        ReceivedMessage::Response { id, outcome } => format!("answer {id:?} {outcome:?}"),
    }
}

fn parsed(json: &Bytes) -> Option<String> {
    let owned = envelope::parse(json)
        .ok()?
        .received(|raw| RawJson::part_of(json, raw));
    Some(shown(&owned))
}

/// Whether it was taken, having compared it with what a parser reads.
fn compare(json: &[u8]) -> bool {
    let message = Bytes::copy_from_slice(json);
    let mut is_taken = false;
    for names in [Names::Own, Names::All] {
        let Some(read) = read(&message, names) else {
            continue;
        };
        is_taken = true;
        let (read, shown_json) = (shown(&read), String::from_utf8_lossy(json));
        assert_eq!(Some(read), parsed(&message), "{shown_json}");
        if names == Names::All {
            let text = std::str::from_utf8(json).unwrap();
            assert_eq!(crate::scan::doubled_key(text), None, "{shown_json}");
        }
    }
    is_taken
}

const MESSAGES: [&str; 9] = [
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","arguments":{"text":"x"}}}"#,
    r#" { "method" : "x" , "id" : "one" , "params" : [ 1 , -20, 0 , true,false , null ] , "jsonrpc" : "2.0" } "#,
    r#"{"jsonrpc":"2.0","method":"notifications/x","params":null}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a \"b\" \\ \u00e9 é \n"}],"isError":false}}"#,
    r#"{"id":"7","result":[],"jsonrpc":"2.0","unknown":{"a":{},"b":[[]]}}"#,
    r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":12,"method":"m","params":{"_meta":{"progressToken":1,"a/b":"a long text that is found by a search instead"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":2}]}}"#,
    "{\"jsonrpc\":\"2.0\",\r\n\t\"id\":3,\"method\":\"ping\"}",
];

#[test]
fn plain_messages_are_taken_as_a_parser_reads_them() {
    for message in MESSAGES {
        assert!(compare(message.as_bytes()), "{message}");
    }
}

#[test]
fn what_is_not_plain_is_left_to_a_parser() {
    let deep = format!(
        "{{\"id\":1,\"result\":{}{}}}",
        "[".repeat(60),
        "]".repeat(60)
    );
    let many: Vec<String> = (0..60).map(|name| format!("\"n{name}\":0")).collect();
    let many = format!("{{\"id\":1,\"method\":\"m\",{}}}", many.join(","));
    for message in [
        "",
        "[]",
        "{}",
        "{\"id\":1}",
        &deep,
        &many,
        "\u{feff}{\"method\":\"x\"}",
        r#"{"method":"x","params":{},"method":"y"}"#,
        r#"{"m\u0065thod":"x"}"#,
        r#"{"method":"\u0078"}"#,
        r#"{"id":1.0,"result":{}}"#,
        r#"{"id":1,"error":{"code":1,"message":"m"}}"#,
        r#"{"id":1,"error":null,"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
    ] {
        let bytes = Bytes::copy_from_slice(message.as_bytes());
        assert!(read(&bytes, Names::Own).is_none(), "{message}");
        assert!(read(&bytes, Names::All).is_none(), "{message}");
    }
}

#[test]
fn sec_22_a_name_that_stands_twice_at_any_depth_is_not_plain() {
    for message in [
        r#"{"method":"x","params":{"a":1,"a":2}}"#,
        r#"{"method":"x","params":[{"b":{"a":1,"c":2,"a":2}}]}"#,
        r#"{"method":"x","params":{"a":1,"\u0061":2}}"#,
    ] {
        let bytes = Bytes::copy_from_slice(message.as_bytes());
        assert!(read(&bytes, Names::All).is_none(), "{message}");
        assert!(read(&bytes, Names::Own).is_some(), "{message}");
    }
}

#[test]
fn nothing_is_taken_that_a_parser_refuses_or_reads_otherwise() {
    const BYTES: &[u8] = b"\"\\{}[]:, 019-+.eEunltfax/\n\r\t\x00\x1f\x7f\xc3\xa9\xff";
    let mut taken = 0;
    for message in MESSAGES {
        let message = message.as_bytes();
        for place in 0..message.len() {
            compare(&message[..place]);
            let mut without = message.to_vec();
            without.remove(place);
            taken += usize::from(compare(&without));
            for byte in BYTES {
                let mut changed = message.to_vec();
                changed[place] = *byte;
                taken += usize::from(compare(&changed));
                let mut added = message.to_vec();
                added.insert(place, *byte);
                taken += usize::from(compare(&added));
            }
        }
    }
    // Most of what still is a message is.
    assert!(taken > 5_000, "{taken}");
}

#[test]
fn long_strings_may_hold_anything_but_control_characters() {
    for length in [0, 1, 20, 24, 25, 100, 300, 5_000] {
        let text = "x".repeat(length);
        for (end, is_fine) in [
            ("", true),
            ("é\\\"y", true),
            ("\\u00", false),
            ("\u{1}", false),
        ] {
            let message = format!("{{\"id\":1,\"result\":\"{text}{end}{text}\"}}");
            assert_eq!(compare(message.as_bytes()), is_fine, "{length} {end:?}");
        }
    }
}
