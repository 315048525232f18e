//! What an entry changes about its server's tools, through a whole host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolway::{Host, HostEvent, HostOptions, InProcessServer};

use crate::support::*;

fn names(host: &Host) -> Vec<String> {
    let snapshot = host.snapshot();
    let tools = snapshot.catalog.tools();
    tools.map(|tool| tool.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_changed_entry_changes_the_catalogue_and_leaves_the_connection_alone() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&starts);
    let inner = legacy_server();
    let server: InProcessServer = Arc::new(move |end| {
        counter.fetch_add(1, Ordering::SeqCst);
        inner(end)
    });
    let home = Home::new();
    let options = HostOptions {
        in_process: vec![(name("s"), server)],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({ "s": { "type": "sdk" } })), options);
    host.settled().await;
    assert!(names(&host).contains(&"mcp__s__echo".to_owned()));

    let mut events = host.subscribe();
    let entry =
        json!({ "s": { "type": "sdk", "includeTools": ["echo"], "alias": { "echo": "say" } } });
    let changes = host.apply(home.plan(&entry)).await;
    assert_eq!(changes.kept, [name("s")]);
    assert_eq!(names(&host), ["mcp__s__say"]);
    echo(&host, "s", "x").await.expect("an answer");
    assert_eq!(starts.load(Ordering::SeqCst), 1, "it was left alone");
    let mut told = false;
    while let Ok(event) = events.try_recv() {
        told |= matches!(event, HostEvent::CatalogChanged { server, .. } if server == name("s"));
    }
    assert!(told, "front-ends hear of it");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn without_prefix_the_programs_own_tools_have_their_own_names() {
    let home = Home::new();
    for (variable, expected) in [
        ("TOOLWAY_MCP_NO_PREFIX", "echo"),
        ("CLAUDE_AGENT_SDK_MCP_NO_PREFIX", "echo"),
        ("NOTHING", "mcp__s__echo"),
    ] {
        let options = HostOptions {
            in_process: vec![(name("s"), legacy_server())],
            ..home.options()
        };
        let host = Host::start(home.plan_with(&json!({}), &[(variable, "1")]), options);
        host.settled().await;
        assert!(names(&host).contains(&expected.to_owned()), "{variable}");
        echo(&host, "s", "x").await.expect("an answer");
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn sec_32_a_policy_silences_servers_and_lets_them_speak_again_without_a_restart() {
    let speaking = || {
        scripted(|message, _| match message["method"].as_str() {
            Some("initialize") => {
                let Reply::Result(mut result) = legacy(message) else {
                    unreachable!("a legacy server answers `initialize`")
                };
                result["instructions"] = json!("Say `please`.");
                Reply::Result(result)
            }
            _ => legacy(message),
        })
    };
    let home = Home::new();
    let options = HostOptions {
        in_process: vec![(name("listed"), speaking()), (name("object"), speaking())],
        ..home.options()
    };
    let entries = json!({ "listed": { "type": "sdk" } });
    let plan = || home.plan(&entries);
    let policy = home.path().join("system/managed-settings.json");
    std::fs::create_dir_all(policy.parent().unwrap()).unwrap();
    let sections = |host: &Host| -> Vec<String> {
        let snapshot = host.snapshot();
        let sections = snapshot.catalog.instructions.sections.iter();
        sections.map(|section| section.server.to_string()).collect()
    };
    let told =
        |host: &Host| ["listed", "object"].map(|server| facts(host, server).instructions.is_some());

    std::fs::write(&policy, r#"{"allowedMcpInstructions": []}"#).unwrap();
    let host = Host::start(plan(), options);
    let mut events = host.subscribe();
    host.settled().await;
    assert_eq!(sections(&host), Vec::<String>::new());
    assert_eq!(told(&host), [false, false]);
    let silent = host.snapshot().catalog.revision;

    std::fs::write(
        &policy,
        r#"{"deniedMcpInstructions": [{"serverName": "object"}]}"#,
    )
    .unwrap();
    let changes = host.apply(plan()).await;
    assert_eq!(changes.kept, [name("listed"), name("object")]);
    assert_eq!(sections(&host), ["listed"]);
    assert_eq!(told(&host), [true, false]);
    let snapshot = host.snapshot();
    let delta = snapshot.catalog.instructions.since(silent);
    assert_eq!(delta.to_string(), "## listed\n\n> Say `please`.");
    let spoken = snapshot.catalog.revision;

    std::fs::write(
        &policy,
        r#"{"deniedMcpInstructions": [{"serverName": "*"}]}"#,
    )
    .unwrap();
    host.apply(plan()).await;
    assert_eq!(sections(&host), Vec::<String>::new());
    assert_eq!(told(&host), [false, false]);
    let snapshot = host.snapshot();
    let delta = snapshot.catalog.instructions.since(spoken);
    assert_eq!(delta.to_string(), "## listed\n\n(no longer available)");
    while let Ok(event) = events.try_recv() {
        assert!(!format!("{event:?}").contains("please"), "{event:?}");
    }
    host.shutdown().await;
}
