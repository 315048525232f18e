//! Bugs, of ours or of the embedding program, end one connection and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolway::{CallError, CallFault, CallOptions, Consent, Host, InProcessServer, ProgressSink};
use toolway_types::ConnectionState;

use crate::healing::{mortal, until_failed};
use crate::support::*;

#[tokio::test(start_paused = true)]
async fn rel_33_a_bug_in_the_connection_is_contained_and_healed() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let good = mortal(0).0;
    let clumsy: InProcessServer = Arc::new(move |end| {
        // The second time it panics where the connection's own task runs.
        assert!(counted.fetch_add(1, Ordering::SeqCst) != 1, "on purpose");
        good(end)
    });
    let home = Home::new();
    let host = home.host([("clumsy", clumsy), ("old", legacy_server())]);
    host.settled().await;
    let mut events = host.subscribe();
    echo(&host, "clumsy", "x").await.expect_err("it dies of it");
    let seen = until_failed(&mut events, "clumsy").await;
    assert_eq!(seen, ["pending 1", "failed"], "a bug is seen");
    assert!(failure_message(&host, "clumsy").contains("internal error"));
    let mut snapshots = host.watch();
    let back = snapshots.wait_for(|snapshot| snapshot.catalog.tools().count() == 4);
    assert_eq!(back.await.expect("it is back").panics, 1);
    assert_eq!(starts.load(Ordering::SeqCst), 3);
    echo(&host, "old", "x").await.expect("nobody else noticed");
    host.shutdown().await;
}

/// The message of a failure, also when the server is being tried again by now.
fn failure_message(host: &Host, server: &str) -> String {
    match shown(host, server).state {
        ConnectionState::Failed(failure) => failure.message,
        _ => shown(host, server).warnings.concat(),
    }
}

#[tokio::test(start_paused = true)]
async fn rel_33_a_bug_in_the_reading_loop_is_contained_and_healed() {
    let server = scripted(|message: &Value, speaker| {
        if message["params"]["name"] == "mute" {
            let token = &message["params"]["_meta"]["progressToken"];
            speaker.say(&json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1 },
            }));
        }
        legacy(message)
    });
    let home = Home::new();
    let host = home.host([("chatty", server), ("old", legacy_server())]);
    host.settled().await;
    // The embedding program's own code panics inside the session.
    let clumsy: ProgressSink = Arc::new(|_| panic!("on purpose"));
    let options = CallOptions {
        progress: Some(clumsy),
        ..CallOptions::new(Consent::Typed)
    };
    let started = Instant::now();
    let (lost, other) = tokio::join!(
        host.call(request("chatty", "mute", "x"), options),
        host.call(
            request("chatty", "mute", "x"),
            CallOptions::new(Consent::Typed)
        ),
    );
    assert!(
        matches!(lost, Err(CallError::Failed(_, CallFault::Transport { .. }))),
        "{lost:?}"
    );
    assert!(
        matches!(
            other,
            Err(CallError::Failed(_, CallFault::Transport { .. }))
        ),
        "{other:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(1));
    echo(&host, "old", "x").await.expect("nobody else noticed");
    assert_eq!(
        text_of(&echo(&host, "chatty", "back").await.expect("healed")),
        "back"
    );
    assert_eq!(host.snapshot().panics, 1);
    host.shutdown().await;
}
