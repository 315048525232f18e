//! The gateway from outside: a small service behind each way of serving it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod attacks;
mod eras;
mod fidelity;
mod flood;
mod flood_limits;
mod http;
mod http_access;
mod http_old_transport;
mod http_pages;
mod http_sessions;
mod http_stage;
mod http_streams;
mod http_tls;
mod ids;
mod in_process;
mod instances;
mod late;
mod numbers;
mod owner_socket;
mod scene;
mod security;
mod speaker;
mod stalled;
mod stdio;
mod traces;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolway_gateway::http::{HttpOptions, HttpServer};
use toolway_gateway::{
    Answer, AnswerFuture, Conversation, IncomingRequest, Outlet, Service, stateless,
};
use toolway_wire::{Id, RawJson, RpcError};

/// `echo` answers its parameters, `hang` never answers, `bad` answers the error code in its
/// parameters.
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

impl Conversation for Echo {
    fn request(self: Arc<Self>, request: IncomingRequest, _outlet: Outlet) -> AnswerFuture {
        self.seen.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let params = request.params.unwrap_or_default();
            match &*request.method {
                "hang" => {
                    let _counted = CountDrop(&self.cancelled);
                    std::future::pending().await
                }
                "bad" => {
                    let code: Value = serde_json::from_str(params.get()).unwrap();
                    RpcError::new(code["code"].as_i64().unwrap(), "as asked").into()
                }
                _ => Answer::result(params),
            }
        })
    }

    fn notified(self: Arc<Self>, _method: &str, _params: Option<RawJson>) {
        self.seen.fetch_add(1, Ordering::SeqCst);
    }

    fn answered(&self, _id: Id, _outcome: Result<RawJson, RpcError>) {
        self.seen.fetch_add(1, Ordering::SeqCst);
    }
}

struct CountDrop<'a>(&'a AtomicUsize);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The same one to every client.
fn served(echo: &Arc<Echo>) -> Arc<dyn Service> {
    stateless(Arc::clone(echo) as Arc<dyn Conversation>)
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Runs a server on a free port while `client` talks to it, then shuts it down.
async fn with_server<F: Future<Output = ()>>(
    service: Arc<Echo>,
    client: impl FnOnce(std::net::SocketAddr) -> F,
) {
    with_options(served(&service), &HttpOptions::default(), client).await;
}

/// The same with settings of its own.
async fn with_options<F: Future<Output = ()>>(
    service: Arc<dyn Service>,
    options: &HttpOptions,
    client: impl FnOnce(std::net::SocketAddr) -> F,
) {
    let (server, driver) = HttpServer::bind(service, options).unwrap();
    let talk = async {
        client(server.address()).await;
        server.shutdown().await;
    };
    tokio::join!(driver, talk);
}

/// An answer, taken apart by hand: no client library may hide what is on the wire.
#[derive(Debug)]
struct HttpAnswer {
    status: u16,
    head: String,
    body: String,
}

impl HttpAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// Sends raw bytes and reads until the server closes.
async fn exchange(address: std::net::SocketAddr, raw: &str) -> HttpAnswer {
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
    HttpAnswer {
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
