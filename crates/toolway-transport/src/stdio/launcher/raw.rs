//! What has no safe form in launcher and reapers, and in waiting for them.
//!
//! Both are single-threaded processes, which is what makes a fork without an exec, and a signal at
//! the parent's death, safe.
#![expect(
    unsafe_code,
    reason = "forks, signal masks and what a child does before its program have no safe form"
)]

use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, fchdir, getppid, set_parent_process_death_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::command_line::CommandLineMemory;

/// Forks. `None` in the child.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so the child's memory is whole.
    fork_result(unsafe { libc::fork() }.into())
}

/// Forks a child that is the first process of its own namespaces: users, mounts, process ids.
pub(super) fn fork_in_namespaces() -> io::Result<Option<Pid>> {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::SIGCHLD;
    // SAFETY: as above. Without a stack of its own the child goes on with a copy of this one. The
    // C library's own fork takes no flags; what it does besides matters only between threads.
    fork_result(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })
}

fn fork_result(pid: i64) -> io::Result<Option<Pid>> {
    match i32::try_from(pid) {
        Ok(pid) if pid >= 0 => Ok(Pid::from_raw(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a launcher or a reaper has killed everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleanup {
    /// Nothing is left below it.
    Complete,
    /// Something may be left.
    Incomplete,
}

/// Exits without running destructors or flushing buffers of the process it was forked from.
pub(super) fn exit(end: Cleanup) -> ! {
    let code = match end {
        Cleanup::Complete => 0,
        Cleanup::Incomplete => 1,
    };
    // SAFETY: it runs nothing of this program any more.
    unsafe { libc::_exit(code) }
}

/// Sets every signal to its default and blocks all, so that only a closed socket ends this process;
/// returns the descriptor that tells when a child has ended. What is started later begins with
/// defaults; [`unblock_signals_in`] lets signals through again.
pub(super) fn block_signals() -> io::Result<OwnedFd> {
    for number in 1..=64 {
        // SAFETY: no handler is installed. The numbers that cannot be set fail, which is fine.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    // SAFETY: the sets are written before they are read, and outlive the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut ended = std::mem::zeroed();
        libc::sigemptyset(&raw mut ended);
        libc::sigaddset(&raw mut ended, libc::SIGCHLD);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        match libc::signalfd(-1, &raw const ended, flags) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Lets a task wait until a descriptor can be read.
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it owns the descriptor, which stays open as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// Closes descriptors by their numbers.
pub(super) fn close(numbers: &[RawFd]) {
    for number in numbers {
        // SAFETY: the caller has just been forked and uses nothing of the host it is a copy of.
        unsafe { libc::close(*number) };
    }
}

/// Puts one word in the place of those that this process was started with, and clears its
/// environment. Nothing may read either afterwards through the standard library.
pub(super) fn overwrite_command_line(memory: &CommandLineMemory, word: &str) {
    let CommandLineMemory { words, environment } = memory;
    for range in [words, environment] {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(range.start);
        // SAFETY: the kernel says that this process was given these bytes, which are writable and
        // belong to nothing else; no thread reads them.
        unsafe { start.write_bytes(0, range.len()) };
    }
    let Some(last) = words.len().checked_sub(1) else {
        return;
    };
    let word = &word.as_bytes()[..word.len().min(last)];
    let start = std::ptr::with_exposed_provenance_mut::<u8>(words.start);
    // SAFETY: as above, and the word is shorter than the place.
    unsafe {
        start.copy_from_nonoverlapping(word.as_ptr(), word.len());
        // Without an end in the last place, the kernel shows all up to the first end as one word.
        if word.len() < last {
            start.add(last).write(b'.');
        }
    }
}

/// Signals every process this one can see but itself: for the first process of a namespace, that
/// is everything in it.
pub(super) fn signal_all(signal: Signal) {
    // SAFETY: no memory is involved. The caller is the first process of its namespace.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

/// Makes a child begin in this directory, if any, and open to signals.
pub(super) fn unblock_signals_in(command: &mut Command, directory: Option<OwnedFd>) {
    let unblock = move || {
        // SAFETY: the set is written before it is read, and outlives the calls.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
        match &directory {
            Some(directory) => Ok(fchdir(directory.as_fd())?),
            None => Ok(()),
        }
    };
    // SAFETY: only system calls; no lock, no allocation.
    unsafe { command.pre_exec(unblock) };
}

/// Makes a child die with this process.
pub(super) fn die_with(command: &mut Command, parent: Pid) {
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the call.
        match getppid() {
            Some(found) if found == parent => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: only system calls; no lock, no allocation.
    unsafe { command.pre_exec(bind) };
}
