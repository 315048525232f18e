//! A launcher that is forked at the start of the host, while the host has one thread and has read
//! no secret.
//!
//! Owns the fork, and what the copy gives up of the process it was. An exec of the whole program
//! would pay for its relocations again, with the first server waiting for them.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, setpgid, waitpid};

use super::command_line::CommandLineMemory;
use super::handle::{self, LauncherChild, LauncherProcess};
use super::raw::{self, Cleanup};
use super::{MARK, serve};

/// The socket to the forked launcher and its number, until the first [`super::Launcher`] takes them.
static FORKED: Mutex<Option<(OwnedFd, Pid)>> = Mutex::new(None);

pub(super) fn fork() -> io::Result<()> {
    if lock().is_some() {
        return Ok(());
    }
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other(
            "only a process with one thread can be forked",
        ));
    }
    let (socket, theirs) = handle::socket_pair()?;
    if let Some(pid) = raw::fork()? {
        *lock() = Some((socket, pid));
        return Ok(());
    }
    drop(socket);
    // Whatever goes wrong, the copy must not go on as a second host.
    std::panic::set_hook(Box::new(|_| raw::exit(Cleanup::Incomplete)));
    // On failure it exits at once, which the host notices: it executes another.
    match give_up_the_host(&theirs) {
        Ok(()) => serve::run(theirs),
        Err(_) => raw::exit(Cleanup::Complete),
    }
}

pub(super) fn take() -> Option<LauncherProcess> {
    let (socket, pid) = lock().take()?;
    let child = LauncherChild::Forked(pid);
    Some(LauncherProcess { socket, child })
}

/// Ends a forked launcher that was not taken, and waits for its end.
pub(super) fn end() {
    if let Some((socket, pid)) = lock().take() {
        drop(socket);
        // Nothing is below it, and it may have been stopped.
        let _ = kill_process(pid, Signal::KILL);
        while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}

fn lock() -> MutexGuard<'static, Option<(OwnedFd, Pid)>> {
    // It is always consistent, whatever panicked.
    FORKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an exec would have done. Only the words that were typed stay, in copies that the host had
/// made of them; no process of the same user can read them here either.
fn give_up_the_host(socket: &OwnedFd) -> io::Result<()> {
    // Signals from the terminal must not reach it.
    setpgid(None, None)?;
    let mut open: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<RawFd>().ok()),
        );
    }
    open.retain(|number| *number > 2 && *number != socket.as_raw_fd());
    raw::close(&open);
    let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    raw::overwrite_command_line(&CommandLineMemory::of_this_process()?, MARK);
    Ok(())
}
