//! The transport of 2024-11-05: `/sse` and `/messages`, where they are switched on.

use std::sync::Arc;

use serde_json::json;
use toolway_gateway::http::HttpOptions;

use crate::http_sessions::{ANNA, BERT, by_name};
use crate::http_stage::{OnStage, RawConnection, Stage, raw, until};
use crate::{exchange, request, with_options};

fn staged() -> (Arc<Stage>, Arc<OnStage>) {
    let stage = Arc::new(Stage::default());
    (Arc::clone(&stage), Arc::new(OnStage(stage)))
}

#[tokio::test]
async fn a_client_posts_to_the_address_that_its_stream_names() {
    let (stage, service) = staged();
    let options = HttpOptions {
        old_transport: true,
        ..HttpOptions::default()
    };
    with_options(service, &options, async |address| {
        let mut stream =
            RawConnection::open(address, &raw("GET /sse/github", address, &[], None)).await;
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        let endpoint = stream.event().await.unwrap();
        assert_eq!(endpoint.kind, "endpoint");
        assert!(
            endpoint.data.starts_with("/messages?sessionId="),
            "{endpoint:?}"
        );
        let line = format!("POST {}", endpoint.data);
        let post = async |body: &str| {
            let call = raw(&line, address, &[], Some(body));
            exchange(address, &call).await.status
        };
        // One that hangs keeps none of the others waiting.
        assert_eq!(post(&request(1, "hang", &json!({}))).await, 202);
        assert_eq!(post(&request(2, "whoami", &json!({ "say": 1 }))).await, 202);
        assert_eq!(stream.event().await.unwrap().json()["params"]["n"], 0);
        let answer = stream.event().await.unwrap().json();
        assert_eq!(answer["id"], 2);
        assert_eq!(answer["result"]["endpoint"], "Server(\"github\")");
        assert_eq!(post("{").await, 202);
        assert_eq!(
            stream.event().await.unwrap().json()["error"]["code"],
            -32700
        );
        assert_eq!(post(&request(3, "ask", &json!({}))).await, 202);
        assert_eq!(stream.event().await.unwrap().json()["method"], "roots/list");
        assert_eq!(
            post(r#"{"jsonrpc":"2.0","id":"ours","result":{"ok":1}}"#).await,
            202
        );
        assert_eq!(
            stream.event().await.unwrap().json()["result"],
            json!({ "ok": 1 })
        );
        stage.tell(0, 9);
        assert_eq!(stream.event().await.unwrap().json()["params"]["n"], 9);
        // With the stream everything ends.
        drop(stream);
        until(|| stage.dropped() == 1 && stage.ended() == 1).await;
        assert_eq!(post(&request(4, "whoami", &json!({}))).await, 404);
    })
    .await;
}

#[tokio::test]
async fn sec_26_nobody_posts_to_the_stream_of_another() {
    let (stage, service) = staged();
    let options = HttpOptions {
        old_transport: true,
        ..by_name()
    };
    with_options(service, &options, async |address| {
        let get = raw("GET /sse", address, &[ANNA], None);
        let mut stream = RawConnection::open(address, &get).await;
        let line = format!("POST {}", stream.event().await.unwrap().data);
        let body = request(1, "whoami", &json!({}));
        let stolen = raw(&line, address, &[BERT], Some(&body));
        assert_eq!(exchange(address, &stolen).await.status, 404);
        for path in [
            "/messages",
            "/messages?sessionId=",
            "/messages?sessionId=00000000000000000000000000000000",
        ] {
            let guessed = raw(&format!("POST {path}"), address, &[ANNA], Some(&body));
            assert_eq!(exchange(address, &guessed).await.status, 404, "{path}");
        }
        assert_eq!(stage.begun(), 0);
        let own = raw(&line, address, &[ANNA], Some(&body));
        assert_eq!(exchange(address, &own).await.status, 202);
        assert_eq!(
            stream.event().await.unwrap().json()["result"]["principal"],
            "anna"
        );
    })
    .await;
}

#[tokio::test]
async fn it_is_not_there_unless_it_is_switched_on() {
    let (_, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let body = request(1, "whoami", &json!({}));
        for line in ["GET /sse", "GET /sse/github", "POST /messages?sessionId=0"] {
            let body = line.starts_with("POST").then_some(body.as_str());
            let answer = exchange(address, &raw(line, address, &[], body)).await;
            assert_eq!(answer.status, 404, "{line}");
        }
    })
    .await;
}
