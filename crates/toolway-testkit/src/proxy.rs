//! A TCP proxy that spoils what passes, as it is told while it runs.
//!
//! Owns the listener and the connections; the spoiling of one direction of one connection is
//! `proxy/pump.rs`. Plain threads: a test's runtime, and its clock, have no part in it.

mod pump;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::SeededRandom;

/// What is spoiled. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProxyFaults {
    /// Every piece is late by this much, in both directions.
    pub latency: Duration,
    /// And by up to this much more, at random.
    pub jitter: Duration,
    /// Bytes a second in each direction; without limit when absent.
    pub bandwidth: Option<u64>,
    /// Pieces of at most this many bytes; as they come when 0.
    pub slice: usize,
    /// Nothing passes until so much has gathered, or the time is over.
    pub hold: Option<AnswerHold>,
    /// Each connection ends at this byte.
    pub cut: Option<ConnectionCut>,
    /// How many pieces of a thousand reset their connection instead of passing.
    pub resets_per_mille: u32,
    /// Nothing passes any more, and no side is told.
    pub half_open: bool,
    /// New connections are refused.
    pub refuse: bool,
}

/// How a buffering proxy holds an answer back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHold {
    /// Until so many bytes have gathered,
    pub bytes: usize,
    /// or until this time is over.
    pub time: Duration,
}

/// Where a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCut {
    /// After so many bytes in that direction,
    pub after: usize,
    /// which is this one,
    pub direction: Direction,
    /// in this way.
    pub end: ConnectionEnd,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// Politely (FIN).
    Fin,
    /// At once (RST).
    Reset,
}

/// A proxy on a loopback port. Every connection ends when it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
}

/// What the proxy and its threads share.
#[derive(Debug)]
struct ProxyState {
    upstream: SocketAddr,
    toxics: Mutex<ProxyFaults>,
    changed: Condvar,
    chance: Mutex<SeededRandom>,
    connections: AtomicU64,
    stopped: AtomicBool,
    listening: Mutex<bool>,
    links: Mutex<Vec<Weak<ProxiedConnection>>>,
}

/// One connection, both its halves.
#[derive(Debug)]
struct ProxiedConnection {
    client: TcpStream,
    server: TcpStream,
}

impl ProxiedConnection {
    fn end(&self, how: ConnectionEnd) {
        for stream in [&self.client, &self.server] {
            if how == ConnectionEnd::Fin || !reset(stream) {
                drop(stream.shutdown(std::net::Shutdown::Both));
            }
        }
    }
}

/// Ends a connection without the FIN that closing sends. Only Linux has a call for it.
fn reset(stream: &TcpStream) -> bool {
    cfg!(target_os = "linux") && rustix::net::connect_unspec(stream).is_ok()
}

impl FaultProxy {
    /// Stands before a server; the address is host and port.
    pub fn before(upstream: &str) -> Self {
        Self::with_seed(upstream, 0)
    }

    /// The same, with its own randomness.
    pub fn with_seed(upstream: &str, seed: u64) -> Self {
        let upstream = upstream.parse().expect("the address of a server");
        let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let shared = Arc::new(ProxyState {
            upstream,
            toxics: Mutex::default(),
            changed: Condvar::new(),
            chance: Mutex::new(SeededRandom::new(seed)),
            connections: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            listening: Mutex::new(true),
            links: Mutex::default(),
        });
        let work = Arc::clone(&shared);
        std::thread::spawn(move || work.accept(listener, address));
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// This URL, by way of the proxy.
    pub fn url(&self, of: &str) -> String {
        let (scheme, rest) = of.split_once("://").expect("a URL");
        let path = rest.split_once('/').map_or("", |(_, path)| path);
        format!("{scheme}://{}/{path}", self.address)
    }

    /// From now on this is spoiled, on living connections too.
    pub fn set(&self, toxics: ProxyFaults) {
        let refuse = toxics.refuse;
        *self.shared.toxics() = toxics;
        self.shared.changed.notify_all();
        // Who sets it may count on it.
        let mut listening = lock(&self.shared.listening);
        while *listening == refuse {
            listening = self
                .shared
                .changed
                .wait(listening)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing is spoiled any more.
    pub fn heal(&self) {
        self.set(ProxyFaults::default());
    }

    /// Ends every living connection.
    pub fn cut(&self, how: ConnectionEnd) {
        for link in self.shared.living() {
            link.end(how);
        }
    }

    /// How many connections were made in all.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many live.
    pub fn open(&self) -> usize {
        self.shared.living().len()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
        self.cut(ConnectionEnd::Fin);
    }
}

impl ProxyState {
    fn toxics(&self) -> MutexGuard<'_, ProxyFaults> {
        lock(&self.toxics)
    }

    fn living(&self) -> Vec<Arc<ProxiedConnection>> {
        let mut links = lock(&self.links);
        links.retain(|link| link.strong_count() > 0);
        links.iter().filter_map(Weak::upgrade).collect()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn accept(self: Arc<Self>, listener: TcpListener, address: SocketAddr) {
        let mut listener = Some(listener);
        while !self.is_stopped() {
            let refuse = self.toxics().refuse;
            if refuse != listener.is_none() {
                // Only a closed port refuses; the same one is opened again afterwards.
                listener = if refuse { None } else { bind(address).ok() };
                *lock(&self.listening) = listener.is_some();
                self.changed.notify_all();
            }
            match listener.as_ref().map(TcpListener::accept) {
                Some(Ok((client, _))) => drop(self.link(client)),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn link(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        client.set_nonblocking(false)?;
        let server = TcpStream::connect(self.upstream)?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        let link = Arc::new(ProxiedConnection { client, server });
        lock(&self.links).push(Arc::downgrade(&link));
        for direction in [Direction::Up, Direction::Down] {
            let (shared, link) = (Arc::clone(self), Arc::clone(&link));
            std::thread::spawn(move || pump::run(&shared, &link, direction));
        }
        Ok(())
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
