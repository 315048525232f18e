//! Files and directories that are one user's alone.
//!
//! Owns how they are opened: through the open directory and never through a symbolic link; a file
//! is ours, plain, 0600, in a directory that is ours and 0700. What they hold is up to the callers:
//! journals, audit, shared state, secrets.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::links::follow;

/// Makes a directory for one user, and those above it, where they are absent. A link above it may
/// lead to where nothing is yet, as that to a state home kept on another disk: then its target is
/// made. A link in the place of the directory itself is left alone.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
    match (make(path), path.parent(), path.file_name()) {
        (Err(error), Some(above), Some(name)) if error.kind() == io::ErrorKind::AlreadyExists => {
            make(&follow(above).0.join(name))
        }
        (result, ..) => result,
    }
}

/// Opens the directory, making it when it is absent, and closes it to others.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    make_directory(path)?;
    close_directory(path)
}

/// The same, where there is one: none is made.
pub fn open_directory_if_there(path: &Path) -> io::Result<Option<OwnedFd>> {
    match close_directory(path) {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn close_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&directory)?;
    require_ours(&stat, FileType::Directory, &path.display().to_string())?;
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&directory, Mode::RWXU)?;
    }
    Ok(directory)
}

/// Opens a file in a directory to write it, mode 0600: it must be a regular file of this user.
pub fn open_file(directory: impl AsFd, name: &str, flags: OFlags) -> io::Result<File> {
    // A pipe must not make us wait for its reader.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(directory, name, flags, mode)?;
    let stat = rustix::fs::fstat(&file)?;
    require_ours(&stat, FileType::RegularFile, name)?;
    if stat.st_nlink > 1 {
        return Err(io::Error::other(format!("`{name}` has a second name")));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&file, mode)?;
    }
    Ok(File::from(file))
}

/// Writes a file whose name must be free: all of it, or nothing stays.
pub fn create(directory: impl AsFd, name: &str, content: &[u8]) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let written = open_file(&directory, name, flags).and_then(|mut file| {
        file.write_all(content)?;
        Ok(file)
    });
    written.inspect_err(|error| {
        // Half a file, or one whose mode cannot be set, is of no use.
        if error.kind() != io::ErrorKind::AlreadyExists {
            let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
        }
    })
}

/// Replaces a file as a whole: readers see the old content or the new one, and the new one is on
/// disk when this returns. `temporary` is a name that is the caller's alone meanwhile; what a crash
/// left there is removed.
pub fn replace(
    directory: impl AsFd,
    name: &str,
    temporary: &str,
    content: &[u8],
) -> io::Result<()> {
    let remove = || rustix::fs::unlinkat(&directory, temporary, AtFlags::empty());
    match remove() {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let file = create(&directory, temporary, content)?;
    let placed = file.sync_all().and_then(|()| {
        Ok(rustix::fs::renameat(
            &directory, temporary, &directory, name,
        )?)
    });
    placed.inspect_err(|_| {
        let _ = remove();
    })?;
    // Without this the old content may come back after the power failed. Not every file system
    // can do it, and none that cannot would keep its promise if we insisted.
    let _ = rustix::fs::fsync(&directory);
    Ok(())
}

/// Opens a file to read it, if it is a regular file that only this user may write.
pub fn open_own(directory: impl AsFd, name: impl Arg) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    require_ours(&stat, FileType::RegularFile, "the file")?;
    if stat.st_mode & 0o022 != 0 {
        return Err(io::Error::other("others may write the file"));
    }
    Ok(File::from(file))
}

fn require_ours(stat: &Stat, kind: FileType, name: &str) -> io::Result<()> {
    let why = if FileType::from_raw_mode(stat.st_mode) != kind {
        "is something else than it should be"
    } else if stat.st_uid != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else {
        return Ok(());
    };
    Err(io::Error::other(format!("`{name}` {why}")))
}
