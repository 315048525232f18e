//! Connections that begin as HTTP and go on as something else.
//!
//! Owns reaching a host directly or through a proxy's tunnel, TLS on top, and the one exchange
//! after which the connection is ours. Trust, proxies and names are the HTTP client's.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::header::{HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use url::Url;

use super::guard::AddressGuard;
use super::{MAX_HEADER_LIST, MAX_HEADERS, place, tls};
use crate::error::SendFailure;
use crate::error_text;

/// How long one address of a host may keep the next from being tried.
const STAGGER: Duration = Duration::from_millis(250);

/// The scheme of what is dialled without TLS.
const PLAIN: &str = "ws";

/// How much of a refusal's body is kept, and how long it may take.
const REFUSAL_BODY: usize = 64 * 1024;
const REFUSAL_PATIENCE: Duration = Duration::from_secs(5);

/// Anything bytes can be sent through.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection, whatever it runs over.
pub(crate) type DialedStream = Box<dyn ByteStream>;

/// Makes connections by the client's rules.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(super) tls: Arc<rustls::ClientConfig>,
    pub(super) proxies: Arc<Matcher>,
    pub(super) connect_timeout: Duration,
    pub(crate) user_agent: String,
    /// What the server's name may lead to.
    pub(super) guard: AddressGuard,
}

/// How the one exchange went.
pub(crate) enum UpgradeOutcome {
    /// The connection is ours.
    Upgraded(DialedStream, HeaderMap),
    /// The answer was another one.
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: HeaderMap,
        /// Its body, bounded.
        body: Bytes,
    },
}

impl Dialer {
    /// A connection to the host of an `http:` or `https:` URL, encrypted where it says so.
    pub(crate) async fn dial(&self, url: &Url) -> Result<DialedStream, SendFailure> {
        timeout(self.connect_timeout, self.reach(url))
            .await
            .unwrap_or_else(|_| {
                let seconds = self.connect_timeout.as_secs();
                Err(SendFailure::lost(format!(
                    "no connection after {seconds} s"
                )))
            })
    }

    async fn reach(&self, url: &Url) -> Result<DialedStream, SendFailure> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let proxy = url
            .as_str()
            .parse::<Uri>()
            .ok()
            .and_then(|uri| self.proxies.intercept(&uri));
        let socket: DialedStream = match proxy {
            None => {
                let found = addresses(host, port).await;
                let found = found.map_err(|error| lost(url, &error))?;
                let admitted = self.guard.admitted(found.into_iter());
                let admitted = admitted
                    .map_err(|withheld| error_text::denied(&place(url), &withheld.to_string()))?;
                let stream = connect(admitted).await;
                Box::new(stream.map_err(|error| lost(url, &error))?)
            }
            Some(proxy) => self.tunnel(&proxy, host, port).await?,
        };
        if url.scheme() == "https" {
            self.encrypt(socket, host, PLAIN).await
        } else {
            Ok(socket)
        }
    }

    /// Has a proxy pass everything through, credentials and all.
    async fn tunnel(
        &self,
        proxy: &Intercept,
        host: &str,
        port: u16,
    ) -> Result<DialedStream, SendFailure> {
        let failed = |why: String| SendFailure::lost(format!("the proxy {why}"));
        let uri = proxy.uri();
        let own_host = uri.host().unwrap_or_default();
        let (default, encrypted) = match uri.scheme_str() {
            Some("http") | None => (80, false),
            Some("https") => (443, true),
            Some(_) => return Err(failed("must be an `http:` or `https:` one".to_owned())),
        };
        let own_port = uri.port_u16().unwrap_or(default);
        let reaching = async { connect(addresses(own_host, own_port).await?).await };
        let stream = reaching.await.map_err(|error| {
            let why = error_text::of(&error, "http");
            failed(format!("{own_host}:{own_port} cannot be reached: {why}"))
        })?;
        let mut socket: DialedStream = Box::new(stream);
        if encrypted {
            socket =
                self.encrypt(socket, own_host, "http")
                    .await
                    .map_err(|reason| match reason {
                        SendFailure::Certificate { message, .. } => {
                            failed(format!("has a certificate that cannot be used: {message}"))
                        }
                        other => other,
                    })?;
        }
        let authority = format!("{host}:{port}");
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(&authority)
            .header(HOST, &authority)
            .header(USER_AGENT, &self.user_agent);
        if let Some(credentials) = proxy.basic_auth() {
            request = request.header(PROXY_AUTHORIZATION, credentials);
        }
        let request = request
            .body(Empty::new())
            .map_err(|error| failed(error.to_string()))?;
        match upgrade(socket, request).await? {
            UpgradeOutcome::Upgraded(socket, _) => Ok(socket),
            UpgradeOutcome::Refused { status, .. } => {
                Err(failed(format!("answered HTTP {status}")))
            }
        }
    }

    /// `plain` is the scheme of addresses that are reached without it.
    async fn encrypt(
        &self,
        socket: DialedStream,
        host: &str,
        plain: &str,
    ) -> Result<DialedStream, SendFailure> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| {
            SendFailure::lost(format!("`{host}` is no name a certificate can have"))
        })?;
        let stream = TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, socket)
            .await
            .map_err(|error| broken(&error, plain))?;
        Ok(Box::new(stream))
    }
}

/// Sends one request, after whose answer the connection is no longer HTTP.
pub(crate) async fn upgrade(
    socket: DialedStream,
    request: Request<Empty<Bytes>>,
) -> Result<UpgradeOutcome, SendFailure> {
    let is_tunnel = request.method() == Method::CONNECT;
    let broken = |error: hyper::Error| broken(&error, PLAIN);
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_LIST as usize)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let headers = response.headers().clone();
        if status == StatusCode::SWITCHING_PROTOCOLS || is_tunnel && status.is_success() {
            let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
            return Ok(UpgradeOutcome::Upgraded(
                Box::new(TokioIo::new(upgraded)),
                headers,
            ));
        }
        let body = refusal(response.into_body()).await;
        Ok(UpgradeOutcome::Refused {
            status,
            headers,
            body,
        })
    };
    // The connection moves only while it is polled, and ends when it is handed over.
    let mut exchange = std::pin::pin!(exchange);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    tokio::select! {
        biased;
        outcome = &mut exchange => return outcome,
        _ = &mut connection => {}
    }
    exchange.await
}

async fn refusal(mut body: Incoming) -> Bytes {
    let mut kept = BytesMut::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let data = frame.into_data().unwrap_or_default();
            let room = REFUSAL_BODY - kept.len();
            kept.extend_from_slice(&data[..data.len().min(room)]);
            if kept.len() == REFUSAL_BODY {
                return;
            }
        }
    };
    let _ = timeout(REFUSAL_PATIENCE, reading).await;
    kept.freeze()
}

/// All addresses of a host.
async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    Ok(lookup_host((bare, port)).await?.collect())
}

/// The first address that takes a connection; each is given a head start over the next.
async fn connect(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut attempts: FuturesUnordered<_> = (0u32..)
        .zip(addresses)
        .map(|(place, address)| async move {
            sleep(STAGGER * place).await;
            TcpStream::connect(address).await
        })
        .collect();
    let mut first = None;
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::Error::other("the name has no address")))
}

/// A connection that was made and then broke, or whose encryption failed.
fn broken(error: &(dyn Error + 'static), plain: &str) -> SendFailure {
    match tls::fault(error) {
        Some((fault, message)) => SendFailure::Certificate { fault, message },
        None => SendFailure::lost(error_text::of(error, plain)),
    }
}

fn lost(url: &Url, error: &io::Error) -> SendFailure {
    SendFailure::Unreachable {
        refused: is_refusal(error),
        message: format!("{}: {}", place(url), error_text::of(error, PLAIN)),
    }
}

/// Whether nothing listens there at all.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
