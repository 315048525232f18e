//! The loopback callback: where the browser comes back to (SEC-44).
//!
//! Owns the listener, which requests it accepts, and that one login is answered once. What the user
//! reads there is in [`page`].
//! Does not own: judging the answer, which is [`PendingAuthorization::check`].
//!
//! It listens on this machine only, for five minutes at most, and on a random path. A request that
//! does not belong to the login is rejected and changes nothing: any local program and any web page
//! can send one. The first one that belongs to it ends the login; later ones are rejected.

pub mod page;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use http::header::HOST;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toolway_types::limits;
use url::{Host, Url};

use self::page::CallbackPage;
use crate::authorize::{
    AuthorizationCode, AuthorizationResponse, AuthorizationResponseError, PendingAuthorization,
};
use crate::random::{self, NoRandom};

/// How long a user may take to log in.
pub const LOGIN_TIMEOUT: Duration = limits::login::TIME;
/// How long a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request.
const MAX_HEAD: usize = 32 * 1024;
/// How many connections are held at once; a browser opens a few ahead of use.
const MAX_CONNECTIONS: usize = 32;
/// How long the last page may take to be delivered.
const LAST_PAGE_TIMEOUT: Duration = Duration::from_secs(2);
/// The path with a fixed port.
const FIXED_PATH: &str = "/callback";

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackAddress<'a> {
    /// On any port and a path of our own: `http://127.0.0.1:<port>/<random>`. The address, not the
    /// name, because a name can be made to lead elsewhere (RFC 8252 section 8.3).
    Free,
    /// On the port that the user wrote down (`callbackPort`): `http://localhost:<port>/callback`.
    /// They write it down because a client was registered by hand with this very address, and that
    /// is the form other hosts have them register.
    Port(u16),
    /// As a client was registered before, by us or in its metadata document. The path is kept;
    /// the port too, unless it is taken or none was named: authorization servers must allow any
    /// port of a loopback address (RFC 8252 section 7.3). Whether the result is what was asked
    /// for, [`Callback::redirect_uri`] says.
    Known(&'a str),
}

/// Listening, or waiting for an answer, failed.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The port is in use.
    #[error(
        "port {port} is taken, and the login needs it (`oauth.callbackPort`): end what uses it, or register another port with the authorization server"
    )]
    PortTaken {
        /// Which.
        port: u16,
    },
    /// No listening at all.
    #[error("cannot listen on this machine for the end of the login: {0}")]
    Listen(#[source] io::Error),
    /// The address is none that can be listened on.
    #[error("the registered redirect address does not lead to this machine")]
    NotLoopback,
    /// No answer arrived in time.
    #[error("nobody finished the login within {} minutes: start it again", LOGIN_TIMEOUT.as_secs() / 60)]
    TimedOut,
    /// The answer has no code.
    #[error(transparent)]
    Answer(#[from] AuthorizationResponseError),
    /// No randomness.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// A listener for one login.
#[derive(Debug)]
pub struct Callback {
    listeners: Vec<TcpListener>,
    /// The `Host` values under which it may be asked.
    hosts: Vec<String>,
    path: String,
    redirect_uri: String,
    server: String,
}

impl Callback {
    /// Listens. `server` is the configured name of the server, which the page shows.
    pub async fn bind(server: &str, place: CallbackAddress<'_>) -> Result<Self, CallbackError> {
        let (listeners, host, path) = match place {
            CallbackAddress::Free => {
                let path = format!("/{}", random::word(16)?);
                (vec![on(0).await?], "127.0.0.1".to_owned(), path)
            }
            CallbackAddress::Port(port) => {
                let listeners = both(port).await?;
                (listeners, "localhost".to_owned(), FIXED_PATH.to_owned())
            }
            CallbackAddress::Known(uri) => known(uri).await?,
        };
        let port = listeners
            .first()
            .map(TcpListener::local_addr)
            .transpose()
            .map_err(CallbackError::Listen)?
            .map_or(0, |address| address.port());
        Ok(Self {
            listeners,
            hosts: ["127.0.0.1", &host]
                .map(|host| format!("{host}:{port}"))
                .to_vec(),
            redirect_uri: format!("http://{host}:{port}{path}"),
            path,
            server: server.to_owned(),
        })
    }

    /// The address to send the browser back to.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the answer to an attempt.
    pub async fn wait(
        self,
        attempt: &PendingAuthorization,
    ) -> Result<AuthorizationCode, CallbackError> {
        let taken = async |code| Ok::<_, Infallible>(code);
        match self.finish(attempt, taken).await? {
            Ok(code) => Ok(code),
            Err(never) => match never {},
        }
    }

    /// Waits for the answer to an attempt, spends its code, and tells the browser how that went.
    pub async fn finish<T, E>(
        self,
        attempt: &PendingAuthorization,
        spend: impl AsyncFnOnce(AuthorizationCode) -> Result<T, E>,
    ) -> Result<Result<T, E>, CallbackError> {
        let (tell, mut told) = mpsc::channel(1);
        let handler = Arc::new(CallbackHandler {
            attempt: attempt.clone(),
            hosts: self.hosts,
            path: self.path,
            server: self.server,
            claimed: AtomicBool::new(false),
            tell,
        });
        let mut serving = pin!(serve(&self.listeners, &handler).fuse());
        let arrival = timeout(
            LOGIN_TIMEOUT,
            alongside(&mut serving, async { told.recv().await }),
        );
        let Some(CallbackArrival { answer, reply }) =
            arrival.await.map_err(|_| CallbackError::TimedOut)?
        else {
            return Err(CallbackError::TimedOut);
        };
        let (page, result) = match answer {
            Ok(code) => {
                let outcome = alongside(&mut serving, spend(code)).await;
                let page = if outcome.is_ok() {
                    CallbackPage::LoggedIn
                } else {
                    CallbackPage::Failed
                };
                (page, Ok(outcome))
            }
            Err(error) => {
                let page = match &error {
                    AuthorizationResponseError::Declined { .. } => CallbackPage::Declined,
                    _ => CallbackPage::Failed,
                };
                (page, Err(error.into()))
            }
        };
        // A browser that has gone, or reads no page, does not change how the login went.
        if reply.send(page).is_ok() {
            let _ = timeout(LAST_PAGE_TIMEOUT, serving).await;
        }
        result
    }
}

/// The answer that ends the login, and the way to tell its browser what came of it.
struct CallbackArrival {
    answer: Result<AuthorizationCode, AuthorizationResponseError>,
    reply: oneshot::Sender<CallbackPage>,
}

/// Checks requests against the login.
struct CallbackHandler {
    attempt: PendingAuthorization,
    hosts: Vec<String>,
    path: String,
    server: String,
    claimed: AtomicBool,
    tell: mpsc::Sender<CallbackArrival>,
}

impl CallbackHandler {
    async fn answer(&self, request: &Request<Incoming>, last: &AtomicBool) -> CallbackPage {
        let mut hosts = request.headers().get_all(HOST).iter();
        let known = match (hosts.next(), hosts.next()) {
            (Some(host), None) => self
                .hosts
                .iter()
                .any(|known| known.as_bytes().eq_ignore_ascii_case(host.as_bytes())),
            _ => false,
        };
        if !known || request.uri().authority().is_some() {
            return CallbackPage::Misdirected;
        }
        if request.uri().path() != self.path {
            return CallbackPage::NotFound;
        }
        if request.method() != Method::GET {
            return CallbackPage::WrongMethod;
        }
        let answer = AuthorizationResponse::from_query(request.uri().query().unwrap_or_default());
        let answer = match self.attempt.check(&answer) {
            Err(AuthorizationResponseError::State | AuthorizationResponseError::Repeated(_)) => {
                return CallbackPage::NotYours;
            }
            judged => judged,
        };
        if self.claimed.swap(true, Ordering::AcqRel) {
            return CallbackPage::TooLate;
        }
        last.store(true, Ordering::Release);
        let (reply, outcome) = oneshot::channel();
        if self
            .tell
            .send(CallbackArrival { answer, reply })
            .await
            .is_err()
        {
            return CallbackPage::TooLate;
        }
        outcome.await.unwrap_or(CallbackPage::Failed)
    }
}

/// Runs work while requests are served; ends with the work.
async fn alongside<T>(
    serving: &mut (impl Future<Output = ()> + Unpin),
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        // The page was delivered, or could not be: the work still has to end.
        () = serving => work.await,
    }
}

/// Serves requests until the one that ended the login has its page.
async fn serve(listeners: &[TcpListener], handler: &Arc<CallbackHandler>) {
    let mut connections = FuturesUnordered::new();
    loop {
        let full = connections.len() >= MAX_CONNECTIONS;
        tokio::select! {
            stream = accept(listeners), if !full => match stream {
                Ok((stream, _)) => connections.push(converse(stream, Arc::clone(handler))),
                // Out of descriptors, most likely: they come back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(last) = connections.next() => if last {
                return;
            },
        }
    }
}

async fn accept(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    match listeners {
        [one] => one.accept().await,
        [one, other, ..] => tokio::select! {
            accepted = one.accept() => accepted,
            accepted = other.accept() => accepted,
        },
        [] => std::future::pending().await,
    }
}

/// Serves one connection; says whether it was the one that ended the login.
async fn converse(stream: TcpStream, handler: Arc<CallbackHandler>) -> bool {
    let last = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        let (handler, last) = (&handler, &last);
        async move {
            let page = handler.answer(&request, last).await;
            Ok::<Response<Full<Bytes>>, Infallible>(page.response(&handler.server))
        }
    });
    // A broken connection needs no handling.
    let _ = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    last.load(Ordering::Acquire)
}

async fn on(port: u16) -> Result<TcpListener, CallbackError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| failed(port, error))
}

/// Both addresses that `localhost` may stand for. A machine without IPv6 has one; but where another
/// program listens on the other, the browser could bring the code to it.
async fn both(port: u16) -> Result<Vec<TcpListener>, CallbackError> {
    let first = on(port).await?;
    let port = first.local_addr().map_err(CallbackError::Listen)?.port();
    let mut listeners = vec![first];
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Ok(listener) => listeners.push(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(failed(port, error)),
        Err(_) => {}
    }
    Ok(listeners)
}

fn failed(port: u16, error: io::Error) -> CallbackError {
    if error.kind() == io::ErrorKind::AddrInUse {
        CallbackError::PortTaken { port }
    } else {
        CallbackError::Listen(error)
    }
}

async fn known(uri: &str) -> Result<(Vec<TcpListener>, String, String), CallbackError> {
    let url = Url::parse(uri)
        .ok()
        .filter(|url| url.scheme() == "http" && url.query().is_none() && url.fragment().is_none())
        .ok_or(CallbackError::NotLoopback)?;
    let named = match url.host() {
        Some(Host::Ipv4(Ipv4Addr::LOCALHOST)) => false,
        Some(Host::Domain("localhost")) => true,
        _ => return Err(CallbackError::NotLoopback),
    };
    let bind = async |port| {
        if named {
            both(port).await
        } else {
            Ok(vec![on(port).await?])
        }
    };
    let listeners = match bind(url.port().unwrap_or(0)).await {
        // A free port of IPv4 may be taken on IPv6; the next one hardly is as well.
        Err(CallbackError::PortTaken { .. }) => match bind(0).await {
            Err(CallbackError::PortTaken { .. }) => bind(0).await?,
            bound => bound?,
        },
        bound => bound?,
    };
    let host = if named { "localhost" } else { "127.0.0.1" };
    Ok((listeners, host.to_owned(), url.path().to_owned()))
}
