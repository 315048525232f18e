//! Traces: the one that a call is started in, and the spans of `serve`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread::JoinHandle;

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{Script, TempHome, marked};

use crate::support::{command, home_with, toolway};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn home() -> TempHome {
    home_with(Script {
        offers: true,
        ..Script::default()
    })
}

#[test]
fn a_call_tells_its_server_the_trace_that_it_was_started_in() {
    let home = home();
    let mut traced = command(&home, &["call", "chaos", "mirror", "--json"]);
    traced.env("TRACEPARENT", PARENT).env("BAGGAGE", "a=1");
    let answer = home.run(&mut traced).expect_code(0).json();
    assert_eq!(
        answer["_meta"],
        json!({ "traceparent": PARENT, "baggage": "a=1" }),
        "{answer}"
    );
    let mut wrong = command(&home, &["call", "chaos", "mirror", "--json"]);
    wrong.env("TRACEPARENT", "00-1");
    let answer = home.run(&mut wrong).expect_code(0).json();
    assert!(answer["_meta"]["traceparent"].is_null(), "{answer}");
    let plain = toolway(&home, &["call", "chaos", "mirror", "--json"]).expect_code(0);
    assert!(plain.json()["_meta"]["traceparent"].is_null());
}

/// A port at which one request is taken; gives all of it.
fn collector() -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let taking = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        loop {
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "cut off");
            bytes.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            let Some((head, _)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|it| it.strip_prefix("content-length: "));
            let length: usize = length.unwrap().parse().unwrap();
            if bytes.len() >= head.len() + 4 + length {
                break;
            }
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).unwrap();
        bytes
    });
    (address, taking)
}

#[test]
fn serve_sends_its_last_spans_before_it_ends_and_shows_no_secret() {
    let home = home();
    let (address, taken) = collector();
    let mut serve = command(&home, &["serve"]);
    serve
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        .env(
            "OTEL_EXPORTER_OTLP_HEADERS",
            format!("x-key={}", marked!("")),
        )
        .env("OTEL_SERVICE_NAME", "my gateway")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = serve.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "chaos__echo", "arguments": { "text": "not for the collector" } } }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let (out, said) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    let out = String::from_utf8(out).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(out.contains("not for the collector"), "{out}");
    let taken = String::from_utf8_lossy(&taken.join().unwrap()).into_owned();
    assert!(taken.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{taken}");
    for part in [
        marked!("x-key: "),
        "my gateway",
        "tools/call chaos__echo",
        "tools/call echo",
    ] {
        assert!(taken.contains(part), "no {part} in {taken}");
    }
    assert!(!taken.contains("not for the collector"), "{taken}");
    assert!(!said.contains(marked!("")), "{said}");
}

#[test]
fn what_is_wrong_with_the_variables_is_said_and_nothing_else_changes() {
    let home = home();
    let mut serve = command(&home, &["serve"]);
    serve
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere")
        .stdin(Stdio::null());
    assert_snapshot!(home.run(&mut serve), @r"
    exit: 0
    ----- stdout
    ----- stderr
    warning: `OTEL_EXPORTER_OTLP_ENDPOINT` is no address of a collector, so no spans are sent
    hint: it looks like `http://127.0.0.1:4318`
    ");
}
