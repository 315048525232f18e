//! Transitions: from the event that ended a phase to the next phase.
//!
//! Owns the rules of a connection's life: what is tried again and how often, what a loss, an
//! order, a sleep or a bug leads to. Does not own the waiting (`connection.rs`) or the numbers
//! (`backoff.rs`).

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use toolway_types::{ConnectionState, Failure, FailureKind, Untrusted};
use tracing::{error, info};

use crate::auth::written;
use crate::connection::backoff::{Backoff, Retry, RetryFirst};
use crate::connection::keep::Loss;
use crate::connection::{
    Connection, ConnectionEvent, ConnectionNews, ConnectionOrders, ConnectionPhase, RetryMode,
    backoff,
};
use crate::error::ConnectError;
use crate::server_source::definition::ServerIdentity;

/// How long requests that a forgotten session turned away are waited for.
const EXPIRY_PATIENCE: Duration = Duration::from_millis(800);
/// How much of a server's last words is kept with its failure.
const LAST_WORDS: usize = 4 * 1024;

/// The part of a connection that events change.
pub(super) struct TransitionState {
    /// The newest orders that were obeyed.
    pub(super) handled: ConnectionOrders,
    pub(super) backoff: Backoff,
    tries: RetryMode,
    stands_since: Option<Instant>,
    /// Whether the last failure could pass by itself.
    may_pass: bool,
}

impl TransitionState {
    /// A connection's beginning.
    pub(super) fn new(handled: ConnectionOrders) -> Self {
        Self {
            handled,
            backoff: Backoff::new(),
            tries: RetryMode::AsFirst,
            stands_since: None,
            may_pass: true,
        }
    }

    /// A new series, whose first attempt is due at once.
    fn begin(&mut self, tries: RetryMode) {
        self.backoff.renew();
        self.tries = tries;
        self.may_pass = true;
    }
}

impl Connection {
    /// What follows an event. Reports the new state before anything is cleared away, so that
    /// calls wait in the session slot and do not run into what is being closed.
    pub(super) async fn decide(
        &self,
        event: ConnectionEvent,
        transitions: &mut TransitionState,
    ) -> Option<ConnectionPhase> {
        let stood = transitions.stands_since.take().map(|since| since.elapsed());
        match event {
            ConnectionEvent::Ended => None,
            ConnectionEvent::Waited => Some(ConnectionPhase::Connecting),
            ConnectionEvent::Connected(connected) => {
                let facts = connected.open_session.session.facts();
                let (era, version) = (facts.era.as_str(), &facts.protocol_version);
                self.note(transitions, &format!("connected ({era}, {version})"));
                transitions.stands_since = Some(Instant::now());
                Some(ConnectionPhase::Standing(connected))
            }
            ConnectionEvent::Ordered(orders) => {
                self.note(transitions, "connecting anew, as asked for");
                self.epoch.store(orders.epoch, Ordering::Relaxed);
                transitions.begin(orders.tries);
                // Whoever gave the order knows already; others that hold the connection do not.
                self.retrying(1, None).await;
                Some(ConnectionPhase::Connecting)
            }
            ConnectionEvent::Resumed if !transitions.may_pass => Some(ConnectionPhase::Resting),
            ConnectionEvent::Resumed => Some(self.begin_series(transitions).await),
            ConnectionEvent::NotConnected { error, last_words } => {
                Some(self.not_connected(&error, last_words, transitions).await)
            }
            ConnectionEvent::Lost(Loss::Expired(open_session)) => {
                let why = "the server forgot the session: connecting anew";
                self.note(transitions, why);
                let next = self.begin_series(transitions).await;
                // Every call that the server refused for the same reason must hear so, to know that
                // it may be sent again.
                let _ = tokio::time::timeout(EXPIRY_PATIENCE, open_session.unused()).await;
                Some(next)
            }
            ConnectionEvent::Lost(Loss::Asleep) => {
                self.note(transitions, "did not answer after a sleep: connecting anew");
                Some(self.begin_series(transitions).await)
            }
            ConnectionEvent::Lost(Loss::Login(detail)) => {
                // There is no way from `connected` to `needs-auth` but this one.
                self.retrying(1, None).await;
                Some(self.wants_login(detail, transitions).await)
            }
            ConnectionEvent::Lost(Loss::Ended(failure)) => {
                self.note(transitions, &format!("lost: {}", failure.message));
                transitions.tries = RetryMode::Series;
                let retry = transitions.backoff.lost(stood.unwrap_or_default());
                let next = self.try_again(transitions, retry, failure, Duration::ZERO);
                Some(next.await)
            }
            ConnectionEvent::Panicked => Some(self.panicked(stood, transitions).await),
        }
    }

    async fn not_connected(
        &self,
        error: &ConnectError,
        last_words: Vec<Untrusted>,
        transitions: &mut TransitionState,
    ) -> ConnectionPhase {
        if let ConnectError::NeedsAuth { challenge } = error {
            let detail = challenge.clone().unwrap_or_else(|| Untrusted::new(""));
            return self.wants_login(detail, transitions).await;
        }
        transitions.may_pass = !backoff::is_final(error);
        let retry = if transitions.may_pass && self.is_patient(transitions.tries) {
            transitions.backoff.failed()
        } else {
            None
        };
        info!(%error, "not connected");
        self.note(transitions, &format!("not connected: {error}"));
        let mut failure = error.to_failure(last_words);
        if error.is_forbidden() {
            failure = written::forbidden(&self.source, &self.origin, failure);
        }
        self.try_again(transitions, retry, failure, backoff::asked_for(error))
            .await
    }

    /// Waiting does not help: the user has to log in first.
    async fn wants_login(
        &self,
        detail: Untrusted,
        transitions: &mut TransitionState,
    ) -> ConnectionPhase {
        if let Some(failure) = written::refused(&self.source, &self.origin) {
            info!(failure.message, "not connected");
            self.note(transitions, &format!("not connected: {}", failure.message));
            transitions.may_pass = false;
            return self.rest(ConnectionState::Failed(failure)).await;
        }
        info!("the server asks for a login");
        self.note(transitions, "the server asks for a login");
        transitions.may_pass = false;
        let mut unnamed_scopes = false;
        if let Some(auth) = &self.context.auth {
            let epoch = self.epoch.load(Ordering::Relaxed);
            auth.wanted(&self.server, &self.source, epoch).await;
            let server = ServerIdentity::of(&self.server, &self.source);
            unnamed_scopes = auth.fell_short_of_unnamed(&server, &detail);
        }
        self.rest(ConnectionState::NeedsAuth {
            detail,
            unnamed_scopes,
        })
        .await
    }

    /// Reports that it does not stand, and waits for an order.
    async fn rest(&self, state: ConnectionState) -> ConnectionPhase {
        self.report(ConnectionNews::Down(state)).await;
        ConnectionPhase::Resting
    }

    async fn panicked(
        &self,
        stood: Option<Duration>,
        transitions: &mut TransitionState,
    ) -> ConnectionPhase {
        let count = self.context.panics.fetch_add(1, Ordering::Relaxed) + 1;
        error!(count, "a bug ended the connection");
        self.note(transitions, "an internal error ended the connection");
        transitions.may_pass = true;
        let failure = Failure {
            kind: FailureKind::Protocol,
            message: "an internal error ended the connection".to_owned(),
            stderr: Vec::new(),
        };
        let retry = match stood {
            Some(stood) => transitions.backoff.lost(stood),
            None if self.is_patient(transitions.tries) => transitions.backoff.failed(),
            None => None,
        };
        if retry.is_some() {
            // A bug is worth being seen, even if the next attempt hides it.
            transitions.tries = RetryMode::Series;
            self.rest(ConnectionState::Failed(failure.clone())).await;
        }
        self.try_again(transitions, retry, failure, Duration::ZERO)
            .await
    }

    /// Waits for the next attempt, or has failed if there is none.
    async fn try_again(
        &self,
        transitions: &TransitionState,
        retry: Option<Retry>,
        mut failure: Failure,
        at_least: Duration,
    ) -> ConnectionPhase {
        shorten(&mut failure.stderr);
        let Some(Retry { attempt, delay }) = retry else {
            self.note(transitions, "failed: not tried again by itself");
            return self.rest(ConnectionState::Failed(failure)).await;
        };
        let delay = delay.max(at_least);
        info!(attempt, ?delay, "trying again");
        let seconds = delay.as_secs_f32();
        self.note(transitions, &format!("trying again in {seconds:.1} s"));
        self.retrying(attempt, Some(failure)).await;
        ConnectionPhase::BackingOff(delay)
    }

    fn is_patient(&self, tries: RetryMode) -> bool {
        match tries {
            RetryMode::AsFirst => self.context.retry_first == RetryFirst::Backoff,
            RetryMode::Once => false,
            RetryMode::Series => true,
        }
    }

    /// Begins a series of attempts, at once.
    async fn begin_series(&self, transitions: &mut TransitionState) -> ConnectionPhase {
        transitions.begin(RetryMode::Series);
        self.retrying(1, None).await;
        ConnectionPhase::Connecting
    }

    /// Writes a line into the journal.
    fn note(&self, transitions: &TransitionState, text: &str) {
        if let Some(journal) = &self.journal {
            journal.note(transitions.backoff.attempt(), text);
        }
    }

    async fn retrying(&self, attempt: u32, failure: Option<Failure>) {
        self.report(ConnectionNews::Retrying { attempt, failure })
            .await;
    }
}

/// Keeps the last words of what a server said, whole lines where one fits.
fn shorten(lines: &mut Vec<Untrusted>) {
    let mut room = LAST_WORDS;
    let mut kept = Vec::new();
    for line in lines.drain(..).rev() {
        let text = line.as_received();
        if text.len() <= room {
            room -= text.len();
            kept.push(line);
            continue;
        }
        if kept.is_empty() {
            let start = text.ceil_char_boundary(text.len() - room);
            kept.push(Untrusted::new(&text[start..]));
        }
        break;
    }
    kept.reverse();
    *lines = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(lines: &[String]) -> Vec<String> {
        let mut lines: Vec<Untrusted> = lines.iter().map(Untrusted::new).collect();
        shorten(&mut lines);
        lines
            .iter()
            .map(|line| line.as_received().to_owned())
            .collect()
    }

    #[test]
    fn rel_04_the_last_words_of_a_server_are_its_last_4_kib() {
        let few = ["one".to_owned(), "two".to_owned()];
        assert_eq!(shortened(&few), few);
        let many: Vec<String> = (0..20)
            .map(|n| format!("{n}{}", "x".repeat(1000)))
            .collect();
        assert_eq!(shortened(&many), many[16..]);
        let long = [format!("{}é", "é".repeat(4096))];
        let kept = shortened(&long);
        assert_eq!(kept[0].len(), LAST_WORDS);
        assert!(long[0].ends_with(&kept[0]));
    }
}
