//! Sessions of the legacy era: how they begin, whom they belong to, and how they end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolway_gateway::http::{
    Access, AccessRefusal, Authenticator, HttpLimits, HttpOptions, Identity, SessionPolicy,
    access::AccessCheck,
};

use toolway_testkit::marked;

use crate::http_stage::{LEGACY, OnStage, RawConnection, Stage, initialize, modern, raw, until};
use crate::{exchange, request, with_options};

/// Everybody is who their token says.
pub(crate) struct ByName;

impl Authenticator for ByName {
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a> {
        let checked = match token {
            None => Err(AccessRefusal::no_token()),
            Some(token) => {
                let name = token.split('-').next().unwrap();
                Ok(Arc::new(Identity {
                    principal: name.into(),
                    shown: name.into(),
                    ..Identity::anybody()
                }))
            }
        };
        Box::pin(std::future::ready(checked))
    }
}

pub(crate) fn by_name() -> HttpOptions {
    HttpOptions {
        access: Access::Checked(Arc::new(ByName)),
        ..HttpOptions::default()
    }
}

pub(crate) const ANNA: (&str, &str) = ("authorization", marked!("Bearer anna-"));
pub(crate) const BERT: (&str, &str) = ("authorization", marked!("Bearer bert-"));

fn staged() -> (Arc<Stage>, Arc<OnStage>) {
    let stage = Arc::new(Stage::default());
    (Arc::clone(&stage), Arc::new(OnStage(stage)))
}

#[tokio::test]
async fn a_session_begins_with_initialize_and_ends_with_delete() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[LEGACY]).await;
        // 128 bits, in visible ASCII.
        assert_eq!(id.len(), 32);
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        let session = ("mcp-session-id", id.as_str());
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let told = raw("POST /mcp", address, &[LEGACY, session], Some(initialized));
        let answer = exchange(address, &told).await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        assert_eq!(*stage.heard.lock().unwrap(), ["notifications/initialized"]);

        let call = request(1, "whoami", &json!({}));
        let call = raw("POST /mcp", address, &[LEGACY, session], Some(&call));
        let answer = exchange(address, &call).await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: application/json"));
        assert_eq!(answer.json()["result"]["principal"], "anybody");
        // One conversation for all of it, and none ended so far.
        assert_eq!((stage.clients.lock().unwrap().len(), stage.ended()), (1, 0));

        let end = raw("DELETE /mcp", address, &[LEGACY, session], None);
        assert_eq!(exchange(address, &end).await.status, 204);
        assert_eq!(stage.ended(), 1);
        assert!(stage.outlet(0).is_gone());
        for line in ["POST /mcp", "GET /mcp", "DELETE /mcp"] {
            let body = line.starts_with("POST").then_some(initialized);
            let late = raw(line, address, &[LEGACY, session], body);
            let answer = exchange(address, &late).await;
            assert_eq!(answer.status, 404, "{line}");
            assert_eq!(answer.json()["error"]["code"], -32001, "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn unknown_sessions_are_not_found_and_missing_ones_are_none() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let call = request(7, "whoami", &json!({}));
        let upper = id.to_uppercase();
        let longer = format!("{id}0");
        for wrong in ["", "x", &upper, &longer, &id[1..], &"0".repeat(32)] {
            let call = raw(
                "POST /mcp",
                address,
                &[("mcp-session-id", wrong)],
                Some(&call),
            );
            let answer = exchange(address, &call).await;
            assert_eq!(answer.status, 404, "{wrong}");
            assert_eq!(answer.json()["id"], 7, "{wrong}");
        }
        // Two ids are no id.
        let twice = [("mcp-session-id", id.as_str()), ("mcp-session-id", &id)];
        let twice = raw("POST /mcp", address, &twice, Some(&call));
        assert_eq!(exchange(address, &twice).await.status, 404);
        // A version that nobody speaks.
        let headers = [
            ("mcp-session-id", id.as_str()),
            ("mcp-protocol-version", "1999-01-01"),
        ];
        let old = raw("GET /mcp", address, &headers, None);
        assert_eq!(exchange(address, &old).await.status, 400);
        // Without a session each request stands for itself.
        let alone = raw("POST /mcp", address, &[], Some(&call));
        assert_eq!(exchange(address, &alone).await.status, 200);
        // The modern era knows no sessions: the header says nothing there.
        let body = request(1, "whoami", &modern(json!({})));
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "whoami"),
            ("mcp-session-id", "gone"),
        ];
        let modern = raw("POST /mcp", address, &headers, Some(&body));
        assert_eq!(exchange(address, &modern).await.status, 200);
        assert_eq!(stage.clients.lock().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn where_sessions_are_required_nothing_is_answered_without_one() {
    let (stage, service) = staged();
    let options = HttpOptions {
        sessions: SessionPolicy::Required,
        ..HttpOptions::default()
    };
    with_options(service, &options, async |address| {
        for body in [
            request(1, "whoami", &json!({})),
            r#"{"jsonrpc":"2.0","method":"news"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        ] {
            let answer = exchange(address, &raw("POST /mcp", address, &[], Some(&body))).await;
            assert_eq!(answer.status, 400, "{body}");
            assert_eq!(answer.json()["error"]["code"], -32600);
        }
        assert_eq!(stage.begun(), 0);
        initialize(address, "/mcp", &[]).await;
    })
    .await;
}

#[tokio::test]
async fn a_handshake_that_fails_begins_nothing() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let body = request(1, "initialize", &json!({}));
        let missing = raw("POST /mcp/missing", address, &[], Some(&body));
        let answer = exchange(address, &missing).await;
        assert_eq!((answer.status, &answer.json()["id"]), (404, &json!(1)));
        let crowded = raw("POST /mcp/crowded", address, &[], Some(&body));
        let answer = exchange(address, &crowded).await;
        assert_eq!(answer.status, 503);
        assert!(answer.head.contains("retry-after: "), "{}", answer.head);
        assert_eq!(stage.clients.lock().unwrap().len(), 0);
    })
    .await;
}

#[tokio::test]
async fn sec_26_a_session_belongs_to_its_principal_and_its_endpoint() {
    let (stage, service) = staged();
    with_options(service, &by_name(), async |address| {
        let id = initialize(address, "/mcp/github", &[ANNA]).await;
        let session = ("mcp-session-id", id.as_str());
        let mut stream = RawConnection::open(
            address,
            &raw("GET /mcp/github", address, &[ANNA, session], None),
        )
        .await;
        assert_eq!(stream.status, 200);
        let call = request(1, "whoami", &json!({}));
        for line in ["POST /mcp/github", "GET /mcp/github", "DELETE /mcp/github"] {
            let body = line.starts_with("POST").then_some(call.as_str());
            let stolen = raw(line, address, &[BERT, session], body);
            assert_eq!(exchange(address, &stolen).await.status, 404, "{line}");
            let unknown = raw(line, address, &[session], body);
            assert_eq!(exchange(address, &unknown).await.status, 401, "{line}");
            // Its own principal finds it nowhere else.
            let elsewhere = line.replace("github", "gitlab");
            let elsewhere = raw(&elsewhere, address, &[ANNA, session], body);
            assert_eq!(exchange(address, &elsewhere).await.status, 404, "{line}");
        }
        // Nor can another one come back to its stream.
        let resume = [BERT, session, ("last-event-id", "0-0")];
        let resume = raw("GET /mcp/github", address, &resume, None);
        assert_eq!(exchange(address, &resume).await.status, 404);
        // The stream goes on as if nothing had been tried.
        stage.tell(0, 5);
        assert_eq!(stream.event().await.unwrap().json()["params"]["n"], 5);
        assert_eq!(stage.begun(), 1);
    })
    .await;
}

#[tokio::test]
async fn sec_25_an_id_in_flight_is_refused_in_its_session_and_nowhere_else() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let one = initialize(address, "/mcp", &[]).await;
        let other = initialize(address, "/mcp", &[]).await;
        let wait = request(1, "wait", &json!({}));
        let in_session =
            |id: &str| raw("POST /mcp", address, &[("mcp-session-id", id)], Some(&wait));
        let mut first = RawConnection::sent(address, &in_session(&one)).await;
        until(|| stage.begun() == 3).await;
        let answer = exchange(address, &in_session(&one)).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["error"]["code"], -32600);
        let mut second = RawConnection::sent(address, &in_session(&other)).await;
        until(|| stage.begun() == 4).await;
        stage.gate.notify_waiters();
        for waiting in [&mut first, &mut second] {
            waiting.read_head().await;
            assert!(waiting.body().await.contains(r#""waited":true"#));
        }
        // The id is free again.
        stage.gate.notify_one();
        assert_eq!(exchange(address, &in_session(&one)).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_request_is_cancelled_by_its_id_in_its_own_session() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let one = initialize(address, "/mcp", &[]).await;
        let other = initialize(address, "/mcp", &[]).await;
        let hang = request(1, "hang", &json!({}));
        // Else it becomes a stream, if this machine is slow.
        let headers = [
            ("mcp-session-id", one.as_str()),
            ("accept", "application/json"),
        ];
        let hang = raw("POST /mcp", address, &headers, Some(&hang));
        let mut hanging = RawConnection::sent(address, &hang).await;
        until(|| stage.begun() == 3).await;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let cancel = |id: &str| {
            raw(
                "POST /mcp",
                address,
                &[("mcp-session-id", id)],
                Some(cancel),
            )
        };
        assert_eq!(exchange(address, &cancel(&other)).await.status, 202);
        assert_eq!(stage.dropped(), 0);
        assert_eq!(exchange(address, &cancel(&one)).await.status, 202);
        hanging.read_head().await;
        assert_eq!((hanging.status, hanging.body().await), (202, String::new()));
        until(|| stage.dropped() == 1).await;
        // Nobody else hears of it.
        assert!(stage.heard.lock().unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_session_ends_what_runs_in_it() {
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let id = initialize(address, "/mcp", &[]).await;
        let session = [("mcp-session-id", id.as_str())];
        let hang = request(1, "hang", &json!({ "say": 1 }));
        let hang = raw("POST /mcp", address, &session, Some(&hang));
        let mut hanging = RawConnection::open(address, &hang).await;
        let mut unasked =
            RawConnection::open(address, &raw("GET /mcp", address, &session, None)).await;
        let end = raw("DELETE /mcp", address, &session, None);
        assert_eq!(exchange(address, &end).await.status, 204);
        assert_eq!(hanging.events().await.len(), 1);
        assert_eq!(unasked.events().await, []);
        until(|| stage.dropped() == 1 && stage.ended() == 1).await;
    })
    .await;
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_and_one_with_a_stream_stays() {
    let (stage, service) = staged();
    let options = HttpOptions::default();
    let counters = Arc::clone(&options.counters);
    with_options(service, &options, async |address| {
        let idle = initialize(address, "/mcp", &[]).await;
        let kept = initialize(address, "/mcp", &[]).await;
        let listen = raw("GET /mcp", address, &[("mcp-session-id", &kept)], None);
        let stream = RawConnection::open(address, &listen).await;
        assert_eq!(stream.status, 200);
        tokio::time::pause();
        tokio::time::sleep(options.limits.session_idle + Duration::from_secs(30)).await;
        tokio::time::resume();
        assert_eq!(stage.ended(), 1);
        let call = request(1, "whoami", &json!({}));
        for (id, status) in [(&idle, 404), (&kept, 200)] {
            let call = raw("POST /mcp", address, &[("mcp-session-id", id)], Some(&call));
            assert_eq!(exchange(address, &call).await.status, status);
        }
        let count = |counter: &std::sync::atomic::AtomicU64| {
            counter.load(std::sync::atomic::Ordering::SeqCst)
        };
        assert_eq!(count(&counters.open_sessions), 1);
        assert_eq!(count(&counters.sessions), 2);
        assert_eq!(count(&counters.expired_sessions), 1);
    })
    .await;
}

#[tokio::test]
async fn where_all_places_are_taken_the_longest_idle_session_gives_way() {
    let (_, service) = staged();
    let options = HttpOptions {
        limits: HttpLimits {
            sessions: 2,
            all_sessions: 3,
            ..HttpLimits::default()
        },
        ..by_name()
    };
    with_options(service, &options, async |address| {
        let is_open = async |who, id: &str| {
            let call = request(1, "whoami", &json!({}));
            let call = raw(
                "POST /mcp",
                address,
                &[who, ("mcp-session-id", id)],
                Some(&call),
            );
            exchange(address, &call).await.status == 200
        };
        let begin = async |who| initialize(address, "/mcp", &[who]).await;
        let first = begin(ANNA).await;
        let second = begin(ANNA).await;
        assert!(is_open(ANNA, &first).await);
        // One too many of hers: the one that she did not use goes.
        let third = begin(ANNA).await;
        assert!(!is_open(ANNA, &second).await);
        // One of his fits beside, and one more takes the place of the longest idle of all.
        let his = begin(BERT).await;
        assert!(is_open(ANNA, &first).await);
        let last = begin(BERT).await;
        assert!(!is_open(ANNA, &third).await);
        // With a stream in each, nobody gives way.
        let mut streams = Vec::new();
        for (who, id) in [(ANNA, &first), (BERT, &his), (BERT, &last)] {
            let listen = raw("GET /mcp", address, &[who, ("mcp-session-id", id)], None);
            streams.push(RawConnection::open(address, &listen).await);
        }
        let body = request(0, "initialize", &json!({}));
        let answer = exchange(address, &raw("POST /mcp", address, &[BERT], Some(&body))).await;
        assert_eq!(answer.status, 503);
        let answer = exchange(address, &raw("POST /mcp", address, &[ANNA], Some(&body))).await;
        assert_eq!(answer.status, 503);
        assert!(answer.head.contains("retry-after: 10"), "{}", answer.head);
        assert!(is_open(ANNA, &first).await && is_open(BERT, &his).await);
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_idle_sessions_cost_little_each() {
    const SESSIONS: usize = 10_000;
    let (stage, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        let before = toolway_testkit::Usage::take().resident;
        // Over one connection, so that only sessions are counted.
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let body = request(0, "initialize", &json!({}));
        let call = raw("POST /mcp", address, &[], Some(&body)).replace("connection: close\r\n", "");
        let mut piece = vec![0; 4096];
        for _ in 0..SESSIONS {
            tokio::io::AsyncWriteExt::write_all(&mut stream, call.as_bytes())
                .await
                .unwrap();
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut piece)
                .await
                .unwrap();
            assert!(piece[..read].starts_with(b"HTTP/1.1 200"));
        }
        assert_eq!(stage.clients.lock().unwrap().len(), SESSIONS);
        let grown = (toolway_testkit::Usage::take().resident - before) * 1024;
        let each = grown / SESSIONS as u64;
        // With the test's own books of them, and in a debug build.
        assert!(each < 4096, "{each} bytes each");
    })
    .await;
}
