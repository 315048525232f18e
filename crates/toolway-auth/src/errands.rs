//! Errands: work that is finished although whoever asked for it has gone.
//!
//! Owns the only place of this crate that starts a task, and knowing how many are under way, so
//! that a program that ends can wait for them. Each is bounded by what it does: a turn that is
//! waited for, a request, a file.
//! Does not own: what an errand does, or what its loss would mean (`refresh.rs`, `idp.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::Instrument as _;

/// The errands of one owner. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Errands {
    under_way: Arc<watch::Sender<usize>>,
}

/// The errand was not finished: it panicked, or the runtime went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the program ended, or failed, before the answer was there")]
pub(crate) struct GivenUp;

impl Default for Errands {
    fn default() -> Self {
        Self {
            under_way: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Errands {
    /// Starts an errand at once. Whoever does not wait for its outcome leaves it to itself.
    pub(crate) fn start<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, GivenUp>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.start_boxed(Box::pin(work))
    }

    /// One kind of task for each outcome, not for each work: the runtime's part is compiled once.
    fn start_boxed<T: Send + 'static>(
        &self,
        work: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> impl Future<Output = Result<T, GivenUp>> + use<T> {
        let counted = Counted::new(self);
        let work = async move {
            let outcome = work.await;
            drop(counted);
            outcome
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place of this crate that spawns"
        )]
        let started = tokio::spawn(work.in_current_span());
        async move { started.await.map_err(|_| GivenUp) }
    }

    /// Waits until none is under way, and no longer than this.
    pub(crate) async fn settle(&self, within: Duration) {
        let mut under_way = self.under_way.subscribe();
        let settled = under_way.wait_for(|count| *count == 0);
        if tokio::time::timeout(within, settled).await.is_err() {
            tracing::warn!("a renewal was not answered in time, and is given up");
        }
    }
}

/// One errand in the count, however it ends.
struct Counted(Errands);

impl Counted {
    fn new(errands: &Errands) -> Self {
        errands.under_way.send_modify(|count| *count += 1);
        Self(errands.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_errand_is_finished_without_whoever_asked_for_it() {
        let errands = Errands::default();
        let (go, gone) = oneshot::channel::<()>();
        let (done, mut is_done) = oneshot::channel();
        drop(errands.start(async move {
            gone.await.unwrap();
            done.send(()).unwrap();
        }));
        go.send(()).unwrap();
        errands.settle(Duration::from_mins(1)).await;
        assert_eq!(is_done.try_recv(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_ends_is_waited_for_as_long_as_was_said() {
        let errands = Errands::default();
        errands.settle(Duration::MAX).await;
        drop(errands.start(std::future::pending::<()>()));
        let begun = tokio::time::Instant::now();
        errands.settle(Duration::from_secs(5)).await;
        assert!(begun.elapsed() >= Duration::from_secs(5));
    }

    #[tokio::test]
    async fn one_that_panics_is_told_and_not_counted() {
        let errands = Errands::default();
        let outcome = errands.start(async { panic!("on purpose") });
        assert_eq!(outcome.await, Err::<(), _>(GivenUp));
        errands.settle(Duration::MAX).await;
    }
}
