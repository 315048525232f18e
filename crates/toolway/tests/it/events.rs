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
            HostEvent::LogLine { .. } => panic!("there is no journal"),
            HostEvent::LoginChanged { .. } => panic!("no login is wanted"),
            HostEvent::CallStarted { .. } | HostEvent::CallFinished { .. } => continue,
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

/// What was told of calls.
fn calls_told(events: &mut tokio::sync::broadcast::Receiver<HostEvent>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        // Never what they are called with.
        assert!(!format!("{event:?}").contains("between us"), "{event:?}");
        match event {
            HostEvent::CallStarted { call, caller, tool } => {
                told.push(format!("{call} {} {tool}", caller.id));
            }
            HostEvent::CallFinished { call, outcome, .. } => {
                told.push(format!("{call} {outcome:?}"));
            }
            _ => {}
        }
    }
    told
}

#[tokio::test]
async fn who_listens_hears_of_calls_and_not_of_their_arguments() {
    let home = Home::new();
    let host = home.host([("old", legacy_server())]);
    host.settled().await;
    echo(&host, "old", "nobody listens")
        .await
        .expect("an answer");
    let mut events = host.subscribe();
    let agent = toolway::Caller::new(toolway::CallerKind::Agent, "ada");
    let ada = host.attach(agent, toolway::AttachOptions::default());
    let options = |consent| toolway::CallOptions::new(consent);
    let typed = || options(toolway::Consent::Typed);
    let wish = |tool: &str| request("old", tool, "between us");
    ada.call(wish("echo"), typed()).await.expect("an answer");
    assert_eq!(calls_told(&mut events), ["1 ada old.echo", "1 Answered"]);
    let refused = ada.call(wish("echo"), options(toolway::Consent::Prompt));
    refused.await.expect_err("nobody is asked");
    assert_eq!(calls_told(&mut events), ["2 ada old.echo", "2 Refused"]);
    host.call(wish("none"), typed())
        .await
        .expect_err("no such tool");
    assert_eq!(calls_told(&mut events), ["3 owner old.none", "3 Unknown"]);
    // One that is given up was cancelled.
    let mute = tokio::time::timeout(
        std::time::Duration::from_millis(1),
        host.call(wish("mute"), typed()),
    );
    mute.await.expect_err("it never answers");
    assert_eq!(calls_told(&mut events), ["4 owner old.mute", "4 Cancelled"]);
    drop(ada);
    host.shutdown().await;
}

#[tokio::test]
async fn who_listens_hears_what_servers_log_as_the_journal_has_it() {
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let home = Home::new();
    let journal = Journal::in_directory(home.path().join("logs"));
    let options = HostOptions {
        journal: Some(journal.clone()),
        ..home.options()
    };
    let plan = home.plan(&json!({
        "loud": { "command": "python3", "args": [SCRIPT, "grumble"],
            "env": { "TOKEN": "then I grumble" } },
    }));
    let host = Host::start(plan, options);
    let mut events = host.subscribe();
    host.settled().await;
    host.shutdown().await;
    journal.flush().await;
    let mut lines = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let HostEvent::LogLine { server, line } = event {
            assert_eq!(server.as_str(), "loud");
            lines.push(line);
        }
    }
    let all = lines.join("\n");
    assert!(all.contains("connected (legacy, 2025-06-18)"), "{all}");
    // A secret of its entry is kept back here as there.
    assert!(
        all.contains("more") && !all.contains("then I grumble"),
        "{all}"
    );
    assert!(!all.contains("tools/list"), "{all}");
}
