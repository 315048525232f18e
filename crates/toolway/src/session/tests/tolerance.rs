//! What real servers send, and what it costs: never more than the one message.

use futures_util::FutureExt;
use futures_util::future::join_all;
use toolway_wire::Id;

use super::*;

use crate::error::RequestResult;

async fn call(session: &Session) -> RequestResult {
    session
        .request_owned("tools/call", empty(), RequestOptions::within(LIMIT))
        .await
}

/// What one call ends with when its answer is this text; `ID` stands for its id.
async fn answered_with(text: &str) -> (RequestResult, Strays) {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let request = peer.expect("tools/call").await;
        let text = text.replace("ID", &request.body["id"].to_string());
        for line in text.split('\u{1e}') {
            peer.text(line.to_owned()).await;
        }
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    (outcome, session.strays())
}

#[tokio::test(start_paused = true)]
async fn rel_22_answers_are_understood_however_they_are_spelled() {
    for text in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":"ID","result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":IDe0,"result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1},"error":null}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":1}}",
        "{\"jsonrpc\":\"2.0\",\r\n \"id\":ID,\r\n\"result\":{\"a\":1}}\r\n",
        r#"{"id":ID,"result":{"a":1},"extra":[]}"#,
    ] {
        let (outcome, strays) = answered_with(text).await;
        assert_eq!(outcome.expect(text).get(), r#"{"a":1}"#, "{text}");
        assert_eq!(strays, Strays::default(), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn rel_22_lines_that_are_no_answer_cost_nothing_but_a_count() {
    let answer = r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;
    for (noise, wanted) in [
        ("listening on stdio", (0, 0, 1)),
        ("", (0, 0, 1)),
        ("[1, 2", (0, 0, 1)),
        (r#"{"level":"info","msg":"ready"}"#, (0, 0, 1)),
        (r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#, (0, 1, 0)),
        (r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, (0, 1, 0)),
        (r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#, (0, 1, 0)),
        (r#"{"jsonrpc":"2.0","id":"007","result":{}}"#, (0, 1, 0)),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, (0, 1, 0)),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
            (0, 1, 0),
        ),
    ] {
        let (outcome, strays) = answered_with(&format!("{noise}\u{1e}{answer}")).await;
        assert!(outcome.is_ok(), "{noise}: {outcome:?}");
        let (late, unknown, malformed) = wanted;
        let wanted = Strays {
            late,
            unknown,
            malformed,
        };
        assert_eq!(strays, wanted, "{noise}");
    }
}

#[tokio::test(start_paused = true)]
async fn rel_22_both_result_and_error_is_an_error_and_only_the_first_answer_counts() {
    let (outcome, _) = answered_with(
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":-5,"message":"no"}}"#,
    )
    .await;
    assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -5));

    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let request = peer.expect("tools/call").await;
        for number in 0..3 {
            peer.answer(&request, json!({ "answer": number })).await;
        }
        peer.refuse(&request, -1, Value::Null).await;
        // Read after all of these.
        peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
            .await;
        peer.next().await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert_eq!(outcome.expect("answered").get(), r#"{"answer":0}"#);
    assert_eq!(session.strays().late, 3);
}

#[tokio::test(start_paused = true)]
async fn sec_22_an_answer_with_a_doubled_member_ends_its_call_and_is_never_believed() {
    for text in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"safe":1},"result":{"danger":1}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"safe":1},"res\u0075lt":{"danger":1}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"x":1,"x":2,"result":{}}"#,
    ] {
        let (outcome, strays) = answered_with(text).await;
        let Err(RequestError::Malformed(what)) = outcome else {
            panic!("{text}: {outcome:?}")
        };
        assert!(what.contains("twice"), "{what}");
        assert_eq!(strays.malformed, 1);
    }
    // An answer whose id stands twice is ambiguous; its call fails rather than hangs.
    let (outcome, _) = answered_with(r#"{"jsonrpc":"2.0","id":9,"id":ID,"result":{}}"#).await;
    assert!(
        matches!(outcome, Err(RequestError::Malformed(_))),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn rel_11_an_oversized_answer_fails_its_own_call_and_no_other() {
    let (session, _pump, mut peer) = legacy().await;
    let script = async {
        let large = peer.expect("tools/call").await;
        let small = peer.expect("tools/call").await;
        let id_hint = large.body["id"].as_u64().map(Id::from);
        let limit = 17 * 1024 * 1024;
        for id_hint in [None, id_hint] {
            let event = ChannelEvent::Oversized { id_hint, limit };
            peer.events.send(event).await.expect("the session listens");
        }
        peer.answer(&small, json!({})).await;
    };
    let (large, small, ()) = tokio::join!(call(&session), call(&session), script);
    assert!(matches!(
        large,
        Err(RequestError::Send(SendFailure::TooLarge { .. }))
    ));
    assert!(small.is_ok());
    assert_eq!(session.strays().malformed, 1, "nobody's oversized message");
}

#[tokio::test(start_paused = true)]
async fn sec_25_sixty_four_callers_over_one_session_get_their_own_answers() {
    const CALLERS: usize = 64;
    const CALLS: usize = 50;
    let (session, _pump, mut peer) = legacy().await;
    let callers = join_all((0..CALLERS).map(|caller| {
        let session = session.clone();
        async move {
            for number in 0..CALLS {
                let canary = format!("{caller}-{number}");
                let answer = session
                    .request_owned(
                        "tools/call",
                        params(&json!({ "canary": canary })),
                        RequestOptions::within(LIMIT),
                    )
                    .await;
                assert_eq!(answer.expect("answered").get(), format!("\"{canary}\""));
            }
        }
    }));
    let script = async {
        let mut pile = Vec::new();
        let mut highest = 0;
        for turn in 0..CALLERS * CALLS {
            // Whatever is there by now, so that answers go out in another order than calls came.
            if pile.is_empty() {
                pile.push(peer.expect("tools/call").await);
            }
            for _ in 0..CALLERS {
                tokio::task::yield_now().await;
            }
            while let Some(request) = peer.expect("tools/call").now_or_never() {
                pile.push(request);
            }
            highest = highest.max(pile.len());
            let chosen = pile.swap_remove(turn * 7919 % pile.len());
            let canary = chosen.body["params"]["canary"].clone();
            peer.answer(&chosen, canary).await;
        }
        highest
    };
    let (_, highest) = tokio::join!(callers, script);
    assert!(highest > CALLERS / 2, "only {highest} at once");
    assert_eq!(session.strays(), Strays::default());
}

/// Keeps what it hears.
#[derive(Default)]
struct Recorder(Mutex<Vec<(&'static str, String)>>);

impl Recorder {
    fn note(&self, way: &'static str, message: &[u8]) {
        let text = String::from_utf8_lossy(message).into_owned();
        self.0.lock().expect("not poisoned").push((way, text));
    }
}

impl ChannelTap for Recorder {
    fn sent(&self, message: &[u8]) {
        self.note("sent", message);
    }

    fn received(&self, message: &[u8]) {
        self.note("received", message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tap_hears_every_message_both_ways() {
    let recorder = Arc::new(Recorder::default());
    let tap: Arc<dyn ChannelTap> = Arc::clone(&recorder) as _;
    let (correlator, _pump, mut peer) = open_with(client_side(), Some(tap));
    let greeting = greeting(ProtocolMode::Legacy, MessageDelivery::Stream);
    let script = async {
        peer.greet_legacy("2025-11-25").await;
        peer.text("noise").await;
        peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
            .await;
        peer.next().await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
    assert!(session.is_ok());
    let heard = recorder.0.lock().expect("not poisoned");
    let told: Vec<_> = heard
        .iter()
        .map(|(way, text)| {
            let message: Value = serde_json::from_str(text).unwrap_or(json!({ "method": text }));
            let word = message["method"].as_str().unwrap_or("answer").to_owned();
            format!("{way} {word}")
        })
        .collect();
    assert_eq!(
        told,
        [
            "sent initialize",
            "received answer",
            "sent notifications/initialized",
            "received noise",
            "received ping",
            "sent answer",
        ]
    );
}
