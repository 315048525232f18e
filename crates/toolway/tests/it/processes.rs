//! Processes that are started again and again.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolway::{Host, HostEvent, HostOptions, RetryFirst};
use toolway_types::{ConnectionState, FailureKind, Untrusted};

use crate::support::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");

fn entry(manners: &[&str]) -> Value {
    let mut args = vec![SCRIPT];
    args.extend(manners);
    json!({ "command": "python3", "args": args })
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .map(Iterator::count)
        .unwrap_or_default()
}

/// How many processes carry this value in their environment.
fn carriers(canary: &Path) -> usize {
    let canary = canary.display().to_string();
    let all = std::fs::read_dir("/proc").expect("a process list");
    all.flatten()
        .filter(|process| {
            std::fs::read(process.path().join("environ"))
                .is_ok_and(|it| String::from_utf8_lossy(&it).contains(&canary))
        })
        .count()
}

#[tokio::test]
async fn rel_03_processes_that_never_answer_are_gone_before_the_next_one_starts() {
    let home = Home::new();
    let canary = home.path().to_owned();
    let servers = json!({ "mute": {
        "command": "sh",
        "args": ["-c", "exec sleep 1000"],
        "env": { "CANARY": canary },
    } });
    let plan = home.plan_with(&servers, &[("MCP_TIMEOUT", "20")]);
    let host = Host::start(plan, home.options());
    host.settled().await;
    let files = open_files();
    for _ in 0..30 {
        let state = host.reconnect("mute").await.expect("a known server");
        let ConnectionState::Failed(failure) = state else {
            panic!("{state:?}")
        };
        assert_eq!(failure.kind, FailureKind::TimedOut);
        assert!(carriers(&canary) <= 1, "each was gone before the next");
    }
    // What failed is reported before it is cleared away, so the last one may still be going.
    host.shutdown().await;
    assert_eq!(carriers(&canary), 0);
    assert!(open_files() <= files, "{} over {files}", open_files());
}

/// Lets the time that a connection waits pass at once. Only the host's clock moves.
async fn skip(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn rel_04_a_crashing_process_fails_with_its_last_words() {
    let home = Home::new();
    let options = HostOptions {
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    let plan = home.plan(&json!({ "crashing": entry(&["grumble", "crash"]) }));
    let host = Host::start(plan, options);
    let mut events = host.subscribe();
    let mut attempts = Vec::new();
    let failure = loop {
        let HostEvent::StateChanged { to, .. } = events.recv().await.expect("the host runs") else {
            continue;
        };
        match to {
            ConnectionState::Pending { attempt } => {
                attempts.push(attempt);
                skip(Duration::from_secs(30)).await;
            }
            ConnectionState::Failed(failure) => break failure,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(attempts, [2, 3, 4, 5]);
    let last_words: Vec<&str> = failure.stderr.iter().map(Untrusted::as_received).collect();
    assert_eq!(last_words, ["first I grumble", "then I grumble more"]);
    host.shutdown().await;
}
