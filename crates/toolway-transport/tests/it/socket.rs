//! A WebSocket server that a test scripts, by an independent implementation.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::server::Census;

/// What a script holds of one connection.
pub(crate) trait Wire: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Wire for T {}

pub(crate) type Connection = WebSocketStream<Box<dyn Wire>>;

pub(crate) struct Listening {
    pub(crate) url: String,
    pub(crate) census: Census,
}

/// Looks at a handshake, and adds to its answer.
pub(crate) type Handshake = fn(&Request, &mut HeaderMap);

/// Accepts every client that asks for `mcp`.
pub(crate) fn open_door(request: &Request, answer: &mut HeaderMap) {
    assert_eq!(request.headers()["sec-websocket-protocol"], "mcp");
    assert!(!request.headers().contains_key("sec-websocket-extensions"));
    answer.insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
}

/// Starts a server that runs `script` on every connection.
pub(crate) async fn listen<F>(
    tls: Option<ServerConfig>,
    handshake: Handshake,
    script: impl Fn(Connection) -> F + Send + Sync + 'static,
) -> Listening
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let scheme = if tls.is_some() { "wss" } else { "ws" };
    let address = listener.local_addr().expect("an address");
    let url = format!("{scheme}://{address}/socket?a=b");
    let tls = tls.map(|tls| TlsAcceptor::from(Arc::new(tls)));
    let (script, census) = (Arc::new(script), Census::new());
    let counting = census.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = counting.count();
            let (tls, script) = (tls.clone(), Arc::clone(&script));
            tokio::spawn(async move {
                let _counted = counted;
                if let Some(connection) = welcome(stream, tls, handshake).await {
                    script(connection).await;
                }
            });
        }
    });
    Listening { url, census }
}

async fn welcome(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handshake: Handshake,
) -> Option<Connection> {
    let stream: Box<dyn Wire> = match tls {
        None => Box::new(stream),
        Some(tls) => Box::new(tls.accept(stream).await.ok()?),
    };
    #[expect(clippy::result_large_err, reason = "the library's shape")]
    let shake = |request: &Request, mut response: Response| {
        handshake(request, response.headers_mut());
        Ok::<_, ErrorResponse>(response)
    };
    tokio_tungstenite::accept_hdr_async(stream, shake)
        .await
        .ok()
}

/// The next message, where there is one.
pub(crate) async fn receive(connection: &mut Connection) -> Option<Value> {
    while let Some(Ok(message)) = connection.next().await {
        match message {
            Message::Text(text) => return serde_json::from_str(&text).ok(),
            Message::Close(_) => return None,
            _ => {}
        }
    }
    None
}

pub(crate) async fn send(connection: &mut Connection, message: &Value) {
    // A client that is gone is some test's point.
    let _ = connection.send(Message::text(message.to_string())).await;
}
