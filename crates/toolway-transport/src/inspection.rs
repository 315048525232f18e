//! Closing this process to others of the same user.
//!
//! Owns the calls a program makes at its start. Launchers and reapers close themselves
//! (`stdio/launcher/serve.rs`); servers are as open as any program.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Closes this process: no other process of the same user can trace it or read its memory or its
/// first environment from now on (Linux), and it leaves no core file.
///
/// To be called first in `main`, before any secret is read. A process that was started under a
/// tracer stays open. Starting a host does not call it: an embedding program decides for itself.
pub fn forbid_inspection() -> io::Result<()> {
    let core = getrlimit(Resource::Core);
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: core.maximum,
        },
    )?;
    #[cfg(target_os = "linux")]
    if !is_traced() {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

/// Whether a tracer was there first.
#[cfg(target_os = "linux")]
fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .is_some_and(|tracer| tracer.trim() != "0")
}
