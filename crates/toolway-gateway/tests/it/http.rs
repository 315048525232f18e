//! The HTTP endpoint as clients of both eras use it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolway_gateway::http::{HEAD_TIMEOUT, HttpOptions, HttpServer, MAX_BODY};

use crate::{Echo, exchange, post, request, served, with_server};

/// Parameters of a modern request.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[tokio::test]
async fn a_legacy_request_is_answered_as_json_and_a_notification_accepted() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let body = request(1, "echo", &json!({ "x": 1 }));
        let answer = exchange(address, &post(address, &[], &body)).await;
        assert_eq!(answer.status, 200);
        assert!(
            answer.head.contains("content-type: application/json"),
            "{answer:?}"
        );
        assert_eq!(answer.json()["result"], json!({ "x": 1 }));

        let version = [("mcp-protocol-version", "2025-06-18")];
        assert_eq!(
            exchange(address, &post(address, &version, &body))
                .await
                .status,
            200
        );

        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = exchange(address, &post(address, &[], body)).await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        assert_eq!(service.seen(), 3);
    })
    .await;
}

#[tokio::test]
async fn get_and_delete_are_not_allowed_and_nothing_else_is_found() {
    with_server(Echo::shared(), async |address| {
        for (line, status) in [
            ("GET /mcp", 405),
            ("DELETE /mcp", 405),
            ("OPTIONS /mcp", 405),
            ("GET /", 404),
            ("GET /mcp/", 404),
        ] {
            let raw = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
            assert_eq!(exchange(address, &raw).await.status, status, "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn modern_headers_must_say_what_the_body_says() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let send = async |headers: &[(&str, &str)], body: &str| {
            let answer = exchange(address, &post(address, headers, body)).await;
            (answer.status, answer.json()["error"]["code"].as_i64())
        };
        let call = request(1, "tools/call", &modern(json!({ "name": "grüße" })));
        let method = ("mcp-method", "tools/call");
        // base64 of the UTF-8 of `grüße`
        let name = ("mcp-name", "=?base64?Z3LDvMOfZQ==?=");
        assert_eq!(send(&[VERSION, method, name], &call).await, (200, None));
        let mismatch = (400, Some(-32020));
        assert_eq!(send(&[method, name], &call).await, mismatch);
        assert_eq!(send(&[VERSION, name], &call).await, mismatch);
        assert_eq!(send(&[VERSION, method], &call).await, mismatch);
        assert_eq!(
            send(&[VERSION, method, ("mcp-name", "other")], &call).await,
            mismatch
        );
        assert_eq!(
            send(&[VERSION, method, ("mcp-name", "=?base64?*?=")], &call).await,
            mismatch
        );
        assert_eq!(send(&[VERSION, method, name, name], &call).await, mismatch);
        assert_eq!(
            send(&[VERSION, ("mcp-method", "tools/list"), name], &call).await,
            mismatch
        );
        let older = ("mcp-protocol-version", "2025-11-25");
        assert_eq!(send(&[older, method, name], &call).await, mismatch);
        // A key spelled with escapes is still the name.
        let spelled = call.replace(r#""name""#, r#""n\u0061me""#);
        assert_eq!(
            send(&[VERSION, method, ("mcp-name", "other")], &spelled).await,
            mismatch
        );
        assert_eq!(service.seen(), 1);

        let bare = request(1, "tools/list", &json!({}));
        assert_eq!(
            send(&[VERSION, ("mcp-method", "tools/list")], &bare).await,
            (400, Some(-32602))
        );
        let unknown = ("mcp-protocol-version", "1999-01-01");
        assert_eq!(send(&[unknown], &bare).await, (400, Some(-32022)));
        assert_eq!(service.seen(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_modern_error_is_said_in_the_status_and_a_legacy_one_is_not() {
    with_server(Echo::shared(), async |address| {
        let legacy = request(1, "bad", &json!({ "code": -32601 }));
        let answer = exchange(address, &post(address, &[], &legacy)).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (200, &json!(-32601))
        );
        let body = request(1, "bad", &modern(json!({ "code": -32601 })));
        let headers = [VERSION, ("mcp-method", "bad")];
        let answer = exchange(address, &post(address, &headers, &body)).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (404, &json!(-32601))
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_not_a_message_is_a_bad_request() {
    with_server(Echo::shared(), async |address| {
        for (body, status, code) in [
            ("{", 400, -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"echo"}]"#, 400, -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}"#,
                400,
                -32700,
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, 400, -32600),
        ] {
            let answer = exchange(address, &post(address, &[], body)).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["code"]),
                (status, &json!(code))
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_at_the_limit_is_served_and_one_byte_more_is_not() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let frame = request(1, "echo", &json!({ "fill": "" })).len();
        let fill = "x".repeat(MAX_BODY - frame);
        let body = request(1, "echo", &json!({ "fill": fill }));
        assert_eq!(
            exchange(address, &post(address, &[], &body)).await.status,
            200
        );
        let answer = exchange(address, &post(address, &[], &format!("{body} "))).await;
        assert_eq!(answer.status, 413);
        assert_eq!(service.seen(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_head_over_its_limit_is_refused() {
    with_server(Echo::shared(), async |address| {
        let long = "x".repeat(20 * 1024);
        let answer = exchange(address, &post(address, &[("x-long", &long)], "{}")).await;
        assert_eq!(answer.status, 431);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_request() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let raw = post(address, &[], &request(1, "hang", &json!({})));
        stream.write_all(raw.as_bytes()).await.unwrap();
        while service.seen() == 0 {
            tokio::task::yield_now().await;
        }
        drop(stream);
        while service.cancelled.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off_in_time() {
    with_server(Echo::shared(), async |address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"POST /mcp HTTP/1.1\r\nx-slow: ")
            .await
            .unwrap();
        // From here on only the server's own clock can end the connection.
        tokio::time::pause();
        let started = tokio::time::Instant::now();
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
        let waited = started.elapsed();
        tokio::time::resume();
        assert!(waited.abs_diff(HEAD_TIMEOUT).as_secs() == 0, "{waited:?}");
    })
    .await;
}

#[tokio::test]
async fn dropping_the_driver_ends_listening_and_shutdown_returns() {
    let (server, driver) =
        HttpServer::bind(served(&Echo::shared()), &HttpOptions::default()).unwrap();
    let address = server.address();
    assert_eq!(
        server.url(),
        format!("http://127.0.0.1:{}/mcp", address.port())
    );
    drop(driver);
    server.shutdown().await;
    assert!(TcpStream::connect(address).await.is_err());
}
