//! The gateway from outside: a small service behind each way of serving it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod flood;
mod http;
mod ids;
mod in_process;
mod security;
mod stalled;
mod stdio;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolway_gateway::http::HttpServer;
use toolway_gateway::{ReplyFuture, Service};
use toolway_wire::RpcError;
use toolway_wire::envelope::{self, Message};

/// `echo` answers its parameters, `hang` never answers, `mute` wrongly gives no answer, `bad`
/// answers the error code in its parameters.
#[derive(Default)]
struct Echo {
    /// Messages that reached it.
    seen: AtomicUsize,
    /// Requests that were dropped before their end.
    cancelled: AtomicUsize,
}

impl Echo {
    fn shared() -> Arc<Self> {
        Arc::default()
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

impl Service for Echo {
    fn handle(&self, message: Bytes) -> ReplyFuture<'_> {
        Box::pin(async move {
            self.seen.fetch_add(1, Ordering::SeqCst);
            let Ok(Message::Request { id, method, params }) = envelope::parse(&message) else {
                return None;
            };
            match &*method {
                "hang" => {
                    let _counted = CountDrop(&self.cancelled);
                    std::future::pending().await
                }
                "mute" => None,
                "bad" => {
                    let code: Value = serde_json::from_str(params?.get()).unwrap();
                    let error = RpcError::new(code["code"].as_i64().unwrap(), "as asked");
                    Some(envelope::error_response(Some(&id), &error))
                }
                _ => Some(envelope::response(&id, params?)),
            }
        })
    }
}

struct CountDrop<'a>(&'a AtomicUsize);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Runs a server on a free port while `client` talks to it, then shuts it down.
async fn with_server<F: Future<Output = ()>>(
    service: Arc<dyn Service>,
    client: impl FnOnce(std::net::SocketAddr) -> F,
) {
    let (server, driver) = HttpServer::bind(service, ([127, 0, 0, 1], 0).into()).unwrap();
    let talk = async {
        client(server.address()).await;
        server.shutdown().await;
    };
    tokio::join!(driver, talk);
}

/// An answer, taken apart by hand: no client library may hide what is on the wire.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// Sends raw bytes and reads until the server closes.
async fn exchange(address: std::net::SocketAddr, raw: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may refuse before it has read all.
    drop(stream.write_all(raw.as_bytes()).await);
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status in `{text}`")),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// A POST with the right `Host` and content type, and these headers on top.
fn post(address: std::net::SocketAddr, headers: &[(&str, &str)], body: &str) -> String {
    let extra: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let extra = extra.concat();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n{extra}\r\n{body}",
        body.len()
    )
}
