//! Eras across runs, servers that go silent, and subscriptions, over real transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolway::{Host, HostOptions};
use toolway_types::{ConnectionState, Era};

use crate::http::{Server, reply};
use crate::support::*;

/// Connects once, with a memory, and tells the era and what the server heard meanwhile.
async fn run(home: &Home, server: &Server) -> (Era, Vec<String>) {
    let before = server.methods().len();
    let plan = home.plan(&json!({ "web": { "type": "http", "url": server.url } }));
    let options = HostOptions {
        era_memory: Some(home.path().join("state/eras.json")),
        ..home.options()
    };
    let host = Host::start(plan, options);
    host.settled().await;
    let era = facts(&host, "web").era;
    host.shutdown().await;
    let heard = server.methods().split_off(before);
    let handshake = |method: &String| matches!(&**method, "server/discover" | "initialize");
    (era, heard.into_iter().filter(handshake).collect())
}

#[tokio::test]
async fn an_era_is_remembered_across_runs_and_forgotten_when_it_proves_wrong() {
    let is_modern = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_modern);
    let server = Server::start(move |message, _| {
        if switch.load(Ordering::SeqCst) {
            return reply(message, modern(message));
        }
        reply(message, legacy(message))
    })
    .await;
    let home = Home::new();
    let probed = (
        Era::Legacy,
        vec!["server/discover".to_owned(), "initialize".to_owned()],
    );
    assert_eq!(run(&home, &server).await, probed);
    let at_once = (Era::Legacy, vec!["initialize".to_owned()]);
    assert_eq!(run(&home, &server).await, at_once, "no probe");

    is_modern.store(true, Ordering::SeqCst);
    let corrected = (
        Era::Modern,
        vec!["initialize".to_owned(), "server/discover".to_owned()],
    );
    assert_eq!(run(&home, &server).await, corrected, "in the same attempt");
    let at_once = (Era::Modern, vec!["server/discover".to_owned()]);
    assert_eq!(run(&home, &server).await, at_once);

    is_modern.store(false, Ordering::SeqCst);
    assert_eq!(run(&home, &server).await, probed, "and back");
    std::fs::write(home.path().join("state/eras.json"), "{ broken").expect("written");
    assert_eq!(
        run(&home, &server).await,
        probed,
        "a broken memory is as none"
    );
    let at_once = (Era::Legacy, vec!["initialize".to_owned()]);
    assert_eq!(run(&home, &server).await, at_once, "and is mended");
}

#[tokio::test]
async fn the_entry_wins_over_the_memory() {
    let server = Server::start(|message, _| {
        let both = match modern(message) {
            Reply::Error(_) => legacy(message),
            answer => answer,
        };
        reply(message, both)
    })
    .await;
    let home = Home::new();
    assert_eq!(run(&home, &server).await.0, Era::Modern);
    let entry = json!({ "type": "http", "url": server.url, "protocol": "legacy" });
    let options = HostOptions {
        era_memory: Some(home.path().join("state/eras.json")),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({ "web": entry })), options);
    host.settled().await;
    assert_eq!(facts(&host, "web").era, Era::Legacy);
    host.shutdown().await;
    let at_once = (Era::Modern, vec!["server/discover".to_owned()]);
    assert_eq!(run(&home, &server).await, at_once, "nor does it change it");
}

#[tokio::test]
async fn what_is_neither_a_present_nor_an_old_server_says_so() {
    let server = Server::start(|_, _| StatusCode::METHOD_NOT_ALLOWED.into_response()).await;
    let home = Home::new();
    let plan = home.plan(&json!({ "web": { "type": "http", "url": server.url } }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    let message = failure(&host, "web").message;
    let said = "and is no old HTTP+SSE server either (it opens no event stream)";
    assert!(message.contains(said), "{message}");
    host.shutdown().await;
    assert_eq!(server.methods(), ["server/discover", "initialize", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_everything_after_an_unknown_request_connects() {
    let started = Arc::new(AtomicUsize::new(0));
    let starts = Arc::clone(&started);
    let plain: toolway::InProcessServer = Arc::new(move |end| {
        starts.fetch_add(1, Ordering::SeqCst);
        let deaf = AtomicBool::new(false);
        let server = scripted(move |message, _| {
            if message["method"] == "server/discover" {
                deaf.store(true, Ordering::SeqCst);
            }
            if deaf.load(Ordering::SeqCst) {
                return Reply::Silence;
            }
            legacy(message)
        });
        server(end)
    });
    let home = Home::new();
    let begun = Instant::now();
    let host = home.host([("deaf", plain)]);
    host.settled().await;
    assert_eq!(facts(&host, "deaf").era, Era::Legacy);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert_eq!(started.load(Ordering::SeqCst), 2, "one fresh server");
    host.shutdown().await;
}

#[tokio::test]
async fn a_process_that_ends_on_the_probe_is_started_twice_once_and_then_never_again() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let home = Home::new();
    let starts = home.path().join("starts");
    let line = format!(
        "echo x >>'{}'; exec python3 '{script}' touchy",
        starts.display()
    );
    let entry = json!({ "command": "sh", "args": ["-c", line] });
    let memory = home.path().join("state/eras.json");
    for expected in [2, 3] {
        let options = HostOptions {
            era_memory: Some(memory.clone()),
            ..home.options()
        };
        let host = Host::start(home.plan(&json!({ "touchy": entry })), options);
        host.settled().await;
        assert_eq!(facts(&host, "touchy").era, Era::Legacy);
        host.shutdown().await;
        let count = std::fs::read_to_string(&starts).expect("it was started");
        assert_eq!(count.lines().count(), expected);
    }
    let text = std::fs::read_to_string(&memory).expect("a memory");
    assert!(
        text.contains("legacy") && !text.contains("touchy"),
        "{text}"
    );
}

/// A stream that says what it is told to, until that ends.
fn stream(mut lines: mpsc::UnboundedReceiver<Value>) -> Response {
    let events = futures_util::stream::poll_fn(move |context| lines.poll_recv(context));
    let events =
        events.map(|message| Ok::<_, std::io::Error>(Bytes::from(format!("data: {message}\n\n"))));
    let body = Body::from_stream(events);
    ([("content-type", "text/event-stream")], body).into_response()
}

/// Answers as a modern server that announces changes of its one tool, named after `version`;
/// each subscription is handed out.
fn announcing(
    message: &Value,
    version: usize,
    opened: &mpsc::UnboundedSender<(Value, mpsc::UnboundedSender<Value>)>,
) -> Response {
    match message["method"].as_str() {
        Some("server/discover") => {
            let Reply::Result(mut result) = modern(message) else {
                panic!("a modern request")
            };
            result["capabilities"]["tools"] = json!({ "listChanged": true });
            reply(message, Reply::Result(result))
        }
        Some("tools/list") => {
            let tools = [tool(&format!("v{version}"))];
            let result = json!({ "resultType": "complete", "tools": tools });
            reply(message, Reply::Result(result))
        }
        Some("subscriptions/listen") => {
            let (say, lines) = mpsc::unbounded_channel();
            let _ = opened.send((message["id"].clone(), say));
            stream(lines)
        }
        _ => reply(message, modern(message)),
    }
}

fn tagged(method: &str, id: &Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    let notifications = json!({ "toolsListChanged": true });
    let params = json!({ "_meta": meta, "notifications": notifications });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Waits until the server has a tool of this name.
async fn shows(host: &Host, wanted: &str) {
    let has = |snapshot: &Arc<toolway::HostSnapshot>| {
        let tools = snapshot.catalog.tools_of(&name("web"));
        tools.iter().any(|tool| tool.key.tool == wanted)
    };
    host.watch().wait_for(has).await.expect("the host lives");
}

#[tokio::test]
async fn over_http_a_subscription_is_one_long_answer_and_is_opened_again() {
    let version = Arc::new(AtomicUsize::new(0));
    let (opened, mut subscriptions) = mpsc::unbounded_channel();
    let current = Arc::clone(&version);
    let server = Server::start(move |message, _| {
        announcing(message, current.load(Ordering::SeqCst), &opened)
    })
    .await;
    let home = Home::new();
    let plan = home.plan(&json!({ "web": { "type": "http", "url": server.url } }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    let (id, say) = subscriptions.recv().await.expect("it is opened");
    say.send(tagged(ACKNOWLEDGED, &id)).expect("it is read");
    version.store(1, Ordering::SeqCst);
    say.send(tagged("notifications/tools/list_changed", &id))
        .expect("it is read");
    shows(&host, "v1").await;

    // The stream breaks off, and something changes before the next one.
    version.store(2, Ordering::SeqCst);
    drop(say);
    let (again, say) = subscriptions.recv().await.expect("it is opened again");
    assert_ne!(again, id);
    say.send(tagged(ACKNOWLEDGED, &again)).expect("it is read");
    shows(&host, "v2").await;

    host.shutdown().await;
    say.closed().await;
    let heard = server.methods();
    assert!(
        !heard.contains(&"notifications/cancelled".to_owned()),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_server_that_goes_away_is_noticed_by_its_subscription_and_comes_back() {
    let (opened, mut subscriptions) = mpsc::unbounded_channel();
    let first = opened.clone();
    let server = Server::start(move |message, _| announcing(message, 1, &first)).await;
    let address = server
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let address = address.to_owned();
    let home = Home::new();
    let plan = home.plan(&json!({ "web": { "type": "http", "url": server.url } }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    let (id, say) = subscriptions.recv().await.expect("it is opened");
    say.send(tagged(ACKNOWLEDGED, &id)).expect("it is read");
    shows(&host, "v1").await;

    // Nobody calls anything: only the broken stream tells.
    server.stop().await;
    drop(say);
    let lost = |snapshot: &Arc<toolway::HostSnapshot>| {
        snapshot
            .server("web")
            .is_some_and(|server| !matches!(server.state, ConnectionState::Connected(_)))
    };
    host.watch().wait_for(lost).await.expect("the host lives");
    let _server =
        Server::start_at(&address, move |message, _| announcing(message, 2, &opened)).await;
    shows(&host, "v2").await;
    let again = subscriptions.recv().await.expect("it is opened again");
    assert_ne!(again.0, Value::Null);
    host.shutdown().await;
}
