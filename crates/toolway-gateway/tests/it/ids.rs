//! SEC-25: clients number their requests alike, and none gets another's answer.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolway::ServerEnd;
use toolway_gateway::{AnswerFuture, Conversation, IncomingRequest, Outlet, in_process, stateless};

use crate::{Echo, exchange, post, request, with_server};

const CLIENTS: usize = 64;

/// Answers with the parameters, some calls long after others that came later.
struct Scrambled(Arc<Echo>);

impl Conversation for Scrambled {
    fn request(self: Arc<Self>, request: IncomingRequest, outlet: Outlet) -> AnswerFuture {
        Box::pin(async move {
            // A cheap mixture of what is in the message: no clock, and the same each time.
            let params = request.params.clone().unwrap_or_default();
            let mixed = (params.bytes().iter())
                .fold(7_u32, |mixed, byte| mixed.rotate_left(5) ^ u32::from(*byte));
            for _ in 0..mixed % 7 {
                tokio::task::yield_now().await;
            }
            Arc::clone(&self.0).request(request, outlet).await
        })
    }
}

async fn all_get_their_own(calls: u64) {
    let server = in_process(stateless(Arc::new(Scrambled(Echo::shared()))));
    let clients = (0..CLIENTS).map(|client| {
        let (to_server, incoming) = mpsc::channel(8);
        let (outgoing, mut from_server) = mpsc::channel::<Bytes>(8);
        let serving = server(ServerEnd { incoming, outgoing });
        let sending = async move {
            for id in 0..calls {
                let call = request(id, "echo", &json!({ "canary": [client, id] }));
                to_server.send(call.into()).await.unwrap();
            }
            // Open until every answer is there.
            to_server
        };
        let receiving = async move {
            let mut seen = vec![false; usize::try_from(calls).unwrap()];
            for _ in 0..calls {
                let answer: Value =
                    serde_json::from_slice(&from_server.recv().await.unwrap()).unwrap();
                let id = answer["id"].as_u64().unwrap();
                assert_eq!(answer["result"]["canary"], json!([client, id]));
                let place = &mut seen[usize::try_from(id).unwrap()];
                assert!(!std::mem::replace(place, true), "answered twice");
            }
        };
        async move {
            let talking = async {
                let (open, ()) = tokio::join!(sending, receiving);
                drop(open);
            };
            tokio::join!(serving, talking);
        }
    });
    join_all(clients).await;
}

#[tokio::test]
async fn sec_25_sixty_four_clients_with_the_same_ids_get_their_own_answers() {
    all_get_their_own(500).await;
}

/// By hand: `cargo test -p toolway-gateway --test it -- --ignored a_million`.
#[tokio::test]
#[ignore = "takes some minutes"]
async fn sec_25_a_million_calls_with_the_same_ids_get_their_own_answers() {
    all_get_their_own(1_000_000 / CLIENTS as u64).await;
}

#[tokio::test]
async fn sec_25_the_same_over_http() {
    const CALLS: u64 = 20;
    with_server(Echo::shared(), async |address| {
        let clients = (0..CLIENTS).map(|client| async move {
            for id in 0..CALLS {
                let body = request(id, "echo", &json!({ "canary": [client, id] }));
                let answer = exchange(address, &post(address, &[], &body)).await.json();
                assert_eq!(answer["id"], id);
                assert_eq!(answer["result"]["canary"], json!([client, id]));
            }
        });
        join_all(clients).await;
    })
    .await;
}
