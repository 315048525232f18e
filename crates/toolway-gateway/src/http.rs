//! MCP over Streamable HTTP on a loopback address: one endpoint, stateless, JSON answers.
//!
//! Owns the socket, the connections and the one route. What may come in at all is decided before it
//! in [`guard`]; how a body is read in [`body`]; whether modern headers match the body in
//! [`headers`]; who keeps a connection when all are taken in [`slot`], and how long a client may
//! leave its answer unread in [`stall`]. There are no sessions and no streams: GET and DELETE
//! answer 405, as both eras allow.

mod body;
pub mod guard;
mod headers;
mod slots;
mod stall;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolway_types::limits;
use toolway_wire::Id;
use toolway_wire::envelope::{self, Message};

use self::body::BodyBudget;
use self::slots::{ConnectionSlot, ConnectionSlots};
use self::stall::StallingSocket;
use crate::error::{RequestRefusal, ServeError, status_of};
use crate::serve::Service;

/// The path of the endpoint.
pub const ENDPOINT: &str = "/mcp";
/// The largest request body.
pub const MAX_BODY: usize = limits::gateway::BODY;
/// A body up to this size is always taken.
pub const SMALL_BODY: usize = 64 * 1024;
/// How much all larger bodies may hold together, until they are answered.
pub const MAX_BODIES: usize = limits::gateway::BODIES;
/// The largest request head.
pub const MAX_HEAD: usize = limits::gateway::HEAD;
/// How long a request's head may take to arrive; also how long an idle connection is kept.
pub const HEAD_TIMEOUT: Duration = limits::gateway::HEAD_TIME;
/// How long a request's body may take to arrive.
pub const BODY_TIMEOUT: Duration = limits::gateway::BODY_TIME;
/// How long a client may leave its answer unread.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many connections are served at once. One more ends the longest idle one, or waits in the
/// system's queue while none is idle.
pub const MAX_CONNECTIONS: usize = limits::gateway::CONNECTIONS;
/// How long requests under way may take to finish at shutdown.
const DRAIN: Duration = Duration::from_secs(5);

/// The work of a server. Resolves after [`HttpServer::shutdown`]; dropping it ends every connection
/// at once.
pub type ServerDriver = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// A listening server. Dropping it asks its driver to end.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    ended: CancellationToken,
    // Cancels when dropped.
    asked: DropGuard,
}

impl HttpServer {
    /// Listens. The caller must poll the driver for anything to be answered. Must be called inside
    /// a tokio runtime.
    pub fn bind(
        service: Arc<dyn Service>,
        address: SocketAddr,
    ) -> Result<(HttpServer, ServerDriver), ServeError> {
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        let failed = |source| ServeError::Bind { address, source };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let asked = CancellationToken::new();
        let ended = CancellationToken::new();
        let driver = drive(listener, router(service, address.port()), asked.clone());
        // Tells of the end however the driver ends, by being dropped too.
        let tell = ended.clone().drop_guard();
        let driver = async move {
            let _tell = tell;
            driver.await;
        };
        Ok((
            HttpServer {
                address,
                ended,
                asked: asked.drop_guard(),
            },
            Box::pin(driver),
        ))
    }

    /// The endpoint, for a client's configuration.
    pub fn url(&self) -> String {
        format!("http://{}{ENDPOINT}", self.address)
    }

    /// The address in use, with the port the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, lets requests under way finish for a while, and returns when the driver
    /// has ended. The driver must still be polled, or have been dropped.
    pub async fn shutdown(self) {
        drop(self.asked);
        self.ended.cancelled().await;
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// What every request needs.
#[derive(Clone)]
struct HttpState {
    service: Arc<dyn Service>,
    body_budget: Arc<BodyBudget>,
}

/// The routes, with the guard in front of every one of them and of what is not found (SEC-23).
fn router(service: Arc<dyn Service>, port: u16) -> Router {
    Router::new()
        .route(ENDPOINT, post(receive))
        .fallback(async || StatusCode::NOT_FOUND)
        .with_state(HttpState {
            service,
            body_budget: BodyBudget::new(),
        })
        .layer(axum::middleware::from_fn_with_state(
            guard::RequestGuard::new(port),
            guard::check,
        ))
}

async fn drive(listener: TcpListener, router: Router, asked: CancellationToken) {
    let mut connections = FuturesUnordered::new();
    let mut slots = ConnectionSlots::new(MAX_CONNECTIONS);
    let freed = slots.freed();
    // Accepted, and without a place so far.
    let mut newcomer = None;
    loop {
        if let Some(stream) = newcomer.take_if(|_| slots.has_slot()) {
            connections.push(converse(
                stream,
                router.clone(),
                asked.clone(),
                slots.take(),
            ));
        }
        tokio::select! {
            () = asked.cancelled() => break,
            accepted = listener.accept(), if newcomer.is_none() => match accepted {
                Ok((stream, _)) => newcomer = Some(stream),
                Err(error) => {
                    // Out of descriptors, mostly: accepting again at once would spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(slot) = connections.next() => slots.release(&slot),
            // A connection became idle: there may be a place now.
            () = freed.notified() => {}
        }
    }
    drop(listener);
    let drained = async { while connections.next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("requests were cut off at shutdown");
    }
}

/// Serves one connection to its end, and gives its place back.
async fn converse(
    stream: TcpStream,
    router: Router,
    asked: CancellationToken,
    slot: Arc<ConnectionSlot>,
) -> Arc<ConnectionSlot> {
    let inner = TowerToHyperService::new(router);
    let shared = Arc::clone(&slot);
    let service = service_fn(move |request| {
        let work = shared.work();
        let answer = inner.call(request);
        async move {
            let answer = answer.await;
            drop(work);
            answer
        }
    });
    let socket = StallingSocket::new(stream, Arc::clone(&slot), WRITE_TIMEOUT);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = slot.evicted() => Ok(()),
        () = asked.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
    slot
}

async fn receive(State(state): State<HttpState>, headers: HeaderMap, body: Body) -> Response {
    // The part is held until the answer is there: the message is, too.
    let (message, _share) = match body::read(body, &state.body_budget).await {
        Ok(read) => read,
        Err(refusal) => return refuse(&refusal, None),
    };
    let era = match envelope::parse_unambiguous(&message) {
        Err((error, id)) => return refuse(&error.into(), id.as_ref()),
        Ok(Message::Request { id, method, params }) => {
            match headers::check(&headers, &method, params) {
                Ok(era) => Some((id, era)),
                Err(refusal) => return refuse(&refusal, Some(&id)),
            }
        }
        Ok(Message::Notification { .. } | Message::Response { .. }) => None,
    };
    let answer = state.service.handle(message).await;
    match (era, answer) {
        (None, _) => StatusCode::ACCEPTED.into_response(),
        (Some((id, _)), None) => refuse(&RequestRefusal::NoAnswer, Some(&id)),
        (Some((_, era)), Some(answer)) => json(status_of(era, &answer), answer),
    }
}

fn refuse(refusal: &RequestRefusal, id: Option<&Id>) -> Response {
    json(refusal.status(), refusal.answer(id))
}

fn json(status: StatusCode, body: Bytes) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
