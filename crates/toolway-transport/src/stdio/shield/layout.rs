//! Which mounts keep a set of directories from being written, moved or replaced.
//!
//! Owns looking: what exists, who may rename which ancestor, by which other paths the same
//! directory can be reached. Makes absent directories, mounts nothing.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{Protected, Protection, ShieldError};

/// What to do about a directory that is to be protected and is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// Make it.
    Make,
    /// Take its nearest ancestor: enough to see whether protecting works.
    StandIn,
}

/// The mounts, in the order they are made.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Directories that are mounted on themselves: a mount point cannot be renamed or removed.
    pub(super) held: Vec<CString>,
    /// Directories that are mounted on themselves, read-only with all below.
    pub(super) read_only: Vec<CString>,
}

impl Layout {
    /// The mounts for these directories, and what could not be helped.
    pub(super) fn of(protected: &[Protected], absent: Absent) -> (Self, Vec<ShieldError>) {
        let mut gaps = Vec::new();
        let (mut held, mut read_only) = (BTreeSet::new(), BTreeSet::new());
        let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounts = mounts_of(&mounts);
        for entry in protected {
            match settle(entry, absent) {
                Ok(Some(path)) => {
                    if entry.protection != Protection::Existing {
                        held.extend(replaceable(&path));
                    }
                    read_only.extend(aliases(&path, &mounts));
                    read_only.insert(path);
                }
                Ok(None) => {}
                Err(error) => gaps.push(ShieldError::Directory {
                    path: entry.path.clone(),
                    errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
                }),
            }
        }
        // In the order of a set, ancestors come before what lies below them.
        let layout = Self {
            held: held.into_iter().filter_map(c_path).collect(),
            read_only: read_only.into_iter().filter_map(c_path).collect(),
        };
        (layout, gaps)
    }
}

/// The directories as a person knows them: those that are there, or will be when a server starts.
pub(super) fn named(protected: &[Protected]) -> Vec<PathBuf> {
    let will_be = |entry: &Protected| match entry.protection {
        Protection::Private => true,
        Protection::Existing => false,
    };
    protected
        .iter()
        .filter(|entry| is_directory(&entry.path) || will_be(entry))
        .map(|entry| entry.path.clone())
        .collect()
}

pub(super) fn c_path(path: PathBuf) -> Option<CString> {
    // A path that came from the system holds no NUL.
    CString::new(path.into_os_string().into_vec()).ok()
}

/// The real path of a directory that is there, or is now.
fn settle(entry: &Protected, absent: Absent) -> io::Result<Option<PathBuf>> {
    let mode = match entry.protection {
        // A link is the repository's to set: protecting where it leads would let a repository
        // choose a directory that no server can write.
        Protection::Existing if !is_directory(&entry.path) => return Ok(None),
        Protection::Existing => None,
        Protection::Private => Some(0o700),
    };
    match (entry.path.canonicalize(), mode, absent) {
        (Ok(path), ..) if path.is_dir() => Ok(Some(path)),
        (Ok(_), ..) => Err(io::ErrorKind::NotADirectory.into()),
        (Err(error), Some(mode), Absent::Make) if error.kind() == io::ErrorKind::NotFound => {
            match make(&entry.path, mode) {
                // Neither can a server that runs as the same user.
                Err(error) if is_denied(&error) => Ok(None),
                result => result.and_then(|()| entry.path.canonicalize()).map(Some),
            }
        }
        (Err(error), Some(_), Absent::StandIn) if error.kind() == io::ErrorKind::NotFound => {
            let nearest = entry.path.ancestors().find_map(|it| it.canonicalize().ok());
            // The root is no mount point below anything.
            Ok(nearest.filter(|path| path.parent().is_some()))
        }
        (Err(error), ..) => Err(error),
    }
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_dir())
}

fn is_denied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    // Whatever the process's mask says: a policy directory that others cannot read would stop
    // all their servers.
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// The ancestors of a directory that this user could rename, and so put another in their place.
fn replaceable(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.ancestors()
        .skip(1)
        .filter(|ancestor| ancestor.parent().is_some_and(is_ours))
        .map(Path::to_path_buf)
}

/// Whether this user may change what a directory holds, or may allow themselves to.
fn is_ours(directory: &Path) -> bool {
    let owned = directory
        .metadata()
        .is_ok_and(|it| it.uid() == geteuid().as_raw());
    owned || accessat(CWD, directory, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// One line of the mount table.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: Vec<u8>,
    /// Which directory of the file system is mounted.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

fn mounts_of(table: &[u8]) -> Vec<Mount> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            Some(Mount {
                device: fields.next()?.to_vec(),
                root: unescaped(fields.next()?),
                point: unescaped(fields.next()?),
            })
        })
        .collect()
}

/// Blanks, line breaks and backslashes are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = &after[if code.is_some() { 3 } else { 0 }..];
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// The other paths to the same directory, where its file system is mounted more than once.
fn aliases(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    // Of two mounts on one point the later hides the earlier.
    let Some(own) = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
    else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&own.point) else {
        return Vec::new();
    };
    let inside = own.root.join(below);
    let Ok(itself) = path.metadata() else {
        return Vec::new();
    };
    mounts
        .iter()
        .filter(|mount| mount.device == own.device)
        .filter_map(|mount| Some(mount.point.join(inside.strip_prefix(&mount.root).ok()?)))
        .filter(|alias| alias != path)
        // Another mount may lie over it.
        .filter(|alias| {
            alias
                .metadata()
                .is_ok_and(|it| (it.dev(), it.ino()) == (itself.dev(), itself.ino()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
