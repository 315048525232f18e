//! A small file that several processes share and replace as a whole.
//!
//! Owns the lock beside the file, and the change under it. What stands in the file is its callers'
//! business: what servers speak, pins, logins.
//!
//! Invariants: the file is private; a reader sees the old content or the new one; no change of
//! another process is lost. Whatever lies in its place is neither followed nor waited for.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, OFlags};

use crate::links::follow;
use crate::lock;
use crate::private_file::{make_directory, open_file, open_own, replace as replace_file};

/// How long is waited for another process that writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// What the file holds, up to `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    let file = open_own(CWD, path)?;
    let mut text = String::new();
    file.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces the file, which others may have changed meanwhile: `change` reads it again under the
/// lock.
pub fn replace(path: &Path, change: impl FnOnce() -> String) -> io::Result<()> {
    replace_within(path, LOCK_PATIENCE, || Ok(Some(change())))
}

/// As [`replace`], with another time limit, and `change` may leave the file as it is.
pub fn replace_within(
    path: &Path,
    patience: Duration,
    change: impl FnOnce() -> io::Result<Option<String>>,
) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let name = name.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = private_folder(folder)?;
    let lock = format!("{name}.lock");
    let lock = open_file(&folder, &lock, OFlags::WRONLY | OFlags::CREATE)?;
    lock::wait(&lock, patience, || ())?;
    let Some(text) = change()? else {
        return Ok(());
    };
    // The name is ours alone while the lock is held.
    replace_file(&folder, name, &format!("{name}.new"), text.as_bytes())
    // Dropping the file gives the lock back.
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Opens the folder, made for one user when it is absent. An existing one stays as it is: it may be
/// shared, such as `/tmp`.
pub fn private_folder(folder: &Path) -> io::Result<OwnedFd> {
    // The folder of a bare name is this one.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let real = follow(folder).0;
    if !real.as_os_str().is_empty() {
        make_directory(&real)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}
