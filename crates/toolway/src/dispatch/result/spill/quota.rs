//! How many files of results there are, and for how long.
//!
//! Owns the collecting of old ones, which happens when a new one is saved. Only plain files under
//! names of our own making are counted and removed; other files in the directory are left alone.
//! Names are removed, never followed (SEC-37).

use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType};
use toolway_types::limits::result;

use super::{ResultDirectory, SavedFile, SpillError};
use crate::dispatch::result::media::MediaKind;

/// What the files of results may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    /// All of them together, in bytes.
    pub(crate) bytes: u64,
    /// How many there may be.
    pub(crate) files: usize,
    /// How old one may become.
    pub(crate) age: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            bytes: result::SAVED_BYTES,
            files: result::SAVED_FILES,
            age: result::SAVED_FOR,
        }
    }
}

/// A file of ours.
struct KeptFile {
    name: CString,
    bytes: u64,
    modified: SystemTime,
}

impl ResultDirectory {
    /// The same directory under another quota.
    #[cfg(test)]
    pub(super) fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Removes what is too old, and then the oldest until so many bytes more fit. The files of
    /// the same result stay.
    pub(super) fn make_room(&self, needed: u64, beside: &[SavedFile]) -> Result<(), SpillError> {
        let over = || SpillError::OverQuota {
            path: self.path.clone(),
            needed,
            limit: self.quota.bytes,
        };
        if needed > self.quota.bytes {
            return Err(over());
        }
        let stay: HashSet<&OsStr> = beside
            .iter()
            .filter_map(|file| file.path.file_name())
            .collect();
        let mut kept = self.list()?;
        kept.sort_by_key(|file| file.modified);
        let mut bytes: u64 = kept.iter().map(|file| file.bytes).sum();
        let mut files = kept.len();
        let now = SystemTime::now();
        for file in &kept {
            let too_old = now
                .duration_since(file.modified)
                .is_ok_and(|age| age > self.quota.age);
            let too_much =
                bytes.saturating_add(needed) > self.quota.bytes || files >= self.quota.files;
            if !too_old && !too_much {
                break;
            }
            if stay.contains(OsStr::from_bytes(file.name.as_bytes())) {
                continue;
            }
            // One that is gone already makes room as well.
            let _ = rustix::fs::unlinkat(&self.directory, &file.name, AtFlags::empty());
            bytes = bytes.saturating_sub(file.bytes);
            files -= 1;
        }
        if bytes.saturating_add(needed) > self.quota.bytes {
            return Err(over());
        }
        Ok(())
    }

    fn list(&self) -> Result<Vec<KeptFile>, SpillError> {
        let failed = |errno: rustix::io::Errno| SpillError::Directory {
            path: self.path.clone(),
            source: errno.into(),
        };
        let mut kept = Vec::new();
        for entry in Dir::read_from(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if !is_ours(name.to_bytes()) {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                continue;
            }
            let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
            let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
            kept.push(KeptFile {
                name: name.to_owned(),
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                modified: SystemTime::UNIX_EPOCH
                    .checked_add(Duration::new(seconds, nanos))
                    .unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
        Ok(kept)
    }
}

/// Whether a name is one that [`ResultDirectory::save`] makes: a digest, perhaps a number, an
/// extension.
fn is_ours(name: &[u8]) -> bool {
    let Some((digest, rest)) = name.split_at_checked(64) else {
        return false;
    };
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let rest = match rest {
        [b'-', digit, rest @ ..] if digit.is_ascii_digit() => rest,
        rest => rest,
    };
    let Some((b'.', extension)) = rest.split_first() else {
        return false;
    };
    digest.iter().all(is_hex) && MediaKind::is_extension(extension)
}
