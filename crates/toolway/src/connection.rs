//! One server's connection: a task that connects it, keeps it, and ends it.
//!
//! Owns the server's session and everything behind it, and reports every change of state. Parts:
//! `source.rs` (where the channel comes from), `lists.rs` (what the server offers), `follow.rs`
//! (when that is fetched again).
//! Does not own the picture that others see: reports go to the supervisor.
//!
//! Invariants: the time limit covers opening, greeting and listing together; a connection that
//! fails or is stopped leaves nothing running; nothing here waits for another server.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolway_transport::stdio::stderr::ServerLog;
use toolway_transport::{CloseReason, OpenOptions};
use toolway_types::{ConnectionState, Failure, FailureKind, ServerName, Untrusted};
use tracing::{debug, info};

pub(crate) use self::era_memory::EraMemory;
use self::era_memory::Key;
use self::follow::Follower;
pub(crate) use self::lists::Lists;
pub use self::source::InProcessServer;
pub(crate) use self::source::{Group, Source};
use crate::error::{self, ConnectError};
use crate::respondent::{Counterpart, Respondent, Root};
use crate::session::{self, ClientIdentity, Correlator, Greeting, Session};
use crate::tasks::{self, Task};

mod era_memory;
mod follow;
pub(crate) mod line;
mod lists;
mod source;

/// What every connection of a host shares.
pub(crate) struct Context {
    /// Who we are.
    pub client: Arc<ClientIdentity>,
    /// Who answers what servers ask.
    pub respondent: Option<Arc<dyn Respondent>>,
    /// The roots of this moment.
    pub roots: watch::Receiver<Arc<[Root]>>,
    /// For transports.
    pub open: OpenOptions,
    /// Which era each definition spoke last time.
    pub eras: EraMemory,
    /// The longest that opening, greeting and listing may take together, for most servers.
    pub connect_timeout: Duration,
    /// Slots for connecting to local servers.
    pub local: Semaphore,
    /// Slots for connecting to remote servers.
    pub remote: Semaphore,
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("client", &self.client)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// What a connection reports.
#[derive(Debug)]
pub(crate) struct Report {
    /// The server.
    pub server: ServerName,
    /// What happened.
    pub news: News,
}

/// What happened to a connection.
#[derive(Debug)]
pub(crate) enum News {
    /// It stands.
    Connected(Box<Connected>),
    /// The server offers something else than before.
    Offers(Box<Lists>),
    /// It does not stand: failed or wants a login.
    Down(ConnectionState),
}

/// A connection that stands.
pub(crate) struct Connected {
    /// The way to the server.
    pub session: Session,
    /// What it offers.
    pub lists: Lists,
}

/// One server's connection, before its task runs.
pub(crate) struct Connection {
    /// The server.
    pub server: ServerName,
    /// What to connect to.
    pub source: Source,
    /// What all connections share.
    pub context: Arc<Context>,
    /// Where reports go.
    pub reports: mpsc::Sender<Report>,
    /// Asks for an orderly end.
    pub stop: CancellationToken,
}

/// A channel in use, with the tasks behind it.
struct Live {
    correlator: Correlator,
    pump: Task<()>,
    server: Option<Task<()>>,
    log: Option<ServerLog>,
}

impl Live {
    /// Ends it in an orderly way; when this returns, nothing of it is left.
    async fn end(self) {
        self.correlator.close();
        if let Err(failure) = self.pump.join().await {
            debug!(%failure, "the channel did not end by itself");
        }
        // The server's end of the channel is closed now; a server that does not notice is
        // dropped with its task.
        drop(self.server);
    }
}

impl Connection {
    /// Connects, keeps the connection until it ends or is stopped, and clears up.
    pub(crate) async fn run(self) {
        let _alarm = Alarm(&self);
        let slots = match self.source.group() {
            Group::Local => &self.context.local,
            Group::Remote => &self.context.remote,
        };
        let slot = tokio::select! {
            () = self.stop.cancelled() => return,
            slot = slots.acquire() => slot,
        };
        let mut live = None;
        let mut step = Step::Opening;
        let limit = self.source.patience(self.context.connect_timeout, 1);
        let outcome = tokio::select! {
            () = self.stop.cancelled() => Err(ConnectError::Stopped),
            outcome = tokio::time::timeout(limit, self.establish(&mut live, &mut step, limit)) => outcome
                .unwrap_or(Err(ConnectError::TimedOut { after: limit, waiting_for: step.waits() })),
        };
        drop(slot);
        match outcome {
            Ok(connected) => {
                let log = live.as_ref().and_then(|live| live.log.clone());
                self.keep(connected, log).await;
            }
            Err(error) => {
                let log = live.as_ref().and_then(|live| live.log.as_ref());
                let last_words = log.map(ServerLog::tail).unwrap_or_default();
                self.give_up(&error, last_words).await;
            }
        }
        if let Some(live) = live {
            live.end().await;
        }
    }

    /// Opens, greets and lists. What is open at any moment stands in `live`, so that a caller
    /// that stops waiting can still end it in an orderly way.
    async fn establish(
        &self,
        live: &mut Option<Live>,
        step: &mut Step,
        limit: Duration,
    ) -> Result<Connected, ConnectError> {
        let key = Key::of(&self.source);
        let mut greeting = Greeting {
            client: Arc::clone(&self.context.client),
            delivery: self.source.delivery(),
            mode: self.source.protocol(),
            remembered: self.context.eras.recall(key.as_ref()),
            again: false,
            timeout: limit,
        };
        let session = loop {
            let error = match self.greet(live, step, &greeting).await {
                Ok(session) => break session,
                Err(error) => error,
            };
            let Some(next) = greeting.after(&error) else {
                self.context.eras.learn(key.as_ref(), Err(&error)).await;
                return Err(error);
            };
            debug!(%error, "starting the server again for another handshake");
            greeting = next;
        };
        let era = session.facts().era;
        self.context.eras.learn(key.as_ref(), Ok(era)).await;
        *step = Step::Listing;
        let lists = Lists::fetch(&session, self.context.connect_timeout).await?;
        Ok(Connected { session, lists })
    }

    async fn greet(
        &self,
        live: &mut Option<Live>,
        step: &mut Step,
        greeting: &Greeting,
    ) -> Result<Session, ConnectError> {
        if let Some(old) = live.take() {
            old.end().await;
        }
        *step = Step::Opening;
        let opened = self.source.open(&self.context.open).await?;
        let log = opened.channel.log.clone();
        let counterpart = Counterpart {
            server: self.server.clone(),
            respondent: self.context.respondent.clone(),
            roots: self.context.roots.clone(),
        };
        let (correlator, pump) = session::open(opened.channel, counterpart, None);
        let pump = tasks::spawn("session", pump.run());
        let live = live.insert(Live {
            correlator,
            pump,
            server: opened.server,
            log,
        });
        *step = Step::Greeting;
        session::greet(&live.correlator, greeting).await
    }

    /// Keeps a connection that stands until it ends or is stopped.
    async fn keep(&self, connected: Connected, log: Option<ServerLog>) {
        let session = connected.session.clone();
        let facts = session.facts();
        info!(
            era = facts.era.as_str(),
            version = facts.protocol_version,
            "connected"
        );
        let lists = connected.lists.clone();
        self.report(News::Connected(Box::new(connected))).await;
        let follower = Follower::new(session.clone(), lists, log, self.context.connect_timeout);
        let mut following = pin!(self.follow(follower));
        let reason = tokio::select! {
            () = self.stop.cancelled() => return,
            reason = session.closed() => reason,
            () = &mut following => return,
        };
        debug!(?reason, strays = ?session.strays(), "connection ended");
        let failure = match &reason {
            CloseReason::Asked => return,
            reason => error::lost(reason),
        };
        self.report(News::Down(ConnectionState::Failed(failure)))
            .await;
    }

    /// Reports every change of what the server offers, until the session is over.
    async fn follow(&self, mut follower: Follower) {
        while let Some(lists) = follower.next().await {
            self.report(News::Offers(Box::new(lists))).await;
        }
    }

    async fn give_up(&self, error: &ConnectError, last_words: Vec<Untrusted>) {
        let state = match error {
            ConnectError::Stopped => return,
            ConnectError::NeedsAuth { challenge } => {
                let detail = challenge.clone().unwrap_or_else(|| Untrusted::new(""));
                ConnectionState::NeedsAuth { detail }
            }
            error => ConnectionState::Failed(error.to_failure(last_words)),
        };
        info!(%error, "not connected");
        self.report(News::Down(state)).await;
    }

    async fn report(&self, news: News) {
        // The supervisor ends after its connections; if it is gone, so is everybody who asks.
        let _ = self
            .reports
            .send(Report {
                server: self.server.clone(),
                news,
            })
            .await;
    }
}

/// Says that the connection failed when its task panics: a bug must not look like a server that
/// connects for ever.
struct Alarm<'a>(&'a Connection);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let state = ConnectionState::Failed(Failure {
                kind: FailureKind::Protocol,
                message: "an internal error ended the connection".to_owned(),
                stderr: Vec::new(),
            });
            let report = Report {
                server: self.0.server.clone(),
                news: News::Down(state),
            };
            let _ = self.0.reports.try_send(report);
        }
    }
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connected")
            .field("facts", self.session.facts())
            .finish_non_exhaustive()
    }
}

/// How far connecting has come.
#[derive(Debug, Clone, Copy)]
enum Step {
    Opening,
    Greeting,
    Listing,
}

impl Step {
    /// What a connection that ran out of time waited for.
    fn waits(self) -> &'static str {
        match self {
            Step::Opening => "it could not be started",
            Step::Greeting => "it did not answer the handshake",
            Step::Listing => "it did not list what it offers",
        }
    }
}
