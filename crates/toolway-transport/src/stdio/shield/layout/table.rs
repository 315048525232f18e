//! By which other paths a directory can be reached: the mount table.
//!
//! Owns reading it. A file system may be mounted more than once, whole or in part, and what is
//! read-only by one path is not by another.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// One line of the mount table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    device: Vec<u8>,
    /// Which directory of the file system is mounted.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

pub(super) fn mounts_of(table: &[u8]) -> Vec<Mount> {
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

/// The other paths to a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Aliases {
    /// To all of it.
    pub(super) whole: Vec<PathBuf>,
    /// To a directory or a file in it.
    pub(super) parts: Vec<PathBuf>,
}

/// The other paths to the same directory, where its file system is mounted more than once.
pub(super) fn aliases(path: &Path, mounts: &[Mount]) -> Aliases {
    // Of two mounts on one point the later hides the earlier.
    let Some(own) = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
    else {
        return Aliases::default();
    };
    let Ok(below) = path.strip_prefix(&own.point) else {
        return Aliases::default();
    };
    let inside = own.root.join(below);
    let same = |one: &Path, other: &Path| match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    let mut found = Aliases::default();
    for mount in mounts.iter().filter(|mount| mount.device == own.device) {
        // Another mount may lie over either.
        if let Ok(below) = inside.strip_prefix(&mount.root) {
            let alias = mount.point.join(below);
            if alias != path && same(&alias, path) {
                found.whole.push(alias);
            }
        } else if let Ok(part) = mount.root.strip_prefix(&inside)
            && !mount.point.starts_with(path)
            && same(&mount.point, &path.join(part))
        {
            found.parts.push(mount.point.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests;
