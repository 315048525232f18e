//! What follows what: from the event that ended a phase to the next phase.
//!
//! Owns the rules of a connection's life: what is tried again and how often, what a loss, an
//! order, a sleep or a bug leads to. Does not own the waiting (`connection.rs`) or the numbers
//! (`backoff.rs`).

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use toolway_types::{ConnectionState, Failure, FailureKind, Untrusted};
use tracing::{error, info};

use super::backoff::{self, Backoff, Retry, RetryFirst};
use super::keep::Loss;
use super::{Connection, Event, News, Orders, Phase, Tries};
use crate::auth::written;
use crate::error::ConnectError;

/// How long requests that a forgotten session turned away are waited for.
const EXPIRY_PATIENCE: Duration = Duration::from_millis(800);
/// How much of a server's last words is kept with its failure.
const LAST_WORDS: usize = 4 * 1024;

/// The part of a connection that events change.
pub(super) struct Course {
    /// The newest orders that were obeyed.
    pub(super) handled: Orders,
    pub(super) backoff: Backoff,
    tries: Tries,
    stands_since: Option<Instant>,
    /// Whether the last failure could pass by itself.
    may_pass: bool,
}

impl Course {
    /// A connection's beginning.
    pub(super) fn new(handled: Orders) -> Self {
        Self {
            handled,
            backoff: Backoff::new(),
            tries: Tries::AsFirst,
            stands_since: None,
            may_pass: true,
        }
    }

    /// A new series, whose first attempt is due at once.
    fn begin(&mut self, tries: Tries) {
        self.backoff.renew();
        self.tries = tries;
        self.may_pass = true;
    }
}

impl Connection {
    /// What follows an event. Reports the new state before anything is cleared away, so that
    /// calls wait at the door and do not run into what is being closed.
    pub(super) async fn decide(&self, event: Event, course: &mut Course) -> Option<Phase> {
        let stood = course.stands_since.take().map(|since| since.elapsed());
        match event {
            Event::Ended => None,
            Event::Waited => Some(Phase::Connecting),
            Event::Connected(connected) => {
                let facts = connected.standing.session.facts();
                let (era, version) = (facts.era.as_str(), &facts.protocol_version);
                self.note(course, &format!("connected ({era}, {version})"));
                course.stands_since = Some(Instant::now());
                Some(Phase::Standing(connected))
            }
            Event::Ordered(orders) => {
                self.note(course, "connecting anew, as asked for");
                // The supervisor has set the state, in the same moment as the order.
                self.epoch.store(orders.epoch, Ordering::Relaxed);
                course.begin(orders.tries);
                Some(Phase::Connecting)
            }
            Event::Resumed if !course.may_pass => Some(Phase::Resting),
            Event::Resumed => {
                course.begin(Tries::Series);
                self.retrying(1, None).await;
                Some(Phase::Connecting)
            }
            Event::NotConnected { error, last_words } => {
                Some(self.not_connected(&error, last_words, course).await)
            }
            Event::Lost(Loss::Expired(standing)) => {
                self.note(course, "the server forgot the session: connecting anew");
                course.begin(Tries::Series);
                self.retrying(1, None).await;
                // Everybody whose request the server turned away for the same reason must hear
                // so, or could not know that it may be sent again.
                let _ = tokio::time::timeout(EXPIRY_PATIENCE, standing.unused()).await;
                Some(Phase::Connecting)
            }
            Event::Lost(Loss::Asleep) => {
                self.note(course, "did not answer after a sleep: connecting anew");
                course.begin(Tries::Series);
                self.retrying(1, None).await;
                Some(Phase::Connecting)
            }
            Event::Lost(Loss::Login(detail)) => {
                // There is no way from `connected` to `needs-auth` but this one.
                self.retrying(1, None).await;
                Some(self.wants_login(detail, course).await)
            }
            Event::Lost(Loss::Ended(failure)) => {
                self.note(course, &format!("lost: {}", failure.message));
                course.tries = Tries::Series;
                let retry = course.backoff.lost(stood.unwrap_or_default());
                Some(self.try_again(course, retry, failure, Duration::ZERO).await)
            }
            Event::Panicked => Some(self.panicked(stood, course).await),
        }
    }

    async fn not_connected(
        &self,
        error: &ConnectError,
        last_words: Vec<Untrusted>,
        course: &mut Course,
    ) -> Phase {
        if let ConnectError::NeedsAuth { challenge } = error {
            let detail = challenge.clone().unwrap_or_else(|| Untrusted::new(""));
            return self.wants_login(detail, course).await;
        }
        course.may_pass = !backoff::is_final(error);
        let retry = if course.may_pass && self.is_patient(course.tries) {
            course.backoff.failed()
        } else {
            None
        };
        info!(%error, "not connected");
        self.note(course, &format!("not connected: {error}"));
        let mut failure = error.to_failure(last_words);
        if error.is_forbidden() {
            failure = written::forbidden(&self.source, &self.origin, failure);
        }
        self.try_again(course, retry, failure, backoff::asked_for(error))
            .await
    }

    /// Waiting helps nobody: a person has to log in first.
    async fn wants_login(&self, detail: Untrusted, course: &mut Course) -> Phase {
        if let Some(failure) = written::refused(&self.source, &self.origin) {
            info!(failure.message, "not connected");
            self.note(course, &format!("not connected: {}", failure.message));
            course.may_pass = false;
            self.report(News::Down(ConnectionState::Failed(failure)))
                .await;
            return Phase::Resting;
        }
        info!("the server asks for a login");
        self.note(course, "the server asks for a login");
        course.may_pass = false;
        let mut unnamed_scopes = false;
        if let Some(auth) = &self.context.auth {
            let epoch = self.epoch.load(Ordering::Relaxed);
            auth.wanted(&self.server, &self.source, epoch).await;
            unnamed_scopes = auth.fell_short_of_unnamed(&self.server, &detail);
        }
        self.report(News::Down(ConnectionState::NeedsAuth {
            detail,
            unnamed_scopes,
        }))
        .await;
        Phase::Resting
    }

    async fn panicked(&self, stood: Option<Duration>, course: &mut Course) -> Phase {
        let count = self.context.panics.fetch_add(1, Ordering::Relaxed) + 1;
        error!(count, "a bug ended the connection");
        self.note(course, "an internal error ended the connection");
        course.may_pass = true;
        let failure = Failure {
            kind: FailureKind::Protocol,
            message: "an internal error ended the connection".to_owned(),
            stderr: Vec::new(),
        };
        let retry = match stood {
            Some(stood) => course.backoff.lost(stood),
            None if self.is_patient(course.tries) => course.backoff.failed(),
            None => None,
        };
        if retry.is_some() {
            // A bug is worth being seen, even if the next attempt hides it.
            course.tries = Tries::Series;
            self.report(News::Down(ConnectionState::Failed(failure.clone())))
                .await;
        }
        self.try_again(course, retry, failure, Duration::ZERO).await
    }

    /// Waits for the next attempt, or has failed if there is none.
    async fn try_again(
        &self,
        course: &Course,
        retry: Option<Retry>,
        mut failure: Failure,
        at_least: Duration,
    ) -> Phase {
        shorten(&mut failure.stderr);
        let Some(Retry { attempt, delay }) = retry else {
            self.note(course, "failed: not tried again by itself");
            self.report(News::Down(ConnectionState::Failed(failure)))
                .await;
            return Phase::Resting;
        };
        let delay = delay.max(at_least);
        info!(attempt, ?delay, "trying again");
        let seconds = delay.as_secs_f32();
        self.note(course, &format!("trying again in {seconds:.1} s"));
        self.retrying(attempt, Some(failure)).await;
        Phase::BackingOff(delay)
    }

    fn is_patient(&self, tries: Tries) -> bool {
        match tries {
            Tries::AsFirst => self.context.retry_first == RetryFirst::Backoff,
            Tries::Once => false,
            Tries::Series => true,
        }
    }

    /// Writes a line into the journal.
    fn note(&self, course: &Course, text: &str) {
        if let Some(journal) = &self.journal {
            journal.note(course.backoff.attempt(), text);
        }
    }

    async fn retrying(&self, attempt: u32, failure: Option<Failure>) {
        self.report(News::Retrying { attempt, failure }).await;
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
