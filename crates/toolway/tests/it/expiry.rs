//! Remote servers that forget, break or vanish, over real sockets.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use toolway::{CallError, CallFault, CallOptions, Consent, Host, HostOptions, RetryFirst};
use toolway_types::{ConnectionState, FailureKind};

use crate::http::{Server, document, reply};
use crate::support::*;

/// A legacy server with one session at a time.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<Option<u32>>>, Arc<AtomicUsize>);

impl Sessions {
    fn forget(&self) {
        *self.0.lock().expect("no panic") = None;
    }

    fn ever(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }

    fn answer(&self, message: &Value, headers: &HeaderMap) -> Response {
        if message["method"] == "initialize" {
            let number = u32::try_from(self.1.fetch_add(1, Ordering::SeqCst)).expect("few");
            *self.0.lock().expect("no panic") = Some(number);
            let mut response = reply(message, legacy(message));
            let id = format!("s-{number}").parse().expect("a value");
            response.headers_mut().insert("mcp-session-id", id);
            return response;
        }
        let Some(sent) = headers.get("mcp-session-id") else {
            return (StatusCode::BAD_REQUEST, "no valid session ID").into_response();
        };
        let known = self.0.lock().expect("no panic").map(|id| format!("s-{id}"));
        if known.is_none_or(|known| *sent != known) {
            let error = json!({ "code": -32001, "message": "Session not found" });
            return document(
                404,
                &json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            );
        }
        reply(message, legacy(message))
    }
}

fn calls(server: &Server) -> usize {
    let methods = server.methods();
    methods.iter().filter(|it| *it == "tools/call").count()
}

#[tokio::test]
async fn rel_24_a_forgotten_session_is_made_anew_and_the_call_sent_once_more() {
    let sessions = Sessions::default();
    let serve = sessions.clone();
    let server = Server::start(move |message, headers| serve.answer(message, headers)).await;
    let home = Home::new();
    let host = server.host(&home).await;
    echo(&host, "web", "before").await.expect("an answer");
    assert_eq!(sessions.ever(), 1);

    // The server restarts between two calls.
    sessions.forget();
    let outcome = echo(&host, "web", "after").await.expect("an answer");
    assert_eq!(text_of(&outcome), "after");
    assert_eq!((sessions.ever(), calls(&server)), (2, 3));

    // Everybody who finds out shares one new session.
    sessions.forget();
    let many = (0..10).map(|number| {
        let host = &host;
        async move { echo(host, "web", &number.to_string()).await }
    });
    for (number, outcome) in futures_util::future::join_all(many)
        .await
        .iter()
        .enumerate()
    {
        let outcome = outcome.as_ref().expect("an answer");
        assert_eq!(text_of(outcome), number.to_string());
    }
    assert_eq!(sessions.ever(), 3);
    host.shutdown().await;
}

#[tokio::test]
async fn rel_24_a_session_that_is_forgotten_again_and_again_is_an_error() {
    let sessions = Sessions::default();
    let serve = sessions.clone();
    let server = Server::start(move |message, headers| {
        if message["method"] == "tools/call" {
            serve.forget();
        }
        serve.answer(message, headers)
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let outcome = echo(&host, "web", "x").await;
    let Err(CallError::Failed(_, CallFault::Transport { message, .. })) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(message.as_received().contains("404"), "{message}");
    assert_eq!(calls(&server), 2, "once, and once more");
    host.ready("web").await;
    host.shutdown().await;
}

#[tokio::test]
async fn rel_24_a_server_that_restarts_during_calls_answers_them_or_fails_them_in_time() {
    let sessions = Sessions::default();
    let serve = sessions.clone();
    let slow = Arc::new(tokio::sync::Notify::new());
    let asked = Arc::clone(&slow);
    let server = Server::start(move |message, headers| {
        if message["params"]["name"] == "mute" {
            asked.notify_one();
            // Streams, and says nothing.
            let silence = futures_util::stream::pending::<Result<&str, std::io::Error>>();
            let body = Body::from_stream(silence);
            return ([("content-type", "text/event-stream")], body).into_response();
        }
        serve.answer(message, headers)
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let lost = host.call(
        request("web", "mute", "x"),
        CallOptions::new(Consent::Typed),
    );
    let found_out = async {
        slow.notified().await;
        sessions.forget();
        echo(&host, "web", "x").await.expect("an answer");
    };
    let (lost, ()) = tokio::join!(lost, found_out);
    assert!(
        matches!(lost, Err(CallError::Failed(_, CallFault::Transport { .. }))),
        "{lost:?}"
    );
    assert_eq!(sessions.ever(), 2);
    host.shutdown().await;
}

/// An answer that breaks off.
fn cut() -> Response {
    let broken =
        futures_util::stream::iter([Ok("{\"jsonrpc\""), Err(std::io::Error::other("on purpose"))]);
    let body = Body::from_stream(broken);
    ([("content-type", "application/json")], body).into_response()
}

#[tokio::test]
async fn three_broken_answers_in_a_row_end_a_connection_and_two_do_not() {
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let server = Server::start(move |message, _| {
        if message["method"] == "tools/call" && is_broken.load(Ordering::SeqCst) {
            return cut();
        }
        reply(message, modern(message))
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let handshakes = || {
        let methods = server.methods();
        methods.iter().filter(|it| *it == "server/discover").count()
    };
    for _ in 0..3 {
        broken.store(true, Ordering::SeqCst);
        for _ in 0..2 {
            let outcome = echo(&host, "web", "x").await;
            assert!(
                matches!(
                    outcome,
                    Err(CallError::Failed(_, CallFault::Transport { .. }))
                ),
                "{outcome:?}"
            );
        }
        broken.store(false, Ordering::SeqCst);
        echo(&host, "web", "x").await.expect("a success counts");
    }
    assert_eq!(handshakes(), 1);
    broken.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        echo(&host, "web", "x").await.expect_err("it is broken");
    }
    broken.store(false, Ordering::SeqCst);
    let mut snapshots = host.watch();
    let lost = snapshots
        .wait_for(|snapshot| snapshot.servers[0].is_pending())
        .await;
    let warnings = lost.expect("it is given up").servers[0].warnings.clone();
    assert!(warnings[0].contains("cannot reach"), "{warnings:?}");
    echo(&host, "web", "x").await.expect("it comes back");
    assert_eq!(handshakes(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_looked_for_until_it_is_back() {
    let server = Server::start(|message, _| reply(message, modern(message))).await;
    let url = server.url.clone();
    let home = Home::new();
    let plan = home.plan(&json!({ "web": { "type": "http", "url": url } }));
    let options = HostOptions {
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    let host = Host::start(plan, options);
    host.settled().await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let address = address.to_owned();
    server.stop().await;
    // The first call that nobody listens to ends the connection; the next one waits.
    let refused = echo(&host, "web", "x").await;
    assert!(
        matches!(
            refused,
            Err(CallError::Failed(_, CallFault::Transport { .. }))
        ),
        "{refused:?}"
    );
    let mut snapshots = host.watch();
    let lost = snapshots
        .wait_for(|snapshot| snapshot.servers[0].state == ConnectionState::Pending { attempt: 1 });
    drop(lost.await.expect("it is given up at once"));
    let (outcome, _server) = tokio::join!(echo(&host, "web", "y"), async {
        Server::start_at(&address, |message, _| reply(message, modern(message))).await
    });
    assert_eq!(text_of(&outcome.expect("an answer")), "y");
    host.shutdown().await;
}

#[tokio::test]
async fn what_a_server_refuses_is_final_and_what_passes_is_not() {
    for (status, retried) in [(404, false), (410, false), (500, true), (503, true)] {
        let server = Server::start(move |_, _| {
            StatusCode::from_u16(status)
                .expect("a status")
                .into_response()
        })
        .await;
        let home = Home::new();
        let plan = home.plan(&json!({ "web": { "type": "http", "url": server.url } }));
        let options = HostOptions {
            retry_first: RetryFirst::Backoff,
            ..home.options()
        };
        let host = Host::start(plan, options);
        let mut snapshots = host.watch();
        let first = ConnectionState::Pending { attempt: 1 };
        let snapshot = snapshots
            .wait_for(|snapshot| snapshot.servers[0].state != first)
            .await
            .expect("the host runs")
            .clone();
        match &snapshot.servers[0].state {
            ConnectionState::Pending { attempt: 2 } => assert!(retried, "{status}"),
            ConnectionState::Failed(failure) => {
                assert!(!retried, "{status}");
                assert_eq!(failure.kind, FailureKind::Protocol);
            }
            other => panic!("{other:?}"),
        }
        let stopping = std::time::Instant::now();
        host.shutdown().await;
        assert!(
            stopping.elapsed() < Duration::from_secs(1),
            "also while it waits"
        );
    }
}
