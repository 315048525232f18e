//! The processes below this one, as `/proc` shows them.
//!
//! Owns looking, and signalling without ever hitting a stranger that was given the number of one
//! who is gone: a child of ours keeps its number until we reap it; anybody deeper is held by a
//! descriptor before a second look.

use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use crate::stdio::proc::{everybody, family, process_id};

/// The children of this process, zombies included.
pub(super) fn children() -> Vec<Pid> {
    let own = getpid();
    if are_told() {
        return children_of(own);
    }
    everybody()
        .filter(|pid| family(*pid).is_some_and(|found| found.parent == own))
        .collect()
}

/// Kills the children that `whom` names; how many there were.
pub(super) fn kill_children(whom: impl Fn(Pid) -> bool) -> usize {
    let mut count = 0;
    for child in children().into_iter().filter(|child| whom(*child)) {
        // Only what is gone cannot be killed.
        let _ = kill_process(child, Signal::KILL);
        count += 1;
    }
    count
}

/// Signals everybody below this process who is not in the group. Whoever is missed because the
/// tree changes meanwhile is reached by the next signal; the last one does not come from here.
pub(super) fn signal_outside(group: Option<Pid>, signal: Signal) {
    for (pid, parent) in descendants() {
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if family(pid).is_some_and(|found| found.parent == parent && Some(found.group) != group) {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

/// Everybody below this process, each with its parent.
fn descendants() -> Vec<(Pid, Pid)> {
    let own = getpid();
    let mut found: Vec<(Pid, Pid)> = Vec::new();
    if are_told() {
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
    let all: Vec<(Pid, Pid)> = everybody()
        .filter_map(|pid| Some((pid, family(pid)?.parent)))
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

/// Whether this kernel lists a process's children; otherwise everybody is asked for their parent.
fn are_told() -> bool {
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
    use crate::stdio::proc::Family;

    #[test]
    fn a_child_is_found_with_its_parent_and_its_group() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(children().contains(&pid));
        assert!(descendants().contains(&(pid, getpid())));
        let expected = Family {
            parent: getpid(),
            group: rustix::process::getpgid(None).unwrap(),
            lives: true,
        };
        assert_eq!(family(pid), Some(expected));
        let by_scan: Vec<Pid> = everybody()
            .filter(|pid| family(*pid).is_some_and(|found| found.parent == getpid()))
            .collect();
        assert!(by_scan.contains(&pid), "the way without `children` files");
        drop(child.stdin.take());
        while family(pid).is_some_and(|found| found.lives) {
            std::thread::yield_now();
        }
        assert!(children().contains(&pid), "until it is reaped");
        child.wait().unwrap();
        assert!(!children().contains(&pid));
    }
}
