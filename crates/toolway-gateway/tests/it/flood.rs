//! SEC-30: the work that an unknown client can cause is bounded.

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolway_gateway::http::{
    BODY_TIMEOUT, HEAD_TIMEOUT, HttpLimits, HttpOptions, MAX_BODIES, MAX_BODY, SMALL_BODY,
};
use toolway_testkit::Usage;

use crate::{Echo, exchange, post, request, served, with_options, with_server};

#[tokio::test]
async fn sec_30_a_thousand_trickling_connections_keep_nobody_out() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
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
    const CONNECTIONS: usize = 256;
    let service = Echo::shared();
    let options = HttpOptions {
        limits: HttpLimits {
            connections: CONNECTIONS,
            ..HttpLimits::default()
        },
        ..HttpOptions::default()
    };
    with_options(served(&service), &options, async |address| {
        let mut working = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let raw = post(address, &[], &request(1, "hang", &json!({})));
            stream.write_all(raw.as_bytes()).await.unwrap();
            working.push(stream);
        }
        while service.seen() < CONNECTIONS {
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
    with_server(Arc::clone(&service), async |address| {
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
    with_server(Arc::clone(&service), async |address| {
        for bracket in ["[", "{\"a\":"] {
            let deep = bracket.repeat(1_000_000 / bracket.len());
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{deep}"#);
            let answer = exchange(address, &post(address, &[], &body)).await;
            assert_eq!(answer.status, 400);
        }
        // As deep as is accepted, and one deeper: the envelope and the parameters are a level each.
        for (depth, status) in [(62, 200), (63, 400)] {
            let nest = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{{"a":{nest}}}}}"#);
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

/// As much of a request with a large body as a connection takes, and never its end.
async fn fill(address: std::net::SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {MAX_BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Refused before the end, most of them.
    drop(stream.write_all(bytes).await);
    stream
}

/// A request as large as may be. Blanks, because they are read fastest.
fn large(address: std::net::SocketAddr, method: &str) -> String {
    let mut body = request(1, method, &json!({}));
    body.push_str(&" ".repeat(MAX_BODY - body.len()));
    post(address, &[], &body)
}

/// Sends it until it is answered like this: what a connection has taken shows a little later.
async fn until_answered(address: std::net::SocketAddr, raw: &str, status: u16) {
    let started = std::time::Instant::now();
    loop {
        let answer = exchange(address, raw).await;
        if answer.status == status {
            return;
        }
        assert!(started.elapsed().as_secs() < 20, "still {answer:?}");
    }
}

#[tokio::test]
async fn sec_30_memory_stays_bounded_while_many_connections_send_large_bodies() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let before = Usage::take().resident;
        let almost = vec![b' '; MAX_BODY - 1];
        // Four times the room there is, and soon sent: a body that takes long is given up.
        let filling = (0..4 * MAX_BODIES / MAX_BODY).map(|_| fill(address, &almost));
        let mut streams = futures_util::future::join_all(filling).await;
        let grown = (Usage::take().resident - before) * 1024;
        // Twice the room, because a buffer that grows is copied.
        let cap = 2 * MAX_BODIES as u64 + almost.len() as u64 + (32 << 20);
        assert!(grown < cap, "{grown} bytes more");

        // Small requests are served; large ones are refused with a reason.
        let small = json!({ "fill": "x".repeat(SMALL_BODY - 200) });
        let answer = exchange(address, &post(address, &[], &request(1, "echo", &small))).await;
        assert_eq!(answer.status, 200);
        let large = large(address, "echo");
        // Those that were refused near their end may have left more room than one body needs.
        let refused = loop {
            match exchange(address, &large).await.status {
                200 => streams.push(fill(address, &almost).await),
                status => break status,
            }
        };
        assert_eq!(refused, 503);

        // The room is given back with the connections.
        drop(streams);
        until_answered(address, &large, 200).await;
    })
    .await;
}

#[tokio::test]
async fn sec_30_calls_that_take_long_keep_their_part_of_the_room_until_they_end() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let large = |method: &str| large(address, method);
        let mut working = Vec::new();
        for _ in 0..MAX_BODIES / MAX_BODY {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(large("hang").as_bytes()).await.unwrap();
            working.push(stream);
        }
        while service.seen() < working.len() {
            tokio::task::yield_now().await;
        }
        assert_eq!(exchange(address, &large("echo")).await.status, 503);
        drop(working.pop());
        while service.cancelled.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        until_answered(address, &large("echo"), 200).await;
    })
    .await;
}

#[tokio::test]
async fn sec_30_a_compressed_body_is_not_inflated() {
    // The beginning of a file that grows a thousandfold; it is never read.
    let bomb: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xed, 0xc1, 1, 1];
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
                 content-encoding: {encoding}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                bomb.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(bomb).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 415 "), "{encoding}: {answer}");
        }
        assert_eq!(service.seen(), 0);
    })
    .await;
}
