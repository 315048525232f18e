//! A journal's file: opened in a private way, appended to, rotated.
//!
//! Owns names, appending and rotating. Opening is `toolway_files::private_file`: everything
//! goes through the open directory, and a file is ours, plain, 0600, in a directory that is 0700.
//!
//! Several processes append to one file: each line is one write in append mode. A process that
//! finds it full renames it, under the kernel's lock on the file itself, so that a process killed
//! in the middle leaves no lock behind; the others notice that the name leads elsewhere and follow.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, OFlags};
use sha2::{Digest as _, Sha256};
use toolway_files::private_file::{open_directory, open_file};
use toolway_types::{ServerName, ServerShare};

/// A file that is larger becomes the old one.
pub(super) const ROTATE_AT: u64 = 8 * 1024 * 1024;

/// How long a file that could not be written is left alone.
const REST: Duration = Duration::from_secs(5);

/// How many lines are written before the name is looked at again.
const LOOK_EVERY: u32 = 64;

/// The longest file name that is spelled out.
const LONGEST_NAME: usize = 180;

/// One file, opened when there is something to write.
pub(crate) struct LogFile {
    directory: PathBuf,
    name: String,
    rotate_at: u64,
    open: Option<OpenLogFile>,
    /// After a failure: when to try again.
    rests_until: Option<Instant>,
    lost: u64,
    /// The last write was cut short, by a full disk: the next line starts on its own.
    torn: bool,
}

struct OpenLogFile {
    directory: OwnedFd,
    file: File,
    /// Lines to write before the name is looked at again.
    until_look: u32,
}

impl LogFile {
    pub(crate) fn new(directory: PathBuf, name: String) -> Self {
        Self {
            directory,
            name,
            rotate_at: ROTATE_AT,
            open: None,
            rests_until: None,
            lost: 0,
            torn: false,
        }
    }

    /// Rotated at another size than journals are.
    pub(crate) fn rotating_at(mut self, size: u64) -> Self {
        self.rotate_at = size;
        self
    }

    /// How many lines were lost since this was last asked, once writing works again.
    pub(crate) fn take_lost(&mut self) -> u64 {
        if self.rests() {
            return 0;
        }
        std::mem::take(&mut self.lost)
    }

    /// Appends lines in one write, the end of each included. After a failure lines are only
    /// counted for a while.
    pub(crate) fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.rests() {
            self.lost += ends(lines);
            return Ok(());
        }
        let mut written = 0;
        self.try_append(lines, &mut written).inspect_err(|_| {
            self.open = None;
            self.lost += ends(lines.get(written..).unwrap_or(lines));
            self.rests_until = Some(Instant::now() + REST);
        })
    }

    /// Whether lines are only counted, after a failure.
    pub(crate) fn rests(&self) -> bool {
        self.rests_until.is_some_and(|until| Instant::now() < until)
    }

    /// `written` becomes the number of bytes that were, whole lines or not.
    fn try_append(&mut self, lines: &str, written: &mut usize) -> io::Result<()> {
        self.rests_until = None;
        let mut open = match self.open.take() {
            Some(open) if open.until_look > 0 || open.is_still_at(&self.name)? => open,
            _ => OpenLogFile::new(&self.directory, &self.name)?,
        };
        if rustix::fs::fstat(&open.file)?.st_size.cast_unsigned() >= self.rotate_at {
            open.rotate(&self.name)?;
            open = OpenLogFile::new(&self.directory, &self.name)?;
        }
        open.until_look = open.until_look.checked_sub(1).unwrap_or(LOOK_EVERY);
        let text = if self.torn {
            Cow::Owned(format!("\n{lines}"))
        } else {
            Cow::Borrowed(lines)
        };
        let all = open.file.write(text.as_bytes())?;
        *written = all.saturating_sub(text.len() - lines.len());
        self.torn = all < text.len();
        if self.torn {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.open = Some(open);
        Ok(())
    }
}

/// How many lines end in a text.
fn ends(lines: &str) -> u64 {
    lines.bytes().filter(|byte| *byte == b'\n').count() as u64
}

impl OpenLogFile {
    fn new(path: &Path, name: &str) -> io::Result<Self> {
        let directory = open_directory(path)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let file = open_file(&directory, name, flags)?;
        Ok(Self {
            directory,
            file,
            until_look: LOOK_EVERY,
        })
    }

    /// Whether the name still leads to this file; another process may have rotated it.
    fn is_still_at(&self, name: &str) -> io::Result<bool> {
        let ours = rustix::fs::fstat(&self.file)?;
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes this file the old one, unless another process does or did.
    fn rotate(&self, name: &str) -> io::Result<()> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        if self.is_still_at(name)? {
            rustix::fs::renameat(&self.directory, name, &self.directory, old_name(name))?;
        }
        Ok(())
    }
}

/// Which journal: a server's, by its name; and by its project, where it is the project's.
/// Another project's server of the same name has another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalName {
    server: ServerName,
    project: Option<PathBuf>,
}

impl JournalName {
    /// The journal of a server of this name that is shared in this way.
    pub fn of(server: &ServerName, share: &ServerShare) -> Self {
        Self {
            server: server.clone(),
            project: share.project().map(Path::to_owned),
        }
    }

    pub(super) fn server(&self) -> &ServerName {
        &self.server
    }

    /// The file. What follows `+` is the project; a name has none, see [`file_stem`].
    pub(crate) fn file(&self) -> String {
        let stem = file_stem(&self.server);
        match &self.project {
            Some(project) => {
                let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
                format!("{stem}+{}.log", &hex::encode(digest)[..12])
            }
            None => format!("{stem}.log"),
        }
    }
}

impl From<&ServerName> for JournalName {
    fn from(server: &ServerName) -> Self {
        Self::of(server, &ServerShare::User)
    }
}

/// The name of a server as a file's, without an ending. A name may hold anything a person can type,
/// slashes too, so all but plain letters is spelled in hexadecimal digits behind a `%`, as in a URL.
pub(crate) fn file_stem(server: &ServerName) -> String {
    let mut stem = String::new();
    for (index, byte) in server.as_str().bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-')
            || (byte == b'.' && index > 0);
        if plain {
            stem.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(stem, "%{byte:02X}");
        }
    }
    if stem.len() <= LONGEST_NAME {
        return stem;
    }
    let digest = hex::encode(Sha256::digest(server.as_str()));
    stem.truncate(LONGEST_NAME - 17);
    format!("{stem}%~{}", &digest[..16])
}

/// The file that this one was before its last rotation.
pub(super) fn old_name(name: &str) -> String {
    format!("{name}.1")
}

/// Which server a file belongs to; none for a name that is no journal's.
pub(super) fn server_of(file: &str) -> Option<ServerName> {
    let stem = file.strip_suffix(".log")?;
    let stem = stem.split_once('+').map_or(stem, |(stem, _)| stem);
    let mut name = Vec::new();
    let mut bytes = stem.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            name.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            name.push(byte);
        }
    }
    ServerName::new(String::from_utf8(name).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_was_not_written_is_counted() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("log");
        std::fs::write(&directory, "a file in its place").unwrap();
        let mut file = LogFile::new(directory.clone(), "f".to_owned());
        assert!(file.append("one\ntwo\n").is_err());
        // It rests now, and only counts.
        file.append("three\n").unwrap();
        assert_eq!(file.take_lost(), 0);
        file.rests_until = None;
        assert_eq!(file.take_lost(), 3);
        std::fs::remove_file(&directory).unwrap();
        file.append("four\nfive\n").unwrap();
        assert_eq!(file.take_lost(), 0);
        let text = std::fs::read_to_string(directory.join("f")).unwrap();
        assert_eq!(text, "four\nfive\n");
    }
}
