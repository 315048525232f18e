//! An environment variable that identifies all processes of one server.
//!
//! Owns setting it and finding it: children inherit it, through `setsid` and double forks, unless
//! their environment is cleared. Needed only where no reaper adopts them.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::Command;

use crate::stdio::proc::all_processes;

/// The variable.
const NAME: &str = "TOOLWAY_SERVER_MARK";

/// A killed process may have forked meanwhile, so the search is repeated at most this often.
const ROUNDS: usize = 20;

#[derive(Debug)]
pub(super) struct EnvironmentMark {
    entry: String,
}

impl EnvironmentMark {
    /// Marks what is about to be started.
    pub(super) fn put_on(command: &mut Command) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Another program's mark must never be ours, though it may have had our process id.
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let value = format!("{}-{number}-{now}", std::process::id());
        command.env(NAME, &value);
        Self {
            entry: format!("{NAME}={value}"),
        }
    }

    /// Kills every process that carries it. Whether any of them is still there.
    pub(super) fn kill_all(&self) -> bool {
        for _ in 0..ROUNDS {
            let mut any = false;
            for pid in all_processes().filter(|pid| self.is_on(*pid)) {
                // Held by a pidfd and checked again: the id may have been reused.
                if let Ok(held) = pidfd_open(pid, PidfdFlags::empty())
                    && self.is_on(pid)
                {
                    any |= pidfd_send_signal(held, Signal::KILL).is_ok();
                }
            }
            if !any {
                return false;
            }
        }
        true
    }

    /// What has ended has no environment any more.
    fn is_on(&self, pid: Pid) -> bool {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == self.entry.as_bytes())
        })
    }
}
