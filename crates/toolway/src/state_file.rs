//! A small file that several processes share and replace as a whole.
//!
//! Owns the lock, the private mode and the replacing. What stands in the file is its callers'
//! business: `connection/era_memory.rs`, `pins.rs`.
//!
//! Invariants: the file is private; a reader sees the old content or the new one; no change of
//! another process is lost. Whatever lies in its place is neither followed nor waited for.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::journal::{open_own, open_private_file};

/// How long is waited for another process that writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// What the file holds, up to `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<String> {
    let file = open_own(CWD, path)?;
    let mut text = String::new();
    file.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces the file, which others may have changed meanwhile: `change` reads it again under the
/// lock.
pub(crate) fn replace(path: &Path, change: impl FnOnce() -> String) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let name = name.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = private_folder(folder)?;
    let lock = format!("{name}.lock");
    let lock = open_private_file(&folder, &lock, OFlags::WRONLY | OFlags::CREATE)?;
    wait_for(&lock)?;
    let text = change();
    // The name is ours alone while the lock is held; one left behind by a crash is in the way.
    let new = format!("{name}.new");
    match rustix::fs::unlinkat(&folder, &new, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = open_private_file(&folder, &new, flags)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(rustix::fs::renameat(&folder, &new, &folder, name)?));
    written.inspect_err(|_| {
        // A full disk is not helped by half a file.
        let _ = rustix::fs::unlinkat(&folder, &new, AtFlags::empty());
    })
    // Dropping the file gives the lock back.
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Waits for the lock, but not for a process that is stopped in the middle.
fn wait_for(lock: &File) -> io::Result<()> {
    let begun = std::time::Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Opens the folder, made for one person when it is absent. One that is there stays as it is: it
/// may be anybody's, `/tmp` for instance.
pub(crate) fn private_folder(folder: &Path) -> io::Result<OwnedFd> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}
