//! The only place where the host starts a task.
//!
//! Owns naming, cancelling and joining. A [`Task`] belongs to what started it: dropping it aborts
//! the work, so ownership of tasks is a tree, and dropping its root (the `Host`) ends all of it.
//! What a task does, and how it ends in an orderly way, is its owner's affair.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument, Span, debug_span};

/// How long a task that was aborted is waited for: only one that never yields takes any time.
const ABORTED_WITHIN: Duration = Duration::from_secs(1);

/// A running task that ends, at the latest, when this is dropped.
#[derive(Debug)]
pub(crate) struct Task<T> {
    name: String,
    handle: JoinHandle<T>,
}

/// Why a task has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskFailure {
    /// It panicked, or was aborted.
    #[error("the task `{name}` ended early: {source}")]
    Early { name: String, source: JoinError },
    /// It was given its time to end, and did not use it.
    #[error("the task `{name}` did not end within {} s and was aborted", .after.as_secs_f32())]
    Late { name: String, after: Duration },
}

impl TaskFailure {
    /// Whether a bug ended the task.
    pub(crate) fn is_panic(&self) -> bool {
        matches!(self, Self::Early { source, .. } if source.is_panic())
    }
}

/// Starts a task under the current span, which its own span does not replace: the task's is
/// often filtered out, and the server's name must not go with it.
pub(crate) fn spawn<T, F>(name: impl Into<String>, work: F) -> Task<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let name = name.into();
    // One kind of task for each outcome, not for each work: the runtime's part is compiled once.
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    let span = debug_span!(parent: &Span::current(), "task", name);
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that spawns"
    )]
    let handle = tokio::spawn(work.instrument(span).in_current_span());
    Task { name, handle }
}

/// Runs work that may block, such as reading files, away from the threads that serve. It cannot be
/// ended early; a caller that stops waiting leaves it to itself.
pub(crate) async fn blocking<T, F>(name: &'static str, work: F) -> Result<T, TaskFailure>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|source| TaskFailure::Early {
            name: name.to_owned(),
            source,
        })
}

impl<T> Task<T> {
    /// Whether it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Has it end as soon as it yields.
    pub(crate) fn abort(&self) {
        self.handle.abort();
    }

    /// Waits until the task has ended. A caller that goes away while it waits aborts the task.
    pub(crate) async fn join(mut self) -> Result<T, TaskFailure> {
        let outcome = (&mut self.handle).await;
        outcome.map_err(|source| TaskFailure::Early {
            name: std::mem::take(&mut self.name),
            source,
        })
    }

    /// Waits until the task has ended, and aborts it when that takes too long. A caller that goes
    /// away while it waits may wait again; one that has an outcome must not.
    pub(crate) async fn end_within(&mut self, after: Duration) -> Result<T, TaskFailure> {
        let name = self.name.clone();
        if let Ok(outcome) = tokio::time::timeout(after, &mut self.handle).await {
            return outcome.map_err(|source| TaskFailure::Early { name, source });
        }
        self.abort();
        // What it owned is gone when it is; a task that never yields is left behind.
        match tokio::time::timeout(ABORTED_WITHIN, &mut self.handle).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(source)) if source.is_panic() => Err(TaskFailure::Early { name, source }),
            Ok(Err(_)) | Err(_) => Err(TaskFailure::Late { name, after }),
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn dropping_a_task_drops_what_it_owns() {
        let (held, gone) = oneshot::channel::<()>();
        let task = spawn("holder", async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        drop(task);
        assert!(gone.await.is_err(), "the sender was dropped with the task");
    }

    #[tokio::test]
    async fn a_task_that_panics_is_an_error_with_its_name() {
        let task = spawn("clumsy", async { panic!("on purpose") });
        let failure = task.join().await.unwrap_err();
        assert!(failure.to_string().contains("`clumsy`"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_end_is_aborted_and_what_it_owns_is_gone() {
        let (held, mut gone) = oneshot::channel::<()>();
        let mut task = spawn("stubborn", async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let failure = task.end_within(Duration::from_secs(5)).await.unwrap_err();
        assert!(!failure.is_panic());
        assert!(failure.to_string().contains("`stubborn`"), "{failure}");
        assert!(failure.to_string().contains("5 s"), "{failure}");
        gone.try_recv()
            .expect_err("the sender was dropped with the task");
    }
}
