//! A new plan takes over from the old one while calls run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolway::{
    CallError, CallFault, CallOptions, Changes, Consent, Host, HostEvent, HostOptions,
    InProcessServer,
};
use toolway_config::Plan;
use toolway_types::ConnectionState;

use crate::support::*;

fn start(home: &Home, plan: Plan, servers: Vec<(&str, InProcessServer)>) -> Host {
    let options = HostOptions {
        in_process: servers
            .into_iter()
            .map(|(server, object)| (name(server), object))
            .collect(),
        ..home.options()
    };
    Host::start(plan, options)
}

fn words(changes: &Changes) -> [Vec<&str>; 4] {
    [
        &changes.started,
        &changes.stopped,
        &changes.replaced,
        &changes.kept,
    ]
    .map(|names| {
        names
            .iter()
            .map(toolway_types::ServerName::as_str)
            .collect()
    })
}

#[tokio::test(start_paused = true)]
async fn only_what_changed_starts_stops_or_is_replaced() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = |starts: &Arc<AtomicUsize>| -> InProcessServer {
        let starts = Arc::clone(starts);
        let inner = legacy_server();
        Arc::new(move |end| {
            starts.fetch_add(1, Ordering::SeqCst);
            inner(end)
        })
    };
    let home = Home::new();
    let servers = vec![
        ("kept", counted(&starts)),
        ("changed", legacy_server()),
        ("off", legacy_server()),
        ("on", legacy_server()),
        ("fresh", legacy_server()),
        ("gone", legacy_server()),
    ];
    let plan = home.plan(&json!({
        "kept": { "type": "sdk" },
        "changed": { "type": "sdk", "timeout": 1000 },
        "off": { "type": "sdk" },
        "on": { "type": "sdk", "disabled": true },
        "fresh": { "type": "sdk", "disabled": true },
        "stays-off": { "type": "sdk", "disabled": true },
        "stdio": { "command": "/nonexistent/one" },
    }));
    let host = start(&home, plan, servers);
    host.settled().await;
    let mut events = host.subscribe();
    let changes = host
        .apply(home.plan(&json!({
            "kept": { "type": "sdk" },
            "changed": { "type": "sdk", "timeout": 2000 },
            "off": { "type": "sdk", "disabled": true },
            "on": { "type": "sdk" },
            "fresh": { "type": "sdk", "disabled": true },
            "stays-off": { "type": "sdk", "disabled": true },
            "brand-new": { "command": "/nonexistent/two" },
        })))
        .await;
    assert_eq!(
        words(&changes),
        [
            vec!["on", "brand-new"],
            vec!["off", "stdio"],
            vec!["changed"],
            vec!["gone", "kept"],
        ]
    );
    host.settled().await;
    for server in ["kept", "changed", "on"] {
        echo(&host, server, "x").await.expect("an answer");
    }
    let Err(CallError::Unavailable { state, .. }) = echo(&host, "off", "x").await else {
        panic!("it is switched off")
    };
    assert!(matches!(state, ConnectionState::Disabled { .. }));
    assert!(host.snapshot().server("stdio").is_none());
    assert_eq!(shown(&host, "brand-new").state.as_str(), "failed");
    assert_eq!(starts.load(Ordering::SeqCst), 1, "it was left alone");

    let mut told = false;
    while let Ok(event) = events.try_recv() {
        match event {
            HostEvent::StateChanged { from, to, .. } => assert!(from.may_become(&to)),
            HostEvent::Reloaded(seen) => {
                assert_eq!(seen, changes);
                told = true;
            }
            _ => {}
        }
    }
    assert!(told);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn reloading_asks_for_a_fresh_plan() {
    let home = Home::new();
    let host = home.host([("old", legacy_server())]);
    host.reload().await.expect_err("nobody makes plans here");
    host.shutdown().await;

    let fresh = home.plan(&json!({ "late": { "type": "sdk" } }));
    let options = HostOptions {
        in_process: vec![(name("late"), legacy_server())],
        replan: Some(Arc::new(move || fresh.clone())),
        ..home.options()
    };
    let plan = home.plan(&json!({ "late": { "type": "sdk", "disabled": true } }));
    let host = Host::start(plan, options);
    let changes = host.reload().await.expect("a plan");
    assert_eq!(words(&changes)[0], ["late"]);
    echo(&host, "late", "x").await.expect("an answer");
    let changes = host.reload().await.expect("a plan");
    assert!(changes.is_empty());
    host.shutdown().await;
}

/// A server whose tool `mute` answers when it is told to, with the number of its connection.
fn patient_server(answer: &Arc<Notify>) -> InProcessServer {
    let answer = Arc::clone(answer);
    let connections = Arc::new(AtomicUsize::new(0));
    Arc::new(move |end| {
        let number = connections.fetch_add(1, Ordering::SeqCst);
        let answer = Arc::clone(&answer);
        scripted(move |message, speaker| {
            if message["params"]["name"] == "mute" {
                let (answer, speaker) = (Arc::clone(&answer), speaker.clone());
                let id = message["id"].clone();
                tokio::spawn(async move {
                    answer.notified().await;
                    let text = format!("connection {number}");
                    let content = json!([{ "type": "text", "text": text }]);
                    let result = json!({ "content": content });
                    speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                });
            }
            legacy(message)
        })(end)
    })
}

fn timed(home: &Home, timeout: u64) -> Plan {
    home.plan(&json!({ "sdk": { "type": "sdk", "timeout": timeout } }))
}

#[tokio::test(start_paused = true)]
async fn rel_31_a_call_in_flight_finishes_on_the_old_connection() {
    let home = Home::new();
    let answer = Arc::new(Notify::new());
    let host = start(
        &home,
        timed(&home, 100_000),
        vec![("sdk", patient_server(&answer))],
    );
    host.settled().await;
    let in_flight = host.call(
        request("sdk", "mute", "x"),
        CallOptions::new(Consent::Typed),
    );
    let changing = async {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let changes = host.apply(timed(&home, 200_000)).await;
        assert_eq!(words(&changes)[2], ["sdk"]);
        // The new one serves while the old one still works.
        echo(&host, "sdk", "new").await.expect("an answer");
        tokio::time::sleep(Duration::from_secs(20)).await;
        answer.notify_waiters();
    };
    let (outcome, ()) = tokio::join!(in_flight, changing);
    assert_eq!(text_of(&outcome.expect("an answer")), "connection 0");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_31_an_old_connection_does_not_wait_for_ever() {
    let home = Home::new();
    let answer = Arc::new(Notify::new());
    let host = start(
        &home,
        timed(&home, 10_000_000),
        vec![("sdk", patient_server(&answer))],
    );
    host.settled().await;
    let started = tokio::time::Instant::now();
    let in_flight = host.call(
        request("sdk", "mute", "x"),
        CallOptions::new(Consent::Typed),
    );
    let changing = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        host.apply(timed(&home, 20_000_000)).await;
    };
    let (outcome, ()) = tokio::join!(in_flight, changing);
    assert!(
        matches!(outcome, Err(CallError::Failed(_, CallFault::Cancelled))),
        "{outcome:?}"
    );
    assert_eq!(started.elapsed().as_secs(), 30);
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rel_31_no_call_is_lost_while_definitions_change_a_hundred_times() {
    let home = Home::new();
    let (plan, other) = (timed(&home, 100_000), timed(&home, 200_000));
    let host = Arc::new(start(
        &home,
        plan.clone(),
        vec![("sdk", legacy_server()), ("calm", legacy_server())],
    ));
    host.settled().await;
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (host, over) = (Arc::clone(&host), Arc::clone(&over));
            tokio::spawn(async move {
                let mut answered = 0_u32;
                while !over.load(Ordering::SeqCst) {
                    for server in ["sdk", "calm"] {
                        let text = format!("{caller}-{answered}");
                        let outcome = echo(&host, server, &text).await.expect("an answer");
                        assert_eq!(text_of(&outcome), text, "each gets its own");
                        answered += 1;
                    }
                    tokio::task::yield_now().await;
                }
                answered
            })
        })
        .collect();
    for round in 0..100 {
        let plan = if round % 2 == 0 { &other } else { &plan };
        let changes = host.apply(plan.clone()).await;
        assert_eq!(words(&changes)[2], ["sdk"]);
        tokio::task::yield_now().await;
    }
    over.store(true, Ordering::SeqCst);
    for caller in callers {
        assert!(caller.await.expect("no call was lost") > 0);
    }
    let host = Arc::into_inner(host).expect("all callers are done");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rules_change_with_the_plan() {
    let home = Home::new();
    let host = start(&home, home.plan(&json!({})), vec![("old", legacy_server())]);
    echo(&host, "old", "x").await.expect("a person typed it");
    let settings = json!({ "permissions": { "deny": ["mcp__old"] } });
    let mut plan = home.plan(&json!({}));
    plan.permissions = denied(&settings);
    host.apply(plan).await;
    let refused = echo(&host, "old", "x").await;
    assert!(
        matches!(refused, Err(CallError::Failed(_, CallFault::Refused(_)))),
        "{refused:?}"
    );
    host.apply(home.plan(&json!({}))).await;
    echo(&host, "old", "x").await.expect("allowed again");
    host.shutdown().await;
}

fn denied(settings: &Value) -> toolway_config::Permissions {
    let origin = toolway_types::Origin::Program;
    let scope = toolway_types::Scope::User;
    toolway_config::Permissions::parse(&settings["permissions"], &origin, scope).0
}
