//! Locks that a panic elsewhere does not close.
//!
//! Owns the one assumption: whatever is changed under a lock here is changed in one step, so what a
//! panic left behind is whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
