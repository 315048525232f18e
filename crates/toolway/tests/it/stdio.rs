//! Servers that are processes, with the manners that real ones have.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use toolway::{CallError, CallFault, CallOptions, Consent, Host};
use toolway_types::{Era, FailureKind};

use crate::support::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");

fn entry(manners: &[&str]) -> Value {
    let mut args = vec![SCRIPT];
    args.extend(manners);
    json!({ "command": "python3", "args": args })
}

fn start(home: &Home, servers: &Value) -> Host {
    Host::start(home.plan(servers), home.options())
}

async fn echoes(host: &Host, server: &str) {
    assert_eq!(
        text_of(&echo(host, server, "hällo").await.expect("an answer")),
        "hällo"
    );
    assert_eq!(facts(host, server).era, Era::Legacy);
}

#[tokio::test]
async fn a_process_with_any_of_the_common_manners_connects() {
    let home = Home::new();
    let host = start(
        &home,
        &json!({
            "plain": entry(&[]),
            "banner": entry(&["banner"]),
            "grumbler": entry(&["grumble"]),
            "touchy": entry(&["touchy"]),
            "silent": entry(&["silent"]),
        }),
    );
    host.settled().await;
    for server in ["plain", "banner", "grumbler", "touchy", "silent"] {
        echoes(&host, server).await;
        assert_eq!(facts(&host, server).protocol_version, "2025-06-18");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn rel_05_a_server_that_floods_its_stdout_works_and_is_said_to() {
    let home = Home::new();
    let host = start(
        &home,
        &json!({ "loud": entry(&["chatter"]), "quiet": entry(&["banner"]) }),
    );
    host.settled().await;
    echoes(&host, "loud").await;
    let mut snapshots = host.watch();
    let snapshot = snapshots
        .wait_for(|snapshot| {
            snapshot
                .server("loud")
                .is_some_and(|it| !it.warnings.is_empty())
        })
        .await
        .expect("a snapshot")
        .clone();
    let warnings = |server: &str| snapshot.server(server).expect("a server").warnings.clone();
    assert!(
        warnings("loud")[0].contains("stdout"),
        "{:?}",
        warnings("loud")
    );
    assert_eq!(warnings("quiet"), Vec::<String>::new());
    host.shutdown().await;
}

#[tokio::test]
async fn the_era_of_the_entry_is_obeyed() {
    let home = Home::new();
    let mut pinned = entry(&["touchy"]);
    pinned["protocol"] = json!("legacy");
    let mut modern = entry(&[]);
    modern["protocol"] = json!("2026-07-28");
    let host = start(&home, &json!({ "pinned": pinned, "modern": modern }));
    host.settled().await;
    echoes(&host, "pinned").await;
    let failure = failure(&host, "modern");
    assert_eq!(failure.kind, FailureKind::Protocol);
    assert!(
        failure.message.contains("`server/discover`"),
        "{}",
        failure.message
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_process_that_cannot_be_started_or_crashes_fails_alone_with_its_last_words() {
    let home = Home::new();
    let host = start(
        &home,
        &json!({
            "absent": { "command": "toolway-test-no-such-program" },
            "crashing": entry(&["grumble", "crash"]),
            "plain": entry(&[]),
        }),
    );
    host.settled().await;
    let absent = failure(&host, "absent");
    assert_eq!(absent.kind, FailureKind::Spawn);
    assert!(
        absent.message.contains("`toolway-test-no-such-program`"),
        "{}",
        absent.message
    );
    let crashed = failure(&host, "crashing");
    assert_eq!(crashed.kind, FailureKind::Closed);
    assert!(
        crashed.message.contains("exit status: 3"),
        "{}",
        crashed.message
    );
    let last_words: Vec<&str> = crashed
        .stderr
        .iter()
        .map(toolway_types::Untrusted::as_received)
        .collect();
    assert_eq!(last_words, ["first I grumble", "then I grumble more"]);
    echoes(&host, "plain").await;
    host.shutdown().await;
}

#[tokio::test]
async fn no_handshake_in_time_fails_with_the_last_stderr_lines() {
    let home = Home::new();
    let servers = json!({ "hung": entry(&["grumble", "silent", "hang"]) });
    // Longer than the probe's patience, so that both handshakes have been tried.
    let plan = home.plan_with(&servers, &[("MCP_TIMEOUT", "3000")]);
    let host = Host::start(plan, home.options());
    host.settled().await;
    let failure = failure(&host, "hung");
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(
        failure.message,
        "not connected after 3 s: it did not answer the handshake"
    );
    let last_words: Vec<&str> = failure
        .stderr
        .iter()
        .map(toolway_types::Untrusted::as_received)
        .collect();
    assert_eq!(last_words, ["first I grumble", "then I grumble more"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_process_that_dies_in_a_call_fails_the_call_and_is_started_again() {
    let home = Home::new();
    let host = start(&home, &json!({ "frail": entry(&[]) }));
    host.settled().await;
    let options = || CallOptions::new(Consent::Typed);
    let (waiting, dying) = tokio::join!(
        host.call(request("frail", "mute", "x"), options()),
        host.call(request("frail", "die", "x"), options()),
    );
    for outcome in [waiting, dying] {
        let Err(CallError::Failed(_, CallFault::Transport { message, .. })) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            message.as_received().contains("exit status: 9"),
            "{message}"
        );
    }
    // The next call waits for the next process.
    echoes(&host, "frail").await;
    host.shutdown().await;
}

#[tokio::test]
async fn rel_10_a_killed_server_fails_a_thousand_calls_in_flight_within_a_second() {
    let home = Home::new();
    // It is gone when it has read a thousand calls.
    let host = start(&home, &json!({ "frail": entry(&["mortal"]) }));
    host.settled().await;
    let outcomes = join_all((0..1000).map(|_| async {
        let options = CallOptions::new(Consent::Typed);
        let outcome = host.call(request("frail", "mute", "x"), options).await;
        (outcome, Instant::now())
    }))
    .await;
    for (outcome, _) in &outcomes {
        let Err(CallError::Failed(_, CallFault::Transport { message, .. })) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(message.as_received().contains("signal: 9"), "{message}");
    }
    let ends = || outcomes.iter().map(|(_, end)| *end);
    let spread = ends()
        .max()
        .zip(ends().min())
        .map(|(last, first)| last - first);
    assert!(spread < Some(Duration::from_secs(1)), "{spread:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn rel_11_an_answer_over_the_cap_fails_its_call_and_no_other() {
    let home = Home::new();
    let host = start(&home, &json!({ "large": entry(&[]) }));
    host.settled().await;
    let bytes = (17 << 20).to_string();
    let huge = host.call(
        request("large", "huge", &bytes),
        CallOptions::new(Consent::Typed),
    );
    let (huge, small) = tokio::join!(huge, echo(&host, "large", "small"));
    assert!(
        matches!(huge, Err(CallError::Failed(_, CallFault::TooLarge { .. }))),
        "{huge:?}"
    );
    assert_eq!(text_of(&small.expect("an answer")), "small");
    host.shutdown().await;
}

/// A process whose end can be awaited.
async fn lifeline(home: &Home, manners: &[&str]) -> (Host, UnixStream) {
    let path = home.path().join("lifeline");
    let listener = UnixListener::bind(&path).expect("a socket");
    let mut server = entry(manners);
    server["env"] = json!({ "TEST_SOCKET": path.display().to_string() });
    let host = start(home, &json!({ "process": server }));
    let (stream, _) = listener.accept().await.expect("the process starts");
    (host, stream)
}

async fn ends(mut stream: UnixStream) {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest))
        .await
        .expect("the process is gone in time")
        .expect("the stream can be read");
}

#[tokio::test]
async fn shutdown_ends_the_process_connected_or_not() {
    for manners in [&[][..], &["silent", "hang"][..]] {
        let home = Home::new();
        let (host, stream) = lifeline(&home, manners).await;
        if manners.is_empty() {
            host.settled().await;
        }
        host.shutdown().await;
        // Already gone: nothing has to be waited for.
        let mut byte = [0];
        assert_eq!(stream.try_read(&mut byte).expect("the end is there"), 0);
    }
}

#[tokio::test]
async fn dropping_the_host_ends_the_process() {
    let home = Home::new();
    let (host, stream) = lifeline(&home, &[]).await;
    host.settled().await;
    drop(host);
    ends(stream).await;
}
