//! Servers that die, hang or fall silent in the middle of calls: REL-09, REL-10, REL-12, REL-22.

use std::time::Instant;

use futures_util::future::join_all;

use super::*;

/// REL-10 over one transport.
async fn dies_with_calls_in_flight(way: &str, mut peer: Peer) {
    const CALLS: u64 = 1000;
    let check = LeakCheck::begin();
    let home = Home::new();
    let host = host(&home, &json!({ "victim": peer.entry(&check) }));
    connected(&host, "victim").await;
    let outcomes = RequestLedger::new();
    let calls = join_all((0..CALLS).map(|_| async {
        let ticket = outcomes.accept();
        let outcome = call(&host, "victim", "hang", json!({})).await;
        outcomes.settle(ticket, word(&outcome));
        Instant::now()
    }));
    let killing = async {
        // All of them have arrived: the server counts them.
        while counted(&host, "victim").await <= CALLS {}
        let killed = Instant::now();
        peer.kill(&check);
        killed
    };
    let (ended, killed) = tokio::join!(calls, killing);
    let slowest = ended.iter().max().map(|last| last.duration_since(killed));
    assert!(
        slowest <= Some(Duration::from_secs(1)),
        "{way}: {slowest:?}"
    );
    outcomes.assert_each_exactly_once();
    assert_eq!(
        outcomes.tally().keys().collect::<Vec<_>>(),
        ["transport"],
        "{way}"
    );
    connected(&host, "victim").await;
    echoes(&host, "victim").await;
    host.shutdown().await;
    drop(peer);
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_10_a_thousand_calls_fail_at_once_when_their_process_is_killed() {
    dies_with_calls_in_flight("stdio", Peer::stdio(script("victim"))).await;
}

#[tokio::test]
async fn rel_10_a_thousand_calls_fail_at_once_when_their_http_server_is_killed() {
    dies_with_calls_in_flight(
        "http",
        Peer::listening(script("victim"), ListeningTransport::Http),
    )
    .await;
}

#[tokio::test]
async fn rel_10_a_thousand_calls_fail_at_once_when_their_sse_server_is_killed() {
    dies_with_calls_in_flight(
        "sse",
        Peer::listening(script("victim"), ListeningTransport::Sse),
    )
    .await;
}

#[tokio::test]
async fn rel_10_a_thousand_calls_fail_at_once_when_their_websocket_server_is_killed() {
    dies_with_calls_in_flight(
        "ws",
        Peer::listening(script("victim"), ListeningTransport::WebSocket),
    )
    .await;
}

#[tokio::test]
async fn rel_12_a_process_that_is_stopped_costs_only_its_own_calls() {
    let check = LeakCheck::begin();
    let home = Home::new();
    let entry = |name: &str| ScriptedServer::new(script(name)).entry_with_env([check.env()]);
    let host = host(
        &home,
        &json!({ "frozen": entry("frozen"), "free": entry("free") }),
    );
    for server in ["frozen", "free"] {
        connected(&host, server).await;
    }
    let frozen = check
        .canary()
        .processes()
        .into_iter()
        .find(|process| process.command.contains(r#""name":"frozen""#))
        .expect("its process");
    signal(frozen.pid, rustix::process::Signal::STOP);
    let limit = Duration::from_millis(300);
    let outcome = call_within(&host, limit, "frozen", "echo", json!({ "text": "x" })).await;
    assert_eq!(word(&outcome), "timed out");
    echoes(&host, "free").await;
    signal(frozen.pid, rustix::process::Signal::CONT);
    // Its late answer is nobody's; the next one is its own.
    echoes(&host, "frozen").await;
    // And it is ended even while it is stopped.
    signal(frozen.pid, rustix::process::Signal::STOP);
    host.shutdown().await;
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_09_late_and_endless_answers_free_their_call_and_disturb_no_other() {
    for (way, peer) in peers(&script("dawdler")) {
        let check = LeakCheck::begin();
        let home = Home::new();
        let host = host(&home, &json!({ "dawdler": peer.entry(&check) }));
        connected(&host, "dawdler").await;
        let limit = Duration::from_millis(200);
        for tool in ["hang", "late"] {
            let outcome = call_within(&host, limit, "dawdler", tool, json!({})).await;
            assert_eq!(word(&outcome), "timed out", "{way}: {tool}");
            echoes(&host, "dawdler").await;
        }
        // Progress extends only the idle limit, never the whole one.
        let options = CallOptions {
            timeout: Some(limit),
            idle_timeout: Some(limit / 2),
            progress: Some(std::sync::Arc::new(|_| {})),
            ..CallOptions::new(Consent::Typed)
        };
        let endless = ask("dawdler", "progress", &json!({ "ms": 5 }));
        assert_eq!(
            word(&host.call(endless, options).await),
            "timed out",
            "{way}"
        );
        echoes(&host, "dawdler").await;
        host.shutdown().await;
        drop(peer);
        check.assert_clean().await;
    }
}

#[tokio::test]
async fn rel_22_doubled_mistyped_and_unknown_answers_reach_the_right_call_or_nobody() {
    for (way, peer) in peers(&script("sloppy")) {
        let check = LeakCheck::begin();
        let home = Home::new();
        let host = host(&home, &json!({ "sloppy": peer.entry(&check) }));
        connected(&host, "sloppy").await;
        let outcome = call(&host, "sloppy", "twice", json!({})).await;
        assert_eq!(text_of(&outcome.expect("an answer")), "first", "{way}");
        for (kind, text) in [
            ("string", "mistyped"),
            ("float", "mistyped"),
            ("unknown", "well typed"),
            ("null", "well typed"),
        ] {
            let limit = Duration::from_secs(5);
            let outcome =
                call_within(&host, limit, "sloppy", "mistyped", json!({ "as": kind })).await;
            let outcome = outcome.unwrap_or_else(|error| panic!("{way}, {kind}: {error}"));
            assert_eq!(text_of(&outcome), text, "{way}: {kind}");
        }
        // Whatever a server means by this, it is an end.
        let both = call(&host, "sloppy", "mistyped", json!({ "as": "both" }));
        let ended = tokio::time::timeout(Duration::from_secs(5), both).await;
        assert!(ended.is_ok(), "{way}: the call hangs");
        let mangled = call(&host, "sloppy", "mangled", json!({}));
        let ended = tokio::time::timeout(Duration::from_secs(5), mangled).await;
        assert!(ended.is_ok(), "{way}: the call hangs");
        echoes(&host, "sloppy").await;
        host.shutdown().await;
        drop(peer);
        check.assert_clean().await;
    }
}

#[tokio::test]
async fn answers_in_single_bytes_are_whole_messages() {
    let slow = Script {
        slice: 1,
        ..script("sliced")
    };
    for (_, peer) in peers(&slow) {
        let check = LeakCheck::begin();
        let home = Home::new();
        let host = host(&home, &json!({ "sliced": peer.entry(&check) }));
        connected(&host, "sliced").await;
        echoes(&host, "sliced").await;
        host.shutdown().await;
        drop(peer);
        check.assert_clean().await;
    }
}

#[tokio::test]
async fn rel_04_a_crash_loop_ends_at_failed_with_the_last_words_and_can_be_reset() {
    let check = LeakCheck::begin();
    let home = Home::new();
    let broken = ScriptedServer::new(Script {
        complaint: Some("no licence".to_owned()),
        exit_at_start: Some(4),
        ..script("broken")
    });
    // One attempt only: what happens between attempts is tested with virtual time.
    let host = Host::start(
        home.plan(&json!({ "broken": broken.entry_with_env([check.env()]) })),
        home.options(),
    );
    host.settled().await;
    let ConnectionState::Failed(failure) = shown(&host, "broken").state else {
        panic!("{:?}", shown(&host, "broken").state)
    };
    let words: Vec<&str> = failure
        .stderr
        .iter()
        .map(toolway_types::Untrusted::as_received)
        .collect();
    assert_eq!(words, ["no licence"]);
    let again = host.reconnect("broken").await.expect("a known server");
    assert!(matches!(again, ConnectionState::Failed(_)), "{again:?}");
    host.shutdown().await;
    check.assert_clean().await;
}
