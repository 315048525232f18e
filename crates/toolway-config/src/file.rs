//! Reading a file as text.
//!
//! Owns opening: a pipe or device in a repository must not block the program, and a huge file must
//! not fill its memory.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::FileReadError;

mod beneath;

pub(crate) use beneath::open_beneath;

/// The most that is read of one file.
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

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
    open_with(path, OFlags::empty())
}

/// As [`open`], unless the path is a link.
pub(crate) fn open_no_link(path: &Path) -> Result<(File, Metadata), FileReadError> {
    open_with(path, OFlags::NOFOLLOW)
}

fn open_with(path: &Path, flags: OFlags) -> Result<(File, Metadata), FileReadError> {
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(FileReadError::NotAFile);
    }
    Ok((file, facts))
}

/// The whole content as text, if it is no longer than that.
pub(crate) fn text_of(file: File, facts: &Metadata, limit: u64) -> Result<String, FileReadError> {
    if facts.len() > limit {
        return Err(FileReadError::TooLarge { limit });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or_default() + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(FileReadError::TooLarge { limit });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let lines = good.split(|byte| *byte == b'\n').count();
        FileReadError::NotText {
            line: u32::try_from(lines).unwrap_or(u32::MAX),
        }
    })
}
