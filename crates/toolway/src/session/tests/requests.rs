//! Our own requests: order, deadlines, cancellation, progress, pages.

use futures_util::future::join_all;

use super::*;

use crate::error::RequestResult;

fn within(timeout: Duration) -> RequestOptions<'static> {
    RequestOptions::within(timeout)
}

async fn call(session: &Session, name: &str) -> RequestResult {
    session
        .request_owned(
            "tools/call",
            params(&json!({ "name": name })),
            within(LIMIT),
        )
        .await
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_get_their_own_answers_out_of_order() {
    let (session, _pump, mut peer) = legacy().await;
    let calls = join_all((0..1000).map(|number| {
        let session = session.clone();
        async move { (number, call(&session, &number.to_string()).await) }
    }));
    let script = async {
        let mut requests = Vec::new();
        for _ in 0..1000 {
            requests.push(peer.expect("tools/call").await);
        }
        for request in requests.iter().rev() {
            peer.answer(request, request.body["params"]["name"].clone())
                .await;
        }
    };
    let (answers, ()) = tokio::join!(calls, script);
    for (number, answer) in answers {
        assert_eq!(answer.expect("answered").get(), format!("\"{number}\""));
    }
    assert_eq!(session.strays(), Strays::default());
}

#[tokio::test(start_paused = true)]
async fn ids_may_come_back_as_text_or_float() {
    let (session, _pump, mut peer) = legacy().await;
    for spell in [|id: u64| format!("\"{id}\""), |id: u64| format!("{id}.0")] {
        let script = async {
            let request = peer.expect("tools/call").await;
            let id = spell(request.body["id"].as_u64().expect("a number"));
            peer.text(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":null}}"#
            ))
            .await;
        };
        let (answer, ()) = tokio::join!(call(&session, "x"), script);
        assert_eq!(answer.expect("answered").get(), "{}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_tells_the_server_which_one() {
    for (mode, delivery) in [
        (ProtocolMode::Legacy, MessageDelivery::Stream),
        (ProtocolMode::Modern, MessageDelivery::Stream),
        (ProtocolMode::Legacy, MessageDelivery::PerRequest),
    ] {
        let (session, _pump, mut peer) = settled(mode, delivery).await;
        let request = tokio::select! {
            _ = call(&session, "slow") => panic!("nobody answers"),
            request = peer.expect("tools/call") => request,
        };
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled.body["params"]["requestId"], request.body["id"]);
        let ChannelCommand::Abandon(tag) = peer.command().await else {
            panic!("its stream is closed")
        };
        assert_eq!(Some(tag), request.tag);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_modern_call_over_http_only_closes_its_stream() {
    let (session, _pump, mut peer) =
        settled(ProtocolMode::Modern, MessageDelivery::PerRequest).await;
    let request = tokio::select! {
        _ = call(&session, "slow") => panic!("nobody answers"),
        request = peer.expect("tools/call") => request,
    };
    assert_eq!(request.header("mcp-name"), Some("slow"));
    let ChannelCommand::Abandon(tag) = peer.command().await else {
        panic!("nothing is sent first")
    };
    assert_eq!(Some(tag), request.tag);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_answered_is_not_cancelled() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!({})).await;
    };
    let (answer, ()) = tokio::join!(call(&session, "quick"), script);
    assert!(answer.is_ok());
    let (_, next) = tokio::join!(
        session.request_owned("tools/list", empty(), within(Duration::from_secs(1))),
        peer.next()
    );
    assert_eq!(
        next.method(),
        "tools/list",
        "no cancellation came before it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_times_out_is_cancelled_and_its_late_answers_are_counted() {
    let (session, _pump, mut peer) = legacy().await;
    let started = tokio::time::Instant::now();
    let limit = Duration::from_secs(5);
    let (outcome, request) = tokio::join!(
        session.request_owned("tools/call", empty(), within(limit)),
        peer.next()
    );
    assert!(matches!(outcome, Err(RequestError::TimedOut)));
    assert_eq!(started.elapsed(), limit);
    peer.expect("notifications/cancelled").await;

    peer.answer(&request, json!({})).await;
    peer.answer(&request, json!({})).await;
    peer.say(json!({ "jsonrpc": "2.0", "id": 4711, "result": {} }))
        .await;
    peer.say(json!({ "jsonrpc": "2.0", "id": "theirs", "result": {} }))
        .await;
    peer.text("listening on stdio\n").await;
    // The session goes on as if nothing had happened.
    let script = async {
        let request = loop {
            let received = peer.next().await;
            if received.method() == "tools/call" {
                break received;
            }
        };
        peer.answer(&request, json!({})).await;
    };
    let (answer, ()) = tokio::join!(call(&session, "next"), script);
    assert!(answer.is_ok());
    assert_eq!(
        session.strays(),
        Strays {
            late: 2,
            unknown: 2,
            malformed: 1
        }
    );
}

#[tokio::test(start_paused = true)]
async fn when_the_server_dies_every_waiting_call_fails_at_once() {
    let (session, _pump, mut peer) = legacy().await;
    let started = tokio::time::Instant::now();
    let reason = CloseReason::Exited {
        status: "signal: 9 (SIGKILL)".to_owned(),
        stderr: vec![],
    };
    let calls = join_all((0..300).map(|_| call(&session, "x")));
    let script = async {
        // More calls than the queue holds, so that some are still waiting to be sent.
        peer.expect("tools/call").await;
        peer.close(reason.clone()).await;
    };
    let (outcomes, ()) = tokio::join!(calls, script);
    for outcome in outcomes {
        let Err(RequestError::Closed(kept)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(kept, reason);
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(matches!(
        call(&session, "after").await,
        Err(RequestError::Closed(_))
    ));
    assert_eq!(session.closed().await, reason);
}

#[tokio::test(start_paused = true)]
async fn aborting_the_session_fails_its_calls() {
    let (session, pump, mut peer) = legacy().await;
    let script = async {
        peer.expect("tools/call").await;
        drop(pump);
    };
    let (outcome, ()) = tokio::join!(call(&session, "x"), script);
    assert!(matches!(outcome, Err(RequestError::Closed(_))));
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_channel() {
    let (session, pump, mut peer) = legacy().await;
    session.inner.correlator.close();
    pump.join().await.expect("it ends by itself");
    assert!(
        peer.commands.recv().await.is_none(),
        "the last sender is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_its_own_call_in_order_and_before_the_answer() {
    let (session, _pump, mut peer) = legacy().await;
    let heard: [Arc<Mutex<Vec<f64>>>; 2] = Default::default();
    let calls = join_all(heard.iter().map(|heard| {
        let heard = Arc::clone(heard);
        let sink: ProgressSink =
            Arc::new(move |news| heard.lock().expect("one thread").push(news.progress));
        let options = RequestOptions {
            progress: Some(sink),
            ..RequestOptions::within(LIMIT)
        };
        session.request_owned("tools/call", params(&json!({ "name": "x" })), options)
    }));
    let script = async {
        let requests = [
            peer.expect("tools/call").await,
            peer.expect("tools/call").await,
        ];
        for step in 1..=50 {
            for (request, factor) in requests.iter().zip([1, 100]) {
                let token = &request.body["params"]["_meta"]["progressToken"];
                peer.say(json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": step * factor, "total": 50 },
                }))
                .await;
            }
        }
        for request in &requests {
            peer.answer(request, json!({})).await;
        }
    };
    let (answers, ()) = tokio::join!(calls, script);
    assert!(answers.iter().all(Result::is_ok));
    for (heard, factor) in heard.iter().zip([1, 100]) {
        let expected: Vec<f64> = (1..=50).map(|step| f64::from(step * factor)).collect();
        assert_eq!(*heard.lock().expect("one thread"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_ends_its_call() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let request = peer.expect("tools/call").await;
        let id = &request.body["id"];
        peer.text(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":1,"result":2}}"#
        ))
        .await;
    };
    let (outcome, ()) = tokio::join!(call(&session, "x"), script);
    let Err(RequestError::Malformed(what)) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(what.contains("twice"), "{what}");
}

#[tokio::test(start_paused = true)]
async fn an_oversized_answer_ends_its_call() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let request = peer.expect("tools/call").await;
        let id_hint = request.body["id"].as_u64().map(toolway_wire::Id::from);
        let event = ChannelEvent::Oversized { id_hint, limit: 7 };
        peer.events.send(event).await.expect("the session listens");
    };
    let (outcome, ()) = tokio::join!(call(&session, "x"), script);
    assert!(matches!(
        outcome,
        Err(RequestError::Send(SendFailure::TooLarge { limit: 7 }))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_answers_is_taken_apart() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let one = peer.expect("tools/call").await;
        let two = peer.expect("tools/call").await;
        let answer = |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": id });
        peer.say(json!([answer(&two.body["id"]), answer(&one.body["id"])]))
            .await;
    };
    let (one, two, ()) = tokio::join!(call(&session, "one"), call(&session, "two"), script);
    assert_ne!(one.expect("answered").get(), two.expect("answered").get());
}

#[tokio::test(start_paused = true)]
async fn a_modern_result_of_another_kind_is_an_error() {
    let (session, _pump, mut peer) = settled(ProtocolMode::Modern, MessageDelivery::Stream).await;
    for (kind, wanted) in [
        ("task", "unexpected type `task`"),
        ("sealed", "unexpected type `sealed`"),
    ] {
        let script = async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, json!({ "resultType": kind })).await;
        };
        let (outcome, ()) = tokio::join!(call(&session, "x"), script);
        let error = outcome.expect_err("not complete").to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_rpc_error_in_the_body_of_a_status_is_that_error() {
    let (session, _pump, mut peer) =
        settled(ProtocolMode::Modern, MessageDelivery::PerRequest).await;
    let script = async {
        let request = peer.expect("tools/call").await;
        let body = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}"#;
        let failure = SendFailure::Status {
            status: 404,
            www_authenticate: None,
            body: Bytes::from_static(body.as_bytes()),
            had_session: false,
            retry_after: None,
        };
        peer.fail(&request, failure).await;
    };
    let (outcome, ()) = tokio::join!(call(&session, "x"), script);
    assert!(matches!(outcome, Err(RequestError::Rpc(rpc)) if rpc.code == -32601));
}
