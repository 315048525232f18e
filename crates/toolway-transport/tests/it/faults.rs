//! Faults of the network, over HTTP and its streams: silence, portals, bombs, floods.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use toolway_transport::{ChannelCommand, ChannelLimits, CloseReason, RequestTag, SendFailure};
use toolway_types::{CertificateFault, RemoteKind, TransportSpec};

use crate::authority::Authority;
use crate::peer::{Peer, at, program, remote, within_patience};
use crate::proxy::Silencer;
use crate::server::{Act, Seen, Server, accepted, json as json_reply, reply, stream};

fn ok(seen: &Seen) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})
}

fn quick() -> ChannelLimits {
    ChannelLimits {
        first_byte: Duration::from_secs(1),
        stream_idle: Duration::from_millis(500),
        keepalive: Duration::from_secs(1),
        ..ChannelLimits::default()
    }
}

/// A stream whose server sends keepalives, and after a while, longer than any limit, says that it
/// is still there.
fn ticking(first: &str) -> Vec<Act> {
    let (sender, pieces) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let still = b"data: {\"method\":\"still here\"}\n\n".to_vec();
        for count in 0.. {
            ticks.tick().await;
            let piece = if count == 80 {
                still.clone()
            } else {
                b": tick\n\n".to_vec()
            };
            if sender.send(piece).is_err() {
                return;
            }
        }
    });
    vec![stream(first), Act::Follow(pieces)]
}

#[tokio::test]
async fn rel_12_an_event_stream_that_goes_silent_closes_its_channel() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => ticking("event: endpoint\ndata: /m\n\ndata: {\"first\":1}\n\n"),
        _ => accepted(),
    })
    .await;
    let (silencer, url) = Silencer::before(&server.url).await;
    let mut peer = Peer::open(
        TransportSpec::Remote(RemoteKind::Sse, at(&url, &[])),
        quick(),
    )
    .await;
    assert_eq!(peer.message().await["first"], 1);
    assert_eq!(peer.message().await["method"], "still here");
    silencer.go_silent();
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Failed(SendFailure::Unreachable { refused: false, message }) if message.contains("nothing arrived")),
        "{reason:?}"
    );
}

#[tokio::test]
async fn rel_12_an_answer_that_goes_silent_fails_its_request_and_no_other() {
    let server = Server::start(|seen| match seen.json()["id"].as_u64() {
        Some(1) => ticking("data: {\"jsonrpc\":\"2.0\",\"method\":\"working\"}\n\n"),
        _ => json_reply(&ok(seen)),
    })
    .await;
    let (silencer, url) = Silencer::before(&server.url).await;
    let mut peer = Peer::open(remote(&url, &[]), quick()).await;
    peer.request(1, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["method"], "working");
    assert_eq!(peer.message().await["method"], "still here");
    silencer.go_silent();
    let (tag, failure) = peer.failure().await;
    assert_eq!(tag, RequestTag(1));
    assert!(
        matches!(&failure, SendFailure::Cut(why) if why.contains("nothing arrived")),
        "{failure:?}"
    );
    peer.request(2, "tools/call", json!({})).await;
    assert_eq!(
        peer.failure().await,
        (
            RequestTag(2),
            SendFailure::TimedOut {
                after: Duration::from_secs(1)
            }
        )
    );
    silencer.speak_again();
    peer.request(3, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["id"], 3);
}

#[tokio::test]
async fn rel_12_the_stream_for_unasked_messages_is_opened_anew_when_it_goes_silent() {
    let mut server = Server::start(|seen| match seen.method.as_str() {
        "GET" => vec![stream("retry: 1\n\n"), Act::Wait(Arc::new(Notify::new()))],
        "POST" if seen.json()["id"].is_null() => accepted(),
        _ => json_reply(&ok(seen)),
    })
    .await;
    let mut peer = Peer::open(remote(&server.url, &[]), quick()).await;
    peer.request(1, "initialize", json!({})).await;
    peer.message().await;
    peer.notify("notifications/initialized", json!({})).await;
    let mut methods = Vec::new();
    for _ in 0..4 {
        methods.push(server.arrival().await.method);
    }
    assert_eq!(methods, ["POST", "POST", "GET", "GET"]);
}

#[tokio::test]
async fn rel_23_a_proxy_that_holds_back_the_first_bytes_is_a_clear_error() {
    let server = Server::start(|seen| json_reply(&ok(seen))).await;
    let (silencer, url) = Silencer::before(&server.url).await;
    silencer.go_silent();
    assert_ne!(url, server.url);
    assert!(url.contains(&silencer.address));
    let mut peer = Peer::open(remote(&url, &[]), quick()).await;
    peer.request(1, "initialize", json!({})).await;
    assert_eq!(
        peer.failure().await,
        (
            RequestTag(1),
            SendFailure::TimedOut {
                after: Duration::from_secs(1)
            }
        )
    );
}

#[tokio::test]
async fn rel_27_a_server_that_wants_to_be_left_alone_says_for_how_long() {
    let server = Server::start(|seen| match seen.json()["id"].as_u64() {
        Some(1) => reply("429 Slow Down", &[("retry-after", "120")], b""),
        Some(2) => {
            let past = [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
            reply("503 Busy", &past, b"")
        }
        _ => reply("503 Busy", &[], b""),
    })
    .await;
    let mut peer = Peer::open(remote(&server.url, &[]), ChannelLimits::default()).await;
    let expected = [Some(Duration::from_mins(2)), Some(Duration::ZERO), None];
    for (id, expected) in (1..).zip(expected) {
        peer.request(id, "x", json!({})).await;
        match peer.failure().await.1 {
            SendFailure::Status { retry_after, .. } => assert_eq!(retry_after, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn rel_27_names_that_do_not_exist_and_certificates_that_do_not_fit_are_told_apart() {
    let authority = Authority::new();
    let expired = Server::start_tls(authority.expired(), |seen| json_reply(&ok(seen))).await;
    let misnamed = Server::start_tls(authority.misnamed(), |seen| json_reply(&ok(seen))).await;
    for (url, expected, word) in [
        (
            "http://no-such-host.invalid/mcp",
            None,
            "cannot be resolved",
        ),
        (&expired.url, Some(CertificateFault::Expired), "expired"),
        (
            &misnamed.url,
            Some(CertificateFault::OtherName),
            "not valid for",
        ),
    ] {
        let mut peer = Peer::open_with(remote(url, &[]), &authority.trusted()).await;
        peer.request(1, "x", json!({})).await;
        let (found, message) = match peer.failure().await.1 {
            SendFailure::Unreachable {
                refused: false,
                message,
            } => (None, message),
            SendFailure::Certificate { fault, message } => (Some(fault), message),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
        assert!(message.contains(word), "{message}");
    }
    assert!(expired.seen().is_empty() && misnamed.seen().is_empty());
}

#[tokio::test]
async fn rel_27_a_captive_portal_is_never_read_as_an_answer() {
    let page = b"<html>{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}</html>";
    for content_type in ["text/html; charset=utf-8", "application/json"] {
        let server =
            Server::start(move |_| reply("200 OK", &[("content-type", content_type)], page)).await;
        let mut peer = Peer::open(remote(&server.url, &[]), ChannelLimits::default()).await;
        peer.request(1, "x", json!({})).await;
        let (_, failure) = peer.failure().await;
        assert!(matches!(failure, SendFailure::NotMcp { .. }), "{failure:?}");
    }
}

#[tokio::test]
async fn sec_30_nothing_is_ever_inflated() {
    let server = Server::start(|seen| {
        let body = b"\x1f\x8b\x08 a bomb";
        let headers = [
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ];
        if seen.json()["id"] == 1 {
            return reply("200 OK", &headers, body);
        }
        let answer = crate::peer::bytes(&ok(seen));
        reply("200 OK", &[("content-encoding", "identity")], &answer)
    })
    .await;
    let configured = [("Accept-Encoding", "gzip, br")];
    let mut peer = Peer::open(remote(&server.url, &configured), ChannelLimits::default()).await;
    peer.request(1, "x", json!({})).await;
    let encoding = "gzip".to_owned();
    assert_eq!(
        peer.failure().await,
        (RequestTag(1), SendFailure::Encoded { encoding })
    );
    peer.request(2, "x", json!({})).await;
    assert_eq!(peer.message().await["id"], 2);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("accept-encoding").is_none())
    );
}

#[tokio::test]
async fn sec_30_a_flood_of_headers_fails_its_request() {
    let server = Server::start(|seen| match seen.json()["id"].as_u64() {
        Some(1) => {
            let (sender, pieces) = mpsc::unbounded_channel();
            tokio::spawn(async move {
                let line = format!("x-flood: {}\r\n", "x".repeat(1000));
                while sender.send(line.clone().into_bytes()).is_ok() {
                    tokio::task::yield_now().await;
                }
            });
            vec![
                Act::Write(b"HTTP/1.1 200 OK\r\n".to_vec()),
                Act::Follow(pieces),
            ]
        }
        Some(2) => {
            let many = vec![("x-many", "x"); 1000];
            reply("200 OK", &many, b"{}")
        }
        _ => json_reply(&ok(seen)),
    })
    .await;
    let mut peer = Peer::open(remote(&server.url, &[]), ChannelLimits::default()).await;
    for id in [1, 2] {
        peer.request(id, "x", json!({})).await;
        let (tag, failure) = peer.failure().await;
        assert_eq!(tag, RequestTag(id));
        assert!(matches!(failure, SendFailure::Cut(_)), "{failure:?}");
    }
    peer.request(3, "x", json!({})).await;
    assert_eq!(peer.message().await["id"], 3);
}

#[tokio::test]
async fn sec_30_a_body_that_stalls_or_drips_holds_up_nobody() {
    let closed = Arc::new(Notify::new());
    let seen_closed = Arc::clone(&closed);
    let mut server = Server::start(move |seen| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
        let begun = Act::Write(format!("{head}{{").into_bytes());
        match seen.json()["id"].as_u64() {
            Some(1) => vec![begun, Act::Wait(Arc::new(Notify::new()))],
            Some(2) => vec![begun, Act::AwaitClose(Arc::clone(&seen_closed))],
            _ => json_reply(&ok(seen)),
        }
    })
    .await;
    let mut peer = Peer::open(remote(&server.url, &[]), quick()).await;
    peer.request(1, "x", json!({})).await;
    peer.request(3, "x", json!({})).await;
    assert_eq!(peer.message().await["id"], 3);
    assert_eq!(
        peer.failure().await,
        (
            RequestTag(1),
            SendFailure::TimedOut {
                after: Duration::from_secs(1)
            }
        )
    );

    // However slowly it comes, giving the request up ends it.
    let patient = ChannelLimits::default();
    let peer = Peer::open(remote(&server.url, &[]), patient).await;
    peer.request(2, "x", json!({})).await;
    while server.arrival().await.json()["id"] != 2 {}
    peer.command(ChannelCommand::Abandon(RequestTag(2))).await;
    within_patience(closed.notified()).await;
}

/// Writes an answer's head and body apart, over connections that stay open.
const SMALL_SERVER: &str = r#"
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[tokio::test]
async fn small_loopback_servers_do_not_stall() {
    use tokio::io::AsyncBufReadExt as _;
    let python = program("python3", &["-I", "-S", "-u", "-c", SMALL_SERVER]);
    let mut child = tokio::process::Command::new(&python.command)
        .args(&python.args)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python");
    let stdout = child.stdout.take().expect("piped");
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    let port = within_patience(lines.next_line())
        .await
        .expect("read")
        .expect("a port");
    let mut peer = Peer::open(
        remote(&format!("http://127.0.0.1:{port}/"), &[]),
        ChannelLimits::default(),
    )
    .await;
    let mut times = Vec::new();
    for id in 0..40 {
        let begun = Instant::now();
        peer.request(id, "x", json!({})).await;
        assert_eq!(peer.message().await["id"], id);
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    // A stall takes 40 ms, every time.
    assert!(times[10] < Duration::from_millis(35), "{times:?}");
}

#[tokio::test]
async fn rel_22_only_its_own_answer_ends_what_a_request_waits_on() {
    let server = Server::start(|seen| {
        let other = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
        match seen.json()["id"].as_u64() {
            // The right one follows, with its id in another type.
            Some(1) => vec![stream(&format!(
                "data: {other}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{{}}}}\n\n"
            ))],
            _ => json_reply(&other),
        }
    })
    .await;
    let mut peer = Peer::open(remote(&server.url, &[]), quick()).await;
    peer.request(1, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["id"], 99);
    assert_eq!(peer.message().await["id"], "1");
    // Here nothing follows: the request must not wait for it.
    peer.request(2, "tools/call", json!({})).await;
    assert_eq!(peer.message().await["id"], 99);
    let (tag, failure) = peer.failure().await;
    assert!(
        matches!((tag, &failure), (RequestTag(2), SendFailure::Cut(_))),
        "{tag:?} {failure:?}"
    );
}
