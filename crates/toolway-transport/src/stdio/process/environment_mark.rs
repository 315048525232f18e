//! A variable by which the processes of one server are known, wherever they went.
//!
//! Owns putting it on and finding it: children inherit it, through `setsid` and double forks, as
//! long as nobody clears their environment. Needed only where no reaper adopts them.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::Command;

use crate::stdio::proc::all_processes;

/// The variable.
const NAME: &str = "TOOLWAY_SERVER_MARK";

/// Whoever is killed may have forked meanwhile, so it is looked again; this often at most.
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

    /// Kills everybody who carries it. Says whether somebody is left who was told to die and is
    /// not gone yet.
    pub(super) fn kill_all(&self) -> bool {
        for _ in 0..ROUNDS {
            let mut any = false;
            for pid in all_processes().filter(|pid| self.is_on(*pid)) {
                // Held by a descriptor before a second look: the number may be a stranger's now.
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
