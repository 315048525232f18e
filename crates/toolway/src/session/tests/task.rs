//! Calls that become tasks.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::*;
use crate::session::tests::client_handler::{Scripted, answered_by};

use crate::error::RequestResult;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A settled modern session with a server that makes tasks.
async fn with_tasks(
    delivery: MessageDelivery,
    client_handler: &Arc<Scripted>,
) -> (Session, Task<()>, Peer) {
    let (correlator, pump, mut peer) = open_with(answered_by(client_handler), None);
    let greeting = greeting(ProtocolMode::Modern, delivery);
    let script = async {
        let probe = peer.expect("server/discover").await;
        let result = discover_result_with(&["2026-07-28"], &json!({ EXTENSION: {} }));
        peer.answer(&probe, result).await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
    (session.expect("the handshake succeeds"), pump, peer)
}

fn at_once() -> Arc<Scripted> {
    Arc::new(Scripted::new().fields(json!({ "name": "Luca" })))
}

fn state(kind: &str, status: &str, more: Value) -> Value {
    let mut task = json!({
        "resultType": kind, "taskId": "t-1", "status": status, "pollIntervalMs": 5000,
        "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": null,
    });
    if let (Some(task), Value::Object(more)) = (task.as_object_mut(), more) {
        task.extend(more);
    }
    task
}

async fn call(session: &Session) -> RequestResult {
    let params = params(&json!({ "name": "slow" }));
    session
        .request_owned(
            "tools/call",
            params,
            RequestOptions::within(Duration::from_mins(10)),
        )
        .await
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_to_its_result_at_the_pace_the_server_wants() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest, &at_once()).await;
    let heard: Arc<Mutex<Vec<(f64, String)>>> = Arc::default();
    let sink: ProgressSink = {
        let heard = Arc::clone(&heard);
        Arc::new(move |news: crate::call::Progress| {
            let message = news.message.map(|message| message.to_string());
            let mut heard = heard.lock().expect("one thread");
            heard.push((news.progress, message.unwrap_or_default()));
        })
    };
    let is_task = AtomicBool::new(false);
    let options = RequestOptions {
        progress: Some(sink),
        is_task: Some(&is_task),
        idle: Some(Duration::from_secs(8)),
        ..RequestOptions::within(Duration::from_mins(10))
    };
    let call = session.request_owned("tools/call", params(&json!({ "name": "slow" })), options);
    let script = async {
        let request = peer.expect("tools/call").await;
        let meta = &request.body["params"]["_meta"];
        let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
        assert!(capabilities["extensions"][EXTENSION].is_object());
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        let mut asked_at = Instant::now();
        for message in ["digging", "digging", "polishing"] {
            let poll = peer.expect("tasks/get").await;
            assert_eq!(poll.body["params"]["taskId"], "t-1");
            assert_eq!(poll.header("mcp-name"), Some("t-1"));
            assert_eq!(poll.header("mcp-method"), Some("tasks/get"));
            let pause = asked_at.elapsed();
            assert!((5000..=6250).contains(&pause.as_millis()), "{pause:?}");
            asked_at = Instant::now();
            let working = state("complete", "working", json!({ "statusMessage": message }));
            peer.answer(&poll, working).await;
        }
        let poll = peer.expect("tasks/get").await;
        let done = json!({ "result": { "content": [], "isError": true } });
        // Some servers name the type of the task here again.
        peer.answer(&poll, state("task", "completed", done)).await;
    };
    let (outcome, ()) = tokio::join!(call, script);
    assert_eq!(
        outcome.expect("a result").get(),
        r#"{"content":[],"isError":true}"#
    );
    assert!(
        is_task.load(Ordering::Relaxed),
        "who might send it again knows"
    );
    let heard = heard.lock().expect("one thread").clone();
    let wanted = ["working", "digging", "polishing", "completed"];
    let numbered = wanted
        .iter()
        .zip(1..)
        .map(|(word, n)| (f64::from(n), (*word).to_owned()));
    assert_eq!(heard, numbered.collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_a_task_ends_with_is_what_the_call_ends_with() {
    for (status, more, wanted) in [
        (
            "failed",
            json!({ "error": { "code": -32603, "message": "rate limit" } }),
            "error -32603: rate limit",
        ),
        ("cancelled", json!({}), "cancelled the task"),
        ("completed", json!({}), "without a result"),
        ("dreaming", json!({}), "`status`"),
    ] {
        let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream, &at_once()).await;
        let script = async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, state("task", "working", json!({})))
                .await;
            let poll = peer.expect("tasks/get").await;
            peer.answer(&poll, state("complete", status, more)).await;
        };
        let (outcome, ()) = tokio::join!(call(&session), script);
        let error = outcome.expect_err(status).to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_for_a_task_is_given_once_for_each_key() {
    let client_handler = at_once();
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest, &client_handler).await;
    let question = |message: &str| {
        json!({
            "method": "elicitation/create",
            "params": { "message": message, "requestedSchema": { "type": "object" } },
        })
    };
    let script = async {
        let request = peer.expect("tools/call").await;
        // What makes the task says that it waits, but not for what.
        peer.answer(&request, state("task", "input_required", json!({})))
            .await;
        let poll = peer.expect("tasks/get").await;
        let one = json!({ "inputRequests": { "one": question("first?") } });
        let both =
            json!({ "inputRequests": { "one": question("first?"), "two": question("second?") } });
        peer.answer(&poll, state("complete", "input_required", one))
            .await;
        let update = peer.expect("tasks/update").await;
        assert_eq!(update.header("mcp-name"), Some("t-1"));
        let accepted = json!({ "action": "accept", "content": { "name": "Luca" } });
        assert_eq!(update.body["params"]["taskId"], "t-1");
        assert_eq!(
            update.body["params"]["inputResponses"],
            json!({ "one": accepted })
        );
        peer.answer(&update, json!({ "resultType": "complete" }))
            .await;
        // Eventually consistent: the first question still stands there.
        let poll = peer.expect("tasks/get").await;
        peer.answer(&poll, state("complete", "input_required", both.clone()))
            .await;
        let update = peer.expect("tasks/update").await;
        assert_eq!(
            update.body["params"]["inputResponses"],
            json!({ "two": accepted })
        );
        peer.answer(&update, json!({ "resultType": "complete" }))
            .await;
        let poll = peer.expect("tasks/get").await;
        peer.answer(&poll, state("complete", "input_required", both))
            .await;
        let poll = peer.expect("tasks/get").await;
        let done = json!({ "result": {} });
        peer.answer(&poll, state("complete", "completed", done))
            .await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(
        client_handler.asked(),
        ["scripted form first?", "scripted form second?"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_wants_any_more_is_cancelled_as_a_task() {
    for delivery in [MessageDelivery::Stream, MessageDelivery::PerRequest] {
        let (session, _pump, mut peer) = with_tasks(delivery, &at_once()).await;
        let script = async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, state("task", "working", json!({})))
                .await;
            let poll = peer.expect("tasks/get").await;
            peer.answer(&poll, state("complete", "working", json!({})))
                .await;
            // Between two looks.
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        tokio::select! {
            outcome = call(&session) => panic!("{outcome:?}"),
            () = script => {}
        }
        let cancel = peer.expect("tasks/cancel").await;
        assert_eq!(cancel.body["params"]["taskId"], "t-1");
        assert!(cancel.tag.is_some(), "it is a request");
        if delivery == MessageDelivery::PerRequest {
            assert_eq!(cancel.header("mcp-name"), Some("t-1"));
        }
        peer.answer(&cancel, json!({ "resultType": "complete" }))
            .await;
        let script = async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, json!({})).await;
        };
        let (outcome, ()) = tokio::join!(call(&session), script);
        assert!(outcome.is_ok());
        assert_eq!(
            session.strays(),
            Strays::default(),
            "its answer was expected"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_absolute_limit_holds_for_tasks_too() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream, &at_once()).await;
    let started = Instant::now();
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        loop {
            let poll = peer.next().await;
            if poll.method() == "tasks/cancel" {
                return;
            }
            peer.answer(&poll, state("complete", "working", json!({})))
                .await;
        }
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(matches!(outcome, Err(RequestError::TimedOut)));
    assert_eq!(started.elapsed(), Duration::from_mins(10));
}

#[tokio::test(start_paused = true)]
async fn news_of_a_task_have_it_looked_at_at_once() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream, &at_once()).await;
    let started = Instant::now();
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        for task in ["another", "t-1"] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let params = json!({ "taskId": task, "status": "completed", "result": {} });
            peer.say(
                json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": params }),
            )
            .await;
        }
        let poll = peer.expect("tasks/get").await;
        let done = json!({ "result": {} });
        peer.answer(&poll, state("complete", "completed", done))
            .await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(outcome.is_ok());
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_look_that_got_lost_is_taken_again_and_an_error_is_not() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest, &at_once()).await;
    let lost = || SendFailure::Cut("reset".to_owned());
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        for _ in 0..2 {
            let poll = peer.expect("tasks/get").await;
            peer.fail(&poll, lost()).await;
        }
        let poll = peer.expect("tasks/get").await;
        let done = json!({ "result": {} });
        peer.answer(&poll, state("complete", "completed", done))
            .await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(outcome.is_ok(), "{outcome:?}");

    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        for _ in 0..3 {
            let poll = peer.expect("tasks/get").await;
            peer.fail(&poll, lost()).await;
        }
        peer.expect("tasks/cancel").await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(matches!(
        outcome,
        Err(RequestError::Send(SendFailure::Cut(_)))
    ));

    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        let poll = peer.expect("tasks/get").await;
        peer.refuse(&poll, -32602, Value::Null).await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32602));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_extension_may_not_make_tasks() {
    let (session, _pump, mut peer) = settled(ProtocolMode::Modern, MessageDelivery::Stream).await;
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert!(matches!(outcome, Err(RequestError::Malformed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_server_nobody_answers_for_is_given_up_at_once() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest, &at_once()).await;
    let script = async {
        let request = peer.expect("tools/call").await;
        let long = json!({ "pollIntervalMs": 300_000 });
        peer.answer(&request, state("task", "working", long)).await;
        let poll = peer.expect("tasks/get").await;
        let refused = SendFailure::Unreachable {
            refused: true,
            message: "connection refused".to_owned(),
        };
        peer.fail(&poll, refused).await;
        Instant::now()
    };
    let (outcome, refused_at) = tokio::join!(call(&session), script);
    assert!(
        matches!(
            outcome,
            Err(RequestError::Send(SendFailure::Unreachable { .. }))
        ),
        "{outcome:?}"
    );
    assert_eq!(refused_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_never_answered_is_not_remembered_for_ever() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest, &at_once()).await;
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, state("task", "working", json!({})))
            .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        outcome = call(&session) => panic!("{outcome:?}"),
        () = script => {}
    }
    let cancel = peer.expect("tasks/cancel").await;
    let asked = Instant::now();
    let ChannelCommand::Abandon(tag) = peer.command().await else {
        panic!("nothing else is said")
    };
    assert_eq!(Some(tag), cancel.tag, "its stream is let go");
    assert_eq!(asked.elapsed(), Duration::from_mins(1));
    peer.answer(&cancel, json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(session.strays().late, 1, "by then nobody knows of it");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_dropped_and_became_a_task_all_the_same_is_cancelled() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::Stream, &at_once()).await;
    let request = tokio::select! {
        outcome = call(&session) => panic!("{outcome:?}"),
        request = peer.expect("tools/call") => request,
    };
    peer.expect("notifications/cancelled").await;
    // The server had made the task when it heard of the cancellation.
    peer.answer(&request, state("task", "working", json!({})))
        .await;
    let cancel = peer.expect("tasks/cancel").await;
    assert_eq!(cancel.body["params"]["taskId"], "t-1");

    let request = tokio::select! {
        outcome = call(&session) => panic!("{outcome:?}"),
        request = peer.expect("tools/call") => request,
    };
    peer.expect("notifications/cancelled").await;
    peer.answer(&request, json!({})).await;
    let silence = tokio::time::timeout(Duration::from_secs(30), peer.next());
    assert!(silence.await.is_err(), "an ordinary answer is only late");
    assert_eq!(session.strays().late, 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_call_is_dropped_before_it_looks_is_cancelled() {
    let (session, _pump, mut peer) = with_tasks(MessageDelivery::PerRequest, &at_once()).await;
    let mut call = Box::pin(call(&session));
    let request = tokio::select! {
        outcome = &mut call => panic!("{outcome:?}"),
        request = peer.expect("tools/call") => request,
    };
    peer.answer(&request, state("task", "working", json!({})))
        .await;
    // The answer is there, and its caller does not look.
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(call);
    let cancel = peer.expect("tasks/cancel").await;
    assert_eq!(cancel.body["params"]["taskId"], "t-1");
}
