//! Files that cannot be read or written: what helps.
//!
//! Owns the hint for each fault of the system, and the reports of changes to settings.

use std::io::ErrorKind;
use std::path::Path;

use toolway_config::edit::EditError;

use super::Report;
use crate::exit::Exit;

/// What helps when a file cannot be read or written.
pub(crate) fn unwritable(path: &Path, why: ErrorKind) -> String {
    let path = path.display();
    match why {
        ErrorKind::StorageFull => format!("make room on the disk that holds `{path}`"),
        ErrorKind::QuotaExceeded => {
            format!("make room: you may not store more on the disk that holds `{path}`")
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("the file system is read-only: make the one that holds `{path}` writable")
        }
        ErrorKind::NotADirectory => {
            format!("a file stands where `{path}` needs a directory: move it away")
        }
        ErrorKind::FileTooLarge => format!("see why `{path}` is that large"),
        ErrorKind::IsADirectory => format!("a directory stands at `{path}`: move it away"),
        // Links that lead round and round.
        ErrorKind::InvalidInput => format!("see where the links at `{path}` lead"),
        _ => format!("check the rights on `{path}`"),
    }
}

impl From<EditError> for Report {
    fn from(error: EditError) -> Self {
        let message = error.to_string();
        let (exit, hint) = match error {
            EditError::Invalid { path, .. } => (
                Exit::Configuration,
                format!("mend `{}` first; nothing was written", path.display()),
            ),
            EditError::NotAnObject { path, .. } | EditError::NotAFile { path } => (
                Exit::Configuration,
                format!("look at `{}`; nothing was written", path.display()),
            ),
            EditError::Unfit { path, wanted, .. } => (
                Exit::Refused,
                format!(
                    "write it in `{}` with {wanted}; nothing was written",
                    path.display()
                ),
            ),
            EditError::Exists { .. } => {
                (Exit::Configuration, "replace it with `--force`".to_owned())
            }
            EditError::Io { path, source } => (
                Exit::Unexpected,
                format!("{}; nothing was written", unwritable(&path, source.kind())),
            ),
            EditError::Unconfirmed { path, .. } => (
                Exit::Unexpected,
                format!(
                    "check the disk, then see that `{}` is still as it should be",
                    path.display()
                ),
            ),
            EditError::Locked { .. } => (
                Exit::Unexpected,
                "end the other process, then try again".to_owned(),
            ),
            EditError::Changed { .. } => (Exit::Unexpected, "try again".to_owned()),
            EditError::Refused(_) => (Exit::Refused, "nothing was written".to_owned()),
        };
        Report::new(exit, message).hint(hint)
    }
}
