//! Futures that are polled only when they were woken themselves.
//!
//! Owns telling them apart inside one task. A task that waits for several things polls all of them when
//! one has news; where messages pass, that was most of the work.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often futures that wake each other, or themselves, are polled before others have their turn.
const ROUNDS: usize = 4;

/// A future that is polled only when it was woken itself.
pub struct Woken<F> {
    part: WokenPart<F>,
    task: Arc<AtomicWaker>,
}

impl<F: Future> Woken<F> {
    /// It is polled once without being woken: at first.
    pub fn new(future: F) -> Self {
        let task = Arc::new(AtomicWaker::new());
        Self {
            part: WokenPart::new(future, &task),
            task,
        }
    }
}

impl<F: Future> Future for Woken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if let Poll::Ready(output) = self.part.poll() {
            return Poll::Ready(output);
        }
        self.task.register(context.waker());
        // Whoever came before that found nobody to wake.
        if self.part.is_due() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Runs two futures in one task until both have ended. Where one wakes the other, that one is polled
/// next, without a round through the runtime.
pub async fn both(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let task = Arc::new(AtomicWaker::new());
    let mut one = Some(WokenPart::new(one, &task));
    let mut other = Some(WokenPart::new(other, &task));
    std::future::poll_fn(|context| {
        for _ in 0..ROUNDS {
            advance(&mut one);
            advance(&mut other);
            if one.is_none() && other.is_none() {
                return Poll::Ready(());
            }
            task.register(context.waker());
            // Whoever came before that found nobody to wake.
            if !is_due(one.as_ref()) && !is_due(other.as_ref()) {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn advance<F: Future<Output = ()>>(part: &mut Option<WokenPart<F>>) {
    if part.as_mut().is_some_and(|part| part.poll().is_ready()) {
        *part = None;
    }
}

fn is_due<F>(part: Option<&WokenPart<F>>) -> bool {
    part.is_some_and(WokenPart::is_due)
}

struct WokenPart<F> {
    future: Pin<Box<F>>,
    alarm: Arc<PartAlarm>,
    waker: Waker,
}

impl<F> WokenPart<F> {
    fn is_due(&self) -> bool {
        self.alarm.is_due.load(Ordering::Acquire)
    }
}

impl<F: Future> WokenPart<F> {
    fn new(future: F, task: &Arc<AtomicWaker>) -> Self {
        let alarm = Arc::new(PartAlarm {
            is_due: AtomicBool::new(true),
            task: Arc::clone(task),
        });
        Self {
            future: Box::pin(future),
            waker: Arc::clone(&alarm).into(),
            alarm,
        }
    }

    fn poll(&mut self) -> Poll<F::Output> {
        if !self.alarm.is_due.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let mut context = Context::from_waker(&self.waker);
        self.future.as_mut().poll(&mut context)
    }
}

/// What wakes one future.
struct PartAlarm {
    is_due: AtomicBool,
    /// Empty while the task is looking after its futures anyway.
    task: Arc<AtomicWaker>,
}

impl Wake for PartAlarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt as _;
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::JoinSet;

    use super::*;

    /// Counts how often a future is polled.
    fn counted<F: Future>(future: F, count: &AtomicUsize) -> impl Future<Output = F::Output> {
        let mut future = Box::pin(future);
        std::future::poll_fn(move |context| {
            count.fetch_add(1, Ordering::Relaxed);
            future.as_mut().poll(context)
        })
    }

    #[tokio::test]
    async fn news_of_another_future_is_no_reason_to_poll_one() {
        let polls = AtomicUsize::new(0);
        let (end, ended) = oneshot::channel::<u8>();
        let mut quiet = Woken::new(counted(ended, &polls));
        let (sender, mut receiver) = mpsc::channel::<u8>(1);
        let sending = async {
            for number in 0..10 {
                sender.send(number).await.unwrap();
            }
            drop(sender);
        };
        let receiving = async {
            loop {
                tokio::select! {
                    biased;
                    _ = &mut quiet => panic!("nobody has sent anything"),
                    next = receiver.recv() => if next.is_none() { break },
                }
            }
        };
        tokio::join!(sending, receiving);
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        end.send(7).unwrap();
        assert_eq!(quiet.await, Ok(7));
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn one_wakes_the_other_without_waking_the_task() {
        let (sender, mut receiver) = mpsc::channel(1);
        let (start, begun) = oneshot::channel();
        let heard = AtomicUsize::new(0);
        let one = async {
            let count: u8 = begun.await.unwrap();
            for number in 0..count {
                sender.send(number).await.unwrap();
            }
            drop(sender);
        };
        let other = async {
            while receiver.recv().await.is_some() {
                heard.fetch_add(1, Ordering::Relaxed);
            }
        };
        let mut pair = Box::pin(both(one, other));
        assert!(pair.as_mut().now_or_never().is_none());
        start.send(3).unwrap();
        // One poll is enough for all of it.
        assert!(pair.as_mut().now_or_never().is_some());
        assert_eq!(heard.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn others_have_their_turn_beside_futures_that_always_wake_themselves() {
        let restless = || async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(both(restless(), restless()));
        tasks.spawn(Woken::new(restless()));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks.len(), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_news_from_other_threads_is_lost() {
        let (there, mut here) = mpsc::channel::<u32>(1);
        let (back, mut home) = mpsc::channel::<u32>(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Some(number) = here.recv().await {
                back.send(number).await.unwrap();
            }
        });
        let (inner, mut counted) = mpsc::channel::<u32>(4);
        let asking = async move {
            for number in 0..20_000 {
                there.send(number).await.unwrap();
                inner.send(home.recv().await.unwrap()).await.unwrap();
            }
        };
        let counting = async move {
            let mut next = 0;
            while let Some(number) = counted.recv().await {
                assert_eq!(number, next);
                next += 1;
            }
            assert_eq!(next, 20_000);
        };
        tasks.spawn(both(asking, counting));
        tasks.join_all().await;
    }
}
