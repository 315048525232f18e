//! What a host tells of while it runs, and what it writes down.

use serde_json::json;
use toolway::{Host, HostEvent, HostOptions, Journal};
use toolway_types::ConnectionState;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_loss_and_a_return_are_told_in_order() {
    let server = scripted(|message, _| match message["params"]["name"].as_str() {
        Some("mute") => Reply::Gone,
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("old", server)]);
    let mut events = host.subscribe();
    host.settled().await;
    let mute = toolway::CallOptions::new(toolway::Consent::Typed);
    let lost = host.call(request("old", "mute", "x"), mute).await;
    lost.expect_err("it dies of it");
    echo(&host, "old", "x").await.expect("it comes back");

    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        told.push(match event {
            HostEvent::StateChanged { from, to, .. } => {
                assert!(from.may_become(&to));
                match to {
                    ConnectionState::Pending { attempt } => format!("pending {attempt}"),
                    to => to.as_str().to_owned(),
                }
            }
            HostEvent::CatalogChanged { revision, server } => {
                assert!(revision <= host.snapshot().catalog.revision);
                format!("catalogue of {server}")
            }
            HostEvent::Notice { message, .. } => message,
            HostEvent::Reloaded(_) => panic!("nobody reloaded"),
            HostEvent::ResourceUpdated { .. } => panic!("no resource changed"),
            HostEvent::QuestionOpened { .. } | HostEvent::QuestionClosed { .. } => {
                panic!("nobody is asked")
            }
        });
    }
    assert_eq!(
        told,
        [
            "connected",
            "catalogue of old",
            "the server closed the connection; trying again",
            "pending 1",
            "catalogue of old",
            "connected",
            "catalogue of old",
        ]
    );
    host.shutdown().await;
}

#[tokio::test]
async fn what_happens_to_a_connection_stands_in_its_journal() {
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let home = Home::new();
    let logs = home.path().join("logs");
    let options = HostOptions {
        journal: Some(Journal::in_directory(logs.clone())),
        ..home.options()
    };
    let plan = home.plan(&json!({
        "loud": { "command": "python3", "args": [SCRIPT, "grumble"] },
        "absent": { "command": "toolway-test-no-such-program" },
    }));
    let host = Host::start(plan, options);
    host.settled().await;
    echo(&host, "loud", "hello").await.expect("an answer");
    let die = toolway::CallOptions::new(toolway::Consent::Typed);
    host.call(request("loud", "die", "x"), die)
        .await
        .expect_err("it dies of it");
    host.ready("loud").await;
    host.shutdown().await;

    let read = |server: &str| std::fs::read_to_string(logs.join(server)).expect("a journal");
    let loud = read("loud.log");
    for part in [
        "connected (legacy, 2025-06-18)",
        "then I grumble more",
        "I die",
        "lost: the server process ended (exit status: 9)",
        "trying again in",
        "tools/call",
    ] {
        assert!(loud.contains(part), "`{part}` is missing in\n{loud}");
    }
    let absent = read("absent.log");
    assert!(absent.contains("not connected: cannot start"), "{absent}");
    assert!(absent.contains("not tried again by itself"), "{absent}");
}
