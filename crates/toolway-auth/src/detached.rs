//! Detached tasks: work that is finished although its caller is gone.
//!
//! Owns the only place of this crate that spawns, and the count of running tasks, so that a program
//! that ends can wait for them. Each is bounded by what it does: a lock, a request, a file.
//! Does not own: what a task does, or what its loss would mean (`refresh.rs`, `idp.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::Instrument as _;

/// The tasks of one owner. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct DetachedTasks {
    under_way: Arc<watch::Sender<usize>>,
}

/// The task did not finish: it panicked, or the runtime shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the program ended, or failed, before the answer was there")]
pub(crate) struct TaskLost;

impl Default for DetachedTasks {
    fn default() -> Self {
        Self {
            under_way: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl DetachedTasks {
    /// Starts a task at once. Dropping the returned future does not stop it.
    pub(crate) fn start<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, TaskLost>> + use<T, F>
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
    ) -> impl Future<Output = Result<T, TaskLost>> + use<T> {
        let counted = TaskCount::new(self);
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
        async move { started.await.map_err(|_| TaskLost) }
    }

    /// Waits until none is running, at most this long.
    pub(crate) async fn settle(&self, within: Duration) {
        let mut under_way = self.under_way.subscribe();
        let settled = under_way.wait_for(|count| *count == 0);
        if tokio::time::timeout(within, settled).await.is_err() {
            tracing::warn!("a renewal was not answered in time, and is given up");
        }
    }
}

/// Counts one running task until dropped.
struct TaskCount(DetachedTasks);

impl TaskCount {
    fn new(detached: &DetachedTasks) -> Self {
        detached.under_way.send_modify(|count| *count += 1);
        Self(detached.clone())
    }
}

impl Drop for TaskCount {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_task_is_finished_without_whoever_asked_for_it() {
        let detached = DetachedTasks::default();
        let (go, gone) = oneshot::channel::<()>();
        let (done, mut is_done) = oneshot::channel();
        drop(detached.start(async move {
            gone.await.unwrap();
            done.send(()).unwrap();
        }));
        go.send(()).unwrap();
        detached.settle(Duration::from_mins(1)).await;
        assert_eq!(is_done.try_recv(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_ends_is_waited_for_as_long_as_was_said() {
        let detached = DetachedTasks::default();
        detached.settle(Duration::MAX).await;
        drop(detached.start(std::future::pending::<()>()));
        let begun = tokio::time::Instant::now();
        detached.settle(Duration::from_secs(5)).await;
        assert!(begun.elapsed() >= Duration::from_secs(5));
    }

    #[tokio::test]
    async fn one_that_panics_is_told_and_not_counted() {
        let detached = DetachedTasks::default();
        let outcome = detached.start(async { panic!("on purpose") });
        assert_eq!(outcome.await, Err::<(), _>(TaskLost));
        detached.settle(Duration::MAX).await;
    }
}
