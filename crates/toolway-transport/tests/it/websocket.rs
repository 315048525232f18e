//! A WebSocket against servers that refuse, lie, flood and break off; and through proxies.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::handshake::server::Request;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::client::{HttpClient, HttpClientOptions};
use toolway_transport::{ChannelEvent, ChannelLimits, CloseReason, OpenOptions, SendFailure};
use toolway_types::{CertificateFault, RemoteKind, TransportSpec};
use toolway_wire::Id;

use crate::authority::Authority;
use crate::peer::{Peer, at};
use crate::proxy::{Silencer, Tunneller};
use crate::server::{Server, reply};
use crate::socket::{Connection, Handshake, listen, open_door, receive, send};

fn ws(url: &str) -> TransportSpec {
    TransportSpec::Remote(
        RemoteKind::Ws,
        at(url, &[("Authorization", marked!("Bearer "))]),
    )
}

async fn open(url: &str) -> Peer {
    Peer::open(ws(url), ChannelLimits::default()).await
}

/// Echoes until the client is done.
async fn echo(mut connection: Connection) {
    while let Some(message) = receive(&mut connection).await {
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
        send(&mut connection, &answer).await;
    }
}

/// Runs until the client is gone.
async fn idle(mut connection: Connection) {
    while connection
        .next()
        .await
        .is_some_and(|message| message.is_ok())
    {}
}

fn words(reason: &CloseReason) -> &str {
    match reason {
        CloseReason::Broken(message)
        | CloseReason::Failed(
            SendFailure::Unreachable { message, .. } | SendFailure::Certificate { message, .. },
        ) => message,
        other => panic!("{other:?}"),
    }
}

fn careful(request: &Request, answer: &mut HeaderMap) {
    assert_eq!(request.uri(), "/socket?a=b");
    assert_eq!(request.headers()["authorization"], marked!("Bearer "));
    let agent = request.headers()["user-agent"].to_str().expect("text");
    assert!(agent.starts_with("toolway/"), "{agent}");
    open_door(request, answer);
}

fn without_subprotocol(_: &Request, _: &mut HeaderMap) {}

#[tokio::test]
async fn the_handshake_carries_headers_and_a_server_may_name_no_subprotocol() {
    for handshake in [careful as Handshake, without_subprotocol] {
        let server = listen(None, handshake, echo).await;
        let mut peer = open(&server.url).await;
        peer.request(1, "x", json!({})).await;
        assert_eq!(peer.message().await["id"], 1);
    }
}

#[tokio::test]
async fn another_subprotocol_or_an_extension_is_refused() {
    fn other(_: &Request, answer: &mut HeaderMap) {
        let value = HeaderValue::from_static("graphql-ws");
        answer.insert("sec-websocket-protocol", value);
    }
    fn deflating(_: &Request, answer: &mut HeaderMap) {
        let value = HeaderValue::from_static("permessage-deflate");
        answer.insert("sec-websocket-extensions", value);
    }
    let handshakes: [(Handshake, &str); 2] =
        [(other, "graphql-ws"), (deflating, "permessage-deflate")];
    for (handshake, word) in handshakes {
        let server = listen(None, handshake, idle).await;
        let reason = open(&server.url).await.closed().await;
        assert!(words(&reason).contains(word), "{reason:?}");
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let challenge = [("www-authenticate", "Bearer realm=\"x\"")];
    for (status, code) in [("401 Unauthorized", 401), ("403 Forbidden", 403)] {
        let server = Server::start(move |_| reply(status, &challenge, b"log in")).await;
        let refused = CloseReason::Failed(SendFailure::Status {
            status: code,
            www_authenticate: Some("Bearer realm=\"x\"".to_owned()),
            body: "log in".into(),
            retry_after: None,
            had_session: false,
        });
        let url = server.url.replace("http:", "ws:");
        assert_eq!(open(&url).await.closed().await, refused);
    }
    let server = Server::start(|_| reply("503 Busy", &[("retry-after", "120")], b"")).await;
    let refused = CloseReason::Failed(SendFailure::Status {
        status: 503,
        www_authenticate: None,
        body: Bytes::new(),
        retry_after: Some(Duration::from_mins(2)),
        had_session: false,
    });
    let url = server.url.replace("http:", "ws:");
    assert_eq!(open(&url).await.closed().await, refused);
    // A captive portal, and one that sends elsewhere with the credentials.
    for (status, word) in [
        ("200 OK", "HTTP 200"),
        ("302 Found", "`https://x.invalid/`"),
    ] {
        let headers = [
            ("location", "https://x.invalid/"),
            ("content-type", "text/html"),
        ];
        let server = Server::start(move |_| reply(status, &headers, b"<html>")).await;
        let reason = open(&server.url.replace("http:", "ws:"))
            .await
            .closed()
            .await;
        assert!(words(&reason).contains(word), "{reason:?}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let reason = open(&url).await.closed().await;
    assert!(
        matches!(
            reason,
            CloseReason::Failed(SendFailure::Unreachable { refused: true, .. })
        ),
        "{reason:?}"
    );
}

#[tokio::test]
async fn rel_23_a_handshake_that_is_never_answered_is_given_up() {
    let server = Server::start(|_| vec![crate::server::Act::Wait(std::sync::Arc::default())]).await;
    let limits = ChannelLimits {
        first_byte: Duration::from_millis(100),
        ..ChannelLimits::default()
    };
    let spec = ws(&server.url.replace("http:", "ws:"));
    let reason = Peer::open(spec, limits).await.closed().await;
    assert!(words(&reason).contains("no answer within"), "{reason:?}");
}

#[tokio::test]
async fn fragments_control_frames_and_binary_messages_are_understood() {
    let server = listen(None, open_door, |mut connection| async move {
        let frame = |text: &'static str, kind, is_final| {
            Message::Frame(Frame::message(text, OpCode::Data(kind), is_final))
        };
        for message in [
            frame("{\"jsonrpc\":\"2.0\",", Data::Text, false),
            Message::Ping(Bytes::from_static(b"are you there?")),
            frame("\"method\":", Data::Continue, false),
            frame("\"in pieces\"}", Data::Continue, true),
            Message::binary("{\"jsonrpc\":\"2.0\",\"method\":\"binary\"}"),
        ] {
            connection.send(message).await.expect("sent");
        }
        let pong = connection
            .next()
            .await
            .expect("a message")
            .expect("well-formed");
        assert_eq!(pong, Message::Pong(Bytes::from_static(b"are you there?")));
        send(
            &mut connection,
            &json!({"jsonrpc": "2.0", "method": "pong seen"}),
        )
        .await;
        idle(connection).await;
    })
    .await;
    let mut peer = open(&server.url).await;
    for method in ["in pieces", "binary", "pong seen"] {
        assert_eq!(peer.message().await["method"], method);
    }
    peer.end().await;
    server.census.until_empty().await;
}

#[tokio::test]
async fn a_goodbye_is_told_in_the_servers_words() {
    for (code, expected) in [
        (1011, "code 1011 (internal error): out of tea"),
        (1008, "code 1008 (against its policy): out of tea"),
        (4001, "code 4001 (for a reason of its own): out of tea"),
    ] {
        let server = listen(None, open_door, move |mut connection| async move {
            let frame = CloseFrame {
                code: code.into(),
                reason: "out \u{202E}of tea".into(),
            };
            connection.close(Some(frame)).await.expect("sent");
            // The client sends a close frame as well.
            assert!(matches!(
                connection.next().await,
                Some(Ok(Message::Close(_)))
            ));
        })
        .await;
        let reason = open(&server.url).await.closed().await;
        assert!(words(&reason).ends_with(expected), "{reason:?}");
    }
}

#[tokio::test]
async fn rel_12_a_peer_that_goes_silent_is_noticed() {
    let server = listen(None, open_door, echo).await;
    let (silencer, url) = Silencer::before(&server.url).await;
    let limits = ChannelLimits {
        ping: Duration::from_millis(300),
        ..ChannelLimits::default()
    };
    let mut peer = Peer::open(ws(&url), limits).await;
    peer.request(1, "x", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    silencer.go_silent();
    peer.request(2, "x", json!({})).await;
    let reason = peer.closed().await;
    assert!(words(&reason).contains("no sign of life"), "{reason:?}");
}

#[tokio::test]
async fn rel_12_a_peer_with_nothing_to_say_is_not_given_up() {
    let server = listen(None, open_door, |mut connection| async move {
        let mut pings = 0;
        while pings < 4 {
            // Reading answers pings by itself.
            if let Some(Ok(Message::Ping(_))) = connection.next().await {
                pings += 1;
            }
        }
        send(
            &mut connection,
            &json!({"jsonrpc": "2.0", "method": "at last"}),
        )
        .await;
        idle(connection).await;
    })
    .await;
    let limits = ChannelLimits {
        ping: Duration::from_millis(300),
        ..ChannelLimits::default()
    };
    let mut peer = Peer::open(ws(&server.url), limits).await;
    assert_eq!(peer.message().await["method"], "at last");
}

#[tokio::test]
async fn rel_07_a_server_that_never_reads_is_given_up() {
    let server = listen(None, open_door, |connection| async move {
        let _held = connection;
        std::future::pending::<()>().await;
    })
    .await;
    let limits = ChannelLimits {
        write_stall: Duration::from_millis(200),
        ..ChannelLimits::default()
    };
    let mut peer = Peer::open(ws(&server.url), limits).await;
    peer.request(1, "x", json!("x".repeat(64 * 1024 * 1024)))
        .await;
    let reason = peer.closed().await;
    assert!(words(&reason).contains("has not read"), "{reason:?}");
}

#[tokio::test]
async fn sec_29_a_gigabyte_in_fragments_is_read_past() {
    let server = listen(None, open_door, |mut connection| async move {
        let frame = |data: Bytes, kind, is_final| {
            Message::Frame(Frame::message(data, OpCode::Data(kind), is_final))
        };
        let piece = Bytes::from(vec![b'x'; 1024 * 1024]);
        let head = Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
        connection
            .send(frame(head, Data::Text, false))
            .await
            .expect("sent");
        for _ in 0..1024 {
            let piece = frame(piece.clone(), Data::Continue, false);
            connection.send(piece).await.expect("sent");
        }
        let tail = Bytes::from_static(b"\"}");
        connection
            .send(frame(tail, Data::Continue, true))
            .await
            .expect("sent");
        echo(connection).await;
    })
    .await;
    let mut peer = open(&server.url).await;
    match peer.event().await {
        ChannelEvent::Oversized { id_hint, limit } => {
            assert_eq!((id_hint, limit), (Some(Id::Number(1)), 4 * 1024 * 1024));
        }
        other => panic!("{other:?}"),
    }
    peer.request(2, "x", json!({})).await;
    assert_eq!(peer.message().await["id"], 2);
}

#[tokio::test]
async fn sec_29_a_compressed_frame_is_never_inflated() {
    let server = listen(None, open_door, |mut connection| async move {
        let mut frame = Frame::message(vec![0; 100], OpCode::Data(Data::Text), true);
        frame.header_mut().rsv1 = true;
        connection.send(Message::Frame(frame)).await.expect("sent");
        idle(connection).await;
    })
    .await;
    let reason = open(&server.url).await.closed().await;
    assert!(words(&reason).contains("extension"), "{reason:?}");
    server.census.until_empty().await;
}

#[tokio::test]
async fn a_tunnel_through_the_proxy_carries_remote_sockets_encrypted_or_not() {
    let authority = Authority::new();
    for tls in [None, Some(authority.server(false))] {
        let (scheme, port) = if tls.is_some() {
            ("wss", 443)
        } else {
            ("ws", 80)
        };
        let server = listen(tls, open_door, echo).await;
        let address = server.url.split('/').nth(2).expect("an authority");
        let proxy = Tunneller::to(address, "200 Connection established").await;
        let through = Some(format!("http://user:{MARK}@{}", proxy.address));
        let options = OpenOptions {
            client: HttpClient::new(HttpClientOptions {
                extra_ca: vec![authority.file("ca.pem")],
                http_proxy: through.clone(),
                https_proxy: through,
                no_proxy: Some("elsewhere.invalid".to_owned()),
                ..HttpClientOptions::default()
            }),
            ..OpenOptions::default()
        };
        let mut peer = Peer::open_with(
            ws(&format!("{scheme}://far.localdomain/socket?a=b")),
            &options,
        )
        .await;
        if scheme == "wss" {
            // The certificate is not for this name, and the proxy cannot change that.
            let reason = peer.closed().await;
            assert!(words(&reason).contains("certificate"), "{reason:?}");
        } else {
            peer.request(1, "x", json!({})).await;
            assert_eq!(peer.message().await["id"], 1);
        }
        let asked = proxy.asked().pop().expect("a tunnel");
        assert!(
            asked.starts_with(&format!("CONNECT far.localdomain:{port} HTTP/1.1\r\n")),
            "{asked}"
        );
        assert!(
            asked
                .to_lowercase()
                .contains("proxy-authorization: basic dxnlcjpjyw5hcnk3s3eywnq5d1hv\r\n"),
            "the proxy gets its password"
        );
        assert!(
            !asked.contains(MARK),
            "the proxy gets no header of the server"
        );

        // What runs on this machine, and what is exempt, goes straight there.
        let mut peer = Peer::open_with(ws(&server.url), &options).await;
        peer.request(1, "x", json!({})).await;
        assert_eq!(peer.message().await["id"], 1);
        let url = format!("{scheme}://elsewhere.invalid/");
        Peer::open_with(ws(&url), &options).await.closed().await;
        assert_eq!(proxy.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named() {
    let proxy = Tunneller::to("127.0.0.1:1", "407 Who are you").await;
    let options = OpenOptions {
        client: HttpClient::new(HttpClientOptions {
            http_proxy: Some(format!("http://{}", proxy.address)),
            ..HttpClientOptions::default()
        }),
        ..OpenOptions::default()
    };
    let mut peer = Peer::open_with(ws("ws://far.invalid/"), &options).await;
    let reason = peer.closed().await;
    assert!(
        words(&reason).contains("the proxy answered HTTP 407"),
        "{reason:?}"
    );
}

#[tokio::test]
async fn rel_27_a_certificate_that_does_not_fit_is_named() {
    let authority = Authority::new();
    for (tls, expected) in [
        (authority.expired(), CertificateFault::Expired),
        (authority.misnamed(), CertificateFault::OtherName),
        (Authority::new().server(false), CertificateFault::Untrusted),
        (authority.server(true), CertificateFault::Ours),
    ] {
        let server = listen(Some(tls), open_door, idle).await;
        let mut peer = Peer::open_with(ws(&server.url), &authority.trusted()).await;
        let reason = peer.closed().await;
        assert!(
            matches!(reason, CloseReason::Failed(SendFailure::Certificate { fault, .. }) if fault == expected),
            "{expected:?}: {reason:?}"
        );
    }
}

#[tokio::test]
async fn sec_30_a_flood_of_headers_ends_the_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\n")
            .await;
        let line = format!("x-flood: {}\r\n", "x".repeat(1000));
        while stream.write_all(line.as_bytes()).await.is_ok() {}
    });
    let reason = open(&url).await.closed().await;
    assert!(
        matches!(reason, CloseReason::Failed(SendFailure::Unreachable { .. })),
        "{reason:?}"
    );
}
