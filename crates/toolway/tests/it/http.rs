//! Servers across HTTP: the probe's rows and cancellation, over real sockets.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use toolway::{CallError, CallOptions, Consent, Host};
use toolway_types::{ConnectionState, Era, FailureKind};

use crate::support::*;

mod rounds;

/// What a server received: the method, `DELETE` and `GET` included, and the headers.
type Log = Arc<Mutex<Vec<(String, HeaderMap)>>>;

pub(crate) struct Server {
    pub(crate) url: String,
    log: Log,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves each posted message by this function.
    pub(crate) async fn start<F>(answer: F) -> Self
    where
        F: Fn(&Value, &HeaderMap) -> Response + Clone + Send + Sync + 'static,
    {
        Self::start_at("127.0.0.1:0", answer).await
    }

    /// The same at a place of the caller's choice.
    pub(crate) async fn start_at<F>(address: &str, answer: F) -> Self
    where
        F: Fn(&Value, &HeaderMap) -> Response + Clone + Send + Sync + 'static,
    {
        let log = Log::default();
        let kept = Arc::clone(&log);
        let app = axum::Router::new().fallback(move |request: Request| {
            let (answer, log) = (answer.clone(), Arc::clone(&kept));
            async move {
                let (mut parts, body) = request.into_parts();
                // What was asked for is seen like a header.
                let asked = parts.uri.to_string().parse().expect("a value");
                parts.headers.insert("x-asked-for", asked);
                if parts.method != "POST" {
                    let seen = (parts.method.to_string(), parts.headers);
                    log.lock().expect("no panic").push(seen);
                    return StatusCode::METHOD_NOT_ALLOWED.into_response();
                }
                let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
                let message: Value = serde_json::from_slice(&body).expect("JSON");
                let method = message["method"].as_str().unwrap_or_default().to_owned();
                log.lock()
                    .expect("no panic")
                    .push((method, parts.headers.clone()));
                answer(&message, &parts.headers)
            }
        });
        let listener = TcpListener::bind(address).await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { url, log, task }
    }

    /// Stops listening; connections that stand are closed.
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.log
            .lock()
            .expect("no panic")
            .iter()
            .map(|(method, _)| method.clone())
            .collect()
    }

    /// Whether any header or the address of any request held this.
    pub(crate) fn saw(&self, text: &str) -> bool {
        let log = self.log.lock().expect("no panic");
        let mut values = log.iter().flat_map(|(_, headers)| headers.values());
        values.any(|value| String::from_utf8_lossy(value.as_bytes()).contains(text))
    }

    fn header(&self, method: &str, name: &str) -> Option<String> {
        let log = self.log.lock().expect("no panic");
        let (_, headers) = log.iter().find(|(seen, _)| seen == method)?;
        headers.get(name)?.to_str().ok().map(ToOwned::to_owned)
    }

    pub(crate) async fn host(&self, home: &Home) -> Host {
        let plan = home.plan(&json!({ "web": { "type": "http", "url": self.url } }));
        let host = Host::start(plan, home.options());
        host.settled().await;
        host
    }
}

pub(crate) fn document(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (
        status,
        [("content-type", "application/json")],
        body.to_string(),
    )
        .into_response()
}

pub(crate) fn reply(message: &Value, reply: Reply) -> Response {
    let id = &message["id"];
    match reply {
        _ if id.is_null() => StatusCode::ACCEPTED.into_response(),
        Reply::Result(result) => document(
            200,
            &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        ),
        Reply::Error(code) => {
            let status = if code == -32601 { 404 } else { 400 };
            let error = json!({ "code": code, "message": "no" });
            document(
                status,
                &json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            )
        }
        Reply::Silence | Reply::Gone => StatusCode::NO_CONTENT.into_response(),
    }
}

#[tokio::test]
async fn a_modern_server_gets_its_headers() {
    let server = Server::start(|message, _| reply(message, modern(message))).await;
    let home = Home::new();
    let host = server.host(&home).await;
    assert_eq!(facts(&host, "web").era, Era::Modern);
    assert_eq!(
        text_of(&echo(&host, "web", "hi").await.expect("an answer")),
        "hi"
    );
    host.shutdown().await;
    assert_eq!(
        server.methods(),
        ["server/discover", "tools/list", "tools/call"]
    );
    for (header, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ] {
        assert_eq!(server.header("tools/call", header).as_deref(), Some(value));
    }
    assert_eq!(server.header("tools/call", "mcp-session-id"), None);
}

#[tokio::test]
async fn a_modern_tool_with_an_impossible_header_is_left_out() {
    let server = Server::start(|message, _| {
        if message["method"] == "tools/list" {
            let mut bad = tool("bad");
            bad["inputSchema"]["properties"]["text"]["x-mcp-header"] = json!("no header name");
            let mut good = tool("echo");
            good["inputSchema"]["properties"]["text"]["x-mcp-header"] = json!("Words");
            let tools = json!({ "resultType": "complete", "tools": [bad, good] });
            return reply(message, Reply::Result(tools));
        }
        reply(message, modern(message))
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    assert_eq!(
        shown(&host, "web").counts.map(|counts| counts.tools),
        Some(1)
    );
    assert!(shown(&host, "web").warnings[0].contains("`bad`"));
    echo(&host, "web", "mirrored").await.expect("an answer");
    let mirrored = server.header("tools/call", "mcp-param-words");
    assert_eq!(mirrored.as_deref(), Some("mirrored"));
    host.shutdown().await;
}

#[tokio::test]
async fn a_legacy_server_with_sessions_is_greeted_after_the_probe() {
    let server = Server::start(|message, headers| {
        if message["method"] == "initialize" {
            let mut response = reply(message, legacy(message));
            response
                .headers_mut()
                .insert("mcp-session-id", "s-1".parse().expect("a value"));
            return response;
        }
        if headers.get("mcp-session-id").is_none_or(|id| id != "s-1") {
            return (StatusCode::BAD_REQUEST, "no valid session ID").into_response();
        }
        reply(message, legacy(message))
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    assert_eq!(facts(&host, "web").era, Era::Legacy);
    assert_eq!(
        text_of(&echo(&host, "web", "hi").await.expect("an answer")),
        "hi"
    );
    host.shutdown().await;
    let posted = server.methods();
    assert_eq!(
        posted[..3],
        ["server/discover", "initialize", "notifications/initialized"]
    );
    assert_eq!(server.header("initialize", "mcp-session-id"), None);
    let version = server.header("tools/call", "mcp-protocol-version");
    assert_eq!(version.as_deref(), Some("2025-11-25"));
}

#[tokio::test]
async fn empty_and_malformed_discoveries_mean_legacy() {
    for discovery in [
        json!({}),
        json!({ "supportedVersions": 7 }),
        json!("yes"),
        json!(null),
    ] {
        let server = Server::start(move |message, _| match message["method"].as_str() {
            Some("server/discover") => reply(message, Reply::Result(discovery.clone())),
            _ => reply(message, legacy(message)),
        })
        .await;
        let home = Home::new();
        let host = server.host(&home).await;
        assert_eq!(facts(&host, "web").era, Era::Legacy);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn other_client_errors_mean_legacy() {
    for status in [400, 404, 405, 406, 415, 422] {
        let server = Server::start(move |message, _| match message["method"].as_str() {
            Some("server/discover") => {
                let status = StatusCode::from_u16(status).expect("a status");
                (status, "nothing here").into_response()
            }
            _ => reply(message, legacy(message)),
        })
        .await;
        let home = Home::new();
        let host = server.host(&home).await;
        assert_eq!(facts(&host, "web").era, Era::Legacy, "after {status}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_refused_version_with_a_shared_one_is_probed_once_more() {
    let asked = Arc::new(Mutex::new(0));
    let server = Server::start(move |message, _| {
        if message["method"] == "server/discover" {
            let mut asked = asked.lock().expect("no panic");
            *asked += 1;
            if *asked == 1 {
                let data = json!({ "supported": ["2026-07-28"], "requested": "?" });
                let error = json!({ "code": -32022, "message": "version", "data": data });
                let id = &message["id"];
                return document(400, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        }
        reply(message, modern(message))
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    assert_eq!(facts(&host, "web").era, Era::Modern);
    host.shutdown().await;
    assert_eq!(
        server.methods(),
        ["server/discover", "server/discover", "tools/list"]
    );
}

#[tokio::test]
async fn a_server_error_is_no_evidence_and_no_initialize_follows() {
    for status in [403, 500, 502, 503] {
        let server = Server::start(move |_, _| {
            StatusCode::from_u16(status)
                .expect("a status")
                .into_response()
        })
        .await;
        let home = Home::new();
        let host = server.host(&home).await;
        let failure = failure(&host, "web");
        let expected = match status {
            403 => FailureKind::Protocol,
            _ => FailureKind::Unreachable,
        };
        assert_eq!(failure.kind, expected);
        assert!(
            failure.message.contains(&status.to_string()),
            "{}",
            failure.message
        );
        host.shutdown().await;
        assert_eq!(server.methods(), ["server/discover"]);
    }
}

#[tokio::test]
async fn a_login_wall_is_shown_as_needs_auth_with_its_challenge() {
    let challenge = r#"Bearer resource_metadata="https://login.test/meta", scope="tools""#;
    let server = Server::start(move |_, _| {
        (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response()
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let ConnectionState::NeedsAuth { detail, .. } = shown(&host, "web").state else {
        panic!("{:?}", shown(&host, "web").state)
    };
    assert_eq!(detail.as_received(), challenge);
    let Err(CallError::NeedsAuth {
        server: needing, ..
    }) = echo(&host, "web", "x").await
    else {
        panic!("nobody logged in")
    };
    assert_eq!(needing.as_str(), "web");
    host.shutdown().await;
    assert_eq!(server.methods(), ["server/discover"]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    drop(listener);
    let home = Home::new();
    let plan = home.plan(&json!({ "web": { "type": "http", "url": url } }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    assert_eq!(failure(&host, "web").kind, FailureKind::Unreachable);
    host.shutdown().await;
}

/// A body that never ends and says when nobody reads it any more.
fn endless(dropped: mpsc::UnboundedSender<()>) -> Response {
    struct Guard(mpsc::UnboundedSender<()>);
    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let guard = Guard(dropped);
    let first = futures_util::stream::once(async { Ok::<_, std::io::Error>(": hello\n\n") });
    let rest = futures_util::stream::once(async move {
        let _guard = guard;
        std::future::pending().await
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    ([("content-type", "text/event-stream")], body).into_response()
}

#[tokio::test]
async fn dropping_a_modern_call_closes_its_stream_and_sends_nothing() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let (dropped, mut gone) = mpsc::unbounded_channel();
    let server = Server::start(move |message, _| {
        if message["params"]["name"] == "echo" {
            let _ = told.send(());
            return endless(dropped.clone());
        }
        reply(message, modern(message))
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    tokio::select! {
        _ = host.call(request("web", "echo", "x"), CallOptions::new(Consent::Typed)) => {
            panic!("nobody answers")
        }
        _ = heard.recv() => {}
    }
    gone.recv().await.expect("the server sees the stream close");
    host.shutdown().await;
    assert_eq!(
        server.methods().last().map(String::as_str),
        Some("tools/call")
    );
}

#[tokio::test]
async fn dropping_a_legacy_call_says_so_and_closes_its_stream() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let (dropped, mut gone) = mpsc::unbounded_channel();
    let server = Server::start(move |message, _| {
        if message["method"] == "tools/call" || message["method"] == "notifications/cancelled" {
            let _ = told.send(message.clone());
        }
        if message["params"]["name"] == "mute" {
            return endless(dropped.clone());
        }
        reply(message, legacy(message))
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let asked = tokio::select! {
        _ = host.call(request("web", "mute", "x"), CallOptions::new(Consent::Typed)) => {
            panic!("nobody answers")
        }
        asked = heard.recv() => asked.expect("the call arrives"),
    };
    let cancelled = heard.recv().await.expect("the cancellation arrives");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    gone.recv().await.expect("the server sees the stream close");
    host.shutdown().await;
}
