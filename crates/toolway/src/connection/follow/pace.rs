//! When one list is fetched again.
//!
//! Owns when to fetch: at once after a change, then not again for an interval that doubles while
//! changes keep coming and shrinks back after quiet (REL-21); a few times after a failure; and,
//! where changes are not announced, when the server's own `ttlMs` has passed. Knows no session and
//! starts nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::session::freshness::spread;

/// The shortest time between the end of one fetch and the begin of the next.
const SHORTEST: Duration = Duration::from_secs(1);

/// So many changes in a row are no storm yet.
const A_FEW: u32 = 3;

/// What that grows to under a storm of changes.
const LONGEST: Duration = Duration::from_secs(30);

/// How often a fetch that failed is tried again.
const RETRIES: u32 = 5;

/// A list is not polled more often than this, whatever `ttlMs` says.
const SHORTEST_POLL: Duration = Duration::from_secs(30);

/// The longest wait that repeated answers without news lead to.
const LONGEST_POLL: Duration = Duration::from_hours(1);

/// The rhythm of one list.
#[derive(Debug)]
pub(super) struct Pace {
    /// The changes that the last fetch covers, and those that were announced.
    covered: u64,
    announced: u64,
    /// Something other than a change asks for a fetch.
    demanded: bool,
    /// Whether what asks for the next fetch came before the last one's interval was over.
    pressed: bool,
    /// How many fetches in a row that was so for.
    presses: u32,
    running: bool,
    interval: Duration,
    not_before: Instant,
    failures: u32,
    retry_at: Option<Instant>,
    poll_at: Option<Instant>,
    polls_without_news: u32,
}

/// How a fetch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchOutcome {
    /// With something new.
    Changed,
    /// With what was known.
    Same,
    /// Without an answer.
    Failed,
}

impl Pace {
    /// Of a list that was just fetched, and is fresh for so long.
    pub(super) fn new(now: Instant, ttl: Option<Duration>) -> Self {
        let mut pace = Self {
            covered: 0,
            announced: 0,
            demanded: false,
            pressed: false,
            presses: 0,
            running: false,
            interval: SHORTEST,
            not_before: now,
            failures: 0,
            retry_at: None,
            poll_at: None,
            polls_without_news: 0,
        };
        pace.plan_poll(now, ttl);
        pace
    }

    /// So many changes were announced by now.
    pub(super) fn note(&mut self, now: Instant, announced: u64) {
        if announced != self.announced {
            self.announced = announced;
            self.press(now);
        }
    }

    /// The list must be fetched for another reason.
    pub(super) fn demand(&mut self, now: Instant) {
        self.demanded = true;
        self.press(now);
    }

    fn press(&mut self, now: Instant) {
        self.pressed |= self.running || now < self.not_before;
        self.polls_without_news = 0;
    }

    /// When the next fetch begins; `None` when nothing asks for one, or one is under way. Where
    /// changes are announced there is no polling.
    pub(super) fn due(&self, is_announced: bool) -> Option<Instant> {
        if self.running {
            return None;
        }
        if self.demanded || self.announced != self.covered {
            return Some(self.not_before);
        }
        self.retry_at.or(self.poll_at.filter(|_| !is_announced))
    }

    /// A fetch begins. It covers every change announced so far.
    pub(super) fn begin(&mut self) {
        self.presses = if self.pressed { self.presses + 1 } else { 0 };
        self.interval = if self.presses > A_FEW {
            (self.interval * 2).min(LONGEST)
        } else {
            SHORTEST
        };
        self.covered = self.announced;
        self.demanded = false;
        self.pressed = false;
        self.running = true;
        self.retry_at = None;
        self.poll_at = None;
    }

    /// The fetch ended; what it brought is fresh for so long.
    pub(super) fn end(&mut self, now: Instant, outcome: FetchOutcome, ttl: Option<Duration>) {
        self.running = false;
        self.not_before = now + self.interval;
        match outcome {
            FetchOutcome::Failed => {
                self.failures += 1;
                if self.failures <= RETRIES {
                    let wait = SHORTEST * (1 << self.failures.min(5));
                    self.retry_at = Some(now + spread(wait.min(LONGEST)));
                }
                return;
            }
            FetchOutcome::Changed => self.polls_without_news = 0,
            FetchOutcome::Same => self.polls_without_news += 1,
        }
        self.failures = 0;
        self.plan_poll(now, ttl);
    }

    fn plan_poll(&mut self, now: Instant, ttl: Option<Duration>) {
        self.poll_at = ttl.map(|ttl| {
            let slower = 1 << self.polls_without_news.min(16);
            let wait = ttl.max(SHORTEST_POLL);
            let most = wait.max(LONGEST_POLL);
            now + spread(wait.saturating_mul(slower).min(most))
        });
    }
}

#[cfg(test)]
mod tests;
