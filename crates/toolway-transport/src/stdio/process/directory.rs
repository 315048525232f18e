//! Where a process is started.
//!
//! Owns making the directory that a process has for itself. It must be ours and closed to others:
//! what another user put there would be run (SEC-48). Where none can be made, as in a container
//! without a writable home, the root serves: nothing that runs is found there either.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::Path;

use toolway_types::WorkingDirectory;

use crate::error::OpenError;
use toolway_files::private_file::open_directory;

/// The directory, which is there when this returns.
pub(super) fn ready(directory: &WorkingDirectory) -> Result<Cow<'_, Path>, OpenError> {
    match directory {
        // The system would say only "no such file", as if the program were missing.
        WorkingDirectory::At(path) if !path.is_dir() => Err(OpenError::Directory(path.clone())),
        WorkingDirectory::At(path) => Ok(Cow::Borrowed(path)),
        WorkingDirectory::Private(path) => match open_directory(path) {
            Ok(_) => Ok(Cow::Borrowed(path)),
            Err(error) if cannot_be_made(error.kind()) => {
                tracing::debug!(%error, path = %path.display(), "no private directory");
                Ok(Cow::Borrowed(Path::new("/")))
            }
            Err(source) => Err(OpenError::PrivateDirectory {
                path: path.clone(),
                source,
            }),
        },
    }
}

/// Whether there is simply no place for it, as opposed to something else in its place.
fn cannot_be_made(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
    )
}
