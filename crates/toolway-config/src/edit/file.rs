//! Reading and replacing one file so that no crash and no second writer can lose anything.
//!
//! Owns the lock on the file's directory, the backup, and the order of writes: a reader sees the old
//! content or the new one, never something between. Knows nothing of JSON.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolway_files::links::{MOST_LINKS, follow};
use toolway_files::lock;
use toolway_files::plain_file::{open_no_link, read_at_most};
use toolway_files::private_file::make_directory;

use super::EditError;
use crate::file::MAX_BYTES;

/// How long to wait for the lock while its holder makes no progress.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// A file held against other writers.
#[derive(Debug)]
pub(super) struct LockedFile {
    path: PathBuf,
    old: Option<PreviousFile>,
    /// Holds the lock as long as it is open.
    _lock: File,
}

#[derive(Debug)]
struct PreviousFile {
    content: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl LockedFile {
    /// Takes the lock of the file behind `path` and reads it. Directories on the way are made.
    pub(super) fn open(path: &Path) -> Result<Self, EditError> {
        let path = real_path(path)?;
        let lock = take_lock(&path, LOCK_PATIENCE)?;
        let old = read(&path)?;
        Ok(Self {
            path,
            old,
            _lock: lock,
        })
    }

    /// The file itself, links followed.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds; nothing when there is none.
    pub(super) fn content(&self) -> Option<&[u8]> {
        self.old.as_ref().map(|old| old.content.as_slice())
    }

    /// Replaces the content, after keeping the old one in `backup`, or beside the file.
    pub(super) fn replace(
        self,
        content: &[u8],
        backup: Option<&Path>,
    ) -> Result<Option<PathBuf>, EditError> {
        let temporary = self.stage(content, parent(&self.path))?;
        let backup = match &self.old {
            Some(old) => {
                let backup = backup.map_or_else(|| beside(&self.path, "bak"), Path::to_owned);
                persist(self.stage(&old.content, parent(&backup))?, &backup)?;
                Some(backup)
            }
            None => None,
        };
        // Editors do not know our lock. What one saved since we read must not be written over.
        if read(&self.path)?.map(|now| now.content).as_deref() != self.content() {
            return Err(EditError::Changed { path: self.path });
        }
        persist(temporary, &self.path)?;
        let directory = parent(&self.path);
        // Readers already see the new content, so this is not a failed write.
        File::open(directory)
            .and_then(|handle| handle.sync_all())
            .map_err(|source| EditError::Unconfirmed {
                path: self.path.clone(),
                source,
            })?;
        Ok(backup)
    }

    /// Takes the file away. There is no backup: who asks for this keeps what was in it.
    pub(super) fn remove(self) -> Result<(), EditError> {
        if read(&self.path)?.map(|now| now.content).as_deref() != self.content() {
            return Err(EditError::Changed { path: self.path });
        }
        fs::remove_file(&self.path).map_err(io_at(&self.path))?;
        let directory = File::open(parent(&self.path)).and_then(|handle| handle.sync_all());
        directory.map_err(|source| EditError::Unconfirmed {
            path: self.path.clone(),
            source,
        })
    }

    /// Writes content to a file of its own in that directory, on disk when this returns.
    fn stage(
        &self,
        content: &[u8],
        directory: &Path,
    ) -> Result<tempfile::NamedTempFile, EditError> {
        let fail = io_at(&self.path);
        let mut temporary = tempfile::Builder::new()
            .prefix(".toolway-")
            .tempfile_in(directory)
            .map_err(&fail)?;
        temporary.as_file_mut().write_all(content).map_err(&fail)?;
        if let Some(old) = &self.old {
            let file = temporary.as_file();
            let mut mode = old.mode;
            let (user, group) = old.owner;
            let ours = file.metadata().map_err(&fail)?;
            if (ours.uid(), ours.gid()) != old.owner {
                let kept = rustix::fs::fchown(
                    file,
                    Some(rustix::fs::Uid::from_raw(user)),
                    Some(rustix::fs::Gid::from_raw(group)),
                );
                // Permissions of one group must not pass to another.
                if kept.is_err() {
                    mode &= !0o077;
                }
            }
            file.set_permissions(Permissions::from_mode(mode))
                .map_err(&fail)?;
        }
        temporary.as_file().sync_all().map_err(&fail)?;
        Ok(temporary)
    }
}

/// The file itself, links followed, and what it holds; nothing when there is none. Makes nothing.
pub(super) fn peek(path: &Path) -> Result<(PathBuf, Option<Vec<u8>>), EditError> {
    let path = followed(path)?;
    let found = match read(&path) {
        Err(EditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => None,
        found => found?,
    };
    Ok((path, found.map(|found| found.content)))
}

/// Where a path leads. Links that lead round and round are an error with the name that was given.
fn followed(path: &Path) -> Result<PathBuf, EditError> {
    let (real, links) = follow(&std::path::absolute(path).map_err(io_at(path))?);
    if links.len() == MOST_LINKS {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "too many links");
        return Err(io_at(path)(source));
    }
    Ok(real)
}

/// Follows links to the file itself, so that a link into a dotfiles folder stays a link. Works for
/// files that do not exist yet, which `canonicalize` does not.
fn real_path(path: &Path) -> Result<PathBuf, EditError> {
    let path = followed(path)?;
    if path.file_name().is_none() {
        return Err(EditError::NotAFile { path });
    }
    let directory = parent(&path);
    make_directory(directory).map_err(io_at(directory))?;
    Ok(path)
}

/// Takes the lock of `path`, or gives up when nothing happened to the file for `patience`. The lock
/// is on the directory itself: a lock file would be litter in repositories, and a name under which
/// an attacker could plant something.
pub(super) fn take_lock(path: &Path, patience: Duration) -> Result<File, EditError> {
    let directory = parent(path);
    let lock = File::open(directory).map_err(io_at(directory))?;
    match lock::wait(&lock, patience, || stamp(path)) {
        Ok(()) => Ok(lock),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(EditError::Locked {
            path: path.to_owned(),
        }),
        Err(error) => Err(io_at(directory)(error)),
    }
}

/// Something that changes with every write of a file.
fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.modified().ok()?))
}

fn read(path: &Path) -> Result<Option<PreviousFile>, EditError> {
    let fail = io_at(path);
    let (file, metadata) = match open_no_link(path) {
        Ok(Some(opened)) => opened,
        Ok(None) => {
            return Err(EditError::NotAFile {
                path: path.to_owned(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    // What is too large to be read as configuration must not be rewritten as such either.
    let content = read_at_most(file, &metadata, MAX_BYTES)
        .map_err(&fail)?
        .ok_or_else(|| {
            fail(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the file is larger than {MAX_BYTES} bytes"),
            ))
        })?;
    let owner = (metadata.uid(), metadata.gid());
    Ok(Some(PreviousFile {
        content,
        mode: metadata.mode() & 0o7777,
        owner,
    }))
}

fn persist(temporary: tempfile::NamedTempFile, path: &Path) -> Result<(), EditError> {
    temporary
        .persist(path)
        .map(drop)
        .map_err(|error| io_at(path)(error.error))
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn io_at(path: &Path) -> impl Fn(io::Error) -> EditError + use<> {
    let path = path.to_owned();
    move |source| EditError::Io {
        path: path.clone(),
        source,
    }
}
