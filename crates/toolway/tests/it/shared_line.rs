//! Servers reached over one connection that all requests share: what its refusal means.

use axum::http::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;
use toolway::Host;
use toolway_types::{ConnectionState, FailureKind};

use crate::support::*;

/// Answers everything so.
async fn refusing(status: u16) -> String {
    let app = axum::Router::new().fallback(move || async move {
        let status = StatusCode::from_u16(status).expect("a status");
        (status, [("www-authenticate", "Bearer realm=\"x\"")])
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    address.to_string()
}

async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").to_string()
}

async fn state(kind: &str, address: &str) -> ConnectionState {
    let scheme = if kind == "ws" { "ws" } else { "http" };
    let url = format!("{scheme}://{address}/");
    let home = Home::new();
    let plan = home.plan(&json!({ "far": { "type": kind, "url": url } }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    let state = host.snapshot().servers[0].state.clone();
    host.shutdown().await;
    state
}

#[tokio::test]
async fn a_login_wall_before_the_connection_is_a_login() {
    for kind in ["sse", "ws"] {
        let state = state(kind, &refusing(401).await).await;
        assert!(
            matches!(&state, ConnectionState::NeedsAuth { detail, .. } if detail.as_received().contains("Bearer")),
            "{kind}: {state:?}"
        );
    }
}

#[tokio::test]
async fn other_refusals_and_silence_are_told_apart() {
    for kind in ["sse", "ws"] {
        let ConnectionState::Failed(failure) = state(kind, &refusing(503).await).await else {
            panic!("{kind} must fail");
        };
        assert_eq!(failure.kind, FailureKind::Unreachable);
        assert!(failure.message.contains("HTTP 503"), "{}", failure.message);
        let ConnectionState::Failed(failure) = state(kind, &nobody().await).await else {
            panic!("{kind} must fail");
        };
        assert_eq!(failure.kind, FailureKind::Unreachable);
        assert!(failure.message.contains("refused"), "{}", failure.message);
    }
}
