//! Reading a file as text.
//!
//! Owns what an unreadable file is called, and that a repository's paths stay in it.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::path::Path;

use toolway_files::plain_file::{self, read_at_most};
use toolway_types::limits;

use crate::error::FileReadError;

mod beneath;

pub(crate) use beneath::open_beneath;

/// The most that is read of one file.
pub(crate) const MAX_BYTES: u64 = limits::configuration::FILE;

/// Reads a file; `None` when there is none.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, FileReadError> {
    read_opened(open(path), MAX_BYTES)
}

/// The text of what was opened, up to this many bytes; `None` when there was nothing to open.
pub(crate) fn read_opened(
    opened: Result<(File, Metadata), FileReadError>,
    limit: u64,
) -> Result<Option<String>, FileReadError> {
    match opened {
        Ok((file, facts)) => text_of(file, &facts, limit).map(Some),
        Err(FileReadError::Io(error))
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Opens a regular file; the metadata is of the opened file, whatever the path means later.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), FileReadError> {
    plain_file::open(path)?.ok_or(FileReadError::NotAFile)
}

/// As [`open`], unless the path is a link.
pub(crate) fn open_no_link(path: &Path) -> Result<(File, Metadata), FileReadError> {
    plain_file::open_no_link(path)?.ok_or(FileReadError::NotAFile)
}

/// The whole content as text, if it is no longer than that.
pub(crate) fn text_of(file: File, facts: &Metadata, limit: u64) -> Result<String, FileReadError> {
    if facts.len() > limit {
        return Err(FileReadError::TooLarge { limit });
    }
    let bytes = read_at_most(file, facts, limit)?.ok_or(FileReadError::TooLarge { limit })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let lines = good.split(|byte| *byte == b'\n').count();
        FileReadError::NotText {
            line: u32::try_from(lines).unwrap_or(u32::MAX),
        }
    })
}
