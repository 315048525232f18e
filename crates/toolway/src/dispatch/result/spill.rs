//! Files of results: a private directory, names of our own making, nothing ever overwritten.
//!
//! Owns every file operation on the way. A name is the digest of the bytes plus an extension
//! from the closed list in `media.rs`; no server's word becomes part of a path (SEC-38). All
//! operations go through the open directory, so that a path swapped meanwhile leads nowhere
//! (SEC-37). How long files stay is `spill/quota.rs`.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use toolway_files::private_file::{create, make_directory, open_own};

use super::media::Media;
use crate::call::SavedFile;

mod quota;
#[cfg(test)]
mod tests;

pub(crate) use quota::Quota;

/// How many names are tried when something else lies under the first.
const MAX_NAMES: u32 = 8;

/// Why a file could not be saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    /// The directory cannot be made or opened; a symbolic link in its place is among that.
    #[error("cannot open the directory `{}`: {source}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory belongs to someone else.
    #[error("the directory `{}` belongs to another user", .path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// Others can enter the directory.
    #[error("the directory `{}` is open to other users (mode {mode:04o}, must be 0700)", .path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Writing failed.
    #[error("cannot write a file in `{}`: {source}", .path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It alone is more than all files together may be.
    #[error("{needed} bytes are more than all files in `{}` together may have ({limit})", .path.display())]
    OverQuota {
        /// The directory.
        path: PathBuf,
        /// How many bytes it has.
        needed: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// Something that is not our file lies under every name we would use.
    #[error("other files lie in the way in `{}`", .path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
}

/// An open private directory.
#[derive(Debug)]
pub(crate) struct ResultDirectory {
    path: PathBuf,
    directory: OwnedFd,
    quota: Quota,
}

/// Saves all of it; gives the files and, for each that failed, one sentence.
pub(crate) fn save_all(directory: &Path, media: &[Media]) -> (Vec<SavedFile>, Vec<String>) {
    let store = match ResultDirectory::open(directory) {
        Ok(store) => store,
        Err(error) => {
            return (
                Vec::new(),
                vec![format!("the media of this result were not saved: {error}")],
            );
        }
    };
    let mut saved: Vec<SavedFile> = Vec::new();
    let mut failures = Vec::new();
    for one in media {
        match store.save_beside(one, &saved) {
            Ok(file) => saved.push(file),
            Err(error) => {
                failures.push(format!(
                    "block {} of this result was not saved: {error}",
                    one.block
                ));
            }
        }
    }
    (saved, failures)
}

impl ResultDirectory {
    /// Opens the directory, making it when it is absent.
    pub(crate) fn open(path: &Path) -> Result<Self, SpillError> {
        let failed = |source: io::Error| SpillError::Directory {
            path: path.to_owned(),
            source,
        };
        make_directory(path).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let stat = rustix::fs::fstat(&directory).map_err(|errno| failed(errno.into()))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(SpillError::NotOurs {
                path: path.to_owned(),
            });
        }
        let mode = stat.st_mode & 0o7777;
        if mode & 0o077 != 0 {
            return Err(SpillError::NotPrivate {
                path: path.to_owned(),
                mode,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            directory,
            quota: Quota::default(),
        })
    }

    /// Makes room and saves one piece; `beside` are the files of the same result, which stay.
    pub(crate) fn save_beside(
        &self,
        media: &Media,
        beside: &[SavedFile],
    ) -> Result<SavedFile, SpillError> {
        self.make_room(media.bytes.len() as u64, beside)?;
        self.save(media)
    }

    /// Saves one piece. The same bytes twice are one file.
    fn save(&self, media: &Media) -> Result<SavedFile, SpillError> {
        let digest = hex::encode(Sha256::digest(&media.bytes));
        let failed = |source: io::Error| SpillError::Write {
            path: self.path.clone(),
            source,
        };
        for attempt in 1..=MAX_NAMES {
            let name = match attempt {
                1 => format!("{digest}.{}", media.kind.extension),
                // Something lies under the name: a torn file of a crash, or a trap.
                _ => format!("{digest}-{attempt}.{}", media.kind.extension),
            };
            let there = match create(&self.directory, &name, &media.bytes) {
                Ok(_) => true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.holds(&name, &media.bytes)
                }
                Err(error) => return Err(failed(error)),
            };
            if there {
                return Ok(SavedFile {
                    path: self.path.join(name),
                    bytes: media.bytes.len() as u64,
                    mime_type: media.kind.mime_type,
                    block: media.block,
                });
            }
        }
        Err(SpillError::Occupied {
            path: self.path.clone(),
        })
    }

    /// Whether a plain file of ours with exactly these bytes lies under the name.
    fn holds(&self, name: &str, bytes: &[u8]) -> bool {
        let Ok(mut file) = open_own(&self.directory, name) else {
            return false;
        };
        let is_private = file.metadata().is_ok_and(|facts| {
            facts.len() == bytes.len() as u64 && facts.mode() & 0o077 == 0 && facts.nlink() == 1
        });
        if !is_private {
            return false;
        }
        let mut content = Vec::with_capacity(bytes.len());
        let is_same = file.read_to_end(&mut content).is_ok() && content == bytes;
        // It is handed out once more, so its age counts from now. If that fails it goes earlier.
        if is_same {
            let _ = file.set_modified(SystemTime::now());
        }
        is_same
    }
}
