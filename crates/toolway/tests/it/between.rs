//! A server that goes away between two messages of one call: the call ends at once, not when its
//! time is over.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use toolway::{
    CallError, CallFault, CallOptions, ClientHandler, ClientOffers, Consent, Elicitation,
    ElicitationAnswer, Host, HostOptions, InProcessServer, RpcError,
};
use toolway_transport::in_process::ServerEnd;
use toolway_types::ServerName;

use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Somebody who thinks for ever, and says so.
#[derive(Default)]
struct Thinker {
    thinks: Arc<Notify>,
}

impl ClientHandler for Thinker {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            ..ClientOffers::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        self.thinks.notify_one();
        Box::pin(std::future::pending())
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<serde_json::value::RawValue>,
    ) -> BoxFuture<'a, Result<Box<serde_json::value::RawValue>, RpcError>> {
        Box::pin(std::future::pending())
    }
}

/// A modern server that answers a call with `result` and goes away when it is told to.
fn leaving(result: Value, leave: Arc<Notify>, answered: Arc<Notify>) -> InProcessServer {
    Arc::new(move |end| {
        let (result, leave, answered) = (result.clone(), Arc::clone(&leave), Arc::clone(&answered));
        Box::pin(async move {
            let ServerEnd {
                mut incoming,
                outgoing,
            } = end;
            loop {
                let message = tokio::select! {
                    () = leave.notified() => return,
                    message = incoming.recv() => message,
                };
                let Some(message) = message else { return };
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let is_call = message["method"] == "tools/call";
                let result = match modern(&message) {
                    Reply::Result(_) if is_call => result.clone(),
                    Reply::Result(mut result) => {
                        if message["method"] == "server/discover" {
                            result["capabilities"]["extensions"] = json!({ TASKS: {} });
                        }
                        result
                    }
                    _ => continue,
                };
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                let sent = outgoing.send(answer.to_string().into()).await;
                if is_call && sent.is_ok() {
                    answered.notify_one();
                }
            }
        })
    })
}

/// Calls a server that answers with `result`, and lets it go once the call is between messages.
async fn ends_at_once(result: Value, waits_for_a_person: bool) {
    let (leave, answered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let thinker = Arc::new(Thinker::default());
    let between = if waits_for_a_person {
        Arc::clone(&thinker.thinks)
    } else {
        Arc::clone(&answered)
    };
    let home = Home::new();
    let server = leaving(result, Arc::clone(&leave), answered);
    let options = HostOptions {
        in_process: vec![(name("fleeting"), server)],
        client_handler: Some(thinker as Arc<dyn ClientHandler>),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let call = async {
        let options = CallOptions {
            timeout: Some(Duration::from_hours(1)),
            ..CallOptions::new(Consent::Typed)
        };
        let outcome = host.call(request("fleeting", "echo", "x"), options).await;
        (outcome, Instant::now())
    };
    let script = async {
        between.notified().await;
        // Far enough for the answer to have been read, and short of the next look.
        tokio::time::sleep(Duration::from_millis(10)).await;
        leave.notify_one();
        Instant::now()
    };
    let ((outcome, ended), left) = tokio::join!(call, script);
    assert!(
        matches!(
            outcome,
            Err(CallError::Failed(_, CallFault::Transport { .. }))
        ),
        "{outcome:?}"
    );
    assert_eq!(ended.duration_since(left), Duration::ZERO);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_with_its_server_while_a_person_thinks() {
    let question = json!({
        "method": "elicitation/create",
        "params": { "message": "who?", "requestedSchema": { "type": "object" } },
    });
    let result = json!({
        "resultType": "input_required",
        "inputRequests": { "who": question },
        "requestState": "s",
    });
    ends_at_once(result, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_with_its_server_between_two_rounds_without_a_question() {
    let result = json!({
        "resultType": "input_required", "inputRequests": {}, "requestState": "s",
    });
    ends_at_once(result, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_with_its_server_between_two_looks_at_its_task() {
    let result = json!({
        "resultType": "task", "taskId": "t-1", "status": "working", "pollIntervalMs": 300_000,
        "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": null,
    });
    ends_at_once(result, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_with_its_server_while_a_task_waits_for_a_person() {
    let question = json!({
        "method": "elicitation/create",
        "params": { "message": "who?", "requestedSchema": { "type": "object" } },
    });
    let result = json!({
        "resultType": "task", "taskId": "t-1", "status": "input_required",
        "inputRequests": { "who": question }, "pollIntervalMs": 300_000,
        "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": null,
    });
    ends_at_once(result, true).await;
}
