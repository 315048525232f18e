//! Waiting for the kernel's lock on a file, which is given back however its holder ends.

use std::fs::{File, TryLockError};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited in all, however much the holders do.
const LIMIT: Duration = Duration::from_mins(2);

/// Waits for the lock, but not for a process that is stopped in the middle: gives up with
/// [`io::ErrorKind::TimedOut`] when `progress` stayed the same for `patience`.
pub fn wait<P: PartialEq>(
    file: &File,
    patience: Duration,
    progress: impl Fn() -> P,
) -> io::Result<()> {
    let begun = Instant::now();
    let mut last = (begun, progress());
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        // Many writers in a row are no reason to give up; one that is stuck is.
        let now = progress();
        if now != last.1 {
            last = (Instant::now(), now);
        }
        if last.0.elapsed() > patience || begun.elapsed() > LIMIT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(16));
    }
}
