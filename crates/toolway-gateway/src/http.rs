//! MCP over HTTP: both eras at one address, for clients of this machine or of others.
//!
//! Owns listening. What may come in at all is decided in [`guard`], who it is in [`access`]; which
//! routes there are says `route`. A modern request is an exchange of its own (`exchange`); legacy
//! clients have sessions (`sessions`, `legacy`), and the oldest ones a transport of their own
//! (`old_transport`). How much one client may have under way says `quota`, who keeps a connection
//! when all are taken `slots`, and how long a client may leave its answer unread `stall`.
//!
//! Connections are tasks, in a set that the driver holds: so two cores serve two clients, and
//! ten megabytes of one delay no other. Nothing outlives the driver.

pub mod access;
mod body;
mod closing;
mod connection;
pub mod counters;
mod driver;
mod events;
mod exchange;
mod front;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod guard;
mod handler;
mod headers;
mod lazy_timer;
mod lease;
mod legacy;
mod lookup;
mod old_transport;
pub mod options;
mod post;
mod quota;
mod respond;
mod route;
mod sessions;
mod slots;
mod stall;
mod tls;
mod visitor;
mod wire;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolway_types::limits;

pub use self::access::{Access, AccessRefusal, AnyOf, Authenticator, Identity};
pub use self::counters::FrontCounters;
pub use self::events::KEEPALIVE;
pub use self::options::{FrontObserver, HttpLimits, HttpOptions, SessionPolicy, TlsFiles};

use self::driver::DriverParts;
use self::front::Front;
use self::guard::RequestGuard;
use self::handler::Handler;
use self::tls::ServerTls;
use crate::conversation::Service;
use crate::error::{ServeError, TlsError};

/// The path of the endpoint with everything.
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

/// The work of a server. Resolves after [`HttpServer::shutdown`]; dropping it ends every connection
/// at once. It is polled inside a tokio runtime, which runs its connections too.
pub type ServerDriver = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// A listening server. Dropping it asks its driver to end.
pub struct HttpServer {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    counters: Arc<FrontCounters>,
    tls: Option<Arc<ServerTls>>,
    ended: CancellationToken,
    // Cancels when dropped.
    asked: DropGuard,
}

impl HttpServer {
    /// Listens. The caller must poll the driver for anything to be answered. Must be called inside
    /// a tokio runtime.
    pub fn bind(
        service: Arc<dyn Service>,
        options: &HttpOptions,
    ) -> Result<(HttpServer, ServerDriver), ServeError> {
        options.check()?;
        let tls = options.tls.clone().map(ServerTls::read).transpose()?;
        let tls = tls.map(Arc::new);
        let (listener, address) = listen(options.address)?;
        let metrics = options.metrics_address.map(listen).transpose()?;
        let (metrics_listener, metrics_address) = metrics.unzip();
        let guard = RequestGuard::new(address, &options.hosts, options.scheme());
        let metrics_guard = metrics_address
            .map(|address| RequestGuard::new(address, &options.hosts, guard::PageScheme::Http));
        let asked = CancellationToken::new();
        let ended = CancellationToken::new();
        let (front, work) = Front::new(service, options, guard, metrics_guard, asked.clone());
        let driver = driver::drive(DriverParts {
            listener,
            metrics_listener,
            tls: tls.clone(),
            handler: Arc::new(Handler {
                front,
                old_clients: Arc::default(),
            }),
            work,
            asked: asked.clone(),
        });
        // Tells of the end however the driver ends, by being dropped too.
        let tell = ended.clone().drop_guard();
        let driver = async move {
            let _tell = tell;
            driver.await;
        };
        Ok((
            HttpServer {
                address,
                metrics_address,
                counters: Arc::clone(&options.counters),
                tls,
                ended,
                asked: asked.drop_guard(),
            },
            Box::pin(driver),
        ))
    }

    /// The endpoint, for a client's configuration.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{ENDPOINT}", self.address)
    }

    /// The address in use, with the port the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same for metrics, where they have an address of their own.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// What was done so far.
    pub fn counters(&self) -> &Arc<FrontCounters> {
        &self.counters
    }

    /// Reads the certificate again. The one in use stays where the files cannot be used.
    pub fn reload_certificate(&self) -> Result<(), TlsError> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.reload())
    }

    /// Stops listening, lets requests under way finish for a while, and returns when the driver
    /// has ended. The driver must still be polled, or have been dropped.
    pub async fn shutdown(self) {
        drop(self.asked);
        self.ended.cancelled().await;
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Bind { address, source };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
