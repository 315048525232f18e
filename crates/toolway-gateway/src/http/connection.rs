//! One connection, from its greeting to its end.
//!
//! Owns the settings of HTTP/1.1. A connection is a task of its own, so that what one client sends or
//! reads delays no other.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use http::Request;
use http::header::TRANSFER_ENCODING;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use toolway::woken::Woken;

use super::handler::Handler;
use super::lazy_timer::LazyTimer;
use super::lookup::has;
use super::respond;
use super::slots::ConnectionSlot;
use super::stall::StallingSocket;
use super::tls::ServerTls;
use super::visitor::{Door, Visitor};
use super::wire::ServerWire;
use super::{HEAD_TIMEOUT, MAX_HEAD, WRITE_TIMEOUT};

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) door: Door,
    pub(super) slot: Arc<ConnectionSlot>,
    /// The certificate to encrypt with.
    pub(super) tls: Option<Arc<ServerTls>>,
}

/// Serves one connection to its end, and gives its place back.
pub(super) async fn converse(
    accepted: Accepted,
    handler: Arc<Handler>,
    asked: CancellationToken,
) -> Arc<ConnectionSlot> {
    let slot = Arc::clone(&accepted.slot);
    let ended = tokio::select! {
        ended = serve(accepted, handler, asked) => ended,
        () = Woken::new(slot.evicted()) => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
    slot
}

async fn serve(
    accepted: Accepted,
    handler: Arc<Handler>,
    asked: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let Accepted {
        stream,
        door,
        slot,
        tls,
    } = accepted;
    // Events are small and wait for nothing.
    stream.set_nodelay(true)?;
    let visitor = Arc::new(Visitor {
        door,
        here: stream.local_addr().ok().map(|here| here.ip()),
        slot: Arc::clone(&slot),
        patience: LazyTimer::default(),
    });
    let counters = Arc::clone(&handler.front.counters);
    let socket = StallingSocket::new(stream, slot, counters, WRITE_TIMEOUT);
    let wire = match tls {
        None => ServerWire::Plain(socket),
        Some(tls) => {
            let greeting = tls.acceptor().accept(socket);
            let greeted = tokio::time::timeout(HEAD_TIMEOUT, greeting).await;
            let stream = greeted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            ServerWire::Encrypted(Box::new(stream))
        }
    };
    speak(wire, visitor, handler, asked).await
}

/// Speaks HTTP over these bytes until they end.
pub(super) async fn speak(
    wire: impl AsyncRead + AsyncWrite + Unpin,
    visitor: Arc<Visitor>,
    handler: Arc<Handler>,
    asked: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let service = service_fn(move |request: Request<Incoming>| {
        let work = visitor.slot.work();
        let is_last = has_doubtful_end(&request);
        let answer = Arc::clone(&handler).handle(Arc::clone(&visitor), request);
        async move {
            let mut answer = answer.await;
            if is_last {
                respond::last(&mut answer);
            }
            drop(work);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(LazyTimer::default())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(wire), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => ended?,
        () = Woken::new(asked.cancelled()) => {
            connection.as_mut().graceful_shutdown();
            connection.await?;
        }
    }
    Ok(())
}

/// Whether somebody on the way may see the end of a request elsewhere: one in chunks can have a length
/// too, which is not shown to us in every order. What follows on the connection might then be another's
/// (request smuggling), so nothing does.
fn has_doubtful_end(request: &Request<Incoming>) -> bool {
    has(request.headers(), &TRANSFER_ENCODING)
}
