//! A directory in whose place an empty one is seen.
//!
//! Owns what of it stays to be seen. Which directories are hidden is decided in `layout`, the mounts
//! that takes are made in `namespace`.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// A hidden directory, ready for a child that only makes system calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HiddenDirectory {
    pub(super) path: CString,
    pub(super) seen: Vec<VisibleSubdirectory>,
}

/// A directory below a hidden one that stays to be seen, read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VisibleSubdirectory {
    /// Below the hidden directory.
    pub(super) relative: CString,
    /// What has to be made in the empty directory, outermost first; the last is its place.
    pub(super) folders: Vec<CString>,
    pub(super) place: CString,
}

impl HiddenDirectory {
    /// Hides a directory but for what is named of it. Nothing where a path holds a NUL.
    pub(super) fn new<'a>(path: &Path, seen: impl IntoIterator<Item = &'a Path>) -> Option<Self> {
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
}

pub(super) fn c_path(path: PathBuf) -> Option<CString> {
    // A path that came from the system holds no NUL.
    CString::new(path.into_os_string().into_vec()).ok()
}
