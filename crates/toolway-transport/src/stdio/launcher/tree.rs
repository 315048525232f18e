//! The processes below this one, as `/proc` shows them.
//!
//! Owns finding them, and signalling without ever hitting an unrelated process that reuses an id: a
//! child keeps its id until it is reaped; deeper processes are held by a pidfd and checked again.

use std::fs;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, wait,
};

use crate::stdio::proc::{all_processes, process_id, process_info};

/// The children of this process, zombies included.
pub(super) fn children() -> Vec<Pid> {
    let own = getpid();
    if kernel_lists_children() {
        return children_of(own);
    }
    all_processes()
        .filter(|pid| process_info(*pid).is_some_and(|found| found.parent == own))
        .collect()
}

/// Reaps ended children, and says which and how. Whether any child is left.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(Some((pid, status))) => ended(pid, status),
        }
    }
}

/// Kills the children for which `whom` is true; how many there were.
pub(super) fn kill_children(whom: impl Fn(Pid) -> bool) -> usize {
    let mut count = 0;
    for child in children().into_iter().filter(|child| whom(*child)) {
        // Fails only for processes that are gone.
        let _ = kill_process(child, Signal::KILL);
        count += 1;
    }
    count
}

/// Signals every descendant that is not in the group. Those that are missed because the tree
/// changes meanwhile get the next signal; the final one does not come from here.
pub(super) fn signal_outside(group: Option<Pid>, signal: Signal) {
    for (pid, parent) in descendants() {
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if process_info(pid)
            .is_some_and(|found| found.parent == parent && Some(found.group) != group)
        {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

/// Every descendant of this process, with its parent.
fn descendants() -> Vec<(Pid, Pid)> {
    let own = getpid();
    let mut found: Vec<(Pid, Pid)> = Vec::new();
    if kernel_lists_children() {
        let mut next = 0;
        let mut parent = own;
        loop {
            found.extend(children_of(parent).into_iter().map(|child| (child, parent)));
            let Some((child, _)) = found.get(next) else {
                return found;
            };
            (parent, next) = (*child, next + 1);
        }
    }
    let all: Vec<(Pid, Pid)> = all_processes()
        .filter_map(|pid| Some((pid, process_info(pid)?.parent)))
        .collect();
    let mut parents = vec![own];
    while let Some(parent) = parents.pop() {
        for member in all.iter().filter(|(_, found)| *found == parent) {
            found.push(*member);
            parents.push(member.0);
        }
    }
    found
}

/// Whether this kernel lists a process's children; otherwise all processes are scanned.
fn kernel_lists_children() -> bool {
    let own = getpid();
    fs::exists(format!("/proc/{own}/task/{own}/children")).is_ok_and(|exists| exists)
}

/// A process's children, thread by thread.
fn children_of(pid: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        // A thread that has ended meanwhile has left its children to another.
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(listed.split_whitespace().filter_map(process_id));
    }
    children
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::stdio::proc::ProcessInfo;

    #[test]
    fn a_child_is_found_with_its_parent_and_its_group() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(children().contains(&pid));
        assert!(descendants().contains(&(pid, getpid())));
        let expected = ProcessInfo {
            parent: getpid(),
            group: rustix::process::getpgid(None).unwrap(),
            is_running: true,
        };
        assert_eq!(process_info(pid), Some(expected));
        let by_scan: Vec<Pid> = all_processes()
            .filter(|pid| process_info(*pid).is_some_and(|found| found.parent == getpid()))
            .collect();
        assert!(by_scan.contains(&pid), "the way without `children` files");
        drop(child.stdin.take());
        while process_info(pid).is_some_and(|found| found.is_running) {
            std::thread::yield_now();
        }
        assert!(children().contains(&pid), "until it is reaped");
        child.wait().unwrap();
        assert!(!children().contains(&pid));
    }
}
