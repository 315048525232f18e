//! Which directories are projects.
//!
//! Owns the marks of a project: files and folders that exist there, never the content of a file
//! (SEC-04), and who owns them.

use std::path::Path;

use super::{PROJECT_FILE, PROJECT_FOLDER};
use crate::ownership::OwnUserIds;

/// The directories above, and including, this one that look like a project's, nearest first, where
/// the user or root owns both the directory and the mark: other users must not choose where the
/// project's settings are (SEC-55).
pub(super) fn own_projects<'a>(
    cwd: &'a Path,
    home: Option<&'a Path>,
    owners: OwnUserIds,
) -> Vec<&'a Path> {
    let is_own = |directory: &&Path| {
        let marks = MARKS.map(|mark| directory.join(mark));
        owners.have_at(directory) && marks.iter().any(|mark| owners.have_at(mark))
    };
    projects(cwd, home).filter(is_own).collect()
}

/// What a project's directory is known by.
const MARKS: [&str; 3] = [PROJECT_FOLDER, PROJECT_FILE, ".git"];

/// The directories above, and including, this one that look like a project's, nearest first.
pub(crate) fn projects<'a>(
    cwd: &'a Path,
    home: Option<&'a Path>,
) -> impl Iterator<Item = &'a Path> {
    cwd.ancestors()
        .take_while(move |directory| Some(*directory) != home)
        .filter(|directory| {
            MARKS
                .iter()
                .any(|mark| directory.join(mark).symlink_metadata().is_ok())
        })
}
