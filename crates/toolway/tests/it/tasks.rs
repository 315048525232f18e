//! Calls that legacy servers make tasks of, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::http::{Server, document, reply};
use crate::support::*;

/// A legacy server with sessions whose tool `echo` requires a task; told what to say of it.
fn answers(message: &Value, of_task: impl Fn(&Value) -> Response) -> Response {
    let session = [("mcp-session-id", "s-1")];
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {
                    "tools": {}, "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } },
                },
                "serverInfo": { "name": "tasks", "version": "1" },
            });
            (session, reply(message, Reply::Result(result))).into_response()
        }
        Some("tools/list") => {
            let mut echo = tool("echo");
            echo["execution"] = json!({ "taskSupport": "required" });
            reply(message, Reply::Result(json!({ "tools": [echo] })))
        }
        Some("tools/call") if message["params"]["task"].is_null() => {
            reply(message, Reply::Error(-32601))
        }
        Some("tools/call") => {
            let task = json!({ "taskId": "t-1", "status": "working", "pollInterval": 100 });
            reply(message, Reply::Result(json!({ "task": task })))
        }
        Some(method) if method.starts_with("tasks/") => of_task(message),
        _ => reply(message, legacy(message)),
    }
}

#[tokio::test]
async fn a_tool_that_requires_a_task_is_called_like_any_other() {
    let server = Server::start(|message, _| {
        answers(message, |message| {
            reply(
                message,
                Reply::Result(match message["method"].as_str() {
                    Some("tasks/get") => json!({ "taskId": "t-1", "status": "completed" }),
                    _ => json!({ "content": [{ "type": "text", "text": "done" }] }),
                }),
            )
        })
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let outcome = echo(&host, "web", "x").await.expect("an answer");
    assert_eq!(text_of(&outcome), "done");
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_whose_task_is_lost_with_its_session_is_not_sent_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Server::start(move |message, _| {
        if message["method"] == "tools/call" {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        answers(message, |_| StatusCode::NOT_FOUND.into_response())
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let lost = echo(&host, "web", "x").await.expect_err("nobody knows it");
    assert_eq!(
        lost.to_string(),
        "the call of `echo` of server `web` was sent, but its answer was lost: the server forgot \
         the session; nobody knows whether it ran"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_task_that_fails_says_why() {
    let server = Server::start(|message, _| {
        answers(message, |message| match message["method"].as_str() {
            Some("tasks/get") => {
                let failed = json!({
                    "taskId": "t-1", "status": "failed", "statusMessage": "the disk is full",
                });
                reply(message, Reply::Result(failed))
            }
            _ => document(
                200,
                &json!({
                    "jsonrpc": "2.0", "id": message["id"],
                    "error": { "code": -32603, "message": "no result stored" },
                }),
            ),
        })
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let failed = echo(&host, "web", "x").await.expect_err("it failed");
    assert_eq!(
        failed.to_string(),
        "server `web` answered `echo` with error -32603: no result stored: the disk is full"
    );
    host.shutdown().await;
}
