//! How long requests, calls and handshakes may take, and what is said when they took longer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use toolway::{CallError, CallOptions, Consent, Host, ToolOutcome};

use crate::http::reply;
use crate::support::*;

/// A server over HTTP whose tool `mute` answers when it is told to, and not before.
struct Slow {
    url: String,
    asked: Arc<Notify>,
    told: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Slow {
    async fn start() -> Self {
        let (asked, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (hears, waits) = (Arc::clone(&asked), Arc::clone(&told));
        let app = axum::Router::new().fallback(move |request: Request| {
            let (asked, told) = (Arc::clone(&hears), Arc::clone(&waits));
            async move { serve(request, &asked, &told).await }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self {
            url,
            asked,
            told,
            task,
        }
    }

    /// What a call ends with whose server answers after this long. Only the host's clock moves.
    async fn call(
        &self,
        host: &Host,
        options: CallOptions,
        after: Duration,
    ) -> Result<ToolOutcome, CallError> {
        let meanwhile = async {
            self.asked.notified().await;
            tokio::time::pause();
            tokio::time::advance(after).await;
            tokio::time::resume();
            self.told.notify_one();
        };
        let call = host.call(request("web", "mute", "x"), options);
        tokio::join!(call, meanwhile).0
    }
}

async fn serve(request: Request, asked: &Notify, told: &Notify) -> Response {
    if request.method() != "POST" {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await;
    let message: Value = serde_json::from_slice(&body.expect("a body")).expect("JSON");
    if message["params"]["name"] == "mute" {
        asked.notify_one();
        told.notified().await;
        let done = json!({ "content": [{ "type": "text", "text": "at last" }] });
        return reply(&message, Reply::Result(done));
    }
    reply(&message, legacy(&message))
}

/// What the call says that ended too early; nothing when it was answered.
async fn said(
    entry: &Value,
    vars: &[(&str, &str)],
    timeout: Option<u64>,
    after: u64,
) -> Option<String> {
    let server = Slow::start().await;
    let mut entry = entry.clone();
    entry["type"] = json!("http");
    entry["url"] = json!(server.url);
    let home = Home::new();
    let host = Host::start(
        home.plan_with(&json!({ "web": entry }), vars),
        home.options(),
    );
    host.settled().await;
    let options = CallOptions {
        timeout: timeout.map(Duration::from_secs),
        ..CallOptions::new(Consent::Typed)
    };
    let outcome = server
        .call(&host, options, Duration::from_secs(after))
        .await;
    host.shutdown().await;
    match outcome {
        Ok(outcome) => {
            assert_eq!(text_of(&outcome), "at last");
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

#[tokio::test]
async fn an_http_request_without_an_answer_ends_after_a_minute_and_says_so() {
    let said = said(&json!({}), &[], None, 61).await;
    assert_eq!(
        said.as_deref(),
        Some("`mute` of server `web` did not begin to answer within 60s")
    );
}

#[tokio::test]
async fn the_entry_and_the_environment_say_how_long_an_http_request_may_take() {
    let entry = json!({ "requestTimeout": 120_000 });
    assert_eq!(said(&entry, &[], None, 119).await, None);
    let late = said(&entry, &[], None, 121).await;
    assert!(
        late.as_ref()
            .is_some_and(|said| said.ends_with("within 120s")),
        "{late:?}"
    );
    let variable = [("MCP_REQUEST_TIMEOUT_MS", "90000")];
    assert_eq!(said(&json!({}), &variable, None, 89).await, None);
    // The entry is nearer to the server.
    assert_eq!(said(&entry, &variable, None, 119).await, None);
}

#[tokio::test]
async fn who_says_how_long_a_call_may_take_says_it_of_its_request_and_of_silence_too() {
    let patient = json!({ "timeout": 600_000 });
    let variable = [("MCP_TOOL_TIMEOUT", "600000")];
    // Beyond the minute of a request, and beyond the five of silence.
    for after in [90, 400] {
        assert_eq!(said(&patient, &[], None, after).await, None);
        assert_eq!(said(&json!({}), &variable, None, after).await, None);
        assert_eq!(said(&json!({}), &[], Some(600), after).await, None);
    }
    for (entry, variable, timeout) in [
        (&patient, None, None),
        (&json!({}), Some(variable[0]), None),
        (&json!({}), None, Some(600)),
    ] {
        let vars: Vec<_> = variable.into_iter().collect();
        let late = said(entry, &vars, timeout, 601).await;
        assert_eq!(
            late.as_deref(),
            Some("`mute` of server `web` did not answer within 600s")
        );
    }
}

#[tokio::test]
async fn a_limit_that_is_written_beside_the_time_of_a_call_holds() {
    let both = json!({ "timeout": 600_000, "requestTimeout": 5000 });
    let late = said(&both, &[], None, 6).await;
    assert!(
        late.as_ref()
            .is_some_and(|said| said.ends_with("begin to answer within 5s")),
        "{late:?}"
    );
    let vars = [
        ("MCP_TOOL_TIMEOUT", "600000"),
        ("MCP_REQUEST_TIMEOUT_MS", "5000"),
    ];
    let late = said(&json!({}), &vars, None, 6).await;
    assert!(
        late.as_ref()
            .is_some_and(|said| said.ends_with("begin to answer within 5s")),
        "{late:?}"
    );
    let vars = [
        ("MCP_TOOL_TIMEOUT", "600000"),
        ("MCP_TOOL_IDLE_TIMEOUT", "120000"),
    ];
    let late = said(&json!({}), &vars, None, 121).await;
    assert!(
        late.as_ref()
            .is_some_and(|said| said.ends_with("no sign of life for 120s")),
        "{late:?}"
    );
    // What is said of one call is nearest.
    assert_eq!(said(&both, &[], Some(600), 90).await, None);
}

#[tokio::test]
async fn a_time_to_connect_that_somebody_chose_is_not_multiplied() {
    let home = Home::new();
    let folder = home.path().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    for program in ["npx", "server"] {
        let path = folder.join(program);
        std::fs::write(&path, "#!/bin/sh\nexec sleep 60\n").expect("a program");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("it may run");
    }
    let entry = |program: &str| json!({ "command": folder.join(program) });
    let servers = json!({ "runner": entry("npx"), "plain": entry("server") });
    let plan = home.plan_with(&servers, &[("MCP_TIMEOUT", "300")]);
    let options = toolway::HostOptions {
        retry_first: toolway::RetryFirst::Never,
        ..home.options()
    };
    let host = Host::start(plan, options);
    host.settled().await;
    for server in ["runner", "plain"] {
        let failure = failure(&host, server);
        assert_eq!(
            failure.message,
            "not connected after 0.3 s: it did not answer the handshake"
        );
    }
    host.shutdown().await;
}
