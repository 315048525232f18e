//! Thousands of answers that are almost right, over real sockets: whatever a remote server sends,
//! every request and every channel ends, and nothing panics.
//!
//! The seed is fixed, so that a failure can be seen again; `fuzz/` looks further.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use toolway_testkit::SeededRandom;
use toolway_transport::{ChannelEvent, ChannelLimits};
use toolway_types::{RemoteKind, TransportSpec};
use toolway_wire::{Message, envelope};

use crate::peer::{Era, Peer, at, remote, within_patience};

const SEED: u64 = 0x5EC5_1FAC_E0FF_AB1E;

/// How many answers each kind of server gives.
const ROUNDS: u64 = 1000;

/// What a byte becomes, or what is put in its place: all that parsers stumble over.
const TOKENS: [&[u8]; 24] = [
    b"\r\n",
    b"\n\n",
    b"\r",
    b"\0",
    b"\xEF\xBB\xBF",
    b"\xFF\xFE",
    b": ",
    b"data:",
    b"event: endpoint\n",
    b"id: 1\n",
    b"retry: 0\n",
    b"{",
    b"[",
    b"]",
    b"\"",
    b"\\u0000",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Location: /mcp\r\n",
    b"\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
];

/// The bytes with a few faults in them.
fn mutated(chance: &mut SeededRandom, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=chance.below(4) {
        let place = |chance: &mut SeededRandom, bytes: &[u8]| {
            usize::try_from(chance.below(bytes.len() as u64 + 1)).expect("a place")
        };
        let (one, other) = (place(chance, &bytes), place(chance, &bytes));
        let (from, to) = (one.min(other), one.max(other));
        match chance.below(6) {
            0 => drop(bytes.drain(from..to.min(from + 16))),
            1 => bytes.truncate(to),
            2 => {
                let again = bytes[from..to].to_vec();
                bytes.splice(from..from, again);
            }
            3 => {
                let token = *chance.one_of(&TOKENS);
                bytes.splice(from..from, token.iter().copied());
            }
            _ => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte ^= 1 << chance.below(8);
                }
            }
        }
    }
    bytes
}

/// One request as it came: its head and its body.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let length = length.unwrap_or(0);
    let mut body = bytes.split_off(end);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, body))
}

fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
    Some(value.trim())
}

/// Starts a server that answers one request on each connection, and closes it.
async fn serve(
    answer: impl Fn(&mut SeededRandom, &str, &[u8]) -> Vec<u8> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (answer, chance) = (
        Arc::new(answer),
        Arc::new(Mutex::new(SeededRandom::new(SEED))),
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, chance) = (Arc::clone(&answer), Arc::clone(&chance));
            tokio::spawn(async move {
                let (head, body) = read_request(&mut stream).await?;
                let reply = answer(&mut *chance.lock().await, &head, &body);
                stream.write_all(&reply).await.ok()?;
                stream.shutdown().await.ok()?;
                // What still comes is read, or the answer would be lost with a reset.
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await.ok()
            });
        }
    });
    address.to_string()
}

fn http(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// What the request with this id asked for.
fn answer_to(body: &[u8]) -> String {
    let request: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": [{"name": "a", "b": "\u{e9}"}]}})
        .to_string()
}

/// No answer is waited for longer: all of them are here at once, or never.
fn limits() -> ChannelLimits {
    ChannelLimits {
        response: 4096,
        sse_event: 2048,
        websocket_message: 2048,
        first_byte: Duration::from_secs(5),
        keepalive: Duration::from_secs(5),
        stream_idle: Duration::from_secs(5),
        ..ChannelLimits::default()
    }
}

/// Whether the request is over with this.
fn ends(event: &ChannelEvent, id: u64) -> bool {
    match event {
        ChannelEvent::Message { bytes, .. } => matches!(
            envelope::parse(bytes),
            Ok(Message::Response { id: Some(answered), .. }) if answered.as_ours() == Some(id)
        ),
        ChannelEvent::Failed { tag, .. } => tag.0 == id,
        ChannelEvent::Oversized { .. } => false,
        ChannelEvent::Closed(reason) => panic!("the channel ended: {reason:?}"),
    }
}

#[tokio::test]
async fn mutated_http_answers_end_their_requests() {
    let url = serve(|chance, _, body| {
        let answer = answer_to(body);
        // Now and then only what the answer says is broken, and not its frame.
        let answer = if chance.per_mille(500) {
            String::from_utf8_lossy(&mutated(chance, answer.as_bytes())).into_owned()
        } else {
            answer
        };
        let breaks_frame = chance.per_mille(500);
        let reply = match chance.below(4) {
            0 => http("Content-Type: application/json", answer.as_bytes()),
            1 => http(
                "Content-Type: text/event-stream",
                format!("id: 1\nretry: 10\ndata: {{}}\n\nevent: message\ndata: {answer}\n\n")
                    .as_bytes(),
            ),
            2 => http(
                "Content-Type: application/json",
                format!("[{answer},{answer}]").as_bytes(),
            ),
            _ => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: \
                 chunked\r\n\r\n6\r\ndata: \r\n{:x}\r\n{answer}\r\n2\r\n\n\n\r\n0\r\n\r\n",
                answer.len()
            )
            .into_bytes(),
        };
        if breaks_frame {
            mutated(chance, &reply)
        } else {
            reply
        }
    })
    .await;
    let mut peer = Peer::open(remote(&format!("http://{url}/mcp"), &[]), limits()).await;
    peer.era = Era::Modern;
    let mut answered = 0;
    for id in 1..=2 * ROUNDS {
        peer.request(id, "tools/list", json!({})).await;
        loop {
            let event = peer.event().await;
            if ends(&event, id) {
                answered += u64::from(matches!(event, ChannelEvent::Message { .. }));
                break;
            }
        }
    }
    // Else nothing but the head was ever looked at.
    assert!(answered > ROUNDS / 8, "{answered} answers were good enough");
    peer.end().await;
}

/// Opens channel after channel, asks something on each, and waits for its end.
async fn until_each_ends(spec: impl Fn() -> TransportSpec) -> u64 {
    let mut messages = 0;
    for _ in 0..ROUNDS {
        let mut peer = Peer::open(spec(), limits()).await;
        peer.request(1, "tools/list", json!({})).await;
        while let Some(event) = within_patience(peer.events.recv()).await {
            messages += u64::from(matches!(event, ChannelEvent::Message { .. }));
            if matches!(event, ChannelEvent::Closed(_)) {
                break;
            }
        }
        peer.end().await;
    }
    messages
}

#[tokio::test]
async fn mutated_event_streams_end_their_channels() {
    let url = serve(|chance, head, body| {
        if head.starts_with("POST") {
            let reply = http("Content-Type: application/json", b"ok");
            return if chance.per_mille(200) { mutated(chance, &reply) } else { reply };
        }
        let stream = format!(
            ": hello\n\nevent: endpoint\ndata: /messages?id=7\n\nid: 1\nretry: 10\ndata: {}\n\nevent: \
             ping\r\ndata: x\r\n\r\ndata: {{\"jsonrpc\":\r\ndata: \"2.0\",\"method\":\"a\"}}\r\n\r\n",
            answer_to(body)
        );
        let reply = http("Content-Type: text/event-stream", stream.as_bytes());
        mutated(chance, &reply)
    })
    .await;
    let url = format!("http://{url}/sse");
    let messages = until_each_ends(|| TransportSpec::Remote(RemoteKind::Sse, at(&url, &[]))).await;
    assert!(
        messages > ROUNDS / 4,
        "{messages} messages were good enough"
    );
}

#[tokio::test]
async fn mutated_websockets_end_their_channels() {
    let url = serve(|chance, head, _| {
        let key = header(head, "sec-websocket-key").unwrap_or_default();
        let shake = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: mcp\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        let answer = answer_to(br#"{"id":1}"#);
        let (one, other) = answer.as_bytes().split_at(20);
        let frames = [
            frame(0x81, answer.as_bytes()),
            frame(0x01, one),
            frame(0x89, b"are you there"),
            frame(0x80, other),
            frame(0x81, &[b'x'; 3000]),
            frame(0x88, b"\x03\xE8bye"),
        ]
        .concat();
        let mut reply = shake.into_bytes();
        if chance.per_mille(250) {
            reply = mutated(chance, &reply);
        }
        reply.extend(mutated(chance, &frames));
        reply
    })
    .await;
    let url = format!("ws://{url}/");
    let messages = until_each_ends(|| TransportSpec::Remote(RemoteKind::Ws, at(&url, &[]))).await;
    assert!(
        messages > ROUNDS / 4,
        "{messages} messages were good enough"
    );
}

/// One frame of a server.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    if let Ok(short @ 0..126) = u8::try_from(payload.len()) {
        frame.push(short);
    } else {
        let length = u16::try_from(payload.len()).expect("a small frame");
        frame.push(126);
        frame.extend_from_slice(&length.to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame
}
