//! The work of a server: accepting connections, and ending.
//!
//! Owns the tasks. Every connection is one, and so is every request of a session that nobody waits
//! for any more; all of them are held here and end when the driver is dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::connection::{Accepted, converse};
use super::counters::Counter as _;
use super::front::LoneWork;
use super::handler::Handler;
use super::slots::{ConnectionSlot, ConnectionSlots};
use super::tls::ServerTls;
use super::visitor::Door;

/// How long requests under way may take to finish at shutdown.
const DRAIN: Duration = Duration::from_secs(5);

/// How often is looked for what has had its time.
const SWEEP: Duration = Duration::from_secs(10);

/// Everything that a server works with.
pub(super) struct DriverParts {
    pub(super) listener: TcpListener,
    pub(super) metrics_listener: Option<TcpListener>,
    pub(super) tls: Option<Arc<ServerTls>>,
    pub(super) handler: Arc<Handler>,
    pub(super) work: mpsc::UnboundedReceiver<LoneWork>,
    pub(super) asked: CancellationToken,
}

/// What a task gives back: a place, where it was a connection.
type Ended = Option<Arc<ConnectionSlot>>;

/// Serves until asked to end.
pub(super) async fn drive(parts: DriverParts) {
    let DriverParts {
        listener,
        metrics_listener,
        tls,
        handler,
        mut work,
        asked,
    } = parts;
    let front = Arc::clone(&handler.front);
    let mut tasks: JoinSet<Ended> = JoinSet::new();
    let mut slots = ConnectionSlots::new(front.limits.connections, Arc::clone(&front.counters));
    let news = slots.news();
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Accepted, and without a place so far.
    let mut newcomer: Option<(TcpStream, Door)> = None;
    loop {
        if let Some((stream, door)) = newcomer.take_if(|_| slots.has_slot()) {
            let accepted = Accepted {
                stream,
                door,
                slot: slots.take(),
                tls: (door == Door::Clients).then(|| tls.clone()).flatten(),
            };
            let serving = converse(accepted, Arc::clone(&handler), asked.clone());
            tasks.spawn(async move { Some(serving.await) });
            // One for each turn of the runtime: however many come at once, those who are there
            // already have theirs between two of them.
            tokio::task::yield_now().await;
        }
        tokio::select! {
            () = asked.cancelled() => break,
            accepted = listener.accept(), if newcomer.is_none() => {
                newcomer = accept(accepted, Door::Clients, &front.counters).await;
            }
            accepted = accept_metrics(metrics_listener.as_ref()), if newcomer.is_none() => {
                newcomer = accept(accepted, Door::Metrics, &front.counters).await;
            }
            Some(ended) = tasks.join_next() => release(&mut slots, ended),
            Some(left) = work.recv() => drop(tasks.spawn(alone(left))),
            // A connection became idle: there may be a place now.
            () = news.freed() => {}
            _ = sweep.tick() => {
                front.sessions.sweep();
                front.quotas.sweep();
                if let Some(tls) = &tls {
                    tls.follow();
                }
            }
        }
    }
    drop((listener, metrics_listener, newcomer));
    let drained = async {
        loop {
            tokio::select! {
                ended = tasks.join_next() => match ended {
                    Some(ended) => release(&mut slots, ended),
                    None => return,
                },
                Some(left) = work.recv() => drop(tasks.spawn(alone(left))),
            }
        }
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("requests were cut off at shutdown");
    }
    front.sessions.end_all();
    tasks.shutdown().await;
}

async fn alone(work: LoneWork) -> Ended {
    work.await;
    None
}

async fn accept(
    accepted: std::io::Result<(TcpStream, std::net::SocketAddr)>,
    door: Door,
    counters: &super::FrontCounters,
) -> Option<(TcpStream, Door)> {
    match accepted {
        Ok((stream, _)) => {
            counters.connections.up();
            Some((stream, door))
        }
        Err(error) => {
            // Out of descriptors, mostly: accepting again at once would spin.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn accept_metrics(
    listener: Option<&TcpListener>,
) -> std::io::Result<(TcpStream, std::net::SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

fn release(slots: &mut ConnectionSlots, ended: Result<Ended, tokio::task::JoinError>) {
    match ended {
        Ok(Some(slot)) => slots.release(&slot),
        Ok(None) => {}
        Err(error) => {
            // The others live on.
            tracing::error!(%error, "a connection ended by a panic");
            slots.release_lost();
        }
    }
}
