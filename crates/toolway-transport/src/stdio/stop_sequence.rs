//! How a process is stopped, whoever is its parent.

use std::time::Duration;

use rustix::process::Signal;

/// How long is waited before each signal; the first wait follows the closing of stdin.
pub(super) const STOP_SEQUENCE: [(Duration, Signal); 3] = [
    (Duration::from_millis(100), Signal::INT),
    (Duration::from_millis(100), Signal::TERM),
    (Duration::from_millis(400), Signal::KILL),
];

/// The longest a killed process is waited for: one stuck in the kernel must not hold the host.
pub(super) const AFTER_KILL: Duration = Duration::from_secs(2);
