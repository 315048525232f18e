//! A directory in whose place an empty one is seen.
//!
//! Owns what of it stays to be seen, and the mounts that takes. Which directories are hidden is
//! decided in [`layout`](super::super::layout).

use std::ffi::CString;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdir, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, OpenTreeFlags, mount, open_tree};

use super::super::layout::c_path;
use super::raw;

/// A hidden directory, ready for a child that only makes system calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct HiddenDirectory {
    pub(super) path: CString,
    pub(super) seen: Vec<VisibleSubdirectory>,
}

/// A directory below a hidden one that stays to be seen, read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VisibleSubdirectory {
    /// Below the hidden directory.
    pub(super) relative: CString,
    /// What has to be made in the empty directory, outermost first; the last is its place.
    folders: Vec<CString>,
    place: CString,
}

impl HiddenDirectory {
    /// Hides a directory but for what is named of it. Nothing where a path holds a NUL.
    pub(in super::super) fn new<'a>(
        path: &Path,
        seen: impl IntoIterator<Item = &'a Path>,
    ) -> Option<Self> {
        let seen = seen.into_iter().map(|relative| {
            let place = path.join(relative);
            let inside = place.ancestors().take_while(|it| *it != path);
            let mut folders: Vec<CString> = inside
                .map(|it| c_path(it.to_owned()))
                .collect::<Option<_>>()?;
            folders.reverse();
            Some(VisibleSubdirectory {
                relative: c_path(relative.to_owned())?,
                folders,
                place: c_path(place)?,
            })
        });
        Some(Self {
            path: c_path(path.to_owned())?,
            seen: seen.collect::<Option<_>>()?,
        })
    }

    /// Hides it from this process and its children.
    pub(super) fn hide(&self) -> rustix::io::Result<()> {
        let path = self.path.as_c_str();
        // The way to what the empty directory is about to cover.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let covered = openat(CWD, path, flags, Mode::empty())?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"tmpfs", path, c"tmpfs", flags, c"mode=0700")?;
        for seen in &self.seen {
            for folder in &seen.folders {
                match mkdir(folder.as_c_str(), Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
            }
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE;
            let tree = open_tree(&covered, seen.relative.as_c_str(), flags)?;
            super::put(&tree, &seen.place)?;
        }
        raw::make_read_only(path)
    }
}
