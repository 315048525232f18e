//! The file that `--output` names: written whole, or not at all.
//!
//! Owns the writing. Content goes to a private file beside the target first, which takes its name
//! only when all of it is on disk.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// An unfinished file is the user's alone.
const PRIVATE: u32 = 0o600;

/// What anybody may do with a file, before the umask.
const COMMON: u32 = 0o666;

/// Writes a file that must not be there yet, or with `force` also one that is. A umask is given where
/// it is not this process's own.
pub(in crate::commands) fn write(
    path: &Path,
    bytes: &[u8],
    force: bool,
    umask: Option<u32>,
) -> io::Result<()> {
    if !force {
        return put(path, bytes, None, umask);
    }
    let old = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return put_new(path, bytes, umask);
        }
        Err(error) => return Err(error),
    };
    if old.is_file() {
        // A link stays, and what it leads to is replaced.
        return put(
            &path.canonicalize()?,
            bytes,
            Some(&old.permissions()),
            umask,
        );
    }
    // A pipe or a device has no content that could be lost.
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)
}

/// Where nothing is; a link that leads nowhere is made to lead somewhere.
fn put_new(path: &Path, bytes: &[u8], umask: Option<u32>) -> io::Result<()> {
    match path.read_link() {
        Ok(target) => put(&folder(path).join(target), bytes, None, umask),
        Err(_) => put(path, bytes, None, umask),
    }
}

/// Writes it beside the target and moves it there: over the old file whose permissions are given,
/// or to a name that nothing has.
fn put(path: &Path, bytes: &[u8], old: Option<&Permissions>, umask: Option<u32>) -> io::Result<()> {
    let folder = folder(path);
    let mut temporary = tempfile::Builder::new()
        .prefix(".toolway-")
        .make_in(&folder, |path| {
            OpenOptions::new().write(true).create_new(true).open(path)
        })?;
    let file = temporary.as_file_mut();
    // Only making a file tells what the umask leaves of its mode. It is empty yet.
    let permissions = match (old, umask) {
        (Some(permissions), _) => permissions.clone(),
        (None, Some(umask)) => Permissions::from_mode(COMMON & !umask),
        (None, None) => file.metadata()?.permissions(),
    };
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    file.write_all(bytes)?;
    file.set_permissions(permissions)?;
    file.sync_all()?;
    let moved = match old {
        Some(_) => temporary.persist(path),
        None => temporary.persist_noclobber(path),
    };
    moved.map_err(|error| error.error)?;
    // The file is there. Not every file system can promise that it survives a crash.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
