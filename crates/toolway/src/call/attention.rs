//! Questions to the user, counted.
//!
//! Knows whether a question to one caller is open, so that its time is not the call's. How questions
//! are asked is `questions/asker.rs`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// How many questions to a person are open.
#[derive(Clone)]
pub(crate) struct Attention(Arc<watch::Sender<usize>>);

impl Default for Attention {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Attention {
    /// Waits for so much time in which no question to a user is open.
    pub(crate) async fn unasked(&self, time: Duration) {
        let mut open = self.0.subscribe();
        let mut left = time;
        loop {
            // Never an error: we hold the sender.
            let _ = open.wait_for(|open| *open == 0).await;
            let begun = Instant::now();
            tokio::select! {
                biased;
                _ = open.wait_for(|open| *open > 0) => {
                    left = left.saturating_sub(begun.elapsed());
                }
                () = tokio::time::sleep(left) => return,
            }
        }
    }

    /// A question is open until what is given is dropped.
    pub(crate) fn open(&self) -> AttentionGuard<'_> {
        self.0.send_modify(|open| *open += 1);
        AttentionGuard(&self.0)
    }
}

/// A question is open until this is dropped.
pub(crate) struct AttentionGuard<'a>(&'a watch::Sender<usize>);

impl Drop for AttentionGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
