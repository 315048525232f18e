//! Which mounts keep a set of directories from being written, seen, moved or replaced.
//!
//! Owns looking: what exists, who may rename which ancestor or link. By which other paths the same
//! directory can be reached is [`table`]. Makes absent directories, mounts nothing.

mod table;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::hidden::{HiddenDirectory, c_path};
use super::{ProtectedPath, Protection};
use crate::error::ShieldError;
use table::{aliases, mounts_of};
use toolway_files::links::follow;

/// What to do about a directory that is to be protected and is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentDirectory {
    /// Make it.
    Make,
    /// Take its nearest ancestor: enough to see whether protecting works.
    StandIn,
}

/// The mounts, in the order they are made.
#[derive(Debug, Default)]
pub(super) struct MountLayout {
    /// Directories and links that are mounted on themselves: a mount point cannot be renamed or
    /// removed.
    pub(super) held: Vec<CString>,
    /// Directories and files that are mounted on themselves, read-only with all below.
    pub(super) read_only: Vec<CString>,
    /// Directories in whose place an empty one is seen.
    pub(super) hidden: Vec<HiddenDirectory>,
    /// Where links lead from what is [believed](Protection::Believed): all of it is read-only.
    pub(super) led_to: Vec<PathBuf>,
}

impl MountLayout {
    /// The mounts for these directories, and what could not be helped.
    pub(super) fn of(
        protected: &[ProtectedPath],
        absent: AbsentDirectory,
    ) -> (Self, Vec<ShieldError>) {
        let mut gaps = Vec::new();
        let mut held = BTreeSet::new();
        // Where the directories lie or will lie: others may stand in for them.
        let mut covered = BTreeSet::new();
        let (mut read_only, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounts = mounts_of(&mounts);
        for entry in protected {
            match settle(entry, absent) {
                Ok(Some(path)) => {
                    covered.insert(follow(&entry.path).0);
                    if entry.protection != Protection::Existing {
                        held.extend(replaceable(&path));
                    }
                    let found = aliases(&path, &mounts);
                    let whole = found.whole.into_iter().chain([path]);
                    match entry.protection {
                        Protection::Hidden => hidden.extend(whole),
                        _ => read_only.extend(whole),
                    }
                    read_only.extend(found.parts);
                }
                Ok(None) => {}
                Err(error) => gaps.push(ShieldError::Directory {
                    path: entry.path.clone(),
                    errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
                }),
            }
            if entry.protection == Protection::Links {
                for link in replaceable_links(&entry.path) {
                    held.extend(replaceable(&link));
                    held.insert(link);
                }
            }
        }
        let believed = protected
            .iter()
            .filter(|entry| entry.protection == Protection::Believed);
        let mut led_to = Vec::new();
        for end in believed.flat_map(|entry| resolved_links(&entry.path)) {
            for link in end
                .links
                .iter()
                .filter(|it| it.parent().is_some_and(is_ours))
            {
                held.extend(replaceable(link));
                held.insert(link.clone());
            }
            match end.real {
                Err(gap) => gaps.push(gap),
                Ok(real) if is_below(&real, &covered) => {}
                Ok(real) => {
                    held.extend(replaceable(&real));
                    let found = aliases(&real, &mounts);
                    let all = found.whole.into_iter().chain(found.parts);
                    let all = all.chain([real.clone()]);
                    // What is hidden needs no more, and a file would be no place in it.
                    read_only.extend(all.filter(|path| !is_below(path, &hidden)));
                    led_to.push(real);
                }
            }
        }
        // What cannot be written cannot be renamed either.
        held.retain(|path| !is_below(path, &read_only) && !is_below(path, &hidden));
        // In the order of a set, ancestors come before what lies below them.
        let layout = Self {
            held: held.into_iter().filter_map(c_path).collect(),
            hidden: hide(&hidden, &read_only),
            read_only: read_only.into_iter().filter_map(c_path).collect(),
            led_to,
        };
        (layout, gaps)
    }
}

/// Whether a path is one of these or lies in one.
fn is_below(path: &Path, these: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().any(|it| these.contains(it))
}

/// Where something that is believed really lies.
struct ResolvedLink {
    /// The links that lead there.
    links: Vec<PathBuf>,
    /// Where it lies; otherwise why it cannot be protected there.
    real: Result<PathBuf, ShieldError>,
}

/// Where the links lead that stand in this place and, if it is a folder, directly in it.
fn resolved_links(path: &Path) -> Vec<ResolvedLink> {
    let inside = path.read_dir().into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = inside.map(|entry| entry.path()).collect();
    paths.sort();
    paths.insert(0, path.to_owned());
    paths
        .iter()
        .filter_map(|path| resolved_link(path))
        .collect()
}

/// Nothing where nothing is.
fn resolved_link(path: &Path) -> Option<ResolvedLink> {
    // The way to the directory it stands in is the business of that directory's entry.
    let place = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let metadata = place.symlink_metadata().ok()?;
    if metadata.is_symlink() || metadata.is_file() {
        let (_, links) = follow(&place);
        let real = protectable(&place).map_err(|reason| reason.of(path));
        Some(ResolvedLink { links, real })
    } else {
        None
    }
}

/// The real path of what a mount can protect.
fn protectable(place: &Path) -> Result<PathBuf, Unprotectable> {
    let real = place.canonicalize().map_err(Unprotectable::System)?;
    let metadata = real.metadata().map_err(Unprotectable::System)?;
    if metadata.is_file() && metadata.nlink() > 1 && is_ours(&real) {
        return Err(Unprotectable::SecondName);
    }
    // The root is no mount point below anything.
    match real.parent() {
        Some(_) => Ok(real),
        None => Err(Unprotectable::System(Errno::BUSY.into())),
    }
}

enum Unprotectable {
    System(io::Error),
    SecondName,
}

impl Unprotectable {
    /// Said of the path by which a user knows it.
    fn of(self, path: &Path) -> ShieldError {
        match self {
            Self::SecondName => ShieldError::SecondName(path.to_owned()),
            Self::System(error) => ShieldError::Directory {
                path: path.to_owned(),
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            },
        }
    }
}

/// What has to be hidden, each with what stays to be seen in it: whatever is merely read-only.
fn hide(hidden: &BTreeSet<PathBuf>, read_only: &BTreeSet<PathBuf>) -> Vec<HiddenDirectory> {
    // The hidden directory that a path is hidden with.
    let covering = |path: &Path| {
        path.ancestors()
            .skip(1)
            .take_while(|it| hidden.contains(*it) || !read_only.contains(*it))
            .filter_map(|it| hidden.get(it))
            .last()
    };
    hidden
        .iter()
        .filter(|path| covering(path).is_none())
        .filter_map(|path| {
            let seen = read_only
                .iter()
                .filter(|it| covering(it) == Some(path))
                .filter_map(|it| it.strip_prefix(path).ok());
            HiddenDirectory::new(path, seen)
        })
        .collect()
}

/// The directories that cannot be written, and those that cannot be seen either, as a user knows
/// them: those that are there, or will be when a server starts.
pub(super) fn named(protected: &[ProtectedPath]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let named = |wanted: &[Protection]| {
        let will_be = |entry: &&ProtectedPath| match entry.protection {
            Protection::Private | Protection::Hidden => true,
            Protection::Existing => is_directory(&entry.path),
            Protection::Links | Protection::Believed => false,
        };
        protected
            .iter()
            .filter(|entry| wanted.contains(&entry.protection))
            .filter(will_be)
            .map(|entry| entry.path.clone())
            .collect()
    };
    let read_only = named(&[Protection::Private, Protection::Existing]);
    (read_only, named(&[Protection::Hidden]))
}

/// The real path of a directory that is there, or is now.
fn settle(entry: &ProtectedPath, absent: AbsentDirectory) -> io::Result<Option<PathBuf>> {
    let mode = match entry.protection {
        // A link is the repository's to set: protecting where it leads would let a repository
        // choose a directory that no server can write.
        Protection::Existing if !is_directory(&entry.path) => return Ok(None),
        Protection::Existing => None,
        Protection::Links | Protection::Believed => return Ok(None),
        Protection::Private | Protection::Hidden => Some(0o700),
    };
    match (entry.path.canonicalize(), mode, absent) {
        (Ok(path), ..) if path.is_dir() => Ok(Some(path)),
        (Ok(_), ..) => Err(io::ErrorKind::NotADirectory.into()),
        (Err(error), Some(mode), AbsentDirectory::Make)
            if error.kind() == io::ErrorKind::NotFound =>
        {
            // A link may lead to where nothing is yet.
            match make(&follow(&entry.path).0, mode) {
                // Neither can a server that runs as the same user.
                Err(error) if is_denied(&error) => Ok(None),
                result => result.and_then(|()| entry.path.canonicalize()).map(Some),
            }
        }
        (Err(error), Some(_), AbsentDirectory::StandIn)
            if error.kind() == io::ErrorKind::NotFound =>
        {
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

/// Whether this user may write a file, or change what a directory holds, or may allow themselves
/// to.
fn is_ours(path: &Path) -> bool {
    let owned = path
        .metadata()
        .is_ok_and(|it| it.uid() == geteuid().as_raw());
    owned || accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// The links on the way to a path that this user could replace, each by the real path of the
/// directory it stands in.
fn replaceable_links(path: &Path) -> impl Iterator<Item = PathBuf> {
    let (_, links) = follow(path);
    links
        .into_iter()
        .filter(|link| link.parent().is_some_and(is_ours))
}

#[cfg(test)]
mod tests;
