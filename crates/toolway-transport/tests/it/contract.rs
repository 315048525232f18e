//! One suite for every transport: what a session may rely on wherever its bytes go.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolway_transport::{CloseReason, Event, Limits, SendFailure, in_process};

use crate::peer::{Peer, bytes, python, remote, within_patience};
use crate::server::{self, Act, Server};

/// `echo` gives its parameters back, `notes` the notifications so far, `quit` ends the server.
const SCRIPT: &str = r#"
import sys, json
notes = []
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: notes.append(m["params"]); continue
    if m["method"] == "quit": sys.exit(3)
    r = notes if m["method"] == "notes" else m["params"]
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}))
"#;

enum Reply {
    Nothing,
    Quit,
    Message(Value),
}

/// The same server, for messages in this program.
fn answer(notes: &Mutex<Vec<Value>>, message: &Value) -> Reply {
    let mut notes = notes.lock().expect("no panic");
    let params = message["params"].clone();
    let Some(id) = message.get("id") else {
        notes.push(params);
        return Reply::Nothing;
    };
    let result = match message["method"].as_str() {
        Some("quit") => return Reply::Quit,
        Some("notes") => json!(*notes),
        _ => params,
    };
    Reply::Message(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

async fn over_stdio() -> Peer {
    Peer::open(python(SCRIPT), Limits::default()).await
}

async fn over_http() -> Peer {
    let notes = Mutex::new(Vec::new());
    let server = Server::start(move |seen| {
        if seen.method != "POST" {
            return server::reply("405 Method Not Allowed", &[], b"");
        }
        match answer(&notes, &seen.json()) {
            Reply::Quit => vec![Act::Close],
            Reply::Nothing => server::accepted(),
            Reply::Message(message) => server::json(&message),
        }
    })
    .await;
    Peer::open(remote(&server.url, &[]), Limits::default()).await
}

fn in_this_program() -> Peer {
    let (channel, mut end) = in_process::pair();
    tokio::spawn(async move {
        let notes = Mutex::new(Vec::new());
        while let Some(message) = end.incoming.recv().await {
            let message: Value = serde_json::from_slice(&message).expect("JSON");
            match answer(&notes, &message) {
                Reply::Quit => return,
                Reply::Nothing => {}
                Reply::Message(message) => {
                    if end.outgoing.send(bytes(&message)).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    Peer::new(channel)
}

async fn a_request_is_answered(mut peer: Peer) {
    peer.request(1, "echo", json!({"text": "grüße\n\u{1F600}"}))
        .await;
    let answer = peer.message().await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "grüße\n\u{1F600}"}})
    );
}

async fn a_large_message_passes_both_ways(mut peer: Peer) {
    let text = "x".repeat(4 * 1024 * 1024);
    peer.request(1, "echo", json!({"text": text})).await;
    assert_eq!(
        peer.message().await["result"]["text"]
            .as_str()
            .map(str::len),
        Some(text.len())
    );
}

async fn many_requests_get_one_answer_each(mut peer: Peer) {
    // More than the queues hold, so that both sides must keep moving.
    let sender = peer.commands.clone().expect("not ended");
    let sending = tokio::spawn(async move {
        for id in 0..300 {
            let outgoing = crate::peer::request(id, "echo", json!(id));
            sender
                .send(toolway_transport::Command::Send(outgoing))
                .await
                .expect("the driver runs");
        }
    });
    let mut answered = Vec::new();
    for _ in 0..300 {
        let answer = peer.message().await;
        assert_eq!(answer["id"], answer["result"]);
        answered.push(answer["id"].as_u64().expect("a number"));
    }
    sending.await.expect("no panic");
    answered.sort_unstable();
    assert_eq!(answered, (0..300).collect::<Vec<u64>>());
}

async fn notifications_arrive_in_order_and_before_what_follows(mut peer: Peer) {
    for number in 0..50 {
        peer.notify("note", json!(number)).await;
    }
    peer.request(1, "notes", json!({})).await;
    assert_eq!(
        peer.message().await["result"],
        json!((0..50).collect::<Vec<u32>>())
    );
}

async fn the_end_that_was_asked_for_is_reported_once(mut peer: Peer) {
    peer.request(1, "echo", json!({})).await;
    peer.message().await;
    let last = peer.end().await;
    assert!(
        matches!(&last[..], [Event::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
}

async fn a_server_that_goes_away_is_reported(mut peer: Peer) {
    peer.request(7, "quit", json!({})).await;
    match peer.event().await {
        Event::Closed(CloseReason::Exited { status, .. }) => assert_eq!(status, "exit status: 3"),
        Event::Closed(CloseReason::EndOfStream { .. }) => {}
        Event::Failed {
            tag,
            failure: SendFailure::Cut(_),
        } => {
            // HTTP has no connection to lose: this request failed, the next may not.
            assert_eq!(tag.0, 7);
            peer.end().await;
            return;
        }
        other => panic!("{other:?}"),
    }
    let after = within_patience(peer.events.recv()).await;
    assert!(after.is_none(), "nothing follows the end: {after:?}");
    within_patience(peer.driver).await.expect("no panic");
}

async fn dropping_the_driver_ends_the_channel(mut peer: Peer) {
    peer.request(1, "echo", json!({})).await;
    peer.message().await;
    peer.driver.abort();
    assert!(
        within_patience(&mut peer.driver)
            .await
            .expect_err("aborted")
            .is_cancelled()
    );
    assert!(within_patience(peer.events.recv()).await.is_none());
    assert!(
        peer.commands
            .as_ref()
            .is_some_and(tokio::sync::mpsc::Sender::is_closed)
    );
}

macro_rules! contract {
    ($($case:ident),* $(,)?) => {
        mod stdio { $(#[tokio::test] async fn $case() { super::$case(super::over_stdio().await).await; })* }
        mod http { $(#[tokio::test] async fn $case() { super::$case(super::over_http().await).await; })* }
        mod in_program { $(#[tokio::test] async fn $case() { super::$case(super::in_this_program()).await; })* }
    };
}

contract!(
    a_request_is_answered,
    a_large_message_passes_both_ways,
    many_requests_get_one_answer_each,
    notifications_arrive_in_order_and_before_what_follows,
    the_end_that_was_asked_for_is_reported_once,
    a_server_that_goes_away_is_reported,
    dropping_the_driver_ends_the_channel,
);

#[tokio::test]
async fn the_server_inside_the_program_sees_the_end_once() {
    let (channel, mut end) = in_process::pair();
    let mut peer = Peer::new(channel);
    let outgoing = Arc::new(end.outgoing.clone());
    peer.end().await;
    assert_eq!(within_patience(end.incoming.recv()).await, None);
    assert!(outgoing.send(bytes(&json!({}))).await.is_err());
}

#[tokio::test]
async fn transports_of_a_later_build_say_so() {
    let spec = crate::peer::spec(toolway_types::TransportSpec::Sdk);
    let error = toolway_transport::open(&spec, &toolway_transport::OpenOptions::default()).await;
    assert_eq!(
        error.err().expect("unsupported").to_string(),
        "transport `sdk` is not supported yet"
    );
}
