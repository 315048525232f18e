//! A timer of one connection that is set for every request and almost never rings.
//!
//! Owns putting a limit off without a word to the runtime: the clock that runs is left alone as long
//! as it rings early enough, and is wound again only when it has rung too early. Setting a timer of
//! the runtime instead costs a call its place in the queue of timers, twice, and, where it is the
//! next to ring, a system call.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::rt::{Sleep as HyperSleep, Timer as HyperTimer};
use tokio::time::{Duration, Instant, Sleep};

/// A timer. Clones are the same one, which has one user at a time.
#[derive(Clone, Default)]
pub(super) struct LazyTimer(Arc<Mutex<LazyClock>>);

#[derive(Default)]
struct LazyClock {
    /// What runs; it may ring before the time, never after it.
    running: Option<Pin<Box<Sleep>>>,
    /// When the limit is over.
    due: Option<Instant>,
}

impl LazyTimer {
    /// Begins anew: the limit is over then.
    pub(super) fn set(&self, due: Instant) {
        let mut clock = self.clock();
        clock.due = Some(due);
        if let Some(running) = &mut clock.running
            && running.deadline() > due
        {
            running.as_mut().reset(due);
        }
    }

    /// The same, so long from now.
    pub(super) fn set_in(&self, time: Duration) {
        self.set(Instant::now() + time);
    }

    /// Whether the limit is over. Whoever asked last is woken when it may be.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut clock = self.clock();
        let Some(due) = clock.due else {
            return Poll::Pending;
        };
        let running = clock
            .running
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        while running.as_mut().poll(context).is_ready() {
            if running.deadline() >= due {
                return Poll::Ready(());
            }
            running.as_mut().reset(due);
        }
        Poll::Pending
    }

    fn clock(&self) -> MutexGuard<'_, LazyClock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a request's head may take, as hyper asks for it.
struct HeadLimit(LazyTimer);

impl Future for HeadLimit {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll(context)
    }
}

impl HyperSleep for HeadLimit {}

impl HyperTimer for LazyTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn HyperSleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn HyperSleep>> {
        self.set(deadline.into());
        Box::pin(HeadLimit(self.clone()))
    }

    fn reset(&self, _: &mut Pin<Box<dyn HyperSleep>>, new_deadline: std::time::Instant) {
        self.set(new_deadline.into());
    }

    fn now(&self) -> std::time::Instant {
        // By the clock of the runtime, which tests move.
        Instant::now().into_std()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_rings_when_the_last_limit_is_over_and_not_before() {
        let timer = LazyTimer::default();
        let begin = Instant::now();
        timer.set_in(SECOND);
        for _ in 0..10 {
            tokio::time::advance(SECOND / 2).await;
            assert!(futures_util::poll!(poll_fn(|context| timer.poll(context))).is_pending());
            timer.set_in(SECOND);
        }
        poll_fn(|context| timer.poll(context)).await;
        assert_eq!(begin.elapsed().as_millis().div_ceil(10), 600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_limit_counts_at_once_and_an_old_one_not_any_more() {
        let timer = LazyTimer::default();
        timer.set_in(SECOND * 60);
        assert!(futures_util::poll!(poll_fn(|context| timer.poll(context))).is_pending());
        let begin = Instant::now();
        timer.set_in(SECOND);
        poll_fn(|context| timer.poll(context)).await;
        assert!(begin.elapsed() < SECOND * 2);
        timer.set_in(SECOND);
        assert!(futures_util::poll!(poll_fn(|context| timer.poll(context))).is_pending());
    }
}
