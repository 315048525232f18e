//! Event streams of both eras: when an answer becomes one, and how a cut one goes on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolway_gateway::http::{HttpLimits, HttpOptions, KEEPALIVE};

use crate::http_stage::{
    Event, LEGACY, MODERN, OnStage, RawConnection, Stage, initialize, modern, raw, until,
};
use crate::{exchange, request, with_options};

fn staged() -> (Arc<Stage>, Arc<OnStage>) {
    let stage = Arc::new(Stage::default());
    (Arc::clone(&stage), Arc::new(OnStage(stage)))
}

/// The numbers of the news among events.
fn numbers(events: &[Event]) -> Vec<u64> {
    events
        .iter()
        .filter(|event| !event.data.is_empty())
        .filter_map(|event| event.json()["params"]["n"].as_u64())
        .collect()
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.id.as_str()).collect()
}

/// A modern request as it is sent.
fn modern_call(address: std::net::SocketAddr, id: u64, method: &str, params: Value) -> String {
    let body = request(id, method, &modern(params));
    let headers = [MODERN, ("mcp-method", method)];
    raw("POST /mcp", address, &headers, Some(&body))
}

#[tokio::test]
async fn a_modern_answer_is_json_unless_something_is_said_before_it() {
    let (_, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let quiet = modern_call(address, 1, "whoami", json!({}));
        let answer = exchange(address, &quiet).await;
        assert!(answer.head.contains("content-type: application/json"));
        assert_eq!(answer.json()["result"]["principal"], "anybody");

        let loud = modern_call(address, 2, "whoami", json!({ "say": 3 }));
        let mut stream = RawConnection::open(address, &loud).await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        let events = stream.events().await;
        assert_eq!(numbers(&events), [0, 1, 2]);
        assert_eq!(events.len(), 4);
        assert_eq!(events[3].json()["id"], 2);
        assert_eq!(events[3].json()["result"]["principal"], "anybody");
        // There is nothing to come back to.
        assert_eq!(ids(&events), ["", "", "", ""]);

        // Who reads JSON alone gets the answer alone, also where it is an error.
        let body = request(3, "unknown", &modern(json!({ "say": 3 })));
        let headers = [
            MODERN,
            ("mcp-method", "unknown"),
            ("accept", "application/json"),
        ];
        let deaf = raw("POST /mcp", address, &headers, Some(&body));
        let answer = exchange(address, &deaf).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.json()["error"]["code"], -32601);
        // Who reads events alone gets those.
        let body = request(4, "whoami", &modern(json!({})));
        let headers = [
            MODERN,
            ("mcp-method", "whoami"),
            ("accept", "text/event-stream"),
        ];
        let mut stream =
            RawConnection::open(address, &raw("POST /mcp", address, &headers, Some(&body))).await;
        assert_eq!(stream.events().await[0].json()["id"], 4);
    })
    .await;
}

#[tokio::test]
async fn a_modern_handshake_is_left_to_the_service() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let call = modern_call(address, 1, "initialize", json!({}));
        let answer = exchange(address, &call).await;
        assert!(!answer.head.contains("mcp-session-id"));
        assert_eq!(stage.clients.lock().unwrap().len(), 0);
    })
    .await;
}

#[tokio::test]
async fn rel_23_a_stream_says_at_once_that_it_is_one_and_stays_alive() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let call = modern_call(address, 1, "wait", json!({ "say": 1 }));
        let mut stream = RawConnection::open(address, &call).await;
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        assert_eq!(stream.header("cache-control"), Some("no-store"));
        assert_eq!(stream.event().await.unwrap().json()["params"]["n"], 0);
        assert_eq!(stream.comments, 1);
        tokio::time::pause();
        let quiet = async {
            tokio::time::sleep(KEEPALIVE * 3 + Duration::from_secs(1)).await;
            stage.gate.notify_one();
        };
        let ((), event) = tokio::join!(quiet, stream.event());
        tokio::time::resume();
        assert_eq!(event.unwrap().json()["result"]["waited"], true);
        assert_eq!(stream.comments, 4);
    })
    .await;
}

#[tokio::test]
async fn rel_23_a_call_that_takes_long_becomes_a_stream_in_time() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let session = initialize(address, "/mcp", &[]).await;
        let body = request(1, "wait", &json!({}));
        let headers = [("mcp-session-id", session.as_str()), LEGACY];
        let legacy = raw("POST /mcp", address, &headers, Some(&body));
        for (call, within) in [
            (legacy, Duration::from_secs(2)),
            (modern_call(address, 1, "wait", json!({})), KEEPALIVE),
        ] {
            let before = stage.begun();
            let mut waiting = RawConnection::sent(address, &call).await;
            until(|| stage.begun() > before).await;
            tokio::time::pause();
            let started = tokio::time::Instant::now();
            waiting.read_head().await;
            let waited = started.elapsed();
            tokio::time::resume();
            assert!(waited <= within + Duration::from_secs(1), "{waited:?}");
            assert_eq!(waiting.header("content-type"), Some("text/event-stream"));
            stage.gate.notify_one();
            let events = waiting.events().await;
            assert_eq!(events.last().unwrap().json()["result"]["waited"], true);
        }
    })
    .await;
}

#[tokio::test]
async fn a_modern_client_that_goes_away_cancels_also_in_mid_stream() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let quiet = RawConnection::sent(address, &modern_call(address, 1, "hang", json!({}))).await;
        until(|| stage.begun() == 1).await;
        drop(quiet);
        until(|| stage.dropped() == 1).await;
        let call = modern_call(address, 2, "hang", json!({ "say": 1 }));
        let mut stream = RawConnection::open(address, &call).await;
        assert!(stream.event().await.is_some());
        assert_eq!(stage.dropped(), 1);
        drop(stream);
        until(|| stage.dropped() == 2 && stage.ended() == 2).await;
    })
    .await;
}

#[tokio::test]
async fn the_same_id_in_two_modern_exchanges_is_nothing_doubled() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let call = modern_call(address, 1, "wait", json!({}));
        let mut both = Vec::new();
        for _ in 0..2 {
            both.push(RawConnection::sent(address, &call).await);
        }
        until(|| stage.begun() == 2).await;
        stage.gate.notify_waiters();
        for mut one in both {
            one.read_head().await;
            assert_eq!(one.status, 200);
        }
    })
    .await;
}

#[tokio::test]
async fn a_legacy_client_that_goes_away_comes_back_for_the_rest() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let call = |number, params: &Value| {
            let body = request(number, "wait", params);
            raw("POST /mcp", address, &[session, LEGACY], Some(&body))
        };
        let first = call(1, &json!({ "say": 2, "later": 2 }));
        let mut first = RawConnection::open(address, &first).await;
        let priming = first.event().await.unwrap();
        assert_eq!((priming.data.as_str(), priming.retry), ("", Some(1000)));
        let seen = [first.event().await.unwrap(), first.event().await.unwrap()];
        assert_eq!(numbers(&seen), [0, 1]);
        let other = call(2, &json!({ "say": 1 }));
        let mut other = RawConnection::open(address, &other).await;
        assert!(other.event().await.unwrap().data.is_empty());
        assert_eq!(numbers(&[other.event().await.unwrap()]), [0]);
        drop(first);
        drop(other);
        // Neither is cancelled by that.
        stage.gate.notify_waiters();
        until(|| stage.ended() == 0 && stage.begun() == 3).await;

        let resume = async |last: &str| {
            let headers = [session, LEGACY, ("last-event-id", last)];
            let get = raw("GET /mcp", address, &headers, None);
            RawConnection::open(address, &get).await
        };
        // From where it was cut, to the end; and never what was said on the other stream.
        let mut rest = resume(&seen[0].id).await;
        let events = rest.events().await;
        assert_eq!(numbers(&events), [1, 100, 101]);
        assert_eq!(events.last().unwrap().json()["id"], 1);
        assert_eq!(events.last().unwrap().json()["result"]["waited"], true);
        assert_eq!(
            numbers(&resume(&priming.id).await.events().await),
            [0, 1, 100, 101]
        );
        assert_eq!(stage.dropped(), 0);
        for unknown in [
            "",
            "x",
            "1",
            "1-",
            "-1",
            "1-99",
            "99-1",
            "1-1-1",
            "1-18446744073709551616",
        ] {
            assert_eq!(resume(unknown).await.status, 400, "{unknown}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_cut_is_taken_over_before_the_server_knows() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let body = request(1, "wait", &json!({ "say": 1 }));
        let call = raw("POST /mcp", address, &[session], Some(&body));
        let mut first = RawConnection::open(address, &call).await;
        let seen = first.event().await.unwrap();
        assert_eq!(numbers(std::slice::from_ref(&seen)), [0]);
        let headers = [session, ("last-event-id", seen.id.as_str())];
        let get = raw("GET /mcp", address, &headers, None);
        let mut second = RawConnection::open(address, &get).await;
        // The old one ends without an answer, and the new one gets it.
        assert_eq!(first.events().await, []);
        stage.gate.notify_one();
        let events = second.events().await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].json()["result"]["waited"], true);
    })
    .await;
}

#[tokio::test]
async fn a_quiet_legacy_call_goes_on_without_its_client() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let body = request(1, "wait", &json!({}));
        let call = raw("POST /mcp", address, &[session], Some(&body));
        let quiet = RawConnection::sent(address, &call).await;
        until(|| stage.begun() == 2).await;
        drop(quiet);
        // Its id is taken until it ends: it runs.
        let probe = async || exchange(address, &call).await.status;
        assert_eq!(probe().await, 400);
        assert_eq!(stage.dropped(), 0);
        stage.gate.notify_one();
        let body = request(1, "whoami", &json!({}));
        let again = raw("POST /mcp", address, &[session], Some(&body));
        while exchange(address, &again).await.status == 400 {}
        assert_eq!(stage.dropped(), 0);
    })
    .await;
}

#[tokio::test]
async fn sec_26_what_is_said_unasked_has_one_stream_at_a_time() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        stage.tell(0, 1);
        let get = raw("GET /mcp", address, &[session, LEGACY], None);
        let mut stream = RawConnection::open(address, &get).await;
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        let priming = stream.event().await.unwrap();
        assert!(priming.data.is_empty());
        // What was said before somebody listened.
        assert_eq!(numbers(&[stream.event().await.unwrap()]), [1]);
        assert_eq!(exchange(address, &get).await.status, 409);
        let json = [session, ("accept", "application/json")];
        let json = raw("GET /mcp", address, &json, None);
        assert_eq!(exchange(address, &json).await.status, 406);
        stage.tell(0, 2);
        let seen = stream.event().await.unwrap();
        assert_eq!(numbers(std::slice::from_ref(&seen)), [2]);
        drop(stream);
        stage.tell(0, 3);
        let headers = [session, ("last-event-id", priming.id.as_str())];
        let resume = raw("GET /mcp", address, &headers, None);
        let mut stream = RawConnection::open(address, &resume).await;
        let mut heard = Vec::new();
        while heard.len() < 3 {
            heard.push(stream.event().await.unwrap());
        }
        assert_eq!(numbers(&heard), [1, 2, 3]);
        // An older client is not sent what it cannot read.
        drop(stream);
        let older = raw(
            "GET /mcp",
            address,
            &[session, ("mcp-protocol-version", "2025-06-18")],
            None,
        );
        let mut stream = loop {
            let stream = RawConnection::open(address, &older).await;
            if stream.status == 200 {
                break stream;
            }
        };
        stage.tell(0, 4);
        assert_eq!(numbers(&[stream.event().await.unwrap()]), [4]);
    })
    .await;
}

#[tokio::test]
async fn a_question_goes_down_with_the_call_that_caused_it_and_its_answer_comes_up() {
    let (_, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let body = request(1, "ask", &json!({}));
        let call = raw("POST /mcp", address, &[session], Some(&body));
        let mut stream = RawConnection::open(address, &call).await;
        let question = stream.event().await.unwrap().json();
        assert_eq!(question["method"], "roots/list");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
        let answer = raw("POST /mcp", address, &[session], Some(&answer.to_string()));
        let taken = exchange(address, &answer).await;
        assert_eq!((taken.status, taken.body.as_str()), (202, ""));
        let events = stream.events().await;
        assert_eq!(events[0].json()["result"], json!({ "roots": [] }));
        // Who cannot be asked is not.
        let headers = [session, ("accept", "application/json")];
        let deaf = raw("POST /mcp", address, &headers, Some(&body));
        let answer = exchange(address, &deaf).await;
        assert!(answer.json()["result"]["busy"].is_string(), "{answer:?}");
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_ends_its_stream_without_an_answer() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let body = request(1, "hang", &json!({ "say": 1 }));
        let call = raw("POST /mcp", address, &[session], Some(&body));
        let mut stream = RawConnection::open(address, &call).await;
        assert!(stream.event().await.is_some());
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let cancel = raw("POST /mcp", address, &[session], Some(cancel));
        assert_eq!(exchange(address, &cancel).await.status, 202);
        assert_eq!(stream.events().await, []);
        until(|| stage.dropped() == 1).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_kept_for_clients_that_come_back_is_bounded() {
    let (stage, service) = staged();
    let options = HttpOptions {
        limits: HttpLimits {
            kept_events: 1000,
            ..HttpLimits::default()
        },
        ..HttpOptions::default()
    };
    with_options(service, &options, async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let mut stream =
            RawConnection::open(address, &raw("GET /mcp", address, &[session], None)).await;
        for number in 0..100 {
            stage.tell(0, number);
            assert_eq!(numbers(&[stream.event().await.unwrap()]), [number]);
        }
        drop(stream);
        let resume = [session, ("last-event-id", "0-0")];
        let mut stream =
            RawConnection::open(address, &raw("GET /mcp", address, &resume, None)).await;
        let oldest = numbers(&[stream.event().await.unwrap()])[0];
        assert!((80..99).contains(&oldest), "{oldest}");
        // The end of a call that nobody could be told of is not kept for ever.
        let body = request(1, "wait", &json!({ "say": 1 }));
        let call = raw("POST /mcp", address, &[session, LEGACY], Some(&body));
        let mut cut = RawConnection::open(address, &call).await;
        let last = cut.event().await.unwrap().id;
        drop(cut);
        stage.gate.notify_one();
        until(|| stage.begun() == 2).await;
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(200)).await;
        tokio::time::resume();
        let resume = [session, ("last-event-id", last.as_str())];
        let resume = raw("GET /mcp", address, &resume, None);
        assert_eq!(exchange(address, &resume).await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn a_large_answer_has_its_length_and_arrives_whole_in_every_form() {
    const SIZE: usize = 10_000_000;
    let (_, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let whole = |message: &Value| {
            assert_eq!(message["result"]["fill"].as_str().unwrap().len(), SIZE);
        };
        let call = modern_call(address, 1, "big", json!({ "size": SIZE }));
        let mut answer = RawConnection::open(address, &call).await;
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        let body = answer.body().await;
        assert_eq!(body.len(), length);
        whole(&serde_json::from_str(&body).unwrap());

        let call = modern_call(address, 1, "big", json!({ "size": SIZE, "say": 1 }));
        let mut stream = RawConnection::open(address, &call).await;
        whole(&stream.events().await[1].json());

        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let body = request(1, "big", &json!({ "size": SIZE, "say": 1 }));
        let call = raw("POST /mcp", address, &[session], Some(&body));
        let mut stream = RawConnection::open(address, &call).await;
        let seen = stream.event().await.unwrap();
        drop(stream);
        // Cut before the answer: it is there for who comes back.
        let resume = [session, ("last-event-id", seen.id.as_str())];
        let mut stream =
            RawConnection::open(address, &raw("GET /mcp", address, &resume, None)).await;
        whole(&stream.events().await[0].json());
    })
    .await;
}
