//! How a process is stopped, whoever is its parent.

use std::time::Duration;

use rustix::process::Signal;
use toolway_types::limits::process;

/// How long is waited before each signal; the first wait follows the closing of stdin.
pub(super) const STOP_SEQUENCE: [(Duration, Signal); 3] = [
    (process::BEFORE_INTERRUPT, Signal::INT),
    (process::BEFORE_TERMINATE, Signal::TERM),
    (process::BEFORE_KILL, Signal::KILL),
];

/// The longest a killed process is waited for: one stuck in the kernel must not hold the host.
pub(super) const AFTER_KILL: Duration = Duration::from_secs(2);
