//! Servers below a keeper.
use std::time::Duration;

use serde_json::json;
use toolway_transport::OpenOptions;
use toolway_transport::stdio::keeper::Keeper;
use toolway_types::TransportSpec;

use crate::peer::{Peer, program};

#[tokio::test]
async fn smoke() {
    let keeper = Keeper::program(env!("CARGO_BIN_EXE_toolway-test-keeper").into());
    let options = OpenOptions {
        keeper: keeper.clone(),
        ..OpenOptions::default()
    };
    let mut peer = Peer::open_with(TransportSpec::Stdio(program("cat", &[])), &options).await;
    peer.request(1, "echo", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    eprintln!("{:?}", keeper.process_id());
    let t = std::time::Instant::now();
    eprintln!("{:?}", peer.end().await);
    eprintln!("{:?}", t.elapsed());
    let _ = Duration::ZERO;
}
