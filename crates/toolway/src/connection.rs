//! One server's connection: a task that connects it, keeps it, brings it back, and ends it.
//!
//! Owns the server's session and everything behind it for as long as the server is configured, and
//! reports every change of state. The task is a loop: it stays in a phase until an event ends it,
//! and the event decides on the next phase (`transitions.rs`). Where the channel comes from is
//! `server_source.rs`. Does not own the snapshot that others see: reports go to the supervisor.
//!
//! Invariants: the time limit covers opening, greeting and listing together; what an attempt opened
//! is gone before the next one begins; a connection that fails or is stopped leaves nothing
//! running; nothing here waits for another server.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolway_auth::references::ReferenceResolver;
use toolway_transport::OpenOptions;
use toolway_types::{BytePool, ConnectionState, Failure, Origin, ServerName, Untrusted};
use tracing::{Instrument as _, info_span};

pub use self::backoff::RetryFirst;
pub(crate) use self::credential_places::CredentialPlaces;
pub(crate) use self::era_memory::EraMemory;
pub use self::era_memory::forget_era;
use self::follow::ListFollower;
pub(crate) use self::instance::OwnInstances;
use self::keep::Loss;
pub(crate) use self::limits::ConnectLimits;
use self::live_channel::LiveChannel;
use self::pool::Followers;
pub(crate) use self::pool::{ConnectionClaim, ConnectionKey, Instance, LeavingConnection};
pub use self::pool::{ConnectionPool, PoolEntry};
use crate::account::Connectors;
use crate::auth::step_up::Widener;
use crate::auth::{self, Auth};
use crate::call::{CallerSide, ServerLogs};
use crate::catalog_memory::CatalogMemory;
use crate::client_handler::Root;
use crate::connection::open_session::OpenSession;
use crate::connection::transitions::TransitionState;
use crate::dispatch::hooks::HookRunner;
use crate::error::ConnectError;
use crate::journal::{Journal, JournalWriter};
use crate::listing::ServerLists;
use crate::pins::Difference;
use crate::recorder::Recorder;
use crate::resource_interest::ResourceInterests;
pub use crate::server_source::InProcessServer;
use crate::server_source::ServerSource;
use crate::server_source::definition::ServerIdentity;
use crate::session::{ClientInfo, ClientSide, ServerHabits};

mod attempt;
mod backoff;
pub(crate) mod clock;
mod credential_places;
mod era_memory;
mod follow;
mod instance;
mod interest;
mod keep;
mod limits;
mod lists;
mod live_channel;
mod log_level;
mod older;
pub(crate) mod open_session;
mod pool;
pub(crate) mod server_route;
pub(crate) mod session_slot;
mod transitions;

/// What every connection of a host shares.
#[derive(Clone)]
pub(crate) struct ConnectionContext {
    /// Who we are.
    pub client: Arc<ClientInfo>,
    /// The host's own caller: who answers what servers ask that no other caused.
    pub caller: Arc<CallerSide>,
    /// What hooks make of it first.
    pub hooks: Arc<HookRunner>,
    /// For transports.
    pub open: OpenOptions,
    /// Where secrets are that entries name.
    pub references: Option<ReferenceResolver>,
    /// Where these, and logins, come from.
    pub credentials: Arc<CredentialPlaces>,
    /// Which era each definition spoke last time.
    pub eras: EraMemory,
    /// How many servers connect at a time, and for how long.
    pub limits: ConnectLimits,
    /// What the lists of all servers may hold together.
    pub all_lists: BytePool,
    /// Whether a first connection that fails is tried again.
    pub retry_first: RetryFirst,
    /// Where it is written down what happens.
    pub journal: Option<Journal>,
    /// What is said to servers and by them is recorded, where that is wanted.
    pub recorder: Option<Recorder>,
    /// How many bugs of ours, or of the embedding program, ended a connection.
    pub panics: Arc<AtomicU64>,
    /// What is known of logins; without it there are none.
    pub auth: Option<Arc<Auth>>,
    /// The account whose connectors are servers too.
    pub connectors: Option<Connectors>,
    /// What servers offered when they were last connected, where that is offered meanwhile.
    pub remembered: Option<CatalogMemory>,
    /// How long servers may go unused before they rest; for ever without it.
    pub rest_after: Option<Duration>,
}

impl ConnectionContext {
    /// What is offered to a server.
    pub(crate) fn client_side(&self, server: &ServerName, roots: &[PathBuf]) -> ClientSide {
        let own: Arc<[Root]> = roots.iter().filter_map(|it| Root::directory(it)).collect();
        ClientSide {
            server: server.clone(),
            logs: ServerLogs::default(),
            stated: None,
            caller: Some(Arc::clone(&self.caller)),
            client_handler: self.caller.asked_about(&[]),
            hooks: Arc::clone(&self.hooks),
            has_fixed_roots: !own.is_empty(),
            roots: if own.is_empty() {
                self.caller.roots.subscribe()
            } else {
                // What its entry says does not change while it is connected.
                watch::channel(own).1
            },
            remarks: Arc::default(),
            habits: Arc::default(),
        }
    }

    /// Gets more scopes for the login of a server; `None` where that is not possible.
    pub(crate) fn widener(&self, server: &ServerName, source: &ServerSource) -> Option<Widener> {
        auth::target(server, source)?;
        Some(Widener {
            auth: Arc::clone(self.auth.as_ref()?),
            server: ServerIdentity::of(server, source),
            client_side: self.client_side(server, &[]),
            attention: None,
        })
    }
}

/// What a connection reports.
#[derive(Clone)]
pub(crate) struct ConnectionReport {
    /// The server.
    pub server: ServerName,
    /// The number of the connection.
    pub connection: u64,
    /// The epoch of the order that the connection follows.
    pub epoch: u64,
    /// What happened.
    pub news: ConnectionNews,
}

/// What happened to a connection.
#[derive(Clone)]
pub(crate) enum ConnectionNews {
    /// It stands.
    Connected(Box<Connected>),
    /// The server offers something else than before.
    Offers(Box<ServerLists>),
    /// The server says that this resource changed.
    Updated(Untrusted),
    /// It does not stand, and will be tried.
    Retrying {
        /// The number of the attempt to come.
        attempt: u32,
        /// Why it does not stand, where that is news.
        failure: Option<Failure>,
    },
    /// It does not stand: failed or wants a login.
    Down(ConnectionState),
}

/// A connection that stands.
#[derive(Clone)]
pub(crate) struct Connected {
    /// The way to the server.
    pub open_session: Arc<OpenSession>,
    /// What it offers.
    pub lists: ServerLists,
    /// How what it says to models differs from what it said when it first connected.
    pub instructions: Option<Difference>,
}

/// What the supervisor wants of a connection. Orders are values that replace each other, so a
/// hundred of them are as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ConnectionOrders {
    /// Grows with each order to connect anew. Reports carry it back.
    pub epoch: u64,
    /// How often the newest order may be tried.
    pub tries: RetryMode,
    /// Grows with each time that the machine slept.
    pub resumed: u64,
}

/// How often a connection may be tried before it has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RetryMode {
    /// As the embedding program decided for first connections.
    #[default]
    AsFirst,
    /// Once.
    Once,
    /// A whole series.
    Series,
}

/// One server's connection.
pub(crate) struct Connection {
    /// The server.
    pub server: ServerName,
    /// What to connect to.
    pub source: Arc<ServerSource>,
    /// Where its entry stands.
    pub origin: Origin,
    /// What all connections share.
    pub context: Arc<ConnectionContext>,
    /// Where it is written down what happens to it.
    pub journal: Option<JournalWriter>,
    /// Who hears of it.
    pub followers: Arc<Followers>,
    /// Tells it from connections before and after it.
    pub number: u64,
    /// Which resources are followed.
    pub interests: Arc<ResourceInterests>,
    /// What the server was seen to ask.
    pub habits: Arc<ServerHabits>,
    /// Who listens to its log.
    pub logs: ServerLogs,
    /// The epoch of the order that it follows.
    pub epoch: AtomicU64,
    /// What is wanted of it.
    pub orders: watch::Receiver<ConnectionOrders>,
    /// Asks for an orderly end at once.
    pub stop: CancellationToken,
    /// Asks for an end once the calls in flight are done.
    pub retire: CancellationToken,
}

/// What a connection is in the middle of.
enum ConnectionPhase {
    /// A handshake is under way, or waits for its turn.
    Connecting,
    /// It stands.
    Standing(Box<Connected>),
    /// It waits before the next attempt.
    BackingOff(Duration),
    /// It failed or wants a login: it waits for an order.
    Resting,
}

/// What ends a phase.
enum ConnectionEvent {
    /// An attempt succeeded.
    Connected(Box<Connected>),
    /// An attempt failed.
    NotConnected {
        error: ConnectError,
        last_words: Vec<Untrusted>,
    },
    /// The connection stood and is gone, or is of no use any more.
    Lost(Loss),
    /// The wait is over.
    Waited,
    /// An order to connect anew.
    Ordered(ConnectionOrders),
    /// The machine slept while the connection did not stand.
    Resumed,
    /// A bug.
    Panicked,
    /// It is to end.
    Ended,
}

impl Connection {
    /// Connects and keeps the connection, and brings it back when it is lost, until it is to end.
    pub(crate) async fn run(self) {
        let mut transitions = TransitionState::new(*self.orders.borrow());
        let mut live = None;
        let mut phase = ConnectionPhase::Connecting;
        loop {
            let span = info_span!("attempt", attempt = transitions.backoff.attempt());
            let lived = AssertUnwindSafe(self.live_through(phase, &mut transitions, &mut live))
                .catch_unwind()
                .instrument(span)
                .await;
            let next = self
                .decide(lived.unwrap_or(ConnectionEvent::Panicked), &mut transitions)
                .await;
            // Whatever was open is gone before anything else is tried.
            if !matches!(next, Some(ConnectionPhase::Standing(_)))
                && let Some(mut live) = live.take()
            {
                live.end(&self.context.panics).await;
            }
            match next {
                Some(next) => phase = next,
                None => return,
            }
        }
    }

    /// Waits until something ends the phase.
    async fn live_through(
        &self,
        phase: ConnectionPhase,
        transitions: &mut TransitionState,
        live: &mut Option<LiveChannel>,
    ) -> ConnectionEvent {
        if let ConnectionPhase::Standing(connected) = phase {
            let log = live.as_ref().and_then(LiveChannel::log);
            return self.keep(*connected, log, &mut transitions.handled).await;
        }
        let until = async {
            match phase {
                ConnectionPhase::Connecting => {
                    match self.attempt(transitions.backoff.attempt(), live).await {
                        Ok(connected) => ConnectionEvent::Connected(Box::new(connected)),
                        Err(error) => {
                            let last_words = live
                                .as_ref()
                                .map(LiveChannel::last_words)
                                .unwrap_or_default();
                            ConnectionEvent::NotConnected { error, last_words }
                        }
                    }
                }
                ConnectionPhase::BackingOff(delay) => {
                    tokio::time::sleep(delay).await;
                    ConnectionEvent::Waited
                }
                ConnectionPhase::Standing(_) | ConnectionPhase::Resting => {
                    std::future::pending().await
                }
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => ConnectionEvent::Ended,
            () = self.retire.cancelled() => ConnectionEvent::Ended,
            order = self.ordered(&mut transitions.handled) => order,
            event = until => event,
        }
    }

    /// Waits for an order.
    async fn ordered(&self, handled: &mut ConnectionOrders) -> ConnectionEvent {
        let mut orders = self.orders.clone();
        let newest = orders.wait_for(|orders| orders != handled).await;
        let Ok(newest) = newest.map(|newest| *newest) else {
            // There are no orders any more; the end is told in another way.
            return std::future::pending().await;
        };
        let before = std::mem::replace(handled, newest);
        if before.epoch == newest.epoch {
            ConnectionEvent::Resumed
        } else {
            ConnectionEvent::Ordered(newest)
        }
    }

    /// Reports every change of what the server offers, until the session is over.
    async fn follow(&self, mut follower: ListFollower) {
        while let Some(lists) = follower.next().await {
            self.report(ConnectionNews::Offers(Box::new(lists))).await;
        }
    }

    async fn report(&self, news: ConnectionNews) {
        let report = ConnectionReport {
            server: self.server.clone(),
            connection: self.number,
            epoch: self.epoch.load(Ordering::Relaxed),
            news,
        };
        self.followers.tell(report).await;
    }
}
