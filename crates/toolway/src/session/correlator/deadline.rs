//! How long a request may take: in all, and without a sign of life.
//!
//! Owns the two clocks of a request. The absolute one never stops. The idle one starts anew with
//! every sign of life of its own request, and stands still while a person of ours is being asked
//! something by the same server: the server waits for us then, not we for it.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolway_transport::AnswerTimeout;

use crate::error::RequestError;

/// When a request is given up. Copied from round to round, so that all rounds share one end.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Deadline {
    end: Option<Instant>,
    /// In milliseconds: every request carries several copies along.
    idle: Option<NonZeroU64>,
    answer_timeout: AnswerTimeout,
}

/// How many questions of the server are open on our side, and when the last was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuestionsInProgress {
    open: usize,
    ended: Instant,
}

/// A question of the server is open until this is dropped.
pub(super) struct QuestionGuard(watch::Sender<QuestionsInProgress>);

impl Deadline {
    /// From now on. How long an answer may take to begin is left to the channel.
    pub(in crate::session) fn new(timeout: Duration, idle: Option<Duration>) -> Self {
        // A limit beyond the clock's end is no limit.
        let end = Instant::now().checked_add(timeout);
        let idle = idle.and_then(|idle| u64::try_from(idle.as_millis()).ok());
        Self {
            end,
            idle: idle.and_then(NonZeroU64::new),
            answer_timeout: AnswerTimeout::ByChannel,
        }
    }

    /// The same with this patience for the beginning of an answer.
    pub(in crate::session) fn with_answer_timeout(self, answer_timeout: AnswerTimeout) -> Self {
        Self {
            answer_timeout,
            ..self
        }
    }

    /// How long an answer may take to begin.
    pub(super) fn answer_timeout(&self) -> AnswerTimeout {
        self.answer_timeout
    }

    /// Only the absolute end, however long an answer takes to begin and whatever is heard: what
    /// is waited for may be a person.
    pub(in crate::session) fn absolute(self) -> Self {
        Self {
            idle: None,
            answer_timeout: AnswerTimeout::BySender,
            ..self
        }
    }

    /// Whether signs of life matter, so that the server should be asked for them.
    pub(in crate::session) fn wants_signs_of_life(&self) -> bool {
        self.idle.is_some()
    }

    /// Waits until the time is over. `last` reads the request's last sign of life.
    pub(super) async fn passes(
        &self,
        last: impl Fn() -> Instant,
        asking: &watch::Sender<QuestionsInProgress>,
    ) -> RequestError {
        let Some(after) = self.idle else {
            return self.ends().await;
        };
        let after = Duration::from_millis(after.get());
        // One timer for both clocks: most requests are answered long before either.
        loop {
            let questions = *asking.borrow();
            if questions.open > 0 {
                // Boxed: a request during which nobody is asked must not carry the room along.
                let asked = Box::pin(self.unless_over(all_answered(asking)));
                if let Err(error) = asked.await {
                    return error;
                }
                continue;
            }
            let silent = last().max(questions.ended).checked_add(after);
            let now = Instant::now();
            if self.end.is_some_and(|end| end <= now) {
                return RequestError::TimedOut;
            }
            if silent.is_some_and(|silent| silent <= now) {
                return RequestError::Idle { after };
            }
            match silent.into_iter().chain(self.end).min() {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Runs something that is no request of its own. Only the absolute end counts: the server is
    /// not waited for here.
    pub(in crate::session) async fn unless_over<T>(
        self,
        work: impl Future<Output = T>,
    ) -> Result<T, RequestError> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            error = self.ends() => Err(error),
        }
    }

    /// A limit of its own for one step, which the absolute end still bounds.
    pub(in crate::session) fn within(self, limit: Duration) -> Self {
        let own = Self::new(limit, None);
        let end = match (self.end, own.end) {
            (Some(whole), Some(own)) => Some(whole.min(own)),
            (whole, own) => whole.or(own),
        };
        Self {
            end,
            idle: None,
            answer_timeout: self.answer_timeout,
        }
    }

    /// Waits for the absolute end only.
    async fn ends(&self) -> RequestError {
        match self.end {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
        RequestError::TimedOut
    }
}

/// Waits until no question is open.
async fn all_answered(asking: &watch::Sender<QuestionsInProgress>) {
    let mut asking = asking.subscribe();
    // It cannot fail: the sender is at hand.
    let _ = asking.wait_for(|asking| asking.open == 0).await;
}

impl QuestionsInProgress {
    pub(super) fn none() -> watch::Sender<Self> {
        watch::Sender::new(Self {
            open: 0,
            ended: Instant::now(),
        })
    }
}

impl QuestionGuard {
    pub(super) fn start(asking: &watch::Sender<QuestionsInProgress>) -> Self {
        asking.send_modify(|asking| asking.open += 1);
        Self(asking.clone())
    }
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        self.0.send_modify(|asking| {
            asking.open = asking.open.saturating_sub(1);
            asking.ended = Instant::now();
        });
    }
}
