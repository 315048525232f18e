//! What `/proc` tells about processes.
//!
//! Owns reading it. A process may end at any time; one that cannot be read is treated as gone.

use std::fs;

use rustix::process::Pid;

/// Where a process belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) parent: Pid,
    pub(super) group: Pid,
    /// Whether it runs: one that has ended stays listed until its parent reaps it.
    pub(super) is_running: bool,
}

/// Every visible process.
pub(super) fn all_processes() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| process_id(entry.ok()?.file_name().to_str()?))
}

/// A process's parent, group and state. `None` for the first of a namespace, which has no parent
/// there.
pub(super) fn process_info(pid: Pid) -> Option<ProcessInfo> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the fields are counted from its end: the
    // state, the parent, the group.
    let end = memchr::memrchr(b')', &stat)?;
    let mut fields = str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace();
    Some(ProcessInfo {
        is_running: !matches!(fields.next()?, "Z" | "X"),
        parent: process_id(fields.next()?)?,
        group: process_id(fields.next()?)?,
    })
}

/// A process id as it is written there.
pub(super) fn process_id(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
