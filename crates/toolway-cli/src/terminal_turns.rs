//! Who has the terminal: a live view, or one question.
//!
//! Owns that one question is open at a time, so that no server's question takes the answer to one of
//! ours (SEC-34); that a view is gone before a question is written; and what a Ctrl-C ends: the first
//! of a run a server's open question, every other the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard, Notify, watch};

use crate::log;

/// The terminal of one run.
#[derive(Debug)]
pub(crate) struct TerminalTurns {
    turn: Mutex<()>,
    questions: watch::Sender<usize>,
    views: watch::Sender<usize>,
    put_away: Notify,
    is_of_server: AtomicBool,
    spent: AtomicBool,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A server: a Ctrl-C puts its question away.
    Server,
    /// The program itself: a Ctrl-C ends it.
    Program,
}

/// A question stands on the terminal until this is dropped.
pub(crate) struct Open<'a> {
    turns: &'a TerminalTurns,
    _count: Count<'a>,
    // Before the turn is given on, so that what was kept back stands between two questions.
    _log: log::Held,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.turns.is_of_server.store(false, Ordering::Relaxed);
    }
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

impl TerminalTurns {
    /// A terminal that is free.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            turn: Mutex::new(()),
            questions: watch::Sender::new(0),
            views: watch::Sender::new(0),
            put_away: Notify::new(),
            is_of_server: AtomicBool::new(false),
            spent: AtomicBool::new(false),
        })
    }

    /// Takes the terminal for a question, once neither another question nor a view is on it.
    pub(crate) async fn open(&self, asker: Asker) -> Open<'_> {
        let turn = self.turn.lock().await;
        self.is_of_server
            .store(asker == Asker::Server, Ordering::Relaxed);
        let open = Open {
            turns: self,
            _count: Count::of(&self.questions),
            _log: log::hold(),
            _turn: turn,
        };
        wait_for_none(&self.views).await;
        open
    }

    /// Waits for the Ctrl-C that puts the open question away.
    pub(crate) async fn put_away(&self) {
        self.put_away.notified().await;
    }

    /// A Ctrl-C came. True when it was for a server's question.
    pub(crate) fn interrupted(&self) -> bool {
        let is_for_question =
            self.is_of_server.load(Ordering::Relaxed) && !self.spent.swap(true, Ordering::Relaxed);
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
        let turns = TerminalTurns::new();
        let shown = AtomicBool::new(false);
        let view = turns.beside(|| async {
            shown.store(true, Ordering::Relaxed);
            let _shown = Shown(&shown);
            std::future::pending::<()>().await;
        });
        let question = async {
            tokio::task::yield_now().await;
            assert!(shown.load(Ordering::Relaxed));
            let open = turns.open(Asker::Server).await;
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
    async fn sec_34_a_servers_question_waits_until_another_is_answered() {
        let turns = TerminalTurns::new();
        let ours = turns.open(Asker::Program).await;
        assert!(!turns.interrupted(), "it ends the program");
        let mut theirs = std::pin::pin!(turns.open(Asker::Server));
        assert!(futures_util::poll!(&mut theirs).is_pending());
        assert!(!turns.interrupted(), "it is for the question that is seen");
        drop(ours);
        let _theirs = theirs.await;
        assert!(turns.interrupted());
    }

    #[tokio::test]
    async fn only_the_first_ctrl_c_is_for_a_question() {
        let turns = TerminalTurns::new();
        assert!(!turns.interrupted(), "nothing is open");
        let open = turns.open(Asker::Server).await;
        assert!(turns.interrupted());
        turns.put_away().await;
        assert!(!turns.interrupted(), "the second ends the program");
        drop(open);
        let _again = turns.open(Asker::Server).await;
        assert!(!turns.interrupted());
    }
}
