//! How a server is set up: where it listens, who may come in, and how much of everything there is.
//!
//! Owns the settings and what must hold between them (SEC-10). Reads nothing: who serves fills them
//! in.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolway_types::limits;

use super::access::Access;
use super::counters::FrontCounters;
use super::guard::PageScheme;
use crate::error::ServeError;

/// How to serve over HTTP. The default is for this machine alone: any free port of loopback,
/// without a token.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where to listen; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Who may come in.
    pub access: Access,
    /// Names by which clients rightly call this server, beside loopback's and the address itself:
    /// `tools.example` or `tools.example:8443`.
    pub hosts: Vec<String>,
    /// The certificate to encrypt with.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy stands in front that encrypts.
    pub behind_proxy: bool,
    /// Whether the transport of 2024-11-05 is offered: `/sse` and `/messages`.
    pub old_transport: bool,
    /// What is done with requests of the legacy era that belong to no session.
    pub sessions: SessionPolicy,
    /// How much of everything there is.
    pub limits: HttpLimits,
    /// A second address, for `/metrics`, `/healthz` and `/readyz` alone, without a token.
    pub metrics_address: Option<SocketAddr>,
    /// Who says how the rest of the program is.
    pub observer: Option<Arc<dyn FrontObserver>>,
    /// Where to count.
    pub counters: Arc<FrontCounters>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            access: Access::Open,
            hosts: Vec::new(),
            tls: None,
            behind_proxy: false,
            old_transport: false,
            sessions: SessionPolicy::default(),
            limits: HttpLimits::default(),
            metrics_address: None,
            observer: None,
            counters: Arc::default(),
        }
    }
}

impl HttpOptions {
    /// The default at this address.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }

    /// Whether these settings may be served (SEC-10): who can be reached from elsewhere knows who
    /// asks, and is not overheard.
    pub(super) fn check(&self) -> Result<(), ServeError> {
        let is_open = matches!(self.access, Access::Open);
        let is_plain = self.tls.is_none() && !self.behind_proxy;
        let address = self.address;
        if let Some(name) = self.hosts.iter().find(|name| !is_host(name)) {
            return Err(ServeError::HostName(name.clone()));
        }
        if self.behind_proxy && is_open {
            return Err(ServeError::OpenBehindProxy(address));
        }
        if address.ip().is_loopback() {
            return Ok(());
        }
        match (is_open, is_plain) {
            (false, false) => Ok(()),
            (true, false) => Err(ServeError::NotLoopback {
                address,
                missing: "authentication",
            }),
            (false, true) => Err(ServeError::NotLoopback {
                address,
                missing: "TLS, or a proxy in front that has it",
            }),
            (true, true) => Err(ServeError::NotLoopback {
                address,
                missing: "authentication, and TLS or a proxy in front that has it",
            }),
        }
    }

    pub(super) fn scheme(&self) -> PageScheme {
        match (&self.tls, self.behind_proxy) {
            (_, true) => PageScheme::Either,
            (Some(_), false) => PageScheme::Https,
            (None, false) => PageScheme::Http,
        }
    }
}

/// Whether this can stand in a `Host` header: a name or an address, maybe with a port. There are no
/// patterns.
fn is_host(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

/// A certificate and its key, in PEM files. They are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What is done with requests of the legacy era that belong to no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionPolicy {
    /// They are answered, each for itself: simple clients never say `initialize`.
    #[default]
    Offered,
    /// They are refused.
    Required,
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections. One more ends the longest idle one, or waits in the system's queue while none
    /// is idle.
    pub connections: usize,
    /// Calls under way, of one principal.
    pub calls: usize,
    /// Event streams, of one principal.
    pub streams: usize,
    /// Sessions, of one principal.
    pub sessions: usize,
    /// Sessions, of all.
    pub all_sessions: usize,
    /// How long a session may be idle.
    pub session_idle: Duration,
    /// Bytes of events that are kept for clients that come back, of one session.
    pub kept_events: usize,
    /// The same of all sessions.
    pub all_kept_events: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: limits::gateway::CONNECTIONS,
            calls: limits::gateway::CALLS,
            streams: limits::gateway::STREAMS,
            sessions: limits::gateway::SESSIONS,
            all_sessions: limits::gateway::ALL_SESSIONS,
            session_idle: limits::gateway::SESSION_IDLE,
            kept_events: limits::gateway::KEPT_EVENTS,
            all_kept_events: limits::gateway::ALL_KEPT_EVENTS,
        }
    }
}

/// Who says how the program behind the front is.
pub trait FrontObserver: Send + Sync + 'static {
    /// Whether clients can be served now; if not, why not, in one line.
    fn readiness(&self) -> Result<(), String> {
        Ok(())
    }

    /// Appends numbers as Prometheus reads them. Those of the front itself follow.
    fn write_metrics(&self, _out: &mut String) {}
}
