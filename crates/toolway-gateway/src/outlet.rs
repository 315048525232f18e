//! What waits to be read by a client: answers, and what is said to it before or without one.
//!
//! Owns the bounded queue between a service and a client that may stop reading (REL-29). A client
//! over one pipe has one; over HTTP each exchange and each stream has its own. A
//! notification that finds no room takes the place of the oldest one; a request to the client that
//! finds none fails; answers are bounded by taking no more requests. Nothing here waits, so a
//! stalled client affects no other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::Notify;

/// How many notifications, and how many requests to the client, may wait.
pub const MAX_WAITING: usize = 256;
/// How many bytes of notifications may wait.
pub const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;
/// How many bytes of answers may wait before no more requests are taken.
pub const MAX_UNREAD: usize = 64 * 1024 * 1024;

/// A client that does not read what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has not read what it was told before")]
pub struct ClientBusy;

/// Where a service says something to a client. Clones are the same outlet.
#[derive(Debug, Clone, Default)]
pub struct Outlet(Arc<OutletQueue>);

#[derive(Debug, Default)]
struct OutletQueue {
    queue: Mutex<OutgoingQueue>,
    /// There is less to write.
    taken: Notify,
}

#[derive(Debug, Default)]
struct OutgoingQueue {
    waiting: VecDeque<(OutgoingKind, Bytes)>,
    answers: QueueLoad,
    requests: QueueLoad,
    notifications: QueueLoad,
    dropped: u64,
    /// A message is being written.
    in_hand: bool,
    gone: bool,
    /// Who waits for something to write; there is one at a time.
    reader: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutgoingKind {
    Answer,
    Request,
    Notification,
}

/// How much of one kind waits.
#[derive(Debug, Clone, Copy, Default)]
struct QueueLoad {
    count: usize,
    bytes: usize,
}

impl OutgoingQueue {
    fn load(&mut self, kind: OutgoingKind) -> &mut QueueLoad {
        match kind {
            OutgoingKind::Answer => &mut self.answers,
            OutgoingKind::Request => &mut self.requests,
            OutgoingKind::Notification => &mut self.notifications,
        }
    }

    fn push(&mut self, kind: OutgoingKind, message: Bytes) {
        let load = self.load(kind);
        load.count += 1;
        load.bytes += message.len();
        self.waiting.push_back((kind, message));
    }

    fn remove(&mut self, place: usize) -> Option<Bytes> {
        let (kind, message) = self.waiting.remove(place)?;
        let load = self.load(kind);
        load.count -= 1;
        load.bytes -= message.len();
        Some(message)
    }

    /// Has the reader woken when there is something; resolves when nothing comes any more.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.gone {
            return Poll::Ready(());
        }
        match &mut self.reader {
            Some(reader) => reader.clone_from(context.waker()),
            reader @ None => *reader = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn drop_oldest_notification(&mut self) {
        let oldest = self
            .waiting
            .iter()
            .position(|(kind, _)| *kind == OutgoingKind::Notification);
        if oldest.and_then(|place| self.remove(place)).is_some() {
            self.dropped += 1;
        }
    }
}

impl Outlet {
    /// Tells the client something. When too much waits already, the oldest notification is dropped.
    pub fn notify(&self, message: Bytes) {
        let mut queue = self.queue();
        if queue.gone {
            return;
        }
        queue.push(OutgoingKind::Notification, message);
        // The newest always stays: it says what holds now.
        while queue.notifications.count > MAX_WAITING
            || (queue.notifications.count > 1 && queue.notifications.bytes > MAX_WAITING_BYTES)
        {
            queue.drop_oldest_notification();
        }
        wake(queue);
    }

    /// Sends the client a request of our own, unless too many wait already. The answer comes to
    /// the service like any message.
    pub fn ask(&self, message: Bytes) -> Result<(), ClientBusy> {
        let mut queue = self.queue();
        let is_full = queue.requests.count >= MAX_WAITING || queue.requests.bytes > MAX_UNREAD;
        if queue.gone || is_full {
            return Err(ClientBusy);
        }
        queue.push(OutgoingKind::Request, message);
        wake(queue);
        Ok(())
    }

    /// How many notifications were dropped because the client did not read.
    pub fn dropped(&self) -> u64 {
        self.queue().dropped
    }

    /// Whether the client has ended its conversation.
    pub fn is_gone(&self) -> bool {
        self.queue().gone
    }

    /// Queues an answer. Answers are never dropped; see [`Outlet::has_room`].
    pub(crate) fn answer(&self, message: Bytes) {
        let mut queue = self.queue();
        queue.push(OutgoingKind::Answer, message);
        wake(queue);
    }

    /// How many answers wait, and whether their bytes leave room for more.
    pub(crate) fn unread(&self) -> (usize, bool) {
        let queue = self.queue();
        (queue.answers.count, queue.answers.bytes <= MAX_UNREAD)
    }

    /// The next message to write. [`Outlet::written`] must follow before the next one is
    /// asked for. Losing the future loses no message.
    pub(crate) async fn next(&self) -> Bytes {
        match std::future::poll_fn(|context| self.poll_next(context)).await {
            Some(message) => message,
            // Closed: nothing comes any more.
            None => std::future::pending().await,
        }
    }

    /// The next message to write, or nothing once the outlet is closed. Only the last who asked is
    /// woken.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut queue = self.queue();
        if let Some(message) = queue.remove(0) {
            queue.in_hand = true;
            return Poll::Ready(Some(message));
        }
        queue.wait(context).map(|()| None)
    }

    /// Whether something waits to be written; not once the outlet is closed. Only the last who
    /// asked is woken.
    pub(crate) fn poll_waiting(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut queue = self.queue();
        if !queue.waiting.is_empty() {
            return Poll::Ready(true);
        }
        queue.wait(context).map(|()| false)
    }

    /// The next message to write, if there is one now.
    pub(crate) fn try_next(&self) -> Option<Bytes> {
        self.queue().remove(0)
    }

    /// Whether something waits to be written.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue().waiting.is_empty()
    }

    /// The message that was taken is with the client.
    pub(crate) fn written(&self) {
        self.queue().in_hand = false;
        self.0.taken.notify_one();
    }

    /// Waits until something was taken since the last look.
    pub(crate) async fn taken(&self) {
        self.0.taken.notified().await;
    }

    /// Waits until everything is with the client.
    pub(crate) async fn drained(&self) {
        loop {
            {
                let queue = self.queue();
                if queue.waiting.is_empty() && !queue.in_hand {
                    return;
                }
            }
            self.taken().await;
        }
    }

    /// Nothing can be said any more.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.gone = true;
        queue.waiting.clear();
        wake(queue);
    }

    fn queue(&self) -> MutexGuard<'_, OutgoingQueue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes who waits, after the lock is given back.
fn wake(mut queue: MutexGuard<'_, OutgoingQueue>) {
    let reader = queue.reader.take();
    drop(queue);
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn notifications_give_way_to_newer_ones_and_nothing_else_does() {
        let client = Outlet::default();
        client.answer(Bytes::from_static(b"answer"));
        client.ask(Bytes::from_static(b"request")).unwrap();
        for number in 0..=MAX_WAITING {
            client.notify(Bytes::from(number.to_string()));
        }
        assert_eq!(client.dropped(), 1);
        let mut read = Vec::new();
        for _ in 0..MAX_WAITING + 2 {
            read.push(client.next().await);
            client.written();
        }
        assert_eq!(&read[..3], ["answer", "request", "1"]);
        assert_eq!(read.last(), Some(&Bytes::from(MAX_WAITING.to_string())));
        client.drained().await;
    }

    #[test]
    fn large_notifications_are_bounded_by_their_bytes() {
        let client = Outlet::default();
        let large = Bytes::from(vec![b'x'; MAX_WAITING_BYTES]);
        for _ in 0..3 {
            client.notify(large.clone());
        }
        assert_eq!(client.dropped(), 2);
    }

    #[test]
    fn a_request_that_finds_no_room_fails() {
        let client = Outlet::default();
        for _ in 0..MAX_WAITING {
            client.ask(Bytes::new()).unwrap();
        }
        assert_eq!(client.ask(Bytes::new()), Err(ClientBusy));
        client.close();
        assert!(client.is_gone());
        assert_eq!(client.ask(Bytes::new()), Err(ClientBusy));
    }
}
