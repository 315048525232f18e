//! How much one client can have, and what others notice of it (SEC-30, REL-29, REL-32).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolway_gateway::http::{HttpLimits, HttpOptions, HttpServer, KEEPALIVE, WRITE_TIMEOUT};
use toolway_testkit::Usage;

use crate::http_sessions::{ANNA, BERT, by_name};
use crate::http_stage::{MODERN, OnStage, RawConnection, Stage, initialize, modern, raw, until};
use crate::{Echo, exchange, post, request, served, with_options};

fn staged() -> (Arc<Stage>, Arc<OnStage>) {
    let stage = Arc::new(Stage::default());
    (Arc::clone(&stage), Arc::new(OnStage(stage)))
}

fn limited(limits: HttpLimits) -> HttpOptions {
    HttpOptions {
        limits,
        ..by_name()
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::SeqCst)
}

#[tokio::test]
async fn sec_30_calls_of_one_principal_are_bounded_and_those_of_others_are_not_touched() {
    let (stage, service) = staged();
    let options = limited(HttpLimits {
        calls: 3,
        ..HttpLimits::default()
    });
    let counters = Arc::clone(&options.counters);
    with_options(service, &options, async |address| {
        let call = |who, method: &str| {
            let body = request(1, method, &modern(json!({})));
            let headers = [who, MODERN, ("mcp-method", method)];
            raw("POST /mcp", address, &headers, Some(&body))
        };
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(RawConnection::sent(address, &call(ANNA, "hang")).await);
        }
        until(|| stage.begun() == 3).await;
        let refused = exchange(address, &call(ANNA, "whoami")).await;
        assert_eq!(refused.status, 429);
        assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
        assert_eq!(refused.json()["error"]["code"], -32000);
        assert_eq!(refused.json()["id"], 1);
        assert_eq!(exchange(address, &call(BERT, "whoami")).await.status, 200);
        assert_eq!(
            (count(&counters.open_calls), count(&counters.limited)),
            (3, 1)
        );
        drop(waiting.pop());
        until(|| stage.dropped() == 1).await;
        while exchange(address, &call(ANNA, "whoami")).await.status == 429 {}
        drop(waiting);
        until(|| count(&counters.open_calls) == 0).await;
    })
    .await;
}

#[tokio::test]
async fn sec_30_streams_of_one_principal_are_bounded() {
    let (stage, service) = staged();
    let options = limited(HttpLimits {
        streams: 2,
        ..HttpLimits::default()
    });
    let counters = Arc::clone(&options.counters);
    with_options(service, &options, async |address| {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(initialize(address, "/mcp", &[ANNA]).await);
        }
        let listen = |id: &str| raw("GET /mcp", address, &[ANNA, ("mcp-session-id", id)], None);
        let mut streams = Vec::new();
        for id in &ids[..2] {
            streams.push(RawConnection::open(address, &listen(id)).await);
        }
        assert_eq!(exchange(address, &listen(&ids[2])).await.status, 429);
        let body = request(1, "subscriptions/listen", &modern(json!({})));
        let headers = [ANNA, MODERN, ("mcp-method", "subscriptions/listen")];
        let subscribe = raw("POST /mcp", address, &headers, Some(&body));
        assert_eq!(exchange(address, &subscribe).await.status, 429);
        // A call is answered all the same, without what would have been said before.
        let body = request(1, "whoami", &json!({ "say": 3 }));
        let headers = [ANNA, ("mcp-session-id", ids[2].as_str())];
        let answer = exchange(address, &raw("POST /mcp", address, &headers, Some(&body))).await;
        assert_eq!(answer.json()["result"]["principal"], "anna");
        let headers = [ANNA, MODERN, ("mcp-method", "whoami")];
        let body = request(1, "whoami", &modern(json!({ "say": 3 })));
        let answer = exchange(address, &raw("POST /mcp", address, &headers, Some(&body))).await;
        assert_eq!(answer.json()["result"]["principal"], "anna");
        // Another principal has streams of its own.
        let his = initialize(address, "/mcp", &[BERT]).await;
        let his = raw("GET /mcp", address, &[BERT, ("mcp-session-id", &his)], None);
        assert_eq!(RawConnection::open(address, &his).await.status, 200);
        drop(streams.pop());
        let again = loop {
            let stream = RawConnection::open(address, &listen(&ids[2])).await;
            if stream.status == 200 {
                break stream;
            }
        };
        drop((again, streams));
        until(|| count(&counters.open_streams) == 0).await;
        assert_eq!(stage.dropped(), 0);
    })
    .await;
}

#[tokio::test]
async fn sec_30_requests_of_one_session_are_bounded() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let bound = toolway_types::limits::gateway::IN_FLIGHT;
        let call = |number| {
            let body = request(number, "hang", &json!({}));
            raw(
                "POST /mcp",
                address,
                &[("mcp-session-id", &id)],
                Some(&body),
            )
        };
        // Their clients go away, and still they count.
        for number in 0..bound {
            let sent = RawConnection::sent(address, &call(number as u64)).await;
            until(|| stage.begun() == number + 2).await;
            drop(sent);
        }
        assert_eq!(exchange(address, &call(9999)).await.status, 429);
        assert_eq!(stage.dropped(), 0);
    })
    .await;
}

/// As many connections as a small machine has descriptors for, and ten times as many in all.
#[tokio::test]
async fn sec_30_ten_thousand_junk_connections_leave_nothing_behind() {
    const JUNK: usize = 10_000;
    let service = Echo::shared();
    let options = HttpOptions::default();
    let counters = Arc::clone(&options.counters);
    with_options(served(&service), &options, async |address| {
        let junk: [&[u8]; 8] = [
            b"",
            b"\0\0\0\0",
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n",
            b"GET /mcp HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\nGET /mcp HTTP/1.1\r\n",
        ];
        let before = Usage::take();
        let mut open = std::collections::VecDeque::new();
        for number in 0..JUNK {
            let mut stream = TcpStream::connect(address).await.unwrap();
            drop(stream.write_all(junk[number % junk.len()]).await);
            open.push_back(stream);
            if open.len() > 400 {
                drop(open.pop_front());
            }
        }
        let body = request(1, "echo", &json!({ "x": 1 }));
        assert_eq!(exchange(address, &post(address, &[], &body)).await.status, 200);
        assert_eq!(service.seen(), 1);
        drop(open);
        until(|| count(&counters.open_connections) == 0).await;
        assert!(count(&counters.connections) >= JUNK as u64);
        let grown = Usage::take().resident.saturating_sub(before.resident) * 1024;
        assert!(grown < 64 << 20, "{grown} bytes more");
    })
    .await;
}

#[tokio::test]
async fn rel_29_a_stream_that_nobody_reads_is_cut_and_others_go_on() {
    let (stage, service) = staged();
    let options = HttpOptions::default();
    let counters = Arc::clone(&options.counters);
    with_options(service, &options, async |address| {
        let deaf_id = initialize(address, "/mcp", &[]).await;
        let id = initialize(address, "/mcp", &[]).await;
        let listen = |id: &str| raw("GET /mcp", address, &[("mcp-session-id", id)], None);
        let deaf = RawConnection::sent(address, &listen(&deaf_id)).await;
        let mut attentive = RawConnection::open(address, &listen(&id)).await;
        until(|| count(&counters.open_streams) == 2).await;
        let filler = bytes::Bytes::from(format!("\"{}\"", "x".repeat(64 * 1024)));
        for number in 0..2000 {
            stage.outlet(0).notify(filler.clone());
            stage.tell(1, number);
            let heard = attentive.event().await.unwrap().json();
            assert_eq!(heard["params"]["n"], number);
        }
        // Old news were dropped for the one, and none for the other.
        assert!(stage.outlet(0).dropped() > 0);
        assert_eq!(stage.outlet(1).dropped(), 0);
        assert_eq!(count(&counters.open_streams), 2);
        tokio::time::pause();
        tokio::time::sleep(WRITE_TIMEOUT + KEEPALIVE).await;
        tokio::time::resume();
        until(|| count(&counters.open_streams) == 1).await;
        stage.tell(1, 7);
        assert_eq!(attentive.event().await.unwrap().json()["params"]["n"], 7);
        drop(deaf);
    })
    .await;
}

#[tokio::test]
async fn a_panic_in_one_request_ends_its_connection_and_no_other() {
    let (stage, service) = staged();
    let options = HttpOptions {
        limits: HttpLimits {
            connections: 2,
            ..HttpLimits::default()
        },
        ..HttpOptions::default()
    };
    let counters = Arc::clone(&options.counters);
    with_options(service, &options, async |address| {
        let body = request(1, "wait", &json!({}));
        let wait = raw("POST /mcp", address, &[], Some(&body));
        let mut waiting = RawConnection::sent(address, &wait).await;
        until(|| stage.begun() == 1).await;
        let body = request(1, "panic", &json!({}));
        let panic = raw("POST /mcp", address, &[], Some(&body));
        // More often than there are places: each is given back.
        for _ in 0..8 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(panic.as_bytes()).await.unwrap();
            let mut heard = Vec::new();
            drop(stream.read_to_end(&mut heard).await);
            assert!(heard.is_empty());
        }
        stage.gate.notify_one();
        waiting.read_head().await;
        assert_eq!(waiting.status, 200);
        assert!(waiting.body().await.contains("waited"));
        until(|| count(&counters.open_connections) == 0).await;
        assert_eq!(count(&counters.open_calls), 0);
    })
    .await;
}

#[tokio::test]
async fn rel_32_at_shutdown_requests_finish_streams_end_and_the_rest_is_cut() {
    let (stage, service) = staged();
    let options = HttpOptions::default();
    let counters = Arc::clone(&options.counters);
    let (server, driver) = HttpServer::bind(service, &options).unwrap();
    let address = server.address();
    let talking = async {
        let id = initialize(address, "/mcp", &[]).await;
        let session = ("mcp-session-id", id.as_str());
        let get = raw("GET /mcp", address, &[session], None);
        let mut unasked = RawConnection::open(address, &get).await;
        let body = request(1, "wait", &json!({}));
        let wait = raw("POST /mcp", address, &[session], Some(&body));
        let mut waiting = RawConnection::sent(address, &wait).await;
        let body = request(2, "hang", &json!({}));
        let hang = raw("POST /mcp", address, &[session], Some(&body));
        let mut hanging = RawConnection::sent(address, &hang).await;
        // Its client is gone, and it runs.
        let body = request(3, "hang", &json!({}));
        let lone = raw("POST /mcp", address, &[session], Some(&body));
        let lone = RawConnection::sent(address, &lone).await;
        until(|| stage.begun() == 4).await;
        drop(lone);

        tokio::time::pause();
        let started = tokio::time::Instant::now();
        let ending = server.shutdown();
        let watching = async {
            // The stream of what is said unasked ends at once, and nobody new comes in.
            assert_eq!(unasked.events().await, []);
            assert!(started.elapsed() < Duration::from_secs(1));
            assert!(TcpStream::connect(address).await.is_err());
            stage.gate.notify_one();
            waiting.read_head().await;
            assert_eq!(waiting.status, 200);
            assert!(waiting.body().await.contains("waited"));
            // What hangs has its time, and no more.
            assert_eq!(hanging.body().await.find("\"result\""), None);
        };
        tokio::join!(ending, watching);
        let waited = started.elapsed();
        tokio::time::resume();
        assert!(waited.as_secs().abs_diff(5) <= 1, "{waited:?}");
    };
    tokio::join!(driver, talking);
    assert_eq!(stage.dropped(), 2);
    assert_eq!(stage.ended(), 1);
    for gauge in [
        &counters.open_sessions,
        &counters.open_streams,
        &counters.open_calls,
    ] {
        assert_eq!(count(gauge), 0);
    }
}
