//! REL-25: an answer's stream, cut at every byte. A legacy one is taken up where it ended and
//! delivered exactly once; a modern one fails, and is asked for no second time.

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use toolway_testkit::{ConnectionCut, ConnectionEnd, Direction, FaultProxy, ProxyFaults};
use toolway_transport::{ChannelEvent, ChannelLimits, OutgoingMessage, SendFailure};

use crate::peer::{Peer, remote, request};
use crate::server::{Act, Seen, Server, chunk, chunked, stream};

/// As it was recorded: every kind of line end, also mixed within an event, comments, a byte order
/// mark, an event that only carries an id, one whose id comes last and one with two lines of data.
const RECORDED: &[(&str, &[u8])] = &[
    ("p", b"\xEF\xBB\xBF: hello\r\n\r\nid: p\rretry: 1\rdata:\r\r"),
    ("a", b"id: a\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\n"),
    (
        "b",
        b"event: message\r\nid: b\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"two\"}\r\n\r\n",
    ),
    (
        "c",
        b": still there\r\rretry: nonsense\ndata:{\"jsonrpc\":\"2.0\",\"method\":\"three\"}\rid: c\r\r\n",
    ),
    (
        "d",
        b"id:d\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"f\xC3\xBCnf\"}}\r\n\n",
    ),
];

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| after(None));

/// What follows the event with this id.
fn after(id: Option<&str>) -> Vec<u8> {
    let skipped = match id {
        None => 0,
        Some(id) => {
            let place = RECORDED.iter().position(|(known, _)| *known == id);
            1 + place.expect("an id that was sent")
        }
    };
    RECORDED[skipped..]
        .iter()
        .flat_map(|(_, bytes)| bytes.iter().copied())
        .collect()
}

/// How the end of a cut stream looks to a reader.
#[derive(Debug, Clone, Copy)]
enum Ending {
    /// As the end of a stream that has no other end.
    Closed,
    /// As a connection that broke in the middle of a chunk.
    Broken,
}

fn until(cut: usize, ending: Ending) -> Vec<Act> {
    let kept = &WHOLE[..cut];
    match ending {
        Ending::Closed => vec![stream(""), Act::Write(kept.to_vec()), Act::Close],
        Ending::Broken => {
            // One byte more is announced than comes.
            let mut bytes = chunk(&WHOLE[..(cut + 1).min(WHOLE.len())]);
            bytes.truncate(bytes.len() - if cut < WHOLE.len() { 3 } else { 2 });
            // `chunked` opens with a chunk of its own.
            vec![chunked(":\n"), Act::Write(bytes), Act::Close]
        }
    }
}

fn rest(seen: &Seen) -> Vec<Act> {
    let rest = after(seen.header("last-event-id"));
    vec![stream(""), Act::Write(rest), Act::Close]
}

/// Everything that came of one request: the messages, and how it failed if it did.
async fn outcome(url: &str, outgoing: OutgoingMessage) -> (Vec<String>, Option<SendFailure>) {
    let mut peer = Peer::open(remote(url, &[]), ChannelLimits::default()).await;
    peer.send(outgoing).await;
    let (mut messages, mut failure) = (Vec::new(), None);
    while failure.is_none() && messages.last().is_none_or(|last| last != "answer") {
        match peer.event().await {
            ChannelEvent::Message { bytes, .. } => messages.push(name(&bytes)),
            ChannelEvent::Failed { failure: why, .. } => failure = Some(why),
            other => panic!("{other:?}"),
        }
    }
    // Nothing comes after it, not even a copy.
    let last = peer.end().await;
    assert!(matches!(&last[..], [ChannelEvent::Closed(_)]), "{last:?}");
    (messages, failure)
}

fn name(bytes: &[u8]) -> String {
    let message: Value = serde_json::from_slice(bytes).expect("JSON");
    if let Some(method) = message["method"].as_str() {
        return method.to_owned();
    }
    assert_eq!(message["result"], json!({ "text": "fünf" }));
    "answer".to_owned()
}

fn modern() -> OutgoingMessage {
    let header = |name, value| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    OutgoingMessage {
        headers: vec![
            header("mcp-protocol-version", "2026-07-28"),
            header("mcp-method", "tools/call"),
        ],
        ..request(1, "tools/call", json!({}))
    }
}

fn legacy() -> OutgoingMessage {
    request(1, "tools/call", json!({}))
}

/// Where the first event ends, with which an id is known: at its second CR.
fn first_id() -> usize {
    RECORDED[0].1.len()
}

/// Where the answer is complete: its last line end may still be missing a half.
fn complete() -> usize {
    WHOLE.len()
}

const ALL: [&str; 4] = ["one", "two", "three", "answer"];

#[tokio::test]
async fn rel_25_a_legacy_stream_cut_at_every_byte_is_resumed_and_delivered_exactly_once() {
    for ending in [Ending::Closed, Ending::Broken] {
        for cut in 0..=WHOLE.len() {
            let server = Server::start(move |seen| match seen.method.as_str() {
                "POST" => until(cut, ending),
                _ => rest(seen),
            })
            .await;
            let (messages, failure) = outcome(&server.url, legacy()).await;
            let place = format!("{ending:?} after {cut}: {messages:?}, {failure:?}");
            let methods: Vec<String> = server.seen().into_iter().map(|seen| seen.method).collect();
            if cut < first_id() {
                // There is nothing to go on from, and asking again could do it twice.
                assert!(matches!(failure, Some(SendFailure::Cut(_))), "{place}");
                assert_eq!(messages, Vec::<String>::new(), "{place}");
                assert_eq!(methods, ["POST"], "{place}");
                continue;
            }
            assert_eq!(failure, None, "{place}");
            assert_eq!(messages, ALL, "{place}");
            if cut < complete() {
                assert_eq!(methods, ["POST", "GET"], "{place}");
            } else {
                assert_eq!(methods, ["POST"], "{place}");
            }
        }
    }
}

#[tokio::test]
async fn rel_25_a_modern_stream_cut_at_every_byte_fails_and_is_never_asked_for_again() {
    for ending in [Ending::Closed, Ending::Broken] {
        for cut in 0..=WHOLE.len() {
            let server = Server::start(move |_| until(cut, ending)).await;
            let (messages, failure) = outcome(&server.url, modern()).await;
            let place = format!("{ending:?} after {cut}: {messages:?}, {failure:?}");
            assert_eq!(messages, ALL[..messages.len()], "{place}");
            if cut < complete() {
                assert!(matches!(failure, Some(SendFailure::Cut(_))), "{place}");
            } else {
                assert_eq!((messages.len(), &failure), (4, &None), "{place}");
            }
            assert_eq!(server.seen().len(), 1, "{place}");
        }
    }
}

#[tokio::test]
async fn rel_25_a_way_that_breaks_at_every_byte_again_and_again_delivers_nothing_twice() {
    let mut answered = 0;
    for end in [ConnectionEnd::Fin, ConnectionEnd::Reset] {
        // Behind the head of the answer, which is longer than any event.
        for after in (1..WHOLE.len() + 150).step_by(3) {
            let server = Server::start(rest).await;
            let address = server.url.strip_prefix("http://").unwrap();
            let proxy = FaultProxy::before(address.split('/').next().unwrap());
            proxy.set(ProxyFaults {
                cut: Some(ConnectionCut {
                    after,
                    direction: Direction::Down,
                    end,
                }),
                ..ProxyFaults::default()
            });
            let (messages, failure) = outcome(&proxy.url(&server.url), legacy()).await;
            let place = format!("{end:?} after {after}: {messages:?}, {failure:?}");
            assert_eq!(messages, ALL[..messages.len()], "{place}");
            assert_eq!(failure.is_none(), messages.len() == 4, "{place}");
            let seen = server.seen();
            let posts = seen.iter().filter(|seen| seen.method == "POST").count();
            assert_eq!(posts, 1, "{place}");
            answered += usize::from(failure.is_none());
        }
    }
    assert!(answered > 50, "only {answered} were answered");
}

#[tokio::test]
async fn rel_25_a_server_that_ends_its_stream_after_every_event_is_asked_until_it_answers() {
    // What servers do that hold no connection for long: they say when to come back.
    let server = Server::start(|seen| {
        let next = match seen.header("last-event-id") {
            None => 0,
            Some(last) => last.parse::<usize>().unwrap() + 1,
        };
        let data = match next {
            12 => json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": "fünf" } }).to_string(),
            _ => String::new(),
        };
        let event = format!("id: {next}\nretry: 1\ndata: {data}\n\n");
        vec![stream(&event), Act::Close]
    })
    .await;
    let (messages, failure) = outcome(&server.url, legacy()).await;
    assert_eq!(
        (messages.as_slice(), failure),
        (&["answer".to_owned()][..], None)
    );
    assert_eq!(server.seen().len(), 13);
}

#[tokio::test]
async fn rel_25_a_server_that_says_nothing_new_is_not_asked_for_ever() {
    let server = Server::start(|_| vec![stream("id: same\nretry: 1\ndata:\n\n"), Act::Close]).await;
    let (messages, failure) = outcome(&server.url, legacy()).await;
    assert_eq!(messages, Vec::<String>::new());
    assert!(matches!(failure, Some(SendFailure::Cut(_))), "{failure:?}");
    assert_eq!(server.seen().len(), 6);
}
