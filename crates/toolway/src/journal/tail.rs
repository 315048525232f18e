//! A file that grows and is rotated, read line by line.
//!
//! Owns opening it as carefully as for writing, reading what is there, and following what is
//! appended. Does not own what the lines mean.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolway_files::plain_file::open_no_link;

use super::file::old_name;

/// A line that has no end after so many bytes is none of ours.
const LONGEST: usize = 256 * 1024;

/// The end of a file: what is appended can be read from here on.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl Tail {
    /// Shows every line of the file that was rotated away and of the one after it. `None` when
    /// there is neither.
    pub(crate) fn open(
        directory: &Path,
        name: &str,
        show: &mut impl FnMut(&str),
    ) -> io::Result<Option<Tail>> {
        let old = open(&directory.join(old_name(name)))?;
        let new = open(&directory.join(name))?;
        if old.is_none() && new.is_none() {
            return Ok(None);
        }
        let mut tail = Tail {
            path: directory.join(name),
            file: None,
            partial: Vec::new(),
        };
        for file in [old, new].into_iter().flatten() {
            // The rest of an old file's last line will not come.
            tail.partial.clear();
            tail.file = Some(file);
            tail.read_on(show)?;
        }
        Ok(Some(tail))
    }

    /// Shows every whole line that came since the last time. A file that was rotated meanwhile
    /// is read to its end before the new one is begun.
    pub(crate) fn poll(&mut self, show: &mut impl FnMut(&str)) -> io::Result<()> {
        // Looked up before reading: what the old file gets until then is still read.
        let there = match open(&self.path)? {
            Some(file) => Some((file.metadata()?.ino(), file)),
            None => None,
        };
        self.read_on(show)?;
        let here = match &self.file {
            Some(file) => Some(file.metadata()?.ino()),
            None => None,
        };
        if let Some((inode, file)) = there
            && here != Some(inode)
        {
            self.file = Some(file);
            self.partial.clear();
            self.read_on(show)?;
        }
        Ok(())
    }

    fn read_on(&mut self, show: &mut impl FnMut(&str)) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        // It was emptied by hand.
        if file.metadata()?.len() < file.stream_position()? {
            file.seek(SeekFrom::Start(0))?;
            self.partial.clear();
        }
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                self.partial.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    let text = String::from_utf8_lossy(&self.partial);
                    show(text.trim_end_matches('\n'));
                    self.partial.clear();
                } else if self.partial.len() > LONGEST {
                    self.partial.clear();
                }
            }
        }
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match open_no_link(path) {
        Ok(Some((file, _))) => Ok(Some(file)),
        Ok(None) => Err(io::Error::other(format!(
            "`{}` is no plain file",
            path.display()
        ))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
