//! How long a request may take, and what ends with the channel.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::*;
use crate::session::tests::client_handler::{Scripted, answered_by};

fn limits(timeout: u64, idle: u64) -> RequestOptions<'static> {
    RequestOptions {
        idle: Some(Duration::from_secs(idle)),
        ..RequestOptions::within(Duration::from_secs(timeout))
    }
}

fn progress(request: &Received, step: u64) -> Value {
    let token = &request.body["params"]["_meta"]["progressToken"];
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": token, "progress": step },
    })
}

#[tokio::test(start_paused = true)]
async fn rel_09_a_server_that_never_replies_is_given_up_and_told() {
    for mode in [ProtocolMode::Legacy, ProtocolMode::Modern] {
        let (session, _pump, mut peer) = settled(mode, MessageDelivery::Stream).await;
        let started = Instant::now();
        let (outcome, request) = tokio::join!(
            session.request_owned("tools/call", empty(), limits(600, 5)),
            peer.expect("tools/call"),
        );
        let Err(RequestError::Idle { after }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(after, Duration::from_secs(5));
        assert_eq!(started.elapsed(), after);
        let farewell = peer.expect("notifications/cancelled").await;
        assert_eq!(farewell.body["params"]["requestId"], request.body["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn rel_09_a_reply_after_the_cancellation_is_dropped_and_counted() {
    let (session, _pump, mut peer) = legacy().await;
    let (outcome, request) = tokio::join!(
        session.request_owned("tools/call", empty(), limits(600, 5)),
        peer.expect("tools/call"),
    );
    assert!(matches!(outcome, Err(RequestError::Idle { .. })));
    peer.expect("notifications/cancelled").await;
    peer.answer(&request, json!({ "late": true })).await;
    peer.say(progress(&request, 9)).await;
    let script = async {
        // The orders to the transport that lie between are skipped.
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!({ "late": false })).await;
    };
    let (answer, ()) = tokio::join!(
        session.request_owned("tools/call", empty(), limits(600, 5)),
        script
    );
    assert_eq!(answer.expect("answered").get(), r#"{"late":false}"#);
    let strays = Strays {
        late: 1,
        ..Strays::default()
    };
    assert_eq!(session.strays(), strays);
}

#[tokio::test(start_paused = true)]
async fn rel_09_progress_for_ever_ends_at_the_absolute_limit() {
    let (session, _pump, mut peer) = legacy().await;
    let started = Instant::now();
    let script = async {
        let request = peer.expect("tools/call").await;
        for step in 1..=200 {
            tokio::time::sleep(Duration::from_secs(4)).await;
            peer.say(progress(&request, step)).await;
        }
    };
    let call = session.request_owned("tools/call", empty(), limits(600, 5));
    let outcome = tokio::select! {
        outcome = call => outcome,
        () = script => panic!("the limit is shorter"),
    };
    assert!(
        matches!(outcome, Err(RequestError::TimedOut)),
        "{outcome:?}"
    );
    assert_eq!(started.elapsed(), Duration::from_mins(10));
}

#[tokio::test(start_paused = true)]
async fn progress_after_the_answer_reaches_nobody() {
    let (session, _pump, mut peer) = legacy().await;
    let heard: Arc<Mutex<Vec<f64>>> = Arc::default();
    let sink: ProgressSink = {
        let heard = Arc::clone(&heard);
        Arc::new(move |news: crate::call::Progress| {
            heard.lock().expect("one thread").push(news.progress);
        })
    };
    let options = RequestOptions {
        progress: Some(sink),
        ..RequestOptions::within(LIMIT)
    };
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.say(progress(&request, 1)).await;
        peer.answer(&request, json!({})).await;
        peer.say(progress(&request, 2)).await;
        // Answered after that was read.
        peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
            .await;
        peer.next().await;
    };
    let (outcome, ()) = tokio::join!(
        session.request_owned("tools/call", empty(), options),
        script
    );
    assert!(outcome.is_ok());
    assert_eq!(*heard.lock().expect("one thread"), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_only_its_own_request_alive() {
    let (session, _pump, mut peer) = legacy().await;
    let started = Instant::now();
    let silent = async {
        let outcome = session
            .request_owned("tools/call", empty(), limits(600, 10))
            .await;
        (outcome, started.elapsed())
    };
    let lively = session.request_owned("tools/call", empty(), limits(600, 10));
    let script = async {
        let _silent = peer.expect("tools/call").await;
        let lively = peer.expect("tools/call").await;
        for step in 1..=5 {
            tokio::time::sleep(Duration::from_secs(7)).await;
            peer.say(progress(&lively, step)).await;
        }
        peer.answer(&lively, json!({})).await;
    };
    let ((silent, after), lively, ()) = tokio::join!(silent, lively, script);
    assert!(matches!(silent, Err(RequestError::Idle { .. })));
    assert_eq!(after, Duration::from_secs(10));
    assert!(lively.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_limit_on_silence_is_none_and_asks_for_no_progress() {
    let (session, _pump, mut peer) = legacy().await;
    for idle in [None, Some(Duration::ZERO)] {
        let options = RequestOptions {
            idle,
            ..RequestOptions::within(Duration::from_secs(100))
        };
        let started = Instant::now();
        let (outcome, request) = tokio::join!(
            session.request_owned("tools/call", empty(), options),
            peer.expect("tools/call"),
        );
        assert!(matches!(outcome, Err(RequestError::TimedOut)));
        assert_eq!(started.elapsed(), Duration::from_secs(100));
        assert!(request.body["params"]["_meta"].is_null());
        peer.expect("notifications/cancelled").await;
    }
    // Longer than any clock runs.
    let options = RequestOptions {
        idle: Some(Duration::MAX),
        ..RequestOptions::within(Duration::MAX)
    };
    let script = async {
        let request = peer.expect("tools/call").await;
        tokio::time::sleep(Duration::from_hours(24)).await;
        peer.answer(&request, json!({})).await;
    };
    let (outcome, ()) = tokio::join!(
        session.request_owned("tools/call", empty(), options),
        script
    );
    assert!(outcome.is_ok());
}

#[tokio::test(start_paused = true)]
async fn while_a_person_thinks_about_the_servers_question_its_silence_is_ours() {
    let client_handler = Arc::new(Scripted::gated().fields(json!({ "age": 3 })));
    let client_side = answered_by(&client_handler);
    let (session, _pump, mut peer) =
        settled_with(ProtocolMode::Legacy, MessageDelivery::Stream, client_side).await;
    let started = Instant::now();
    let call = session.request_owned("tools/call", empty(), limits(6000, 10));
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.say(json!({
            "jsonrpc": "2.0", "id": 1, "method": "elicitation/create",
            "params": { "message": "?", "requestedSchema": { "type": "object" } },
        }))
        .await;
        tokio::time::sleep(Duration::from_secs(500)).await;
        client_handler.gate.add_permits(1);
        assert_eq!(peer.next().await.body["result"]["content"]["age"], 3);
        tokio::time::sleep(Duration::from_secs(9)).await;
        request
    };
    let (outcome, _request) = tokio::join!(call, script);
    assert!(matches!(outcome, Err(RequestError::Idle { .. })));
    assert_eq!(started.elapsed(), Duration::from_secs(510));
}

#[tokio::test(start_paused = true)]
async fn rel_10_a_thousand_calls_in_flight_fail_at_once_and_once_each_when_the_server_dies() {
    for delivery in [MessageDelivery::Stream, MessageDelivery::PerRequest] {
        let (session, _pump, mut peer) = settled(ProtocolMode::Legacy, delivery).await;
        let outcomes = Arc::new(Mutex::new(vec![0_u32; 1000]));
        let calls = join_all((0..1000).map(|number| {
            let (session, outcomes) = (session.clone(), Arc::clone(&outcomes));
            async move {
                let outcome = session
                    .request_owned("tools/call", empty(), limits(600, 60))
                    .await;
                outcomes.lock().expect("one thread")[number] += 1;
                outcome
            }
        }));
        let started = Instant::now();
        let script = async {
            for _ in 0..1000 {
                peer.expect("tools/call").await;
            }
            peer.close(CloseReason::Exited {
                status: "signal: 9 (SIGKILL)".to_owned(),
                stderr: vec![],
            })
            .await;
        };
        let (answers, ()) = tokio::join!(calls, script);
        assert!(started.elapsed() < Duration::from_secs(1));
        for answer in answers {
            assert!(matches!(
                answer,
                Err(RequestError::Closed(CloseReason::Exited { .. }))
            ));
        }
        assert!(
            outcomes
                .lock()
                .expect("one thread")
                .iter()
                .all(|times| *times == 1)
        );
    }
}
