//! Connections that several hosts and views hold together.
//!
//! Owns which connections there are and who claims them: equal servers are one connection, which
//! starts with the first claim and ends with the last, or some time after it where the pool keeps
//! them (`pool/kept.rs`). What a connection does is `connection.rs`;
//! what a claimant makes of its news is the supervisor's.
//!
//! Invariant: two claims share a connection only if name, definition and instance are equal, and so
//! are the places that secrets and logins come from. Nothing of a definition is left out of that
//! comparison, because it is the definition that is compared.

mod kept;

pub use self::kept::PoolEntry;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolway_config::ServerIdle;
use toolway_types::{Origin, ServerName};
use tracing::info_span;

use super::{
    Connection, ConnectionContext, ConnectionNews, ConnectionOrders, ConnectionReport,
    CredentialPlaces, RetryMode,
};
use crate::call::{CallerSide, ServerLogs};
use crate::client_handler::Root;
use crate::lock::lock;
use crate::resource_interest::ResourceInterests;
use crate::server_source::ServerSource;
use crate::session::ServerHabits;
use crate::tasks::{self, Task};

mod beside;

pub(crate) use self::beside::{ClaimsBeside, HeldClaim};

/// The connections of one or more hosts. Clones are the same pool: hosts that are given one share
/// the servers that are equal in all of them.
#[derive(Clone, Default)]
pub struct ConnectionPool(Arc<PoolState>);

#[derive(Default)]
struct PoolState {
    connections: Mutex<Vec<Arc<PooledConnection>>>,
    /// Connections that were let go of without anybody to wait for their end.
    leaving: Mutex<Vec<LeavingConnection>>,
    /// Numbers of connections and of orders. None is ever used twice.
    counter: AtomicU64,
    /// For how long connections are kept that nobody claims; not at all when absent.
    keeps_for: Option<Duration>,
}

/// What makes two servers one connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConnectionKey {
    /// Its name. Logs and logins speak of it, so another name is another connection.
    pub server: ServerName,
    /// What it is defined as, everything expanded.
    pub source: Arc<ServerSource>,
    /// Where its secrets and logins come from, if it rests on any.
    pub credentials: Option<Arc<CredentialPlaces>>,
    /// Which of its instances, where callers do not share one.
    pub instance: Instance,
}

/// An instance of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Instance {
    /// The one of all that its definition lets share it.
    #[default]
    Shared,
    /// Callers with these roots: the server asked for them.
    Roots(Arc<[Root]>),
    /// One caller, by the number of its attachment.
    Caller(u64),
    /// One view, which brought the server itself.
    View(u64),
}

/// One connection and those who follow it.
struct PooledConnection {
    key: ConnectionKey,
    /// Whose it is: the owner of the host that started it.
    caller: Arc<CallerSide>,
    /// Tells it from connections before and after it.
    number: u64,
    followers: Arc<Followers>,
    interests: Arc<ResourceInterests>,
    habits: Arc<ServerHabits>,
    logs: ServerLogs,
    orders: watch::Sender<ConnectionOrders>,
    retire: CancellationToken,
    stop: CancellationToken,
    task: Mutex<Option<Task<()>>>,
    /// How often nobody claimed it any more.
    unclaimed: AtomicU64,
    /// What ends it when the last of these times was long enough.
    keeping: Mutex<Option<Task<()>>>,
    /// What its entry says of that.
    idle: Mutex<Option<ServerIdle>>,
}

/// Who hears of a connection, and what they would have heard by now.
#[derive(Default)]
pub(crate) struct Followers(Mutex<FollowersState>);

#[derive(Default)]
struct FollowersState {
    reports: Vec<(u64, mpsc::Sender<ConnectionReport>)>,
    /// The newest that still holds.
    last: Option<ConnectionReport>,
}

/// A hold on a connection. When the last one is dropped, the connection ends without waiting for
/// calls in flight; `release` has somebody wait for them.
pub(crate) struct ConnectionClaim {
    pool: ConnectionPool,
    connection: Arc<PooledConnection>,
    follower: u64,
    beside: Arc<ClaimsBeside>,
}

/// What becomes of a connection with its last claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterClaims {
    /// It stays for a while, where the pool keeps connections.
    Kept,
    /// It ends.
    Ended,
    /// It is not found any more, whoever else claims it.
    Superseded,
}

/// A connection that nobody claims any more, on its way out.
pub(crate) struct LeavingConnection {
    stop: CancellationToken,
    task: Task<()>,
}

impl ConnectionPool {
    /// Claims the connection of this key, which starts now if nobody else has claimed it; then
    /// these are who listens to its log. Gives what has been reported of it so far, too.
    pub(crate) fn claim(
        &self,
        key: ConnectionKey,
        origin: &Origin,
        context: &Arc<ConnectionContext>,
        reports: &mpsc::Sender<ConnectionReport>,
        logs: ServerLogs,
    ) -> (ConnectionClaim, Option<ConnectionReport>) {
        let follower = self.next_number();
        let mut connections = lock(&self.0.connections);
        let standing = connections.iter().find(|one| one.key == key).cloned();
        let is_new = standing.is_none();
        let connection = standing.unwrap_or_else(|| {
            let caller = Arc::clone(&context.caller);
            let connection = Arc::new(PooledConnection::new(key, caller, self.next_number(), logs));
            connections.push(Arc::clone(&connection));
            connection
        });
        // Followed before it starts, so that nothing is missed.
        let last = connection.followers.add(follower, reports);
        if is_new {
            connection.start(origin, context);
        }
        let claim = ConnectionClaim {
            pool: self.clone(),
            connection,
            follower,
            beside: Arc::default(),
        };
        (claim, last)
    }

    /// Has the connection with this number connect anew, unless an order came since that epoch.
    pub(crate) fn reconnect_since(&self, server: &ServerName, epoch: u64) {
        let connections = lock(&self.0.connections);
        let meant = |one: &&Arc<PooledConnection>| {
            one.key.server == *server && one.orders.borrow().epoch == epoch
        };
        if let Some(connection) = connections.iter().find(meant) {
            connection.order(self.next_number(), RetryMode::AsFirst);
        }
    }

    /// Waits until connections are gone that nobody else waits for, but for those that still wait
    /// for calls.
    pub(crate) async fn settled(&self) {
        let ending: Vec<_> = {
            let mut leaving = lock(&self.0.leaving);
            leaving
                .extract_if(.., |it| it.stop.is_cancelled())
                .collect()
        };
        for connection in ending {
            connection.gone().await;
        }
    }

    /// Holds a connection that nobody waits for until it is gone.
    fn see_off(&self, left: Option<LeavingConnection>) {
        let mut leaving = lock(&self.0.leaving);
        leaving.retain(|connection| !connection.is_gone());
        leaving.extend(left);
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        lock(&self.0.connections).len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.0.counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl std::fmt::Debug for ConnectionPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConnectionPool")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl PooledConnection {
    fn new(key: ConnectionKey, caller: Arc<CallerSide>, number: u64, logs: ServerLogs) -> Self {
        let orders = ConnectionOrders {
            epoch: number,
            ..ConnectionOrders::default()
        };
        Self {
            key,
            caller,
            number,
            followers: Arc::default(),
            interests: Arc::default(),
            habits: Arc::default(),
            logs,
            orders: watch::Sender::new(orders),
            retire: CancellationToken::new(),
            stop: CancellationToken::new(),
            task: Mutex::default(),
            unclaimed: AtomicU64::new(0),
            keeping: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    fn start(&self, origin: &Origin, context: &Arc<ConnectionContext>) {
        let ConnectionKey { server, source, .. } = &self.key;
        let span = info_span!("connection", %server);
        let journal = context.journal.as_ref();
        let connection = Connection {
            server: server.clone(),
            source: source.clone(),
            origin: origin.clone(),
            context: Arc::clone(context),
            journal: journal.map(|journal| journal.open(source.journal(server), source.secrets())),
            followers: Arc::clone(&self.followers),
            number: self.number,
            interests: Arc::clone(&self.interests),
            habits: Arc::clone(&self.habits),
            logs: self.logs.clone(),
            epoch: AtomicU64::new(self.number),
            orders: self.orders.subscribe(),
            stop: self.stop.clone(),
            retire: self.retire.clone(),
        };
        let task = span.in_scope(|| tasks::spawn("connection", connection.run()));
        *lock(&self.task) = Some(task);
    }

    fn order(&self, epoch: u64, tries: RetryMode) {
        self.orders.send_modify(|orders| {
            orders.epoch = epoch;
            orders.tries = tries;
        });
    }
}

impl ConnectionClaim {
    /// Tells the connection from those before and after it.
    pub(crate) fn number(&self) -> u64 {
        self.connection.number
    }

    /// What it is a connection to.
    pub(crate) fn key(&self) -> &ConnectionKey {
        &self.connection.key
    }

    /// Whose it is, and who is asked what nobody caused: the owner of the host that claimed it
    /// first, which may be another host.
    pub(crate) fn caller(&self) -> &Arc<CallerSide> {
        &self.connection.caller
    }

    /// Where it was claimed.
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    /// Which resources are followed over it.
    pub(crate) fn interests(&self) -> &Arc<ResourceInterests> {
        &self.connection.interests
    }

    /// Who listens to its log.
    pub(crate) fn logs(&self) -> &ServerLogs {
        &self.connection.logs
    }

    /// What its server was seen to ask.
    pub(crate) fn habits(&self) -> &Arc<ServerHabits> {
        &self.connection.habits
    }

    /// Claims that end with this one.
    pub(crate) fn beside(&self) -> &Arc<ClaimsBeside> {
        &self.beside
    }

    /// The newest order's epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.connection.orders.borrow().epoch
    }

    /// Orders it to connect anew, for all that claim it. Gives the epoch of what it reports then.
    pub(crate) fn reconnect(&self, tries: RetryMode) -> u64 {
        let epoch = self.pool.next_number();
        self.connection.order(epoch, tries);
        epoch
    }

    /// The machine slept: it is looked after.
    pub(crate) fn resume(&self) {
        self.connection
            .orders
            .send_modify(|orders| orders.resumed += 1);
    }

    /// Lets go of it. The last one to do so gets its task, to wait for calls in flight and its end.
    pub(crate) fn release(self) -> Option<LeavingConnection> {
        self.let_go(AfterClaims::Kept)
    }

    /// The same of what is not to be kept for others: it was unused for long enough.
    pub(crate) fn release_unused(self) -> Option<LeavingConnection> {
        self.let_go(AfterClaims::Ended)
    }

    /// How long it may be kept when nobody claims it, where its entry says so.
    pub(crate) fn note_idle(&self, idle: Option<ServerIdle>) {
        *lock(&self.connection.idle) = idle;
    }

    /// The same, and whoever claims an equal one from now on gets another connection.
    pub(crate) fn supersede(self) -> Option<LeavingConnection> {
        self.let_go(AfterClaims::Superseded)
    }

    fn let_go(&self, after: AfterClaims) -> Option<LeavingConnection> {
        self.beside.end(|_| ());
        let task = {
            let mut connections = lock(&self.pool.0.connections);
            let is_last = self.connection.followers.remove(self.follower);
            let is_superseded = after == AfterClaims::Superseded;
            if is_last && after == AfterClaims::Kept && self.pool.keep(&self.connection) {
                return None;
            }
            if is_last || is_superseded {
                connections.retain(|one| !Arc::ptr_eq(one, &self.connection));
            }
            is_last.then(|| lock(&self.connection.task).take())?
        };
        self.connection.retire.cancel();
        task.map(|task| LeavingConnection {
            stop: self.connection.stop.clone(),
            task,
        })
    }
}

impl Drop for ConnectionClaim {
    fn drop(&mut self) {
        let left = self.let_go(AfterClaims::Kept);
        if let Some(connection) = &left {
            connection.stop();
        }
        self.pool.see_off(left);
    }
}

impl LeavingConnection {
    /// Whether it is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it without waiting for calls in flight.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until it is gone.
    pub(crate) async fn gone(self) {
        if let Err(failure) = self.task.join().await {
            tracing::warn!(%failure, "a connection did not end by itself");
        }
    }
}

impl Followers {
    fn add(
        &self,
        follower: u64,
        reports: &mpsc::Sender<ConnectionReport>,
    ) -> Option<ConnectionReport> {
        let mut state = lock(&self.0);
        state.reports.push((follower, reports.clone()));
        state.last.clone()
    }

    /// Gives whether this was the last.
    fn remove(&self, follower: u64) -> bool {
        let mut state = lock(&self.0);
        let before = state.reports.len();
        state.reports.retain(|(number, _)| *number != follower);
        before > 0 && state.reports.is_empty()
    }

    /// Tells all of them. Waits for each in turn: every one of them reads without waiting for
    /// anybody else.
    pub(super) async fn tell(&self, report: ConnectionReport) {
        let reports: Vec<_> = {
            let mut state = lock(&self.0);
            state.note(&report);
            let reports = state.reports.iter();
            reports.map(|(_, reports)| reports.clone()).collect()
        };
        let mut reports = reports.into_iter();
        let Some(first) = reports.next() else {
            return;
        };
        for other in reports {
            let _ = other.send(report.clone()).await;
        }
        // One that is gone needs no news.
        let _ = first.send(report).await;
    }
}

impl FollowersState {
    fn note(&mut self, report: &ConnectionReport) {
        match (&report.news, &mut self.last) {
            (ConnectionNews::Offers(lists), Some(last)) => {
                if let ConnectionNews::Connected(connected) = &mut last.news {
                    connected.lists = (**lists).clone();
                }
            }
            (ConnectionNews::Updated(_), _) | (ConnectionNews::Offers(_), None) => {}
            _ => self.last = Some(report.clone()),
        }
    }
}
