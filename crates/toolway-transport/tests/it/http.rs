//! Streamable HTTP against servers that redirect, cut, delay, refuse and lie.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::{
    ChannelCommand, ChannelEvent, ChannelLimits, OutgoingMessage, RequestTag, SendFailure,
};

use crate::peer::{Peer, remote, request, within_patience};
use crate::server::{Act, Seen, Server, accepted, json as json_reply, reply, stream};

fn ok(seen: &Seen) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})
}

fn modern(id: u64, method: &str) -> OutgoingMessage {
    let headers = vec![
        (
            HeaderName::from_static("mcp-protocol-version"),
            HeaderValue::from_static("2026-07-28"),
        ),
        (
            HeaderName::from_static("mcp-method"),
            HeaderValue::from_str(method).expect("ASCII"),
        ),
    ];
    OutgoingMessage {
        headers,
        ..request(id, method, json!({}))
    }
}

async fn open(server: &Server) -> Peer {
    Peer::open(remote(&server.url, &[]), ChannelLimits::default()).await
}

#[tokio::test]
async fn sec_20_no_header_follows_a_redirect_to_another_origin() {
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let thief = Server::start(|seen| json_reply(&ok(seen))).await;
        let location = thief.url.clone();
        let server = Server::start(move |_| reply(status, &[("location", &location)], b"")).await;
        let headers = [("X-Api-Key", MARK), ("Authorization", marked!("Bearer "))];
        let mut peer = Peer::open(remote(&server.url, &headers), ChannelLimits::default()).await;
        peer.request(1, "initialize", json!({})).await;
        let (tag, failure) = peer.failure().await;
        assert_eq!(
            (tag, failure),
            (
                RequestTag(1),
                SendFailure::Redirected {
                    location: thief.url.clone()
                }
            )
        );
        peer.end().await;
        assert_eq!(server.seen()[0].header("x-api-key"), Some(MARK));
        assert!(thief.seen().is_empty(), "{status}");
    }
}

#[tokio::test]
async fn sec_20_a_redirect_within_the_origin_is_followed_only_when_it_keeps_the_method() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/mcp" => reply("308 Permanent", &[("location", "/next")], b""),
        "/next" => reply("307 Temporary", &[("location", "/last")], b""),
        _ => json_reply(&ok(seen)),
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "initialize", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.method == "POST" && seen.json()["id"] == 1)
    );

    for (status, count) in [("302 Found", 1), ("307 Temporary", 4)] {
        let server = Server::start(move |_| reply(status, &[("location", "/mcp")], b"")).await;
        let mut peer = open(&server).await;
        peer.request(1, "initialize", json!({})).await;
        assert!(matches!(
            peer.failure().await.1,
            SendFailure::Redirected { .. }
        ));
        assert_eq!(server.seen().len(), count);
    }
}

#[tokio::test]
async fn every_post_accepts_both_answers_and_config_cannot_change_protocol_headers() {
    let server = Server::start(|seen| json_reply(&ok(seen))).await;
    let headers = [
        ("X-Own", "yes"),
        ("Host", "evil"),
        ("Content-Length", "1"),
        ("Accept", "text/html"),
        ("Mcp-Session-Id", "forged"),
        ("MCP-Protocol-Version", "1"),
        ("Transfer-Encoding", "x"),
    ];
    let mut peer = Peer::open(remote(&server.url, &headers), ChannelLimits::default()).await;
    peer.send(modern(1, "tools/list")).await;
    peer.message().await;
    let seen = &server.seen()[0];
    assert_eq!(seen.header("x-own"), Some("yes"));
    assert_eq!(
        seen.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("tools/list"));
    assert_eq!(seen.header("mcp-session-id"), None);
    assert_eq!(seen.header("transfer-encoding"), None);
    assert!(
        seen.header("host")
            .is_some_and(|host| host.starts_with("127.0.0.1:"))
    );
    for name in ["accept", "host", "content-length"] {
        assert_eq!(
            seen.headers.iter().filter(|(key, _)| key == name).count(),
            1,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_legacy_session_is_kept_listened_to_and_deleted() {
    let mut server = Server::start(|seen| match (seen.method.as_str(), seen.json()["method"].as_str()) {
        ("POST", Some("initialize")) => reply(
            "200 OK",
            &[("content-type", "application/json; charset=utf-8"), ("mcp-session-id", "s-1")],
            &crate::peer::bytes(&ok(seen)),
        ),
        ("POST", Some("notifications/initialized")) => accepted(),
        ("GET", _) => vec![
            stream("id: e1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}\n\n"),
            Act::Close,
        ],
        ("DELETE", _) => reply("200 OK", &[], b""),
        _ => json_reply(&ok(seen)),
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "initialize", json!({})).await;
    peer.message().await;
    peer.notify("notifications/initialized", json!({})).await;
    assert_eq!(peer.message().await["method"], "n");
    let order: Vec<Seen> = vec![
        server.arrival().await,
        server.arrival().await,
        server.arrival().await,
    ];
    let methods: Vec<&str> = order.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(methods, ["POST", "POST", "GET"]);
    let ids: Vec<Option<&str>> = order
        .iter()
        .map(|seen| seen.header("mcp-session-id"))
        .collect();
    assert_eq!(ids, [None, Some("s-1"), Some("s-1")]);
    assert_eq!(order[2].header("accept"), Some("text/event-stream"));
    assert_eq!(order[2].header("last-event-id"), None);
    // The stream was cut: it is taken up where it ended.
    let again = server.arrival().await;
    assert_eq!(
        (again.method.as_str(), again.header("last-event-id")),
        ("GET", Some("e1"))
    );
    peer.end().await;
    let last = server.seen().pop().expect("a request");
    assert_eq!(
        (last.method.as_str(), last.header("mcp-session-id")),
        ("DELETE", Some("s-1"))
    );
}

#[tokio::test]
async fn a_modern_conversation_has_no_session_and_only_posts() {
    let server = Server::start(|seen| {
        let headers = [
            ("content-type", "application/json"),
            ("mcp-session-id", "s-1"),
        ];
        reply("200 OK", &headers, &crate::peer::bytes(&ok(seen)))
    })
    .await;
    let mut peer = open(&server).await;
    for id in [1, 2] {
        peer.send(modern(id, "tools/list")).await;
        peer.message().await;
    }
    peer.send(OutgoingMessage {
        tag: None,
        ..modern(3, "notifications/x")
    })
    .await;
    peer.end().await;
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|seen| seen.method == "POST" && seen.header("mcp-session-id").is_none())
    );
}

#[tokio::test]
async fn an_answer_may_come_as_a_stream_with_more_before_it() {
    let server = Server::start(|seen| {
        let text = format!(
            ": hi\n\nevent: message\ndata: {}\n\ndata: {}\n\n",
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}),
            ok(seen)
        );
        vec![stream(&text), Act::Close]
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["method"], "notifications/progress");
    assert_eq!(peer.message().await["id"], 1);
    assert!(matches!(&peer.end().await[..], [ChannelEvent::Closed(_)]));
}

#[tokio::test]
async fn rel_25_a_legacy_stream_that_was_cut_is_resumed() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "POST" => vec![
            stream("id: a\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\nid: b\ndata: {\"half"),
            Act::Close,
        ],
        _ => vec![stream("id: b\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"), Act::Close],
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["method"], "one");
    assert_eq!(peer.message().await["id"], 1);
    assert_eq!(server.seen()[1].header("last-event-id"), Some("a"));
    assert!(
        matches!(&peer.end().await[..], [ChannelEvent::Closed(_)]),
        "no failure after the answer"
    );
}

#[tokio::test]
async fn rel_25_a_modern_stream_that_was_cut_fails_its_request() {
    let server = Server::start(|_| {
        vec![
            stream("id: a\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\n"),
            Act::Close,
        ]
    })
    .await;
    let mut peer = open(&server).await;
    peer.send(modern(1, "tools/call")).await;
    peer.message().await;
    assert!(matches!(
        peer.failure().await,
        (RequestTag(1), SendFailure::Cut(_))
    ));
    assert_eq!(server.seen().len(), 1);
}

/// A server whose streams are refused once, with a wish to be left alone, and then given. Says
/// when each GET came.
async fn busy_once(refusal: &'static str) -> (Server, Arc<Mutex<Vec<Instant>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let server = Server::start(move |seen| {
        if seen.method == "POST" {
            return match seen.json()["method"].as_str() {
                Some("tools/call") => vec![stream("id: a\nretry: 1\ndata:\n\n"), Act::Close],
                Some("initialize") => json_reply(&ok(seen)),
                _ => accepted(),
            };
        }
        let mut asked = log.lock().expect("no panic");
        asked.push(Instant::now());
        if asked.len() == 1 {
            return reply(refusal, &[("retry-after", "2")], b"");
        }
        let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {}});
        vec![stream(&format!("data: {answer}\n\n")), Act::Close]
    })
    .await;
    (server, asked)
}

#[tokio::test]
async fn rel_27_a_stream_is_asked_for_again_when_the_server_said_so() {
    for refusal in ["503 Busy", "429 Slow Down"] {
        let (server, asked) = busy_once(refusal).await;
        let mut peer = open(&server).await;
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(peer.message().await["id"], 1);
        peer.notify("notifications/initialized", json!({})).await;
        assert_eq!(peer.message().await["id"], 2, "{refusal}");
        let asked = asked.lock().expect("no panic").clone();
        let waited = asked[1] - asked[0];
        assert!(waited >= Duration::from_secs(2), "{refusal}: {waited:?}");
    }
}

#[tokio::test]
async fn rel_27_a_cut_stream_is_resumed_when_the_server_said_so() {
    for refusal in ["503 Busy", "429 Slow Down"] {
        let (server, asked) = busy_once(refusal).await;
        let mut peer = open(&server).await;
        peer.request(2, "tools/call", json!({})).await;
        assert_eq!(peer.message().await["id"], 2, "{refusal}");
        let asked = asked.lock().expect("no panic").clone();
        let waited = asked[1] - asked[0];
        assert!(waited >= Duration::from_secs(2), "{refusal}: {waited:?}");
    }
}

#[tokio::test]
async fn an_abandoned_request_closes_its_stream() {
    let closed = Arc::new(Notify::new());
    let seen_closed = Arc::clone(&closed);
    let mut server = Server::start(move |seen| {
        if seen.json()["id"] == 1 {
            vec![
                stream(": waiting\n\n"),
                Act::AwaitClose(Arc::clone(&seen_closed)),
            ]
        } else {
            json_reply(&ok(seen))
        }
    })
    .await;
    let mut peer = open(&server).await;
    peer.send(modern(1, "tools/call")).await;
    server.arrival().await;
    peer.command(ChannelCommand::Abandon(RequestTag(1))).await;
    within_patience(closed.notified()).await;
    peer.send(modern(2, "tools/call")).await;
    assert_eq!(
        peer.message().await["id"],
        2,
        "and no failure is reported for the first"
    );
}

#[tokio::test]
async fn a_slow_request_does_not_hold_up_another() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let server = Server::start(move |seen| {
        let mut acts = json_reply(&ok(seen));
        if seen.json()["id"] == 1 {
            acts.insert(0, Act::Wait(Arc::clone(&held)));
        }
        acts
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "tools/call", json!({})).await;
    peer.request(2, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["id"], 2);
    release.notify_one();
    assert_eq!(peer.message().await["id"], 1);
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let server = Server::start(|seen| match seen.json()["id"].as_u64() {
        Some(1) => reply(
            "401 Unauthorized",
            &[
                ("www-authenticate", "Basic realm=\"x\""),
                ("www-authenticate", "Bearer resource_metadata=\"https://x\""),
            ],
            b"{\"error\":1}",
        ),
        Some(2) => reply("500 Oops", &[], &vec![b'x'; 200_000]),
        Some(3) => reply("200 OK", &[("content-type", "text/html")], b"<html>"),
        Some(4) => reply("200 OK", &[], b"<html>"),
        Some(5) => reply("200 OK", &[("content-type", "application/json")], b""),
        _ => accepted(),
    })
    .await;
    let mut peer = open(&server).await;
    let mut failures = Vec::new();
    for id in 1..=6 {
        peer.request(id, "x", json!({})).await;
        let (tag, failure) = peer.failure().await;
        assert_eq!(tag, RequestTag(id));
        failures.push(failure);
    }
    assert_eq!(
        failures[0],
        SendFailure::Status {
            status: 401,
            www_authenticate: Some(
                "Basic realm=\"x\", Bearer resource_metadata=\"https://x\"".to_owned()
            ),
            body: "{\"error\":1}".into(),
            had_session: false,
            retry_after: None,
        }
    );
    assert!(
        matches!(&failures[1], SendFailure::Status { status: 500, body, .. } if body.len() == 64 * 1024)
    );
    assert_eq!(
        failures[2],
        SendFailure::NotMcp {
            content_type: "text/html".to_owned()
        }
    );
    assert_eq!(
        failures[3],
        SendFailure::NotMcp {
            content_type: String::new()
        }
    );
    assert!(matches!(failures[4], SendFailure::Cut(_)));
    assert!(matches!(failures[5], SendFailure::Cut(_)));
}

#[tokio::test]
async fn an_expired_session_is_told_and_forgotten() {
    let server = Server::start(|seen| match seen.json()["id"].as_u64() {
        Some(2) => reply("404 Not Found", &[], b""),
        _ => reply(
            "200 OK",
            &[
                ("content-type", "application/json"),
                ("mcp-session-id", "s-1"),
            ],
            &crate::peer::bytes(&ok(seen)),
        ),
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "initialize", json!({})).await;
    peer.message().await;
    peer.request(2, "tools/list", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(
            failure,
            SendFailure::Status {
                status: 404,
                had_session: true,
                ..
            }
        ),
        "{failure:?}"
    );
    peer.request(3, "initialize", json!({})).await;
    peer.message().await;
    assert_eq!(server.seen()[2].header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_peer_that_is_not_there_or_does_not_answer_is_told_apart() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let mut peer = Peer::open(remote(&url, &[]), ChannelLimits::default()).await;
    peer.request(1, "initialize", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(failure, SendFailure::Unreachable { refused: true, .. }),
        "{failure:?}"
    );

    let server = Server::start(|_| vec![Act::Wait(Arc::new(Notify::new()))]).await;
    let limits = ChannelLimits {
        first_byte: Duration::from_millis(100),
        ..ChannelLimits::default()
    };
    let mut peer = Peer::open(remote(&server.url, &[]), limits).await;
    peer.request(1, "initialize", json!({})).await;
    assert_eq!(
        peer.failure().await,
        (
            RequestTag(1),
            SendFailure::TimedOut {
                after: Duration::from_millis(100)
            }
        )
    );
}

#[tokio::test]
async fn answers_over_the_cap_fail_their_request() {
    let server = Server::start(|seen| {
        let large = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}",
            "x".repeat(5000)
        );
        match seen.json()["id"].as_u64() {
            Some(1) => reply(
                "200 OK",
                &[("content-type", "application/json")],
                large.as_bytes(),
            ),
            Some(2) => vec![stream(&format!("data: {large}\n\n")), Act::Close],
            _ => json_reply(&ok(seen)),
        }
    })
    .await;
    let limits = ChannelLimits {
        response: 4000,
        sse_event: 3000,
        ..ChannelLimits::default()
    };
    let mut peer = Peer::open(remote(&server.url, &[]), limits).await;
    for (id, limit) in [(1, 4000), (2, 3000)] {
        peer.request(id, "x", json!({})).await;
        assert_eq!(
            peer.failure().await,
            (RequestTag(id), SendFailure::TooLarge { limit })
        );
    }
    peer.request(3, "x", json!({})).await;
    assert_eq!(peer.message().await["id"], 3);
}

#[tokio::test]
async fn a_batch_arrives_as_its_messages() {
    let server =
        Server::start(|seen| json_reply(&json!([{"jsonrpc": "2.0", "method": "n"}, ok(seen)])))
            .await;
    let mut peer = open(&server).await;
    peer.request(1, "x", json!({})).await;
    assert_eq!(peer.message().await["method"], "n");
    assert_eq!(peer.message().await["id"], 1);
}
