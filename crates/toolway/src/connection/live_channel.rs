//! A channel in use, and greeting a server over it.
//!
//! Owns what is open while a connection is made and kept, and its orderly end. Does not own which
//! greetings an attempt tries (`attempt.rs`, `older.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use toolway_transport::{OpenOptions, ServerLog};
use toolway_types::Untrusted;
use tracing::{debug, error};

use super::Connection;
use crate::call::Remarks;
use crate::error::ConnectError;
use crate::journal::JournalWriter;
use crate::recorder::RecordedConnection;
use crate::server_source::ServerSource;
use crate::session::{self, ChannelTap, ClientSide, Correlator, Greeting, Session};
use crate::tasks::{self, Task};

/// The longest that the end of a channel may take. Every transport is done sooner by itself; what
/// is not is cut off, because the peer must not decide how long the host takes to end.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A channel in use, with the tasks behind it.
pub(super) struct LiveChannel {
    correlator: Correlator,
    /// Until it has ended.
    pump: Option<Task<()>>,
    server: Option<Task<()>>,
    log: Option<ServerLog>,
    scribe: Option<ServerLogWriter>,
}

impl LiveChannel {
    /// What the server logged last, when it is a process.
    pub(super) fn last_words(&self) -> Vec<Untrusted> {
        self.log.as_ref().map(ServerLog::tail).unwrap_or_default()
    }

    /// What the server logs.
    pub(super) fn log(&self) -> Option<ServerLog> {
        self.log.clone()
    }

    /// Ends it in an orderly way; when this returns, nothing of it is left. A bug in what was
    /// behind it is counted. A caller that stops waiting may call again.
    pub(super) async fn end(&mut self, panics: &AtomicU64) {
        self.correlator.close();
        if let Some(pump) = &mut self.pump {
            let ended = pump.end_within(END_WITHIN).await;
            self.pump = None;
            if let Err(failure) = ended {
                error!(%failure, "the channel did not end by itself");
                if failure.is_panic() {
                    panics.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if let Some(scribe) = self.scribe.take() {
            scribe.end().await;
        }
        // The server's end of the channel is closed now; a server that does not notice is
        // dropped with its task.
        self.server = None;
    }
}

/// A connection that is being made.
pub(super) struct Opening<'a> {
    /// What is open at any moment, so that a caller that stops waiting can still end it in an
    /// orderly way.
    pub(super) live: &'a mut Option<LiveChannel>,
    pub(super) step: ConnectStep,
    /// The longest that it may take.
    pub(super) limit: Duration,
}

/// How far connecting has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConnectStep {
    Opening,
    Greeting,
    Listing,
}

impl ConnectStep {
    /// What a connection that ran out of time waited for.
    pub(super) fn waits(self) -> &'static str {
        match self {
            ConnectStep::Opening => "it could not be started",
            ConnectStep::Greeting => "it did not answer the handshake",
            ConnectStep::Listing => "it did not list what it offers",
        }
    }
}

impl Connection {
    /// Opens a channel in the place of the one that is open, and greets the server over it.
    pub(super) async fn greet(
        &self,
        opening: &mut Opening<'_>,
        greeting: &Greeting,
        filled: &ServerSource,
        open: &OpenOptions,
    ) -> Result<Session, ConnectError> {
        // It stays in its place until it has ended: a caller that stops waiting ends it then.
        if let Some(old) = opening.live {
            old.end(&self.context.panics).await;
        }
        *opening.live = None;
        opening.step = ConnectStep::Opening;
        let opened = filled.open(open).await?;
        let log = opened.channel.log.clone();
        let client_side = ClientSide {
            remarks: Arc::new(Remarks::written_to(self.journal.clone())),
            habits: Arc::clone(&self.habits),
            logs: self.logs.clone(),
            ..self.context.client_side(&self.server, filled.roots())
        };
        let recorded = self.context.recorder.as_ref().map(|recorder| {
            recorder
                .connection(self.server.as_str(), &filled.secrets())
                .learning_from(self.journal.clone())
        });
        let journal = self.journal.clone();
        let tap = match (journal, recorded) {
            (Some(journal), None) => Some(Arc::new(journal) as Arc<dyn ChannelTap>),
            (None, None) => None,
            (journal, Some(recorded)) => {
                Some(Arc::new(RecordingTap { journal, recorded }) as Arc<dyn ChannelTap>)
            }
        };
        let (correlator, pump) = session::open(opened.channel, client_side, tap);
        // Nothing is read before the pump runs, so nothing is missed.
        let scribe = match (&log, &self.journal) {
            (Some(log), Some(journal)) => Some(ServerLogWriter::start(log, journal.clone())),
            _ => None,
        };
        let pump = tasks::spawn("session", pump.run());
        let live = opening.live.insert(LiveChannel {
            correlator,
            pump: Some(pump),
            server: opened.server,
            log,
            scribe,
        });
        opening.step = ConnectStep::Greeting;
        session::greet(&live.correlator, greeting).await
    }
}

/// Writes every message into the journal.
/// Listens for a recording too.
struct RecordingTap {
    journal: Option<JournalWriter>,
    recorded: RecordedConnection,
}

impl ChannelTap for RecordingTap {
    fn sent(&self, message: &[u8]) {
        if let Some(journal) = &self.journal {
            journal.sent(message);
        }
        self.recorded.sent(message);
    }

    fn received(&self, message: &[u8]) {
        if let Some(journal) = &self.journal {
            journal.received(message);
        }
        self.recorded.received(message);
    }
}

impl ChannelTap for JournalWriter {
    fn sent(&self, message: &[u8]) {
        JournalWriter::sent(self, message);
    }

    fn received(&self, message: &[u8]) {
        JournalWriter::received(self, message);
    }
}

/// Writes what a process logs into the journal.
struct ServerLogWriter {
    gone: CancellationToken,
    writing: Task<()>,
}

impl ServerLogWriter {
    fn start(log: &ServerLog, journal: JournalWriter) -> Self {
        let gone = CancellationToken::new();
        let work = write_down(log.subscribe(), journal, gone.clone());
        let writing = tasks::spawn("scribe", work);
        Self { gone, writing }
    }

    /// The process is gone: what it said last is written too.
    async fn end(self) {
        self.gone.cancel();
        if let Err(failure) = self.writing.join().await {
            debug!(%failure, "the last words are not in the journal");
        }
    }
}

async fn write_down(
    mut lines: broadcast::Receiver<Untrusted>,
    journal: JournalWriter,
    gone: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = gone.cancelled() => return,
        };
        match line {
            Ok(line) => journal.stderr(&line),
            Err(RecvError::Lagged(missed)) => {
                let line = format!("[{missed} lines are missing here]");
                journal.stderr(&Untrusted::new(line));
            }
            Err(RecvError::Closed) => return,
        }
    }
}
