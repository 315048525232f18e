//! What is written is read again, and said again.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Matching, ReadError, Recording, RecordingError, RecordingFile, Replay, ReplayStep, Side,
};

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    request(
        id,
        "tools/call",
        &json!({ "name": tool, "arguments": arguments }),
    )
}

fn result(id: u64, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{ "text":"{text}" }}}}"#)
}

/// A replay of what these two said.
fn replay(matching: Matching, spoken: &[(Side, String)]) -> Replay {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let file = RecordingFile::open(&path, "1", "now").unwrap();
    for (from, message) in spoken {
        file.message("s", "1.1", *from, message);
    }
    assert_eq!(file.ended(), None);
    Replay::new(Recording::open(&path).unwrap(), "s", matching).unwrap()
}

/// The lines that are sent for a request.
fn sent(replay: &mut Replay, line: &str) -> Vec<String> {
    let steps = replay.hear(line);
    let sent = steps.into_iter().filter_map(|step| match step {
        ReplayStep::Send(line) => Some(line),
        ReplayStep::Tell(_) => None,
    });
    sent.collect()
}

const C: Side = Side::Client;
const S: Side = Side::Server;

#[test]
fn the_same_request_gets_the_next_answer_and_then_the_last_one_again() {
    let ask = |id| call(id, "roll", &json!({ "sides": 6, "of": ["a"] }));
    let spoken = [
        (C, ask(1)),
        (S, result(1, "four")),
        (C, ask(2)),
        (S, result(2, "two")),
    ];
    let mut replay = replay(Matching::Arguments, &spoken);
    // Members in another order, and another `_meta`, are the same request.
    let again = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"_meta":{"progressToken":1},"arguments":{"of":["a"],"sides":6.0},"name":"roll"}}"#;
    assert_eq!(
        sent(&mut replay, again),
        [r#"{"jsonrpc":"2.0","id":"x","result":{ "text":"four" }}"#]
    );
    assert_eq!(sent(&mut replay, &ask(8)), [result(8, "two")]);
    assert_eq!(sent(&mut replay, &ask(9)), [result(9, "two")]);
}

#[test]
fn what_was_not_recorded_is_said_with_the_nearest_that_was() {
    let spoken = [
        (C, call(1, "read", &json!({ "path": "a", "line": 1 }))),
        (S, result(1, "A")),
        (C, call(2, "write", &json!({ "path": "b" }))),
        (S, result(2, "B")),
    ];
    let mut replay = replay(Matching::Arguments, &spoken);
    let steps = replay.hear(&call(7, "read", &json!({ "path": "b", "line": 1 })));
    let message = "not recorded: `tools/call` of `read` with {\"path\":\"b\",\"line\":1}; the \
                   nearest that was recorded is `tools/call` of `read` with \
                   {\"path\":\"a\",\"line\":1}";
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert_eq!(steps[0], ReplayStep::Tell(message.to_owned()));
    let ReplayStep::Send(line) = &steps[1] else {
        unreachable!("{steps:?}")
    };
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["id"], 7);
    assert_eq!(line["error"]["message"], message);
    assert_eq!(line["error"]["data"]["reason"], "not-recorded");
    assert_eq!(line["error"]["data"]["nearest"]["params"]["name"], "read");
    let none = sent(
        &mut replay,
        &request(8, "resources/read", &json!({ "uri": "x:y" })),
    );
    assert!(none[0].contains("not recorded: `resources/read` of `x:y`; nothing of that kind was"));
}

#[test]
fn in_order_means_in_order() {
    let spoken = [
        (C, request(0, "tools/list", &json!({}))),
        (S, result(0, "list")),
        (C, call(1, "a", &json!({}))),
        (S, result(1, "A")),
        (C, call(2, "b", &json!({}))),
        (S, result(2, "B")),
    ];
    let mut replay = replay(Matching::Order, &spoken);
    let early = sent(&mut replay, &call(5, "b", &json!({})));
    assert!(
        early[0].contains("next in the recording is `tools/call` of `a` with {}"),
        "{early:?}"
    );
    assert_eq!(
        sent(&mut replay, &call(5, "a", &json!({}))),
        [result(5, "A")]
    );
    // Lists are no part of the order.
    let list = request(6, "tools/list", &json!({}));
    assert_eq!(sent(&mut replay, &list), [result(6, "list")]);
    assert_eq!(
        sent(&mut replay, &call(7, "b", &json!({}))),
        [result(7, "B")]
    );
    let over = sent(&mut replay, &call(8, "b", &json!({})));
    assert!(over[0].contains("the recording is over"), "{over:?}");
}

#[test]
fn progress_notifications_and_questions_come_before_the_answer_as_they_did() {
    let mut ask = call(1, "long", &json!({}));
    ask = ask.replace(
        "\"params\":{",
        "\"params\":{\"_meta\":{\"progressToken\":\"p\"},",
    );
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    };
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}"#;
    let question =
        r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"sure?"}}"#;
    let spoken = [
        (C, ask),
        (S, progress("\"p\"")),
        (S, log.to_owned()),
        (S, question.to_owned()),
        (
            C,
            r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}"#.to_owned(),
        ),
        (S, result(1, "done")),
        (
            S,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
        ),
    ];
    let mut replay = replay(Matching::Arguments, &spoken);
    let ask = call(9, "long", &json!({})).replace(
        "\"params\":{",
        "\"params\":{\"_meta\":{\"progressToken\":77},",
    );
    let first = sent(&mut replay, &ask);
    assert_eq!(first.len(), 3, "{first:?}");
    let told: Value = serde_json::from_str(&first[0]).unwrap();
    let wanted: Value = serde_json::from_str(&progress("77")).unwrap();
    assert_eq!(told, wanted);
    assert_eq!(first[1], log);
    assert_eq!(
        first[2],
        question.replace("\"id\":0", "\"id\":\"replay-1\"")
    );
    // What is asked meanwhile waits; an answer to something else is none.
    assert_eq!(sent(&mut replay, &request(10, "ping", &json!({}))), [""; 0]);
    assert_eq!(
        sent(&mut replay, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
        [""; 0]
    );
    let rest = sent(
        &mut replay,
        r#"{"jsonrpc":"2.0","id":"replay-1","result":{"action":"decline"}}"#,
    );
    assert_eq!(
        rest,
        [
            result(9, "done"),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":10,"result":{}}"#.to_owned(),
        ]
    );
    // Who wants no progress hears of none.
    let without = sent(&mut replay, &call(11, "long", &json!({})));
    assert!(
        without
            .iter()
            .all(|line| !line.contains("notifications/progress")),
        "{without:?}"
    );
}

#[test]
fn a_secret_that_was_taken_out_is_any_text() {
    let spoken = [
        (
            C,
            call(
                1,
                "login",
                &json!({ "password": "[redacted]", "at": "https://me:[redacted]@x/y" }),
            ),
        ),
        (S, result(1, "in")),
    ];
    let mut replay = replay(Matching::Arguments, &spoken);
    let ask = call(
        2,
        "login",
        &json!({ "password": "lantern", "at": "https://me:lantern@x/y" }),
    );
    assert_eq!(sent(&mut replay, &ask), [result(2, "in")]);
    let other = call(
        3,
        "login",
        &json!({ "password": "lantern", "at": "https://me:lantern@x/z" }),
    );
    assert!(sent(&mut replay, &other)[0].contains("\"error\""));
}

#[test]
fn clients_of_either_era_are_greeted() {
    let modern = [
        (C, request(1, "server/discover", &json!({ "_meta": {} }))),
        (S, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"2"}}}"#.to_owned()),
    ];
    let mut replay = replay(Matching::Arguments, &modern);
    let greeting = sent(
        &mut replay,
        &request(2, "initialize", &json!({ "protocolVersion": "2025-06-18" })),
    );
    let greeting: Value = serde_json::from_str(&greeting[0]).unwrap();
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "n");
    let legacy = [
        (
            C,
            request(1, "initialize", &json!({ "clientInfo": { "name": "a" } })),
        ),
        (S, result(1, "hello")),
    ];
    let mut replay = super::tests::replay(Matching::Arguments, &legacy);
    let probe = sent(&mut replay, &request(1, "server/discover", &json!({})));
    assert!(probe[0].contains("-32601"), "{probe:?}");
    let greeted = sent(
        &mut replay,
        &request(2, "initialize", &json!({ "clientInfo": { "name": "b" } })),
    );
    assert_eq!(greeted, [result(2, "hello")]);
}

#[test]
fn a_recording_is_private_and_never_written_through_a_link_or_over_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    drop(RecordingFile::open(&path, "1", "now").unwrap());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    let refused = RecordingFile::open(&link, "1", "now");
    assert!(
        matches!(refused, Err(RecordingError::NotPlain(_))),
        "{refused:?}"
    );
    let hard = folder.path().join("hard");
    fs::hard_link(&path, &hard).unwrap();
    let refused = RecordingFile::open(&hard, "1", "now");
    assert!(
        matches!(refused, Err(RecordingError::NotPlain(_))),
        "{refused:?}"
    );
    let refused = RecordingFile::open(folder.path(), "1", "now");
    assert!(
        matches!(refused, Err(RecordingError::NotPlain(_))),
        "{refused:?}"
    );
    let mine = folder.path().join("mine.txt");
    fs::write(&mine, "dear diary\n").unwrap();
    let refused = RecordingFile::open(&mine, "1", "now");
    assert!(
        matches!(refused, Err(RecordingError::NotARecording(_))),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), "dear diary\n");
    assert!(matches!(
        Recording::open(&mine),
        Err(ReadError::NotARecording(_))
    ));
}

#[test]
fn what_a_crash_left_is_read_and_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let file = RecordingFile::open(&path, "1", "now").unwrap();
    file.message("s", "1.1", C, &call(1, "a", &json!({})));
    file.message(
        "s",
        "1.1",
        S,
        "{\n \"jsonrpc\": \"2.0\", \"id\": 1,\r\n \"result\": {}\n}\n",
    );
    file.message("s", "1.1", S, "no JSON");
    drop(file);
    let mut text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    text.push_str("{\"server\":\"s\",\"conn");
    fs::write(&path, &text).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.damaged, recording.left_out), (1, 1));
    assert_eq!(recording.servers()[0].calls, 1);
    let file = RecordingFile::open(&path, "1", "later").unwrap();
    file.message("t", "2.1", C, &call(1, "b", &json!({})));
    let recording = Recording::open(&path).unwrap();
    let names: Vec<String> = recording
        .servers()
        .into_iter()
        .map(|it| it.server)
        .collect();
    assert_eq!(names, ["s", "t"]);
    let newer = fs::read_to_string(&path)
        .unwrap()
        .replacen("\"version\":1", "\"version\":9", 1);
    fs::write(&path, newer).unwrap();
    assert!(matches!(
        Recording::open(&path),
        Err(ReadError::Newer(_, 9))
    ));
}

proptest! {
    #[test]
    fn no_file_and_no_line_is_too_odd(bytes: Vec<u8>, lines in proptest::collection::vec(".*", 0..5)) {
        let mut file = b"{\"toolway\":\"recording\",\"version\":1,\"by\":\"1\",\"time\":\"\"}\n".to_vec();
        file.extend(&bytes);
        let _ = Recording::parse(&file);
        let mut replay = replay(Matching::Arguments, &[(C, call(1, "a", &json!({})))]);
        for line in &lines {
            let _ = replay.hear(line);
        }
        let answer = sent(&mut replay, &request(5, "ping", &json!({})));
        prop_assert_eq!(answer.len(), 1);
    }
}
