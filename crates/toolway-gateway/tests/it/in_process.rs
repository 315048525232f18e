//! A service inside the host's own program.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolway::ServerEnd;
use toolway_gateway::in_process;

use crate::{Echo, request, served};

#[tokio::test]
async fn it_answers_until_the_client_closes_and_then_drops_what_runs() {
    let service = Echo::shared();
    let server = in_process(served(&service));
    let (to_server, incoming) = mpsc::channel(8);
    let (outgoing, mut from_server) = mpsc::channel::<Bytes>(8);
    let talk = async {
        to_server
            .send(request(1, "hang", &json!({})).into())
            .await
            .unwrap();
        to_server
            .send(request(2, "echo", &json!({ "x": 2 })).into())
            .await
            .unwrap();
        let answer: Value = serde_json::from_slice(&from_server.recv().await.unwrap()).unwrap();
        assert_eq!(answer["result"], json!({ "x": 2 }));
        drop(to_server);
        assert!(from_server.recv().await.is_none());
    };
    tokio::join!(server(ServerEnd { incoming, outgoing }), talk);
    assert_eq!(service.cancelled.load(Ordering::SeqCst), 1);
}
