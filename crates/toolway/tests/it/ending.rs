//! The end of a connection waits for nobody: not for a server that does not read, and not for a
//! caller that does not look.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use toolway::{CallOptions, Consent, InProcessServer};
use toolway_transport::in_process::ServerEnd;

use crate::support::*;

/// A legacy server that reads nothing more after the first call.
fn stops_reading(stopped: Arc<Notify>) -> InProcessServer {
    Arc::new(move |end| {
        let stopped = Arc::clone(&stopped);
        Box::pin(async move {
            let ServerEnd {
                mut incoming,
                outgoing,
            } = end;
            while let Some(message) = incoming.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                if message["method"] == "tools/call" {
                    stopped.notify_one();
                    // Still there, with both ends open.
                    std::future::pending::<()>().await;
                }
                let Reply::Result(result) = legacy(&message) else {
                    continue;
                };
                let answer = serde_json::json!({
                    "jsonrpc": "2.0", "id": message["id"], "result": result,
                });
                let _ = outgoing.send(answer.to_string().into()).await;
            }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_server_that_does_not_read() {
    let stopped = Arc::new(Notify::new());
    let home = Home::new();
    let host = home.host([("deaf", stops_reading(Arc::clone(&stopped)))]);
    host.settled().await;
    // More than all queues on the way hold.
    let calls = futures_util::future::join_all((0..300).map(|_| {
        host.call(
            request("deaf", "mute", "x"),
            CallOptions::new(Consent::Typed),
        )
    }));
    let full = async {
        stopped.notified().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        _ = calls => panic!("nobody answers"),
        () = full => {}
    }
    let started = Instant::now();
    timeout(Duration::from_mins(10), host.shutdown())
        .await
        .expect("the end comes");
    assert!(
        started.elapsed() <= Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}
