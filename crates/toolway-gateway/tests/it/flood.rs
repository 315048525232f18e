//! SEC-30: work that a stranger can cause is bounded.

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolway_gateway::http::{BODY_TIMEOUT, HEAD_TIMEOUT, MAX_BODY, MAX_CONNECTIONS};

use crate::{Echo, exchange, post, request, with_server};

#[tokio::test]
async fn sec_30_a_thousand_trickling_connections_keep_nobody_out() {
    let service = Echo::shared();
    with_server(Arc::clone(&service) as _, async |address| {
        let mut trickling = Vec::new();
        for _ in 0..1000 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"P").await.unwrap();
            trickling.push(stream);
        }
        // They all hold a place, and still an honest client is served at once.
        for _ in 0..8 {
            let body = request(1, "echo", &json!({ "x": 1 }));
            let started = std::time::Instant::now();
            let answer = exchange(address, &post(address, &[], &body)).await;
            assert_eq!(answer.status, 200);
            assert!(started.elapsed() < HEAD_TIMEOUT / 4, "it had to wait");
        }
        assert_eq!(service.seen(), 8);
        // One byte a second does not extend the time that a head may take.
        tokio::time::pause();
        let started = tokio::time::Instant::now();
        let (mut reader, mut writer) = trickling.pop().unwrap().into_split();
        let trickle = async {
            while writer.write_all(b"x").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                assert!(started.elapsed() < 2 * HEAD_TIMEOUT, "it is still there");
            }
        };
        let mut heard = Vec::new();
        tokio::select! {
            ended = reader.read_to_end(&mut heard) => drop(ended),
            () = trickle => {}
        }
        assert!(started.elapsed() <= HEAD_TIMEOUT + std::time::Duration::from_secs(2));
        tokio::time::resume();
    })
    .await;
}

#[tokio::test]
async fn sec_30_a_connection_at_work_is_never_given_up_for_another() {
    let service = Echo::shared();
    with_server(Arc::clone(&service) as _, async |address| {
        let mut working = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let raw = post(address, &[], &request(1, "hang", &json!({})));
            stream.write_all(raw.as_bytes()).await.unwrap();
            working.push(stream);
        }
        while service.seen() < MAX_CONNECTIONS {
            tokio::task::yield_now().await;
        }
        // One more waits in the system's queue until a place is free.
        let raw = post(address, &[], &request(1, "echo", &json!({ "x": 1 })));
        let mut waiting = TcpStream::connect(address).await.unwrap();
        waiting.write_all(raw.as_bytes()).await.unwrap();
        let mut answer = String::new();
        {
            let mut reading = std::pin::pin!(waiting.read_to_string(&mut answer));
            for _ in 0..100 {
                assert!(futures_util::poll!(reading.as_mut()).is_pending());
                tokio::task::yield_now().await;
            }
            assert_eq!(
                service.cancelled.load(std::sync::atomic::Ordering::SeqCst),
                0
            );
            drop(working.pop());
            reading.await.unwrap();
        }
        assert!(answer.contains(r#""x":1"#), "{answer}");
        drop(working);
    })
    .await;
}

#[tokio::test]
async fn sec_30_a_body_is_refused_by_its_announced_size_and_an_endless_one_at_the_limit() {
    let service = Echo::shared();
    with_server(Arc::clone(&service) as _, async |address| {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             connection: close\r\n"
        );
        let announced = format!("{head}content-length: 4294967296\r\n\r\n{{");
        assert_eq!(exchange(address, &announced).await.status, 413);

        let mut stream = TcpStream::connect(address).await.unwrap();
        let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
        stream.write_all(chunked.as_bytes()).await.unwrap();
        let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        let mut written = 0;
        while stream.write_all(piece.as_bytes()).await.is_ok() {
            written += piece.len();
            assert!(written < 16 * MAX_BODY, "it takes everything");
        }
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        assert_eq!(service.seen(), 0);
    })
    .await;
}

#[tokio::test]
async fn sec_30_a_body_that_trickles_is_refused_in_time() {
    with_server(Echo::shared(), async |address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let raw = post(address, &[], &request(1, "echo", &json!({})));
        stream
            .write_all(&raw.as_bytes()[..raw.len() - 1])
            .await
            .unwrap();
        tokio::time::pause();
        let started = tokio::time::Instant::now();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let waited = started.elapsed();
        tokio::time::resume();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(waited.abs_diff(BODY_TIMEOUT).as_secs() <= 1, "{waited:?}");
    })
    .await;
}

#[tokio::test]
async fn sec_30_bottomless_nesting_and_countless_headers_are_refused() {
    let service = Echo::shared();
    with_server(Arc::clone(&service) as _, async |address| {
        for bracket in ["[", "{\"a\":"] {
            let deep = bracket.repeat(1_000_000 / bracket.len());
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{deep}"#);
            let answer = exchange(address, &post(address, &[], &body)).await;
            assert_eq!(answer.status, 400);
        }
        // As deep as is accepted, and one deeper: the envelope is one level.
        for (depth, status) in [(63, 200), (64, 400)] {
            let nest = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{nest}}}"#);
            let answer = exchange(address, &post(address, &[], &body)).await;
            assert_eq!(answer.status, status, "{depth}");
        }
        let many: Vec<(&str, &str)> = vec![("a", "b"); 2000];
        assert_eq!(
            exchange(address, &post(address, &many, "{}")).await.status,
            431
        );
        assert_eq!(service.seen(), 1);
    })
    .await;
}
