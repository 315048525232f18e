//! Legacy calls of tools that require a task.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;
use toolway_wire::view;

use super::*;
use crate::session::tests::client_handler::{Scripted, answered_by};

use crate::error::RequestResult;

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn everything() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

/// A settled legacy session with a server of these `tasks`.
async fn with(
    tasks: Value,
    delivery: MessageDelivery,
    client_handler: &Arc<Scripted>,
) -> (Session, Task<()>, Peer) {
    let (correlator, pump, mut peer) = open_with(answered_by(client_handler), None);
    let greeting = greeting(ProtocolMode::Legacy, delivery);
    let script = async {
        let request = peer.expect("initialize").await;
        let mut result = initialize_result("2025-11-25");
        result["capabilities"]["tasks"] = tasks;
        peer.answer(&request, result).await;
        peer.expect("notifications/initialized").await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
    (session.expect("the handshake succeeds"), pump, peer)
}

async fn with_tasks(delivery: MessageDelivery) -> (Session, Task<()>, Peer) {
    with(everything(), delivery, &at_once()).await
}

fn at_once() -> Arc<Scripted> {
    Arc::new(Scripted::new().fields(json!({ "name": "Luca" })))
}

/// A tool that says this of tasks.
fn tool(support: &str) -> Tool {
    let list = json!({ "tools": [{
        "name": "slow", "inputSchema": { "type": "object" },
        "execution": { "taskSupport": support },
    }] });
    let page = view::tools(&params(&list)).expect("a list");
    page.items.into_iter().next().expect("a tool")
}

async fn call(session: &Session) -> RequestResult {
    call_of(session, &tool("required"), None).await
}

async fn call_of(session: &Session, tool: &Tool, progress: Option<ProgressSink>) -> RequestResult {
    let params = params(&json!({ "name": "slow", "arguments": { "x": 1 } }));
    let options = RequestOptions {
        tool: Some(tool),
        progress,
        idle: Some(Duration::from_secs(8)),
        ..RequestOptions::within(Duration::from_mins(10))
    };
    session.request_owned("tools/call", params, options).await
}

fn state(status: &str, message: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "statusMessage": message, "pollInterval": 5000,
        "createdAt": "2025-12-01T00:00:00Z", "lastUpdatedAt": "2025-12-01T00:00:00Z", "ttl": 60000,
    })
}

impl Peer {
    /// Makes a task of the call.
    async fn make_task(&mut self) -> Received {
        let request = self.expect("tools/call").await;
        let task = state("working", "begun");
        self.answer(&request, json!({ "task": task })).await;
        request
    }

    /// Says how far the task is when it is asked.
    async fn tell(&mut self, status: &str, message: &str) {
        let poll = self.expect("tasks/get").await;
        assert_eq!(poll.body["params"]["taskId"], "t-1");
        self.answer(&poll, state(status, message)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_is_called_as_one_and_followed_to_its_result() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest).await;
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink: ProgressSink = {
        let heard = Arc::clone(&heard);
        Arc::new(move |news: crate::call::Progress| {
            let message = news.message.map(|message| message.to_string());
            heard
                .lock()
                .expect("one thread")
                .push(message.unwrap_or_default());
        })
    };
    let is_task = AtomicBool::new(false);
    let tool = tool("required");
    let options = RequestOptions {
        tool: Some(&tool),
        progress: Some(sink),
        is_task: Some(&is_task),
        idle: Some(Duration::from_secs(8)),
        ..RequestOptions::within(Duration::from_mins(10))
    };
    let called = params(&json!({ "name": "slow", "arguments": { "x": 1 } }));
    let script = async {
        let request = peer.make_task().await;
        assert_eq!(request.body["params"]["arguments"], json!({ "x": 1 }));
        assert_eq!(request.body["params"]["task"], json!({ "ttl": 600_000 }));
        let mut asked_at = Instant::now();
        for message in ["digging", "digging", "polishing"] {
            let poll = peer.expect("tasks/get").await;
            assert_eq!(poll.header("mcp-protocol-version"), Some("2025-11-25"));
            let pause = asked_at.elapsed();
            assert!((5000..=6250).contains(&pause.as_millis()), "{pause:?}");
            asked_at = Instant::now();
            peer.answer(&poll, state("working", message)).await;
        }
        peer.tell("completed", "done").await;
        let wanted = peer.expect("tasks/result").await;
        assert_eq!(wanted.body["params"]["taskId"], "t-1");
        let result =
            json!({ "content": [], "isError": true, "_meta": { RELATED: { "taskId": "t-1" } } });
        peer.answer(&wanted, result).await;
    };
    let (outcome, ()) = tokio::join!(session.request_owned("tools/call", called, options), script);
    let outcome = outcome.expect("a result");
    assert!(outcome.get().contains(r#""isError":true"#), "{outcome}");
    assert!(
        is_task.load(Ordering::Relaxed),
        "who might send it again knows"
    );
    let heard = heard.lock().expect("one thread").clone();
    assert_eq!(heard, ["begun", "digging", "polishing", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_only_made_where_it_is_required_and_the_server_makes_them() {
    let none = json!({ "list": {}, "cancel": {} });
    for (tasks, support) in [
        (everything(), "optional"),
        (everything(), "forbidden"),
        (none, "required"),
        (Value::Null, "required"),
    ] {
        let (session, _pump, mut peer) = with(tasks, MessageDelivery::Stream, &at_once()).await;
        let script = async {
            let request = peer.expect("tools/call").await;
            assert_eq!(request.body["params"]["task"], Value::Null, "{support}");
            peer.answer(&request, json!({ "content": [] })).await;
        };
        let tool = tool(support);
        let (outcome, ()) = tokio::join!(call_of(&session, &tool, None), script);
        assert_eq!(outcome.expect("a result").get(), r#"{"content":[]}"#);
    }
    // A server that answers at once all the same has answered.
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!({ "content": [] })).await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert_eq!(outcome.expect("a result").get(), r#"{"content":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_for_the_task_is_answered_while_the_result_is_waited_for() {
    let client_handler = Arc::new(Scripted::gated().fields(json!({ "name": "Luca" })));
    let (session, _pump, mut peer) =
        with(everything(), MessageDelivery::PerRequest, &client_handler).await;
    let script = async {
        peer.make_task().await;
        peer.tell("input_required", "which one?").await;
        // Only the waiter for the result is asked.
        let wanted = peer.expect("tasks/result").await;
        peer.say(json!({
            "jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create",
            "params": {
                "message": "which one?", "requestedSchema": { "type": "object" },
                "_meta": { RELATED: { "taskId": "t-1" } },
            },
        }))
        .await;
        // A person takes longer than a server may be silent.
        tokio::time::sleep(Duration::from_mins(5)).await;
        client_handler.gate.add_permits(1);
        let answer = peer.next().await;
        assert_eq!(answer.body["id"], "q-1");
        assert_eq!(
            answer.body["result"],
            json!({
                "action": "accept", "content": { "name": "Luca" },
                "_meta": { RELATED: { "taskId": "t-1" } },
            })
        );
        // And so may the work after it.
        tokio::time::sleep(Duration::from_mins(4)).await;
        peer.answer(&wanted, json!({ "content": [] })).await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert_eq!(outcome.expect("a result").get(), r#"{"content":[]}"#);
    assert_eq!(client_handler.asked(), ["scripted form which one?"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_legacy_task_ends_with_is_what_the_call_ends_with() {
    for (status, wanted) in [
        ("failed", "error -32603: no"),
        ("cancelled", "cancelled the task"),
        ("dreaming", "`status`"),
    ] {
        let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
        let script = async {
            peer.make_task().await;
            peer.tell(status, "broke").await;
            if status == "failed" {
                let wanted = peer.expect("tasks/result").await;
                peer.refuse(&wanted, -32603, Value::Null).await;
            }
        };
        let (outcome, ()) = tokio::join!(call(&session), script);
        let error = outcome.expect_err(status).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    // The tool's own error, told as a result.
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
    let script = async {
        peer.make_task().await;
        peer.tell("failed", "broke").await;
        let wanted = peer.expect("tasks/result").await;
        peer.answer(&wanted, json!({ "content": [], "isError": true }))
            .await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(outcome.expect("a result").get().contains("isError"));
}

#[tokio::test(start_paused = true)]
async fn a_legacy_task_that_nobody_wants_any_more_is_cancelled_as_a_task() {
    for (status, waits_in) in [("working", None), ("input_required", Some("tasks/result"))] {
        let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
        let script = async {
            peer.make_task().await;
            peer.tell(status, "x").await;
            if let Some(waits_in) = waits_in {
                peer.expect(waits_in).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        tokio::select! {
            outcome = call(&session) => panic!("{outcome:?}"),
            () = script => {}
        }
        let mut said = peer.next().await;
        if said.method() == "notifications/cancelled" {
            // Of the request for the result.
            assert!(waits_in.is_some());
            said = peer.next().await;
        }
        assert_eq!(said.method(), "tasks/cancel");
        assert_eq!(said.body["params"]["taskId"], "t-1");
        assert!(said.tag.is_some(), "it is a request");
    }
    // A server that has no such request is left alone.
    let tasks = json!({ "requests": { "tools": { "call": {} } } });
    let (session, _pump, mut peer) = with(tasks, MessageDelivery::Stream, &at_once()).await;
    let script = async {
        peer.make_task().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        outcome = call(&session) => panic!("{outcome:?}"),
        () = script => {}
    }
    let silence = tokio::time::timeout(Duration::from_secs(30), peer.next());
    assert!(silence.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_dropped_and_became_a_legacy_task_all_the_same_is_cancelled() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
    let request = tokio::select! {
        outcome = call(&session) => panic!("{outcome:?}"),
        request = peer.expect("tools/call") => request,
    };
    peer.expect("notifications/cancelled").await;
    let task = state("working", "begun");
    peer.answer(&request, json!({ "task": task })).await;
    let cancel = peer.expect("tasks/cancel").await;
    assert_eq!(cancel.body["params"]["taskId"], "t-1");
}

#[tokio::test(start_paused = true)]
async fn news_of_a_legacy_task_have_it_looked_at_at_once() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
    let started = Instant::now();
    let script = async {
        peer.make_task().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        peer.say(json!({
            "jsonrpc": "2.0", "method": "notifications/tasks/status",
            "params": state("completed", "done"),
        }))
        .await;
        peer.tell("completed", "done").await;
        let wanted = peer.expect("tasks/result").await;
        peer.answer(&wanted, json!({})).await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(outcome.is_ok());
    assert_eq!(started.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_legacy_task_outlives_a_look_that_got_lost_and_ends_with_its_server() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest).await;
    let lost = || SendFailure::Cut("reset".to_owned());
    let script = async {
        peer.make_task().await;
        let poll = peer.expect("tasks/get").await;
        peer.fail(&poll, lost()).await;
        peer.tell("input_required", "x").await;
        // The stream on which it asks is cut: what the task does is asked again.
        let wanted = peer.expect("tasks/result").await;
        peer.fail(&wanted, lost()).await;
        peer.tell("completed", "x").await;
        let wanted = peer.expect("tasks/result").await;
        peer.answer(&wanted, json!({})).await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(outcome.is_ok(), "{outcome:?}");

    let script = async {
        peer.make_task().await;
        peer.tell("working", "x").await;
        peer.close(CloseReason::EndOfStream { stderr: Vec::new() })
            .await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(
        matches!(outcome, Err(RequestError::Closed(_))),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_absolute_limit_holds_for_legacy_tasks_too() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream).await;
    let started = Instant::now();
    let script = async {
        peer.make_task().await;
        loop {
            let poll = peer.next().await;
            if poll.method() == "tasks/cancel" {
                return;
            }
            peer.answer(&poll, state("working", "x")).await;
        }
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(matches!(outcome, Err(RequestError::TimedOut)));
    assert_eq!(started.elapsed(), Duration::from_mins(10));
}
