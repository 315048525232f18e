//! What an entry changes about its server's tools, through a whole host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolway::{Host, HostEvent, HostOptions, InProcessServer};

use crate::support::*;

fn names(host: &Host) -> Vec<String> {
    let snapshot = host.snapshot();
    let tools = snapshot.catalog.tools.iter();
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
