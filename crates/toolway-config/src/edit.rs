//! Changing a configuration file: the only writer of files that people edit too.
//!
//! Owns the one operation [`edit`]: lock, read, change by key, write. Comments, order, spacing and
//! unknown keys stay; an invalid file is never touched; another process's change is never lost; a
//! crash leaves the old file or the new one. Our own files are JSON; other clients' may be TOML or
//! YAML too (`structured_text.rs`). Which key holds what is the callers' business.

use std::io;
use std::path::{Path, PathBuf};

use toolway_types::Secret;

use crate::json::syntax_tree;

mod document;
mod file;
mod layout;
mod spelled;
pub(crate) mod structured_text;
#[cfg(test)]
mod tests;
pub(crate) mod toml_text;
pub(crate) mod yaml_text;

pub use document::Document;

const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// What [`edit`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited<T> {
    /// What the change gave.
    pub value: T,
    /// The file itself, links followed.
    pub path: PathBuf,
    /// Where the old content was kept, when the file was there and was written.
    pub backup: Option<PathBuf>,
    /// The line (from 1) of the entry last set.
    pub line: Option<u32>,
    /// Whether the file was written.
    pub changed: bool,
    /// What the file held when it was locked.
    pub before: Secret,
    /// What it holds now: as it was written, not as it was found afterwards.
    pub after: Secret,
}

/// Why a file was not changed. In every case its content is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file is not valid in its format (JSON may have comments and trailing commas).
    #[error("`{}` is not valid: {message} (line {line}, column {column}); it was left as it is", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong there.
        message: String,
    },
    /// Something that must be an object to hold the entry is something else.
    #[error("{key} in `{}` is not an object (line {line}); it was left as it is", path.display())]
    NotAnObject {
        /// The file.
        path: PathBuf,
        /// The key, with the keys above it joined by dots; `the top level` for the file itself.
        key: String,
        /// Its line, from 1.
        line: u32,
    },
    /// What holds the entry is valid, and written in a way that is not changed here.
    #[error(
        "`{key}` in `{}` is written in a way that cannot be changed safely (line {line}); it was left as it is",
        path.display()
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The key of the table.
        key: String,
        /// Its line, from 1.
        line: u32,
        /// How it would have to be written.
        wanted: &'static str,
    },
    /// The name stands for a directory, a pipe or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was written, but the disk would not say that it will stay so.
    #[error("`{}` was written, but the disk did not confirm it: {source}", path.display())]
    Unconfirmed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process holds the file and does not let go.
    #[error("`{}` is being edited by another process, which holds its directory", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A program that does not know our lock wrote the file in between.
    #[error("`{}` was changed by another program in the meantime; nothing was written", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// An entry of that name is there already.
    #[error("`{key}` is already in `{}`; it was left as it is", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// The entry's name.
        key: String,
    },
    /// The change itself declined.
    #[error("{0}")]
    Refused(String),
}

impl EditError {
    fn invalid(path: &Path, error: syntax_tree::SyntaxError) -> Self {
        Self::Invalid {
            path: path.to_owned(),
            line: error.line,
            column: error.column,
            message: error.message,
        }
    }

    fn top_level(path: &Path, line: u32) -> Self {
        Self::NotAnObject {
            path: path.to_owned(),
            key: "the top level".to_owned(),
            line,
        }
    }
}

/// Changes one JSON file. A missing file counts as an empty object; one that the change leaves as
/// it was is not written. While `change` runs, other processes wait.
pub fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut Document) -> Result<T, EditError>,
) -> Result<Edited<T>, EditError> {
    edit_with(path, None, change)
}

/// As [`edit`], with the old content kept in `backup` instead of beside the file. The backup's
/// directory must be on the same file system.
pub fn edit_with<T>(
    path: &Path,
    backup: Option<&Path>,
    change: impl FnOnce(&mut Document) -> Result<T, EditError>,
) -> Result<Edited<T>, EditError> {
    let held = file::LockedFile::open(path)?;
    let path = held.path().to_owned();
    let bytes = held.content().unwrap_or_default();
    let (mark, text) = decoded(&path, bytes)?;
    let mut document = Document::parse(&path, text)?;
    let before = document.text().to_owned();
    let value = change(&mut document)?;
    let line = document.last_set_line();
    let after = document.text().to_owned();
    let changed = after != before;
    let backup = if changed {
        held.replace(format!("{mark}{after}").as_bytes(), backup)?
    } else {
        None
    };
    Ok(Edited {
        value,
        path,
        backup,
        line,
        changed,
        before: Secret::new(before),
        after: Secret::new(after),
    })
}

/// What a change makes of a whole text.
#[derive(Debug)]
pub(crate) enum NewText {
    /// The file holds this.
    Written(String),
    /// There is no file.
    Removed,
}

/// Changes one file as a whole text, in whatever format it is. `change` gets the file itself, links
/// followed, and what it holds; nothing where there is none. A text that stays as it was is not
/// written.
pub(crate) fn edit_text<T>(
    path: &Path,
    backup: Option<&Path>,
    change: impl FnOnce(&Path, Option<&str>) -> Result<(NewText, T), EditError>,
) -> Result<Edited<T>, EditError> {
    let held = file::LockedFile::open(path)?;
    let path = held.path().to_owned();
    let (mark, before) = match held.content() {
        Some(bytes) => {
            let (mark, text) = decoded(&path, bytes)?;
            (mark, Some(text.to_owned()))
        }
        None => ("", None),
    };
    let (new, value) = change(&path, before.as_deref())?;
    let mut edited = Edited {
        value,
        path,
        backup: None,
        line: None,
        changed: true,
        before: Secret::new(before.clone().unwrap_or_default()),
        after: Secret::new(String::new()),
    };
    match (new, before) {
        (NewText::Removed, None) => edited.changed = false,
        (NewText::Removed, Some(_)) => held.remove()?,
        (NewText::Written(after), before) if before.as_ref() == Some(&after) => {
            edited.changed = false;
            edited.after = Secret::new(after);
        }
        (NewText::Written(after), _) => {
            edited.backup = held.replace(format!("{mark}{after}").as_bytes(), backup)?;
            edited.after = Secret::new(after);
        }
    }
    Ok(edited)
}

/// The file behind `path`, links followed, and its text, without changing anything.
pub(crate) fn peek(path: &Path) -> Result<(PathBuf, Option<String>), EditError> {
    let (path, bytes) = file::peek(path)?;
    let text = match &bytes {
        Some(bytes) => Some(decoded(&path, bytes)?.1.to_owned()),
        None => None,
    };
    Ok((path, text))
}

/// The text of a file's bytes, behind its byte order mark.
fn decoded<'a>(path: &Path, bytes: &'a [u8]) -> Result<(&'static str, &'a str), EditError> {
    let text = syntax_tree::decode(bytes).map_err(|error| EditError::invalid(path, error))?;
    Ok(match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => ("", text),
    })
}
