//! Waiting for a condition instead of for a time.
//!
//! Owns the look-again rhythm and its bound. Works in any runtime, with virtual time too: the
//! pauses are a thread's, not the runtime's.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long a condition may take on a busy machine. Far above any honest wait.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until the condition holds; panics with what it last said when it never does.
pub async fn eventually<T>(mut condition: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match condition() {
            Ok(value) => return value,
            Err(what) if Instant::now() > end => panic!("still so after {PATIENCE:?}: {what}"),
            Err(_) => Pause::default().await,
        }
    }
}

/// The same for a test without a runtime.
pub fn eventually_blocking<T>(mut condition: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match condition() {
            Ok(value) => return value,
            Err(what) if Instant::now() > end => panic!("still so after {PATIENCE:?}: {what}"),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Gives other tasks their turn for a moment.
#[derive(Default)]
struct Pause {
    asked: bool,
}

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.asked {
            return Poll::Ready(());
        }
        self.asked = true;
        let waker = context.waker().clone();
        std::thread::spawn(move || {
            std::thread::sleep(PAUSE);
            waker.wake();
        });
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_looked_at_until_it_holds() {
        let mut looks = 0;
        let found = eventually_blocking(|| {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err(format!("look {looks}"))
            }
        });
        assert_eq!(found, 3);
    }
}
