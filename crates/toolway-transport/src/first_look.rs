//! A look at messages where they are read, before they wait for their turn.
//!
//! Owns that order is kept: who looks first takes a message only while no other waits. What is taken,
//! and what becomes of it, is the session's.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Who looks at a message first; true where that was all, and nobody else is to see it.
type Look = dyn Fn(&Bytes) -> bool + Send + Sync;

/// The way of the commonest messages past the queue: to hand one over costs more than to read it.
/// Clones are the same one.
#[derive(Clone, Default)]
pub struct FirstLook(Arc<OnceLock<Box<Look>>>);

impl FirstLook {
    /// From now on `look` sees messages first. It must not block, and is set once.
    pub fn set(&self, look: impl Fn(&Bytes) -> bool + Send + Sync + 'static) {
        // A channel has one session.
        let _ = self.0.set(Box::new(look));
    }

    /// Whether this message needs to go no further. Where others wait to be seen to it does: what was
    /// said before an answer must be heard before it.
    pub(crate) fn takes<T>(&self, message: &Bytes, queue: &mpsc::Sender<T>) -> bool {
        let is_next = queue.capacity() == queue.max_capacity();
        is_next && self.0.get().is_some_and(|look| look(message))
    }
}

impl fmt::Debug for FirstLook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FirstLook")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_is_taken_past_the_queue_only_while_none_waits_there() {
        let (queue, mut waiting) = mpsc::channel(4);
        let first_look = FirstLook::default();
        let (answer, other) = (Bytes::from_static(b"answer"), Bytes::from_static(b"other"));
        assert!(!first_look.takes(&answer, &queue), "nobody looks yet");
        first_look.set(|message| message == "answer");
        assert!(first_look.takes(&answer, &queue));
        assert!(!first_look.takes(&other, &queue));
        queue.send(other).await.unwrap();
        assert!(!first_look.takes(&answer, &queue), "one was there before");
        assert!(waiting.recv().await.is_some());
        assert!(first_look.takes(&answer, &queue));
    }
}
