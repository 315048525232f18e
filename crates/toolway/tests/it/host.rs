//! Servers and calls as a front-end sees them.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use serde_json::json;
use tokio::sync::mpsc;
use toolway::{CallError, CallFault, CallOptions, Consent, Host, HostOptions, HostSnapshot};
use toolway_types::{ConnectionState, Era};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_server_that_is_connected_anew_leaves_what_was_made_of_the_others() {
    let home = Home::new();
    let host = home.host([("calm", legacy_server()), ("wild", legacy_server())]);
    host.settled().await;
    echo(&host, "calm", "x").await.expect("an answer");
    let before = host.snapshot();
    host.reconnect("wild").await.expect("a known server");
    let after = host.snapshot();
    assert!(after.catalog.revision > before.catalog.revision + 1);
    // The tool, and the schema that was compiled for the call, are the same object.
    let is_same_tool = |server: &str| {
        let tool = |snapshot: &HostSnapshot| {
            let tools = snapshot.catalog.tools_of(&name(server));
            Arc::clone(tools[0].tool())
        };
        Arc::ptr_eq(&tool(&before), &tool(&after))
    };
    assert!(is_same_tool("calm"));
    assert!(!is_same_tool("wild"), "nothing outlives the session");
    // So is what is shown of its server.
    assert!(Arc::ptr_eq(&before.servers[0], &after.servers[0]));
    assert!(!Arc::ptr_eq(&before.servers[1], &after.servers[1]));
    echo(&host, "calm", "y").await.expect("an answer");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn both_eras_connect_and_answer() {
    let home = Home::new();
    let host = home.host([("old", legacy_server()), ("new", modern_server())]);
    host.settled().await;

    assert_eq!(facts(&host, "old").era, Era::Legacy);
    assert_eq!(facts(&host, "new").era, Era::Modern);
    assert_eq!(facts(&host, "new").server_info["name"], "modern");
    assert_eq!(
        shown(&host, "old").counts.map(|counts| counts.tools),
        Some(2)
    );
    let names: Vec<String> = host
        .snapshot()
        .catalog
        .tools()
        .map(|tool| tool.name.clone())
        .collect();
    assert_eq!(
        names,
        ["mcp__new__echo", "mcp__old__echo", "mcp__old__mute"]
    );

    for server in ["old", "new"] {
        let outcome = echo(&host, server, "hello").await.expect("an answer");
        assert_eq!(text_of(&outcome), "hello");
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_server_that_is_still_connecting() {
    let home = Home::new();
    let host = home.host([("old", legacy_server())]);
    assert!(shown(&host, "old").is_pending());
    assert_eq!(
        text_of(&echo(&host, "old", "early").await.expect("an answer")),
        "early"
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_server_that_is_not_there_says_so() {
    let home = Home::new();
    let dead = scripted(|_, _| Reply::Gone);
    let host = home.host([("dead", dead)]);
    let Err(CallError::Unavailable { server, state }) = echo(&host, "dead", "x").await else {
        panic!("it cannot answer")
    };
    assert_eq!(server.as_str(), "dead");
    assert!(matches!(state, ConnectionState::Failed(_)));
    assert!(echo(&host, "nobody", "x").await.is_err());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_is_seen_by_the_server() {
    let (told, mut heard) = mpsc::unbounded_channel::<Value>();
    let server = scripted(move |message, _| {
        if message["method"] == "tools/call" || message["method"] == "notifications/cancelled" {
            told.send(message.clone()).expect("the test listens");
        }
        legacy(message)
    });
    let home = Home::new();
    let host = home.host([("old", server)]);
    host.settled().await;
    let call = host.call(
        request("old", "mute", "x"),
        CallOptions::new(Consent::Typed),
    );
    let asked = tokio::select! {
        _ = call => panic!("nobody answers"),
        asked = heard.recv() => asked.expect("the call arrives"),
    };
    let cancelled = heard.recv().await.expect("the cancellation arrives");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    // And the session goes on.
    assert_eq!(
        text_of(&echo(&host, "old", "next").await.expect("an answer")),
        "next"
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_times_out() {
    let home = Home::new();
    let host = home.host([("old", legacy_server())]);
    let limit = std::time::Duration::from_secs(7);
    let options = CallOptions {
        timeout: Some(limit),
        ..CallOptions::new(Consent::Typed)
    };
    let outcome = host.call(request("old", "mute", "x"), options).await;
    assert!(
        matches!(outcome, Err(CallError::Failed(_, CallFault::TimedOut { after, .. })) if after == limit)
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_malformed_tool_among_hundreds_costs_only_itself() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("tools/list") => {
            let mut tools: Vec<Value> = (0..300).map(|n| tool(&format!("tool-{n}"))).collect();
            tools[123] = json!({ "name": "broken", "inputSchema": "none" });
            Reply::Result(json!({ "tools": tools }))
        }
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("many", server)]);
    host.settled().await;
    let many = shown(&host, "many");
    assert_eq!(many.counts.map(|counts| counts.tools), Some(299));
    assert_eq!(many.warnings.len(), 1, "{:?}", many.warnings);
    assert!(many.warnings[0].contains("`broken`"));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_a_warning() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
        })),
        Some("prompts/list") => Reply::Error(-32603),
        Some("resources/list") => Reply::Result(json!({ "resources": [
            { "uri": "file:///a", "name": "a" },
        ] })),
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("half", server)]);
    host.settled().await;
    assert_eq!(facts(&host, "half").server_info, Value::Null);
    let half = shown(&host, "half");
    let counts = half.counts.expect("it is connected");
    assert_eq!((counts.tools, counts.resources, counts.prompts), (2, 1, 0));
    assert_eq!(half.warnings.len(), 1, "{:?}", half.warnings);
    assert!(
        half.warnings[0].starts_with("`prompts/list` failed"),
        "{:?}",
        half.warnings
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_makes_a_new_catalogue_and_leaves_the_old_one_alone() {
    let listed = Mutex::new(0);
    let server = scripted(move |message, speaker| match message["method"].as_str() {
        Some("tools/call") => {
            speaker.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            legacy(message)
        }
        Some("tools/list") => {
            let mut listed = listed.lock().expect("one thread");
            *listed += 1;
            match *listed {
                1 => Reply::Result(json!({ "tools": [tool("echo")] })),
                2 => Reply::Result(json!({ "tools": [tool("echo"), tool("fresh")] })),
                _ => Reply::Error(-32603),
            }
        }
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("old", server)]);
    host.settled().await;
    let before = host.snapshot();
    let mut snapshots = host.watch();
    echo(&host, "old", "x").await.expect("an answer");
    snapshots
        .wait_for(|snapshot| snapshot.catalog.tools().count() == 2)
        .await
        .expect("a new list");
    assert_eq!(
        before.catalog.tools().count(),
        1,
        "a catalogue never changes"
    );
    assert!(host.snapshot().catalog.revision > before.catalog.revision);

    // The third list fails: the second stays.
    let revision = host.snapshot().catalog.revision;
    echo(&host, "old", "y").await.expect("an answer");
    snapshots
        .wait_for(|snapshot| snapshot.catalog.revision > revision)
        .await
        .expect("a report");
    assert_eq!(host.snapshot().catalog.tools().count(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn what_the_plan_does_not_admit_is_shown_with_its_reason_and_never_started() {
    let home = Home::new();
    let plan = home.plan(&json!({
        "off": { "command": "/bin/false", "disabled": true },
        "broken": { "type": "stdio" },
        "unheard": { "type": "pigeon", "url": "https://a.test" },
    }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    for (server, word) in [
        ("off", "disabled"),
        ("broken", "invalid"),
        ("unheard", "invalid"),
    ] {
        let shown = shown(&host, server);
        assert_eq!(shown.verdict_word, word, "{server}");
        let ConnectionState::Disabled { reason } = shown.state else {
            panic!("{server} runs")
        };
        assert_eq!(Some(reason), shown.reason);
        assert!(echo(&host, server, "x").await.is_err());
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_selected_servers_connect() {
    let home = Home::new();
    let in_process = vec![(name("a"), legacy_server()), (name("b"), legacy_server())];
    let options = HostOptions {
        in_process,
        only: Some(vec![name("b")]),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    assert!(matches!(
        shown(&host, "a").state,
        ConnectionState::Disabled { .. }
    ));
    assert_eq!(facts(&host, "b").era, Era::Legacy);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_type_sdk_is_served_by_the_object_of_its_name() {
    let home = Home::new();
    let plan = home.plan(&json!({
        "mine": { "type": "sdk", "protocol": "legacy" },
        "nobody": { "type": "sdk" },
    }));
    let in_process = vec![(name("mine"), legacy_server())];
    let host = Host::start(
        plan,
        HostOptions {
            in_process,
            ..home.options()
        },
    );
    host.settled().await;
    assert_eq!(
        text_of(&echo(&host, "mine", "hi").await.expect("an answer")),
        "hi"
    );
    assert!(
        failure(&host, "nobody")
            .message
            .contains("no server object")
    );
    host.shutdown().await;
}
