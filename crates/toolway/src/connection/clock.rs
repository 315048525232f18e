//! Whether the machine slept, or the program was stopped.
//!
//! Owns the clocks that tell, and the comparison. What is done about it is the supervisor's.

use std::sync::Arc;
use std::time::Duration;

/// How often the clocks are looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A jump of more than this was a sleep.
const SLEEP: Duration = Duration::from_secs(10);

/// Two clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Counts on while the machine sleeps.
    pub boot: Duration,
    /// Stands still while the machine sleeps.
    pub awake: Duration,
}

/// Where readings come from. Tests bring their own.
pub trait Clock: Send + Sync {
    /// Reads both clocks.
    fn read(&self) -> ClockReading;
}

/// The clocks of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn read(&self) -> ClockReading {
        use rustix::time::{ClockId, Timespec, clock_gettime};
        let read = |id: ClockId| {
            let Timespec { tv_sec, tv_nsec } = clock_gettime(id);
            let nanos = u32::try_from(tv_nsec).unwrap_or_default();
            Duration::new(u64::try_from(tv_sec).unwrap_or_default(), nanos)
        };
        let awake = read(ClockId::Monotonic);
        // Elsewhere the plain clock shows stops of the program, and sleep where it counts on.
        #[cfg(target_os = "linux")]
        let boot = read(ClockId::Boottime);
        #[cfg(not(target_os = "linux"))]
        let boot = awake;
        ClockReading { boot, awake }
    }
}

/// Compares each reading with the one before.
pub(crate) struct SleepDetector {
    clock: Arc<dyn Clock>,
    last: ClockReading,
}

impl SleepDetector {
    /// Begins now.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let last = clock.read();
        Self { clock, last }
    }

    /// Whether the machine slept, or the program was stopped, since the last look. To be asked
    /// every [`LOOK_EVERY`].
    pub(crate) fn slept(&mut self) -> bool {
        let now = self.clock.read();
        let before = std::mem::replace(&mut self.last, now);
        let boot = now.boot.saturating_sub(before.boot);
        let awake = now.awake.saturating_sub(before.awake);
        boot.saturating_sub(awake) > SLEEP || awake > LOOK_EVERY + SLEEP
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Hands(Mutex<ClockReading>);

    impl Clock for Hands {
        fn read(&self) -> ClockReading {
            *self.0.lock().expect("no panic")
        }
    }

    fn moved(boot: u64, awake: u64) -> bool {
        let start = ClockReading {
            boot: Duration::from_secs(5_000),
            awake: Duration::from_secs(1_000),
        };
        let hands = Arc::new(Hands(Mutex::new(start)));
        let mut watch = SleepDetector::new(Arc::clone(&hands) as Arc<dyn Clock>);
        {
            let mut reading = hands.0.lock().expect("no panic");
            reading.boot += Duration::from_secs(boot);
            reading.awake += Duration::from_secs(awake);
        }
        let slept = watch.slept();
        assert!(!watch.slept(), "each sleep is noticed once");
        slept
    }

    #[test]
    fn rel_13_a_jump_of_either_clock_is_noticed() {
        assert!(!moved(5, 5), "an ordinary look");
        assert!(!moved(14, 5), "a look that came late");
        assert!(moved(3_600, 5), "the machine slept");
        assert!(moved(60, 60), "the program was stopped");
    }

    #[test]
    fn the_clocks_of_this_machine_move_together() {
        let mut watch = SleepDetector::new(Arc::new(SystemClock));
        assert!(!watch.slept());
    }
}
