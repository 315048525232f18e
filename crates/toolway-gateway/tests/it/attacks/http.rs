//! Requests that two readers of HTTP could read differently, and those of web pages.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Echo, request, with_server};
use std::sync::Arc;

/// Sends raw bytes, closes the sending side, and reads until the server closes.
async fn all_answers(address: std::net::SocketAddr, raw: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    drop(stream.write_all(raw).await);
    drop(stream.shutdown().await);
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn answers(text: &str) -> usize {
    text.matches("HTTP/1.1 ").count()
}

#[tokio::test]
async fn a_request_whose_end_two_readers_see_elsewhere_is_the_last_of_its_connection() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let smuggled = request(2, "echo", &json!({ "smuggled": true }));
        let smuggled = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{smuggled}",
            smuggled.len()
        );
        let body = request(1, "echo", &json!({}));
        let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let length = body.len();
        for framing in [
            format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", chunked.len() + smuggled.len()),
            format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", chunked.len() + smuggled.len()),
            "transfer-encoding: chunked\r\n".to_owned(),
            format!("content-length: {length}\r\ncontent-length: {length}\r\ntransfer-encoding: chunked\r\n"),
            "transfer-encoding: identity, chunked\r\n".to_owned(),
            "transfer-encoding: chunked, identity\r\n".to_owned(),
            "transfer-encoding: xchunked\r\n".to_owned(),
            "transfer-encoding : chunked\r\n".to_owned(),
            "transfer-encoding:\r\n chunked\r\n".to_owned(),
            "content-length: 1\r\ncontent-length: 2\r\n".to_owned(),
            "content-length: +5\r\n".to_owned(),
            "content-length: 5, 5\r\n".to_owned(),
            "content-length: 0x10\r\n".to_owned(),
        ] {
            let raw = format!(
                "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
                 {framing}\r\n{chunked}{smuggled}"
            );
            let said = all_answers(address, raw.as_bytes()).await;
            assert_eq!(answers(&said), 1, "{framing}: {said}");
            assert!(!said.contains("smuggled"), "{framing}: {said}");
            assert!(said.to_ascii_lowercase().contains("connection: close"), "{framing}: {said}");
        }
    })
    .await;
}
