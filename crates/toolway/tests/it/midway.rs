//! What a server says in the middle of a session: that a login is wanted, that a resource changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use toolway::{CallError, HostEvent};
use toolway_types::ConnectionState;

use crate::http::{Server, reply};
use crate::support::*;

#[tokio::test]
async fn a_login_that_does_not_hold_any_more_is_shown_as_needs_auth() {
    for answers in [legacy as fn(&Value) -> Reply, modern] {
        let expired = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&expired);
        let server = Server::start(move |message, _| {
            if seen.load(Ordering::SeqCst) {
                let challenge = [("www-authenticate", "Bearer error=\"invalid_token\"")];
                return (StatusCode::UNAUTHORIZED, challenge).into_response();
            }
            reply(message, answers(message))
        })
        .await;
        let home = Home::new();
        let host = server.host(&home).await;
        echo(&host, "web", "x").await.expect("logged in");
        let mut events = host.subscribe();
        expired.store(true, Ordering::SeqCst);
        let refused = echo(&host, "web", "x").await;
        assert!(
            matches!(refused, Err(CallError::NeedsAuth { .. })),
            "{refused:?}"
        );
        let mut states = Vec::new();
        while states.last() != Some(&"needs-auth") {
            if let HostEvent::StateChanged { to, .. } = events.recv().await.expect("an event") {
                states.push(to.as_str());
            }
        }
        assert_eq!(states, ["pending", "needs-auth"]);
        host.watch()
            .wait_for(|snapshot| {
                snapshot.server("web").is_some_and(|shown| {
                    matches!(&shown.state, ConnectionState::NeedsAuth { detail, .. }
                        if detail.as_received().contains("invalid_token"))
                })
            })
            .await
            .expect("it is shown");
        assert!(
            host.snapshot().catalog.tools().next().is_none(),
            "nothing stale"
        );
        let refused = echo(&host, "web", "x").await;
        assert!(
            matches!(refused, Err(CallError::NeedsAuth { .. })),
            "{refused:?}"
        );

        expired.store(false, Ordering::SeqCst);
        let state = host.reconnect("web").await.expect("a known server");
        assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
        echo(&host, "web", "x").await.expect("logged in again");
        host.shutdown().await;
    }
}

/// Neither the calls of many nor the host itself make a storm of a refusal: every call asks once,
/// and the connection is tried once for all of them.
#[tokio::test]
async fn rel_26_a_login_that_is_refused_to_everybody_is_no_storm() {
    const CALLS: usize = 50;
    for (status, challenge) in [
        (StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\""),
        (
            StatusCode::FORBIDDEN,
            "Bearer error=\"insufficient_scope\", scope=\"more\"",
        ),
    ] {
        let refusing = Arc::new(AtomicBool::new(false));
        let refusals = Arc::new(AtomicUsize::new(0));
        let (seen, counted) = (Arc::clone(&refusing), Arc::clone(&refusals));
        let server = Server::start(move |message, _| {
            if seen.load(Ordering::SeqCst) {
                counted.fetch_add(1, Ordering::SeqCst);
                return (status, [("www-authenticate", challenge)]).into_response();
            }
            reply(message, modern(message))
        })
        .await;
        let home = Home::new();
        let host = server.host(&home).await;
        echo(&host, "web", "x").await.expect("logged in");
        refusing.store(true, Ordering::SeqCst);
        for _ in 0..2 {
            let calls = (0..CALLS).map(|_| echo(&host, "web", "x"));
            for refused in futures_util::future::join_all(calls).await {
                assert!(
                    matches!(refused, Err(CallError::NeedsAuth { .. })),
                    "{refused:?}"
                );
            }
        }
        // Its lists, its subscription and the one attempt to connect anew may have asked too.
        let refusals = refusals.load(Ordering::SeqCst);
        assert!(refusals <= 2 * CALLS + 10, "{refusals} requests");
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn embedders_hear_which_resource_changed() {
    let server = scripted(|message: &Value, speaker| {
        if message["method"] == "tools/call" {
            let params = json!({ "uri": "file:///notes" });
            speaker.say(&json!({
                "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params,
            }));
        }
        legacy(message)
    });
    let home = Home::new();
    let host = home.host([("notes", server)]);
    host.settled().await;
    let mut events = host.subscribe();
    let revision = host.snapshot().catalog.revision;
    echo(&host, "notes", "x").await.expect("an answer");
    let (server, uri) = loop {
        match events.recv().await.expect("an event") {
            HostEvent::CallStarted { .. } | HostEvent::CallFinished { .. } => {}
            HostEvent::ResourceUpdated { server, uri } => break (server, uri),
            event => panic!("{event:?}"),
        }
    };
    assert_eq!(
        (server.as_str(), uri.as_received()),
        ("notes", "file:///notes")
    );
    assert_eq!(
        host.snapshot().catalog.revision,
        revision,
        "what is offered is the same"
    );
    host.shutdown().await;
}
