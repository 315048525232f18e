//! No descriptor but the three pipes reaches a child (SEC-41).
//!
//! Everything this program opens is closed on exec. Descriptors that it inherited itself are not,
//! so they are marked before every start.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::FdFlags;

#[cfg(target_os = "linux")]
const OPEN: &str = "/proc/self/fd";
#[cfg(not(target_os = "linux"))]
const OPEN: &str = "/dev/fd";

/// Marks every open descriptor from 3 on as closed on exec.
pub(crate) fn close_on_exec_all() -> std::io::Result<()> {
    let open = std::fs::read_dir(OPEN).map_err(|error| {
        // Without this text the error would read as if the program were missing.
        std::io::Error::other(format!("cannot list our open files in `{OPEN}`: {error}"))
    })?;
    for entry in open {
        let Some(number) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if number > 2 {
            close_on_exec(number);
        }
    }
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "a descriptor known only by its number can be borrowed no other way"
)]
fn close_on_exec(number: RawFd) {
    // SAFETY: the number was open a moment ago. Should another thread have closed it since, the
    // call fails; should it have been opened again, the mark is what we want there too. Nothing
    // is read, written or closed, and the borrow ends here.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    if let Ok(flags) = rustix::io::fcntl_getfd(descriptor)
        && !flags.contains(FdFlags::CLOEXEC)
    {
        let _ = rustix::io::fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC);
    }
}
