//! The file, while it is written.
//!
//! Owns that a line is written whole or not at all, at once, by any number of processes; and that the
//! file is its owner's alone.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, OFlags, fchmod, fstat, openat};
use rustix::io::Errno;
use serde_json::value::RawValue;

use crate::line::{Head, RecordedLine, Side, VERSION};

/// What a recording may have.
pub const LARGEST: u64 = 64 * 1024 * 1024;

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A link leads elsewhere, or it is no file.
    #[error("`{}` is a link or no plain file", .0.display())]
    NotPlain(PathBuf),
    /// It is another user's.
    #[error("`{}` belongs to another user", .0.display())]
    NotOurs(PathBuf),
    /// There is something else in it.
    #[error("`{}` is not a recording", .0.display())]
    NotARecording(PathBuf),
    /// It is as long as it may be.
    #[error("`{}` is full: a recording has at most {} MiB", .0.display(), LARGEST / 1024 / 1024)]
    Full(PathBuf),
    /// The system says no.
    #[error("cannot write `{path}`: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
}

/// A recording that goes on.
#[derive(Debug)]
pub struct RecordingFile {
    path: PathBuf,
    begun: Instant,
    messages: AtomicU64,
    file: Mutex<OpenRecording>,
}

#[derive(Debug)]
struct OpenRecording {
    file: File,
    /// Why nothing is written any more.
    ended: Option<String>,
}

impl RecordingFile {
    /// Opens a recording to add to it, or begins one. `by` is the version of the program and `time`
    /// the time in UTC.
    pub fn open(path: &Path, by: &str, time: &str) -> Result<Self, RecordingError> {
        let failed = |error: io::Error| RecordingError::Io(path.to_owned(), error);
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let opened = openat(CWD, path, flags, Mode::RUSR | Mode::WUSR);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => {
                return Err(RecordingError::NotPlain(path.to_owned()));
            }
            Err(errno) => return Err(failed(errno.into())),
        };
        let stat = fstat(&file).map_err(|errno| failed(errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
            return Err(RecordingError::NotPlain(path.to_owned()));
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(RecordingError::NotOurs(path.to_owned()));
        }
        fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|errno| failed(errno.into()))?;
        let mut file = file;
        let whole = ends_whole(&mut file, path)?;
        let head = Head {
            toolway: "recording".to_owned(),
            version: VERSION,
            by: by.to_owned(),
            time: time.to_owned(),
        };
        let mut text = String::new();
        if !whole {
            // What a crash left of a line must not become part of this one.
            text.push('\n');
        }
        text.push_str(&serde_json::to_string(&head).map_err(|error| failed(error.into()))?);
        text.push('\n');
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            begun: Instant::now(),
            messages: AtomicU64::new(0),
            file: Mutex::new(OpenRecording { file, ended: None }),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a message, without secrets. What is no JSON is told as left out.
    pub fn message(&self, server: &str, connection: &str, from: Side, message: &str) {
        // Line ends between members mean nothing, and inside texts there are none.
        let message = message.trim().replace(['\n', '\r'], " ");
        match serde_json::from_str::<&RawValue>(&message) {
            Ok(message) => self.write(server, connection, from, Some(message), None),
            Err(_) => self.left_out(server, connection, from, "it was no JSON"),
        }
    }

    /// Adds that a message was left out, and why.
    pub fn left_out(&self, server: &str, connection: &str, from: Side, why: &str) {
        self.write(server, connection, from, None, Some(why));
    }

    fn write(
        &self,
        server: &str,
        connection: &str,
        from: Side,
        message: Option<&RawValue>,
        left_out: Option<&str>,
    ) {
        let line = RecordedLine {
            server,
            connection,
            from,
            ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            message,
            left_out,
        };
        // A panic elsewhere leaves at worst half a line, which readers pass over.
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if open.ended.is_some() {
            return;
        }
        let Ok(mut text) = serde_json::to_string(&line) else {
            return;
        };
        text.push('\n');
        let size = open.file.metadata().map(|metadata| metadata.len());
        match size {
            Ok(size) if size + text.len() as u64 > LARGEST => {
                open.ended = Some(RecordingError::Full(self.path.clone()).to_string());
            }
            // One write: lines of other processes come before it or behind it.
            Ok(_) => match open.file.write_all(text.as_bytes()) {
                Ok(()) => drop(self.messages.fetch_add(1, Ordering::Relaxed)),
                Err(error) => {
                    open.ended = Some(RecordingError::Io(self.path.clone(), error).to_string());
                }
            },
            Err(error) => {
                open.ended = Some(RecordingError::Io(self.path.clone(), error).to_string());
            }
        }
    }

    /// How many messages were added.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Why it ended before the conversation did, if it did.
    pub fn ended(&self) -> Option<String> {
        let open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        open.ended.clone()
    }
}

/// Whether a file ends with a whole line; an error where it is something else than a recording.
fn ends_whole(file: &mut File, path: &Path) -> Result<bool, RecordingError> {
    let failed = |error: io::Error| RecordingError::Io(path.to_owned(), error);
    let size = file.metadata().map_err(failed)?.len();
    if size == 0 {
        return Ok(true);
    }
    if size >= LARGEST {
        return Err(RecordingError::Full(path.to_owned()));
    }
    let mut head = Vec::new();
    let mut start = file.try_clone().map_err(failed)?.take(4096);
    start.read_to_end(&mut head).map_err(failed)?;
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !is_head(first) {
        return Err(RecordingError::NotARecording(path.to_owned()));
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).map_err(failed)?;
    file.read_exact(&mut last).map_err(failed)?;
    Ok(last == [b'\n'])
}

/// Whether a line begins a recording.
pub(crate) fn is_head(line: &[u8]) -> bool {
    serde_json::from_slice::<Head>(line).is_ok_and(|head| head.toolway == "recording")
}
