//! Serving a pair of byte streams.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf};
use tokio::io::{DuplexStream, duplex, split};
use toolway_gateway::Peer;
use toolway_gateway::stdio::{MAX_LINE, serve_on};

use crate::{Echo, request, served};

pub(crate) struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
}

impl Client {
    pub(crate) async fn send(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// Serves `service` while `talk` runs; the input ends when `talk` returns.
pub(crate) async fn converse(service: &Arc<Echo>, talk: impl AsyncFnOnce(&mut Client)) {
    let (ours, theirs) = duplex(64 * 1024);
    let (input, output) = split(theirs);
    let (reader, writer) = split(ours);
    let mut client = Client {
        lines: BufReader::new(reader).lines(),
        input: writer,
    };
    let talking = async {
        talk(&mut client).await;
        client.input.shutdown().await.unwrap();
        // What still comes must be messages too.
        while let Some(line) = client.lines.next_line().await.unwrap() {
            serde_json::from_str::<Value>(&line).unwrap();
        }
    };
    let serving = async {
        let mut output = output;
        serve_on(served(service), &Peer::owner("test"), input, &mut output)
            .await
            .unwrap();
        output.shutdown().await.unwrap();
    };
    tokio::join!(serving, talking);
}

#[tokio::test]
async fn requests_are_answered_while_an_earlier_one_still_runs() {
    let service = Echo::shared();
    converse(&service, async |client| {
        client.send(&request(1, "hang", &json!({}))).await;
        client.send(&request(2, "echo", &json!({ "x": 1 }))).await;
        let answer = client.receive().await;
        assert_eq!(
            answer,
            json!({ "jsonrpc": "2.0", "id": 2, "result": { "x": 1 } })
        );
        client
            .send(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            )
            .await;
    })
    .await;
    // It ended at end of input without waiting for the hung one: that one was cancelled.
    assert_eq!(service.cancelled.load(Ordering::SeqCst), 1);
    assert_eq!(service.seen(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_past_the_end_of_input_is_dropped() {
    let service = Echo::shared();
    converse(&service, async |client| {
        client.send(&request(1, "hang", &json!({}))).await;
    })
    .await;
    assert_eq!(service.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn sec_25_a_second_request_with_an_id_in_flight_is_refused() {
    let service = Echo::shared();
    converse(&service, async |client| {
        client.send(&request(7, "hang", &json!({}))).await;
        client.send(&request(7, "echo", &json!({}))).await;
        let answer = client.receive().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(7), &json!(-32600))
        );
        client
            .send(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            )
            .await;
        // The id is free again once its request is gone.
        loop {
            client
                .send(&request(7, "echo", &json!({ "again": true })))
                .await;
            let answer = client.receive().await;
            if answer.get("result").is_some() {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_not_a_message_is_answered_and_the_next_one_served() {
    let service = Echo::shared();
    converse(&service, async |client| {
        for (line, code) in [
            ("not json", -32700),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
                -32700,
            ),
            ("[]", -32700),
            (r#"{"jsonrpc":"2.0"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"echo"}"#, -32600),
        ] {
            client.send(line).await;
            let answer = client.receive().await;
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&Value::Null, &json!(code))
            );
        }
        client.send("").await;
        client
            .send(&format!("{}\r", request(1, "echo", &json!({}))))
            .await;
        assert_eq!(client.receive().await["result"], json!({}));
    })
    .await;
    assert_eq!(service.seen(), 1);
}

#[tokio::test]
async fn a_line_of_the_longest_length_is_served_and_a_longer_one_refused() {
    let service = Echo::shared();
    converse(&service, async |client| {
        let frame = request(1, "echo", &json!({ "fill": "" })).len();
        let fill = "x".repeat(MAX_LINE - frame);
        client
            .send(&request(1, "echo", &json!({ "fill": fill })))
            .await;
        assert_eq!(
            client.receive().await["result"]["fill"]
                .as_str()
                .map(str::len),
            Some(fill.len())
        );
        client
            .send(&request(2, "echo", &json!({ "fill": format!("{fill}x") })))
            .await;
        let refused = client.receive().await;
        assert_eq!(refused["error"]["code"], -32600);
        assert_eq!(refused["id"], 2, "{refused}");
        let far_longer = format!("{fill}{fill}{fill}");
        client
            .send(&request(3, "echo", &json!({ "fill": far_longer })))
            .await;
        assert_eq!(client.receive().await["id"], 3);
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let deep = format!(r#"{{"jsonrpc":"2.0","method":"echo","params":{{"x":{deep}}},"id":4}}"#);
        client.send(&deep).await;
        let refused = client.receive().await;
        assert_eq!(refused["error"]["code"], -32700);
        assert_eq!(refused["id"], 4, "{refused}");
        client.send(&request(5, "echo", &json!({}))).await;
        assert_eq!(client.receive().await["id"], 5);
    })
    .await;
    assert_eq!(service.seen(), 2);
}
