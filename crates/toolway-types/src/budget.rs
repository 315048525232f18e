//! How much may be collected: bytes and items, over all messages.
//!
//! Owns the limits on everything that grows with foreign input: [`Budget`] for one collection,
//! [`BytePool`] for what many hold together. The callers set the limits and report when one is met.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What may still be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many bytes more.
    pub bytes: usize,
    /// How many items more.
    pub items: usize,
}

/// Which limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetExceeded {
    /// Bytes.
    Bytes,
    /// Items.
    Items,
}

impl Budget {
    /// So many bytes in so many items.
    pub const fn new(bytes: usize, items: usize) -> Self {
        Self { bytes, items }
    }

    /// Takes one item of this many bytes. What does not fit takes nothing.
    pub fn take(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let items = self.items.checked_sub(1).ok_or(BudgetExceeded::Items)?;
        self.take_bytes(bytes)?;
        self.items = items;
        Ok(())
    }

    /// Takes bytes that belong to no item. What does not fit takes nothing.
    pub fn take_bytes(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(BudgetExceeded::Bytes)?;
        Ok(())
    }

    /// One item of this many bytes is gone again.
    pub fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items = self.items.saturating_add(1);
    }
}

/// Bytes that several collections share. Clones are the same pool.
#[derive(Debug, Clone)]
pub struct BytePool(Arc<PoolInner>);

#[derive(Debug)]
struct PoolInner {
    size: usize,
    state: Mutex<PoolState>,
    /// Bytes were given back, or the next waiter may go on.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    left: usize,
    /// How many have come to wait so far.
    comers: u64,
    /// How many of those have got what they waited for.
    served: u64,
}

impl PoolInner {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for BytePool {
    /// One that holds nothing.
    fn default() -> Self {
        Self::new(0)
    }
}

impl BytePool {
    /// A pool of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(PoolInner {
            size: bytes,
            state: Mutex::new(PoolState {
                left: bytes,
                ..PoolState::default()
            }),
            changed: Condvar::new(),
        }))
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// A part of it, with nothing in it yet.
    pub fn share(&self) -> PoolShare {
        PoolShare {
            pool: self.clone(),
            bytes: 0,
        }
    }

    /// A part of so many bytes, as soon as there are so many; none when there never are. First
    /// come, first served, however much is wanted. Blocks the thread: only for callers that hold no
    /// other share and give this one back on their own.
    pub fn wait_for(&self, bytes: usize) -> Option<PoolShare> {
        if bytes > self.0.size {
            return None;
        }
        let mut state = self.0.state();
        let turn = state.comers;
        state.comers += 1;
        while state.served != turn || state.left < bytes {
            let waited = self.0.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.served += 1;
        state.left -= bytes;
        drop(state);
        self.0.changed.notify_all();
        Some(PoolShare {
            pool: self.clone(),
            bytes,
        })
    }
}

/// A part of a pool, which goes back when this is dropped.
#[derive(Debug)]
pub struct PoolShare {
    pool: BytePool,
    bytes: usize,
}

impl PoolShare {
    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more. What is not there takes nothing.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let mut state = self.pool.0.state();
        state.left = state.left.checked_sub(bytes).ok_or(BudgetExceeded::Bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives all of it back.
    pub fn clear(&mut self) {
        if self.bytes > 0 {
            self.pool.0.state().left += std::mem::take(&mut self.bytes);
            self.pool.0.changed.notify_all();
        }
    }
}

impl Drop for PoolShare {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut budget = Budget::new(10, 2);
        assert_eq!(budget.take(11), Err(BudgetExceeded::Bytes));
        assert_eq!(budget, Budget::new(10, 2));
        assert_eq!(budget.take(10), Ok(()));
        assert_eq!(budget.take(1), Err(BudgetExceeded::Bytes));
        assert_eq!(budget.take(0), Ok(()));
        assert_eq!(budget.take(0), Err(BudgetExceeded::Items));
        budget.give_back(10);
        assert_eq!(budget, Budget::new(10, 1));
        assert_eq!(budget.take_bytes(10), Ok(()));
        assert_eq!(budget, Budget::new(0, 1));
    }

    #[test]
    fn a_share_goes_back_to_its_pool() {
        let pool = BytePool::new(10);
        let (mut one, mut other) = (pool.share(), pool.share());
        assert_eq!(one.grow(8), Ok(()));
        assert_eq!(other.grow(3), Err(BudgetExceeded::Bytes));
        assert_eq!(other.grow(2), Ok(()));
        drop(one);
        assert_eq!(other.grow(8), Ok(()));
        assert_eq!(other.bytes(), 10);
        other.clear();
        assert!(pool.wait_for(11).is_none());
        assert_eq!(pool.wait_for(10).map(|share| share.bytes()), Some(10));
    }

    #[test]
    fn whoever_waits_gets_what_others_give_back() {
        let pool = BytePool::new(10);
        let held = pool.wait_for(6);
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.wait_for(5).map(|share| share.bytes())
        });
        drop(held);
        assert_eq!(waiting.join().ok().flatten(), Some(5));
    }
}
