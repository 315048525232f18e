//! Legacy HTTP+SSE against servers that refuse, lie and break off.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use toolway_testkit::marked::MARK;
use toolway_transport::{ChannelEvent, ChannelLimits, CloseReason, RequestTag, SendFailure};
use toolway_types::{RemoteKind, TransportSpec};

use crate::peer::{Peer, at};
use crate::server::{Act, Server, accepted, chunk, chunked, reply, stream};

fn spec(server: &Server) -> TransportSpec {
    TransportSpec::Remote(RemoteKind::Sse, at(&server.url, &[("X-Api-Key", MARK)]))
}

async fn open(server: &Server) -> Peer {
    Peer::open(spec(server), ChannelLimits::default()).await
}

#[tokio::test]
async fn the_endpoint_may_be_relative_or_absolute_and_gets_the_configured_headers() {
    for absolute in [false, true] {
        let mut server = Server::start(move |seen| match seen.method.as_str() {
            "GET" => {
                let base = seen.header("host").filter(|_| absolute);
                let base = base.map_or_else(String::new, |host| format!("http://{host}"));
                let text = format!(
                    ": hi\n\nevent: endpoint\ndata: {base}/messages?id=7\n\n\
                     data: {{\"jsonrpc\":\"2.0\",\"method\":\"early\"}}\n\n"
                );
                vec![stream(&text), Act::Wait(Arc::default())]
            }
            _ => accepted(),
        })
        .await;
        let mut peer = open(&server).await;
        peer.request(1, "initialize", json!({})).await;
        let (get, post) = (server.arrival().await, server.arrival().await);
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        assert_eq!(post.path, "/messages?id=7");
        assert_eq!(post.header("content-type"), Some("application/json"));
        for seen in [&get, &post] {
            assert_eq!(seen.header("x-api-key"), Some(MARK));
            assert_eq!(seen.header("accept-encoding"), None);
        }
        assert_eq!(peer.message().await["method"], "early");
        peer.end().await;
    }
}

#[tokio::test]
async fn sec_20_messages_are_never_posted_to_another_origin() {
    let thief = Server::start(|_| accepted()).await;
    let target = thief.url.clone();
    let server = Server::start(move |_| {
        let text = format!("event: endpoint\ndata: {target}\n\n");
        vec![stream(&text), Act::Wait(Arc::default())]
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "initialize", json!({})).await;
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Broken(why) if why.contains("another origin")),
        "{reason:?}"
    );
    assert!(thief.seen().is_empty());
}

#[tokio::test]
async fn sec_20_a_redirect_of_a_post_stays_within_the_origin() {
    let thief = Server::start(|_| accepted()).await;
    let target = thief.url.clone();
    let server = Server::start(move |seen| match seen.path.as_str() {
        "/mcp" => vec![
            stream("event: endpoint\ndata: /first\n\n"),
            Act::Wait(Arc::default()),
        ],
        "/first" if seen.json()["id"] == 1 => reply("307 There", &[("location", "/next")], b""),
        "/first" => reply("307 There", &[("location", &target)], b""),
        _ => accepted(),
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "x", json!({})).await;
    peer.request(2, "x", json!({})).await;
    let (tag, failure) = peer.failure().await;
    assert_eq!(tag, RequestTag(2));
    assert!(
        matches!(failure, SendFailure::Redirected { .. }),
        "{failure:?}"
    );
    assert!(thief.seen().is_empty());
}

#[tokio::test]
async fn a_refusal_of_the_stream_closes_and_one_of_a_message_fails_it() {
    let challenge = [("www-authenticate", "Bearer realm=\"x\"")];
    let server = Server::start(move |_| reply("401 Unauthorized", &challenge, b"log in")).await;
    let mut peer = open(&server).await;
    let refused = CloseReason::Failed(SendFailure::Status {
        status: 401,
        www_authenticate: Some("Bearer realm=\"x\"".to_owned()),
        body: "log in".into(),
        retry_after: None,
        had_session: false,
    });
    assert_eq!(peer.closed().await, refused);

    let server = Server::start(move |seen| match seen.method.as_str() {
        "GET" => vec![
            stream("event: endpoint\ndata: /m\n\n"),
            Act::Wait(Arc::default()),
        ],
        _ if seen.json()["id"] == 1 => reply("401 Unauthorized", &challenge, b"log in"),
        _ => reply("503 Busy", &[("retry-after", "7")], b""),
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "x", json!({})).await;
    let failure = SendFailure::Status {
        status: 401,
        www_authenticate: Some("Bearer realm=\"x\"".to_owned()),
        body: "log in".into(),
        had_session: false,
        retry_after: None,
    };
    assert_eq!(peer.failure().await, (RequestTag(1), failure));
    peer.request(2, "x", json!({})).await;
    let (_, failure) = peer.failure().await;
    let retry_after = Some(Duration::from_secs(7));
    assert!(
        matches!(&failure, SendFailure::Status { status: 503, retry_after: after, .. } if *after == retry_after),
        "{failure:?}"
    );
}

#[tokio::test]
async fn rel_27_what_is_no_event_stream_is_named() {
    for (answer, words) in [
        ("text/html", "`text/html`, which is not an event stream"),
        ("application/json", "something else than an event stream"),
    ] {
        let server =
            Server::start(move |_| reply("200 OK", &[("content-type", answer)], b"<html>")).await;
        let reason = open(&server).await.closed().await;
        assert!(
            matches!(&reason, CloseReason::Broken(why) if why.contains(words)),
            "{reason:?}"
        );
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let spec = TransportSpec::Remote(RemoteKind::Sse, at(&url, &[]));
    let reason = Peer::open(spec, ChannelLimits::default())
        .await
        .closed()
        .await;
    assert!(
        matches!(
            reason,
            CloseReason::Failed(SendFailure::Unreachable { refused: true, .. })
        ),
        "{reason:?}"
    );
}

#[tokio::test]
async fn rel_27_a_stream_that_is_refused_for_now_says_for_how_long() {
    let server = Server::start(|_| reply("503 Busy", &[("retry-after", "120")], b"")).await;
    let refused = CloseReason::Failed(SendFailure::Status {
        status: 503,
        www_authenticate: None,
        body: Vec::new().into(),
        retry_after: Some(Duration::from_mins(2)),
        had_session: false,
    });
    assert_eq!(open(&server).await.closed().await, refused);
}

#[tokio::test]
async fn a_page_for_people_is_no_receipt_of_a_message() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => vec![
            stream("event: endpoint\ndata: /m\n\n"),
            Act::Wait(Arc::default()),
        ],
        _ => reply("200 OK", &[("content-type", "text/html")], b"<html>"),
    })
    .await;
    let mut peer = open(&server).await;
    peer.request(1, "x", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(matches!(failure, SendFailure::NotMcp { .. }), "{failure:?}");
}

#[tokio::test]
async fn rel_25_half_an_event_is_never_delivered() {
    let recorded = "event: endpoint\r\ndata: /m\r\n\r\nid: 1\r\ndata: {\"one\":1}\r\n\r\n";
    let half = "data: {\"half\":";
    let server = Server::start(move |_| {
        // An empty chunk would be the end.
        let mut acts = vec![chunked(&recorded[..1])];
        let rest = recorded.as_bytes()[1..].iter();
        acts.extend(rest.map(|byte| Act::Write(chunk(&[*byte]))));
        acts.extend([Act::Write(chunk(half.as_bytes())), Act::Close]);
        acts
    })
    .await;
    let mut peer = open(&server).await;
    assert_eq!(peer.message().await["one"], 1);
    let reason = peer.closed().await;
    assert!(
        matches!(
            reason,
            CloseReason::Failed(SendFailure::Unreachable { refused: false, .. })
        ),
        "{reason:?}"
    );
}

#[tokio::test]
async fn rel_23_a_proxy_that_holds_the_stream_back_is_noticed() {
    let limits = ChannelLimits {
        first_byte: Duration::from_millis(100),
        ..ChannelLimits::default()
    };
    let forever = || Act::Wait(Arc::new(Notify::new()));
    let before_head = Server::start(move |_| vec![forever()]).await;
    let after_head = Server::start(move |_| vec![stream(""), forever()]).await;
    for server in [before_head, after_head] {
        let reason = Peer::open(spec(&server), limits.clone())
            .await
            .closed()
            .await;
        assert!(
            matches!(&reason, CloseReason::Failed(SendFailure::Unreachable { refused: false, message }) if message.contains("proxy")),
            "{reason:?}"
        );
    }
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_stream_that_never_opens() {
    let mut server = Server::start(|_| vec![Act::AwaitClose(Arc::default())]).await;
    let mut peer = open(&server).await;
    peer.request(1, "initialize", json!({})).await;
    server.arrival().await;
    let last = peer.end().await;
    assert!(
        matches!(&last[..], [ChannelEvent::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
    server.census.until_empty().await;
}
