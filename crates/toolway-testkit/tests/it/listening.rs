//! The scripted server where it listens.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use toolway_testkit::{ListeningServer, Script, ScriptedServer};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;

/// Sends raw bytes and reads until the server closes.
fn exchange(server: &ListeningServer, raw: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(raw.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(server: &ListeningServer, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    let raw = format!("POST /mcp HTTP/1.1\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    exchange(server, &raw)
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

#[test]
fn it_speaks_http_and_sse() {
    let server = ScriptedServer::default().serve_sse();
    assert!(server.url().ends_with("/sse"));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /sse HTTP/1.1\r\n\r\n").unwrap();
    let mut events = BufReader::new(stream).lines().map(Result::unwrap);
    let mut data = || {
        events
            .find_map(|line| line.strip_prefix("data: ").map(str::to_owned))
            .unwrap()
    };
    let endpoint = data();
    let body = request("ping", &json!({})).to_string();
    let length = body.len();
    let raw = format!("POST {endpoint} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}");
    assert!(exchange(&server, &raw).starts_with("HTTP/1.1 202 "));
    let answer: Value = serde_json::from_str(&data()).unwrap();
    assert_eq!(answer["result"], json!({}));
    let lost = raw.replace(&endpoint, "/message?session=nobody");
    assert!(exchange(&server, &lost).starts_with("HTTP/1.1 404 "));
}

#[test]
fn it_speaks_websocket_with_its_subprotocol() {
    let server = ScriptedServer::default().serve_ws();
    let mut asked = server.url().into_client_request().unwrap();
    asked
        .headers_mut()
        .insert("sec-websocket-protocol", "mcp".parse().unwrap());
    let stream = TcpStream::connect(server.address()).unwrap();
    let (mut socket, answer) = tungstenite::client(asked, stream).unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "mcp");
    socket
        .send(Message::text(request("ping", &json!({})).to_string()))
        .unwrap();
    let answer: Value = serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
    assert_eq!(answer["result"], json!({}));
    assert_eq!(server.stats()["connections"], 1);
    server.hang_up();
    assert!(socket.read().is_err(), "it hung up");
}

#[test]
fn a_websocket_is_refused_by_status() {
    let server = ScriptedServer::new(Script {
        http_status: Some(401),
        ..Script::default()
    })
    .serve_ws();
    let stream = TcpStream::connect(server.address()).unwrap();
    let Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) =
        tungstenite::client(server.url(), stream)
    else {
        panic!("it was let in")
    };
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.headers()["www-authenticate"], "Bearer");
}

#[test]
fn sessions_are_given_out_wanted_back_and_forgotten() {
    let server = ScriptedServer::new(Script {
        sessions: true,
        session_requests: 2,
        ..Script::default()
    })
    .serve_http();
    let greeting = post(&server, "", &request("initialize", &json!({})));
    let (_, rest) = greeting.split_once("mcp-session-id: ").unwrap();
    let header = format!("mcp-session-id: {}\r\n", rest.lines().next().unwrap());
    let ping = request("ping", &json!({}));
    assert!(post(&server, "", &ping).starts_with("HTTP/1.1 400 "));
    assert!(post(&server, &header, &ping).starts_with("HTTP/1.1 200 "));
    assert!(post(&server, &header, &ping).starts_with("HTTP/1.1 200 "));
    let expired = post(&server, &header, &ping);
    assert!(expired.starts_with("HTTP/1.1 404 ") && expired.contains("-32001"));
}

#[test]
fn a_refusal_says_when_to_come_back_and_is_over_after_its_times() {
    let mut server = ScriptedServer::new(Script {
        http_status: Some(503),
        http_status_for: vec!["ping".to_owned()],
        http_status_times: 1,
        retry_after: Some("7".to_owned()),
        ..Script::default()
    })
    .serve_http();
    let ping = request("ping", &json!({}));
    let list = request("tools/list", &json!({}));
    assert!(post(&server, "", &list).starts_with("HTTP/1.1 200 "));
    let refused = post(&server, "", &ping);
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: 7\r\n"));
    assert!(post(&server, "", &ping).starts_with("HTTP/1.1 200 "));
    server.become_like(Script {
        html: true,
        ..Script::default()
    });
    assert!(post(&server, "", &ping).contains("text/html"));
}

#[test]
fn a_cut_stream_is_resumed_without_loss_or_doubling() {
    let server = ScriptedServer::new(Script {
        event_stream: true,
        resumable: true,
        cut_call_at: Some(60),
        cut_times: 1,
        ..Script::default()
    })
    .serve_http();
    let call = request("tools/call", &json!({ "name": "twice", "arguments": {} }));
    let cut = post(&server, "", &call);
    assert!(!cut.contains("first"), "{cut}");
    let (_, rest) = cut.split_once("id: ").unwrap();
    let last = rest.lines().next().unwrap();
    let raw = format!("GET /mcp HTTP/1.1\r\nlast-event-id: {last}\r\n\r\n");
    let again = exchange(&server, &raw);
    assert_eq!(again.matches("first").count(), 1, "{again}");
    assert_eq!(again.matches("second").count(), 1, "{again}");
}

#[test]
fn a_late_answer_comes_with_the_cancellation() {
    let server = ScriptedServer::default().serve_http();
    let late = request("tools/call", &json!({ "name": "late" }));
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| post(&server, "", &late));
        while server.stats()["calls"] == 0 {
            std::thread::yield_now();
        }
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 1 } });
        assert!(post(&server, "", &cancel).starts_with("HTTP/1.1 202 "));
        assert!(answer.join().unwrap().contains("too late"));
    });
}

#[test]
fn it_comes_back_on_its_port() {
    let mut server = ScriptedServer::default().serve_http();
    let before = server.url().to_owned();
    server.stop();
    assert!(TcpStream::connect(server.address()).is_err());
    server.resume();
    assert_eq!(server.url(), before);
    assert!(post(&server, "", &request("ping", &json!({}))).starts_with("HTTP/1.1 200 "));
}
