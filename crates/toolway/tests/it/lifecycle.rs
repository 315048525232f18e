//! Connecting side by side, failing alone, ending whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use toolway::{CallError, CallFault, CallOptions, Consent, InProcessServer};
use toolway_types::{ConnectionState, FailureKind};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_hung_server_does_not_delay_the_others() {
    let home = Home::new();
    let hung = ["hung-1", "hung-2"].map(|name| (name.to_owned(), hung_server()));
    let healthy = (0..30).map(|number| (format!("ok-{number}"), legacy_server()));
    let host = home.host_of(hung.into_iter().chain(healthy));
    let started = Instant::now();
    for number in 0..30 {
        host.ready(&format!("ok-{number}")).await;
    }
    assert_eq!(
        started.elapsed(),
        Duration::ZERO,
        "the third slot served them all"
    );
    assert_eq!(host.snapshot().catalog.tools().count(), 60);
    assert!(shown(&host, "hung-1").is_pending());

    host.settled().await;
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    let failure = failure(&host, "hung-1");
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(
        failure.message,
        "not connected after 30 s: it did not answer the handshake"
    );
    assert_eq!(
        host.snapshot().catalog.tools().count(),
        60,
        "nobody else noticed"
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn at_most_three_local_servers_connect_at_a_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = |now: &Arc<AtomicUsize>, most: &Arc<AtomicUsize>| -> InProcessServer {
        let (now, most) = (Arc::clone(now), Arc::clone(most));
        scripted(move |message, _| {
            match message["method"].as_str() {
                Some("server/discover") => {
                    let connecting = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(connecting, Ordering::SeqCst);
                }
                // The last thing a connecting host asks of this server.
                Some("tools/list") => {
                    now.fetch_sub(1, Ordering::SeqCst);
                }
                _ => {}
            }
            legacy(message)
        })
    };
    let home = Home::new();
    let host = home.host_of((0..20).map(|number| (format!("s{number}"), server(&now, &most))));
    host.settled().await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert!(
        host.snapshot()
            .servers
            .iter()
            .all(|server| server.counts.is_some())
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_while_listing_fails_with_that_reason() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("tools/list") => Reply::Silence,
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("lazy", server)]);
    host.settled().await;
    let failure = failure(&host, "lazy");
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert!(failure.message.contains("list"), "{}", failure.message);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_fails_every_waiting_call_at_once_and_leaves_the_catalogue() {
    let calls = AtomicUsize::new(0);
    let server = scripted(move |message, _| match message["params"]["name"].as_str() {
        Some("mute") if calls.fetch_add(1, Ordering::SeqCst) == 49 => Reply::Gone,
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("frail", server), ("firm", modern_server())]);
    host.settled().await;
    let started = Instant::now();
    let calls = (0..50).map(|_| {
        host.call(
            request("frail", "mute", "x"),
            CallOptions::new(Consent::Typed),
        )
    });
    for outcome in futures_util::future::join_all(calls).await {
        assert!(
            matches!(
                outcome,
                Err(CallError::Failed(_, CallFault::Transport { .. }))
            ),
            "{outcome:?}"
        );
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    let mut snapshots = host.watch();
    let gone = snapshots
        .wait_for(|snapshot| {
            snapshot
                .server("frail")
                .is_some_and(|frail| frail.state == ConnectionState::Pending { attempt: 1 })
        })
        .await
        .expect("the host runs")
        .clone();
    let tools: Vec<String> = gone.catalog.tools().map(|tool| tool.name.clone()).collect();
    assert_eq!(
        tools,
        ["mcp__firm__echo"],
        "a connection and its lists go together"
    );
    let warnings = &gone.server("frail").expect("a server").warnings;
    assert_eq!(*warnings, ["the server closed the connection"]);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_on_the_probe_is_started_again_as_legacy() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let server = scripted(move |message, _| match message["method"].as_str() {
        Some("server/discover") => {
            counted.fetch_add(1, Ordering::SeqCst);
            Reply::Gone
        }
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("touchy", server)]);
    assert_eq!(
        text_of(&echo(&host, "touchy", "hi").await.expect("an answer")),
        "hi"
    );
    assert_eq!(starts.load(Ordering::SeqCst), 1, "it was probed once only");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_bug_in_a_server_object_fails_that_server_only() {
    let home = Home::new();
    let at_start: InProcessServer = Arc::new(|_| panic!("on purpose"));
    let later: InProcessServer = Arc::new(|_| Box::pin(async { panic!("on purpose") }));
    let host = home.host([
        ("start", at_start),
        ("later", later),
        ("old", legacy_server()),
    ]);
    host.settled().await;
    assert!(failure(&host, "start").message.contains("internal error"));
    assert_eq!(failure(&host, "later").kind, FailureKind::Closed);
    echo(&host, "old", "x").await.expect("an answer");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_freed_by_a_reconnect_and_told_why() {
    let home = Home::new();
    let host = home.host([("old", legacy_server())]);
    host.settled().await;
    let started = Instant::now();
    let hanging = host.call(
        request("old", "mute", "x"),
        CallOptions::new(Consent::Typed),
    );
    let freeing = async {
        // The call is on its way before anybody loses patience.
        tokio::time::sleep(Duration::from_secs(9)).await;
        host.reconnect("old").await
    };
    let (freed, state) = tokio::join!(hanging, freeing);
    assert!(
        matches!(state, Ok(ConnectionState::Connected(_))),
        "{state:?}"
    );
    assert_eq!(started.elapsed(), Duration::from_secs(9));
    assert_eq!(
        freed.expect_err("it never answers").to_string(),
        "the call of `mute` of server `old` was sent, but its answer was lost: somebody asked for \
         the server to be connected anew; nobody knows whether it ran"
    );
    echo(&host, "old", "x").await.expect("an answer");
    host.shutdown().await;
}

/// A server that says when its future is dropped.
fn observed(gone: &mpsc::UnboundedSender<()>) -> InProcessServer {
    struct Farewell(mpsc::UnboundedSender<()>);
    impl Drop for Farewell {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let gone = gone.clone();
    let inner = legacy_server();
    Arc::new(move |end| {
        let (farewell, served) = (Farewell(gone.clone()), inner(end));
        Box::pin(async move {
            served.await;
            drop(farewell);
        })
    })
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_nothing_running_in_any_state() {
    let (gone, mut heard) = mpsc::unbounded_channel();
    let home = Home::new();
    let host = home.host([("one", observed(&gone)), ("two", observed(&gone))]);
    host.settled().await;
    host.shutdown().await;
    assert!(
        heard.try_recv().is_ok() && heard.try_recv().is_ok(),
        "both ended before it returned"
    );

    // Also while it is still connecting.
    let host = home.host([("hung", hung_server())]);
    tokio::task::yield_now().await;
    let started = Instant::now();
    host.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_host_ends_everything() {
    let (gone, mut heard) = mpsc::unbounded_channel();
    let home = Home::new();
    let host = home.host([("one", observed(&gone))]);
    host.settled().await;
    drop(gone);
    drop(host);
    assert!(heard.recv().await.is_some(), "the server was dropped");
    assert!(
        heard.recv().await.is_none(),
        "and everything that could start another"
    );
}
