//! Who has the terminal: a live view, or a question.
//!
//! Owns that a view is gone before a question is written, and whom a Ctrl-C is for: the first of
//! a run puts an open question away, every other ends the program, so that no server can hold a
//! person with one question after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

/// The terminal of one run.
#[derive(Debug)]
pub(crate) struct Desk {
    questions: watch::Sender<usize>,
    views: watch::Sender<usize>,
    put_away: Notify,
    spent: AtomicBool,
}

/// A question stands on the terminal until this is dropped.
pub(super) struct Open<'a> {
    _count: Count<'a>,
}

struct Count<'a>(&'a watch::Sender<usize>);

impl<'a> Count<'a> {
    fn of(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl Desk {
    /// Nobody has it.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            questions: watch::Sender::new(0),
            views: watch::Sender::new(0),
            put_away: Notify::new(),
            spent: AtomicBool::new(false),
        })
    }

    /// Takes the terminal for a question, once no view is on it.
    pub(super) async fn open(&self) -> Open<'_> {
        let count = Count::of(&self.questions);
        wait_for_none(&self.views).await;
        Open { _count: count }
    }

    /// Waits for the Ctrl-C that puts the open question away.
    pub(super) async fn put_away(&self) {
        self.put_away.notified().await;
    }

    /// A Ctrl-C came. True when it was for a question.
    pub(crate) fn interrupted(&self) -> bool {
        let is_for_question =
            *self.questions.borrow() > 0 && !self.spent.swap(true, Ordering::Relaxed);
        if is_for_question {
            self.put_away.notify_one();
        }
        is_for_question
    }

    /// Shows a view, anew after each question, until it ends by itself.
    pub(crate) async fn beside<F: Future>(&self, mut view: impl FnMut() -> F) -> F::Output {
        loop {
            wait_for_none(&self.questions).await;
            let _here = Count::of(&self.views);
            let mut questions = self.questions.subscribe();
            tokio::select! {
                shown = view() => return shown,
                // Never an error: we hold the sender.
                _ = questions.wait_for(|count| *count > 0) => {}
            }
        }
    }
}

async fn wait_for_none(count: &watch::Sender<usize>) {
    let _ = count.subscribe().wait_for(|count| *count == 0).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A view that stands until this is dropped.
    struct Shown<'a>(&'a AtomicBool);

    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_question_waits_until_the_view_is_gone_and_the_view_comes_back() {
        let desk = Desk::new();
        let shown = AtomicBool::new(false);
        let view = desk.beside(|| async {
            shown.store(true, Ordering::Relaxed);
            let _shown = Shown(&shown);
            std::future::pending::<()>().await;
        });
        let question = async {
            tokio::task::yield_now().await;
            assert!(shown.load(Ordering::Relaxed));
            let open = desk.open().await;
            assert!(!shown.load(Ordering::Relaxed));
            drop(open);
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            assert!(shown.load(Ordering::Relaxed));
        };
        tokio::select! {
            () = view => panic!("it ended by itself"),
            () = question => {}
        }
    }

    #[tokio::test]
    async fn only_the_first_ctrl_c_is_for_a_question() {
        let desk = Desk::new();
        assert!(!desk.interrupted(), "nothing is open");
        let open = desk.open().await;
        assert!(desk.interrupted());
        desk.put_away().await;
        assert!(!desk.interrupted(), "the second ends the program");
        drop(open);
        let _again = desk.open().await;
        assert!(!desk.interrupted());
    }
}
