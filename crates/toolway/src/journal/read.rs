//! Reading journals, for whoever shows them.
//!
//! Owns finding a server's files, the last lines of them, and following what is appended, across
//! rotations. Files are opened as carefully as for writing; what is read is cleaned again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use toolway_types::ServerName;

use super::file::{file_name, old_name, server_of};
use super::line::{Kind, Line};

/// A line that has no end after so many bytes is none of ours.
const LONGEST: usize = 256 * 1024;

/// Every server that has a journal here.
pub fn logged_servers(directory: &Path) -> Vec<ServerName> {
    let mut servers: Vec<ServerName> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| server_of(entry.ok()?.file_name().to_str()?))
        .collect();
    servers.sort();
    servers
}

/// The last lines of a server's journal that `wanted` takes, and a follower for what comes after
/// them. `None` when there is no journal.
pub fn read_last(
    directory: &Path,
    server: &ServerName,
    count: usize,
    wanted: impl Fn(Kind) -> bool,
) -> io::Result<Option<(Vec<Line>, Follower)>> {
    let name = file_name(server);
    let old = open(&directory.join(old_name(&name)))?;
    let new = open(&directory.join(&name))?;
    if old.is_none() && new.is_none() {
        return Ok(None);
    }
    let mut kept = VecDeque::new();
    let mut follower = Follower {
        path: directory.join(name),
        file: None,
        partial: Vec::new(),
    };
    for file in [old, new].into_iter().flatten() {
        // The rest of an old file's last line will not come.
        follower.partial.clear();
        follower.file = Some(file);
        follower.read_on(&mut |line| {
            if wanted(line.kind) {
                kept.push_back(line);
                if kept.len() > count {
                    kept.pop_front();
                }
            }
        })?;
    }
    Ok(Some((kept.into(), follower)))
}

/// Reads what is appended to a journal.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl Follower {
    /// Gives every whole line that came since the last time. A file that was rotated meanwhile
    /// is read to its end before the new one is begun.
    pub fn poll(&mut self, mut show: impl FnMut(Line)) -> io::Result<()> {
        // Looked up before reading: what the old file gets until then is still read.
        let there = match open(&self.path)? {
            Some(file) => Some((file.metadata()?.ino(), file)),
            None => None,
        };
        self.read_on(&mut show)?;
        let here = match &self.file {
            Some(file) => Some(file.metadata()?.ino()),
            None => None,
        };
        if let Some((inode, file)) = there
            && here != Some(inode)
        {
            self.file = Some(file);
            self.partial.clear();
            self.read_on(&mut show)?;
        }
        Ok(())
    }

    fn read_on(&mut self, show: &mut impl FnMut(Line)) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        // Somebody emptied it by hand.
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
                    if let Some(line) = Line::parse(text.trim_end_matches('\n')) {
                        show(line);
                    }
                    self.partial.clear();
                } else if self.partial.len() > LONGEST {
                    self.partial.clear();
                }
            }
        }
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Err(io::Error::other(format!(
            "`{}` is no plain file",
            path.display()
        )))
    }
}
