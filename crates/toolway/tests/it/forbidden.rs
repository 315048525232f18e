//! Servers that only say no: whether a login is behind it, or what their entry holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolway::auth::AuthOptions;
use toolway::{CallError, Host, HostOptions};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::marked;
use toolway_types::{ConnectionState, FailureKind};

use crate::http::{Server, document, reply};
use crate::support::*;

const SAID: &str = "the server refuses the `Authorization` header of its entry (";

/// A server that answers every message with a bare 403.
struct Forbidding {
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Forbidding {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether a server says where its logins are made.
#[derive(Clone, Copy)]
enum Logins {
    Described,
    Unknown,
}

impl Forbidding {
    async fn start(logins: Logins) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let url = format!("{origin}/mcp");
        let issuer = format!("{origin}/issuer");
        let document = json!({ "resource": url, "authorization_servers": [issuer] });
        let app = axum::Router::new().fallback(move |request: Request| {
            let document = document.clone();
            async move { serve(&request, logins, &document) }
        });
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { url, task }
    }
}

fn serve(request: &Request, logins: Logins, described: &Value) -> Response {
    let is_document = request.uri().path() == "/.well-known/oauth-protected-resource/mcp";
    match logins {
        Logins::Described if is_document => document(200, described),
        _ if request.method() == "GET" => StatusCode::NOT_FOUND.into_response(),
        _ => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn started(home: &Home, entry: &Value) -> Host {
    let vault = Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(home.path().join("vault"))
    });
    let options = HostOptions {
        auth: AuthOptions {
            vault: Some(vault),
            ..AuthOptions::default()
        },
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({ "web": entry })), options);
    host.settled().await;
    host
}

#[tokio::test]
async fn a_bare_403_is_a_login_that_is_wanted_where_logins_can_be_made() {
    let server = Forbidding::start(Logins::Described).await;
    let mut entry = json!({ "type": "http", "url": server.url });
    let home = Home::new();
    let host = started(&home, &entry).await;
    let state = shown(&host, "web").state;
    assert!(
        matches!(state, ConnectionState::NeedsAuth { .. }),
        "{state:?}"
    );
    host.shutdown().await;

    // Somebody wrote down who they are.
    let header = format!("Bearer {}", marked!("written-"));
    entry["headers"] = json!({ "Authorization": header });
    let host = started(&home, &entry).await;
    assert!(failure(&host, "web").message.contains("HTTP 403"));
    host.shutdown().await;

    let server = Forbidding::start(Logins::Unknown).await;
    let entry = json!({ "type": "http", "url": server.url });
    let host = started(&home, &entry).await;
    assert!(failure(&host, "web").message.contains("HTTP 403"));
    host.shutdown().await;
}

#[tokio::test]
async fn a_written_login_that_is_refused_is_named_with_its_place() {
    let expired = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&expired);
    let server = Server::start(move |message, _| {
        if seen.load(Ordering::SeqCst) {
            let challenge = [("www-authenticate", "Bearer error=\"invalid_token\"")];
            return (StatusCode::UNAUTHORIZED, challenge).into_response();
        }
        reply(message, legacy(message))
    })
    .await;
    let home = Home::new();
    let header = format!("Bearer {}", marked!("written-"));
    let headers = json!({ "authorization": header });
    let entry = json!({ "type": "http", "url": server.url, "headers": headers });
    let host = started(&home, &entry).await;
    let refused = failure(&host, "web");
    assert_eq!(refused.kind, FailureKind::Credentials);
    assert!(refused.message.starts_with(SAID), "{}", refused.message);

    // And in the middle of a session.
    expired.store(false, Ordering::SeqCst);
    host.reconnect("web").await.expect("a known server");
    echo(&host, "web", "x").await.expect("an answer");
    expired.store(true, Ordering::SeqCst);
    let error = echo(&host, "web", "x").await.expect_err("it is refused");
    assert!(matches!(error, CallError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(SAID), "{error}");
    let mut snapshots = host.watch();
    let shown = snapshots.wait_for(|snapshot| {
        let state = snapshot.server("web").map(|web| &web.state);
        matches!(state, Some(ConnectionState::Failed(why)) if why.message.starts_with(SAID))
    });
    drop(shown.await.expect("it is shown"));
    host.shutdown().await;
}

#[tokio::test]
async fn scopes_that_nobody_names_are_missing_only_where_a_login_was_shown() {
    // A first login may have them all the same.
    let server = Server::start(|_, _| {
        let challenge = [("www-authenticate", "Bearer error=\"insufficient_scope\"")];
        (StatusCode::FORBIDDEN, challenge).into_response()
    })
    .await;
    let home = Home::new();
    let entry = json!({ "type": "http", "url": server.url });
    let host = started(&home, &entry).await;
    let state = shown(&host, "web").state;
    assert!(
        matches!(
            state,
            ConnectionState::NeedsAuth {
                unnamed_scopes: false,
                ..
            }
        ),
        "{state:?}"
    );
    host.shutdown().await;
}
