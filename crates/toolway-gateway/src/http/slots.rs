//! Connection slots: a limited number, and which one is freed when all are taken.
//!
//! Owns the choice: at the limit a new connection takes the place of the one that has been idle for
//! longest. Connections that only trickle in (slowloris, SEC-30) are idle in this sense, so they
//! can fill every slot and still keep no client out. A connection with a request under way is never
//! ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::counters::{Counter as _, FrontCounters};

/// One connection's slot.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    /// Requests under way; HTTP/1 has one at a time.
    busy: AtomicUsize,
    /// When something was last written, or when it was taken.
    used: Mutex<Instant>,
    evict: CancellationToken,
    news: Arc<SlotNews>,
}

/// Where is said that a connection became idle, if anybody wants to know.
#[derive(Debug, Default)]
pub(super) struct SlotNews {
    /// Somebody waits for a slot. Without it nobody is woken at the end of each request.
    is_wanted: AtomicBool,
    freed: Notify,
}

impl SlotNews {
    /// Resolves when a connection may have become idle since a slot was wanted.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl ConnectionSlot {
    /// Resolves when the slot is needed for another connection.
    pub(super) async fn evicted(&self) {
        self.evict.cancelled().await;
    }

    /// Something was written.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A request is under way until the value is dropped.
    pub(super) fn work(self: &Arc<Self>) -> ActiveRequest {
        self.busy.fetch_add(1, Ordering::SeqCst);
        ActiveRequest(Arc::clone(self))
    }

    fn idle_since(&self) -> Option<Instant> {
        let idle = self.busy.load(Ordering::SeqCst) == 0 && !self.evict.is_cancelled();
        idle.then(|| *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A request under way.
pub(super) struct ActiveRequest(Arc<ConnectionSlot>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        // Its answer is still to be written: idle only from now on.
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
        // After the count, which whoever wants a slot looks at last.
        if self.0.news.is_wanted.load(Ordering::SeqCst) {
            self.0.news.freed.notify_one();
        }
    }
}

/// All slots.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limit: usize,
    taken: Vec<Arc<ConnectionSlot>>,
    news: Arc<SlotNews>,
    counters: Arc<FrontCounters>,
}

impl ConnectionSlots {
    pub(super) fn new(limit: usize, counters: Arc<FrontCounters>) -> Self {
        Self {
            limit,
            taken: Vec::new(),
            news: Arc::default(),
            counters,
        }
    }

    /// Whether a new connection would get a slot now. Where it would not, news of one come.
    pub(super) fn has_slot(&self) -> bool {
        let is_wanted = &self.news.is_wanted;
        is_wanted.store(true, Ordering::SeqCst);
        let has_slot = self.taken.len() < self.limit || self.longest_idle().is_some();
        if has_slot {
            is_wanted.store(false, Ordering::SeqCst);
        }
        has_slot
    }

    /// Takes a slot, evicting the longest idle connection if all are taken.
    pub(super) fn take(&mut self) -> Arc<ConnectionSlot> {
        if self.taken.len() >= self.limit
            && let Some(place) = self.longest_idle()
        {
            self.taken.swap_remove(place).evict.cancel();
            self.counters.evicted_connections.up();
            self.counters.open_connections.down();
        }
        self.counters.open_connections.up();
        let slot = Arc::new(ConnectionSlot {
            busy: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            evict: CancellationToken::new(),
            news: Arc::clone(&self.news),
        });
        self.taken.push(Arc::clone(&slot));
        slot
    }

    /// Its connection has ended.
    pub(super) fn release(&mut self, slot: &Arc<ConnectionSlot>) {
        self.retain(|taken| !Arc::ptr_eq(taken, slot));
    }

    /// A connection ended without giving its slot back: nobody else holds it any more.
    pub(super) fn release_lost(&mut self) {
        self.retain(|taken| Arc::strong_count(taken) > 1);
    }

    fn retain(&mut self, stays: impl Fn(&Arc<ConnectionSlot>) -> bool) {
        let before = self.taken.len();
        self.taken.retain(stays);
        for _ in self.taken.len()..before {
            self.counters.open_connections.down();
        }
    }

    /// Where is said that a connection became idle.
    pub(super) fn news(&self) -> Arc<SlotNews> {
        Arc::clone(&self.news)
    }

    fn longest_idle(&self) -> Option<usize> {
        self.taken
            .iter()
            .enumerate()
            .filter_map(|(place, slot)| Some((slot.idle_since()?, place)))
            .min()
            .map(|(_, place)| place)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_gives_way_and_the_busy_never_do() {
        let mut slots = ConnectionSlots::new(3, Arc::default());
        let mut sit = async || {
            tokio::time::advance(Duration::from_secs(1)).await;
            slots.take()
        };
        let (first, second, third) = (sit().await, sit().await, sit().await);
        let _work = first.work();
        tokio::time::advance(Duration::from_secs(1)).await;
        second.touch();
        assert!(slots.has_slot());
        let fourth = slots.take();
        let left = [&first, &second, &third].map(|slot| slot.evict.is_cancelled());
        assert_eq!(left, [false, false, true]);
        let _work = [second.work(), fourth.work()];
        assert!(!slots.has_slot());
        slots.release(&second);
        assert!(slots.has_slot());
    }
}
