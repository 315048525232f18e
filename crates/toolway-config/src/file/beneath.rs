//! Opening a file that a repository's entry names.
//!
//! A repository can put a link where an approved path leads, at any time and without a change in
//! the definition; so no link of a repository is followed, and a relative path does not leave it
//! (SEC-13). Without links, `..` can be resolved by text before the path is opened.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::open;
use crate::error::FileReadError;

/// Opens a regular file for an entry in `directory` of `repository`. An absolute path may lead
/// elsewhere, because the user has seen it; inside the repository the same rules hold.
pub(crate) fn open_beneath(
    repository: &Path,
    directory: &Path,
    path: &Path,
) -> Result<(File, Metadata), FileReadError> {
    let repository = repository.canonicalize()?;
    if path.is_relative() {
        let directory = directory.canonicalize()?;
        let Ok(below) = directory.strip_prefix(&repository) else {
            return Err(FileReadError::Outside);
        };
        return walk(&repository, &below.join(path));
    }
    // Links on the way to the repository are not the repository's.
    let mut reached = PathBuf::new();
    let mut rest = path.components();
    while let Some(component) = rest.next() {
        reached.push(component);
        let real = reached.canonicalize();
        let below = real.as_deref().ok().and_then(|real| {
            let below = real.strip_prefix(&repository).ok()?;
            Some(below.to_path_buf())
        });
        if let Some(below) = below {
            // A link outside may lead straight to a file in it.
            return walk(&repository, &below.join(rest.as_path()));
        }
    }
    open(path)
}

fn walk(repository: &Path, path: &Path) -> Result<(File, Metadata), FileReadError> {
    let mut names = straight(path)?;
    let Some(last) = names.pop() else {
        return Err(FileReadError::NotAFile);
    };
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at: OwnedFd =
        openat(CWD, repository, folder, Mode::empty()).map_err(std::io::Error::from)?;
    for name in names {
        at = step(&at, &name, folder)?;
    }
    let file =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(step(&at, &last, file)?);
    let facts = file.metadata()?;
    if facts.is_file() {
        Ok((file, facts))
    } else {
        Err(FileReadError::NotAFile)
    }
}

fn step(at: impl AsFd, name: &OsString, flags: OFlags) -> Result<OwnedFd, FileReadError> {
    openat(&at, name, flags, Mode::empty()).map_err(|errno| {
        // Systems name a link that is not followed in different ways.
        let is_link = || {
            statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Symlink)
        };
        match errno {
            Errno::LOOP | Errno::MLINK | Errno::NOTDIR if is_link() => FileReadError::Link,
            errno => FileReadError::Io(errno.into()),
        }
    })
}

/// The names on the way, without `.` and `..`.
fn straight(path: &Path) -> Result<Vec<OsString>, FileReadError> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::CurDir => {}
            Component::ParentDir if names.pop().is_some() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(FileReadError::Outside);
            }
        }
    }
    Ok(names)
}
