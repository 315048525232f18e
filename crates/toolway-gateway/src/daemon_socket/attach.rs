//! The end of who has the daemon run a command: a process that waits, and nothing else.
//!
//! Owns handing over the streams, passing signals on, and telling apart what became of the command.
//! Blocking, without a runtime: it has to begin and end in no time.

use std::io::{self, BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::listen::DaemonSocket;
use super::message::{self, RunEnd, RunRefused, RunRequest, method};
use crate::owner_socket::{SocketFolder, SocketFolderError};

/// How long the daemon may take to say whether it runs a command.
const BEGUN_WITHIN: Duration = Duration::from_secs(5);

/// The longest answer.
const LONGEST: u64 = 16 * 1024 * 1024;

/// A connection to the daemon.
#[derive(Debug)]
pub struct DaemonClient {
    stream: BufReader<UnixStream>,
    folder: PathBuf,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] SocketFolderError),
    /// Another user listens there.
    #[error("the daemon's socket is another user's (uid {uid})")]
    Stranger {
        /// Whose.
        uid: u32,
    },
    /// It ended before it answered.
    #[error("the daemon ended before it answered")]
    Gone,
    /// The connection is of no use.
    #[error("the daemon cannot be talked to: {0}")]
    Io(#[from] io::Error),
    /// It listens, and says nothing.
    #[error("the daemon does not answer")]
    Silent {
        /// The file that its process holds, with its number.
        lock: PathBuf,
    },
    /// It said something that is no answer.
    #[error("the daemon's answer cannot be read: {0}")]
    Unreadable(String),
}

/// What became of a command.
#[derive(Debug)]
pub enum RunOutcome {
    /// It ended.
    Ended(RunEnd),
    /// It was not begun.
    Refused(RunRefused),
    /// The daemon was gone before it began.
    NotBegun,
    /// The daemon was gone while it ran: what it did is not known.
    Lost,
}

/// Whether a command has begun.
#[derive(Debug)]
pub enum RunBeginning {
    /// It runs.
    Begun(DaemonClient),
    /// It was not begun.
    Refused(RunRefused),
    /// The daemon was gone before it began.
    NotBegun,
    /// It began, and how it ends is not told any more.
    Lost,
}

#[derive(Deserialize)]
struct HeardMessage {
    method: Option<String>,
    result: Option<Value>,
    error: Option<Value>,
}

impl DaemonClient {
    /// Connects to the daemon in this folder; nothing where none listens.
    pub fn connect(folder: &Path) -> Result<Option<Self>, AttachError> {
        let Some(folder) = SocketFolder::open_if_there(folder)? else {
            return Ok(None);
        };
        let stream = match UnixStream::connect(folder.address(&DaemonSocket::name())?) {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        refuse_strangers(&stream)?;
        Ok(Some(Self {
            stream: BufReader::new(stream),
            folder: folder.path().to_owned(),
        }))
    }

    /// Asks one thing.
    pub fn ask<Answer: DeserializeOwned>(
        mut self,
        name: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Answer, AttachError> {
        self.exchange(name, params, limit)
    }

    /// Asks one thing and waits for the daemon's end; false where that does not come in time.
    pub fn ask_until_end<Answer: DeserializeOwned>(
        mut self,
        name: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<(Answer, bool), AttachError> {
        let answer = self.exchange(name, params, limit)?;
        let ended = matches!(self.next(), Ok(None));
        Ok((answer, ended))
    }

    fn exchange<Answer: DeserializeOwned>(
        &mut self,
        name: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Answer, AttachError> {
        let request = message::request(name, params).map_err(|error| unreadable(&error))?;
        self.stream.get_ref().set_read_timeout(Some(limit))?;
        let sent = self.stream.get_mut().write_all(&request);
        sent.map_err(|error| self.told_apart(error.into()))?;
        let heard = self.next().map_err(|error| self.told_apart(error))?;
        let heard = heard.ok_or(AttachError::Gone)?;
        match (heard.result, heard.error) {
            (Some(result), _) => serde_json::from_value(result).map_err(|error| unreadable(&error)),
            (None, error) => {
                let error = error.unwrap_or_default();
                let words = error["message"].as_str().unwrap_or("it is empty");
                Err(AttachError::Unreadable(words.to_owned()))
            }
        }
    }

    /// Has a command run on these streams, and waits for its end. `signals` is polled beside the
    /// daemon: what it reads of them is passed on.
    pub fn run(
        self,
        request: &RunRequest,
        streams: [BorrowedFd<'_>; 3],
        signals: &mut dyn SignalFeed,
    ) -> Result<RunOutcome, AttachError> {
        let mut running = match self.begin(request, streams)? {
            RunBeginning::Begun(running) => running,
            RunBeginning::Refused(refused) => return Ok(RunOutcome::Refused(refused)),
            RunBeginning::NotBegun => return Ok(RunOutcome::NotBegun),
            RunBeginning::Lost => return Ok(RunOutcome::Lost),
        };
        loop {
            if running.stream.buffer().is_empty() {
                let told = signals.wait(running.stream.get_ref())?;
                for signal in told {
                    // Whether it is gone shows where its end is read.
                    let _ = running.stream.get_mut().write_all(&signal_note(signal));
                }
                if !signals.has_answer() {
                    continue;
                }
            }
            match running.next() {
                Ok(Some(heard)) => {
                    if let Some(result) = heard.result {
                        let end =
                            serde_json::from_value(result).map_err(|error| unreadable(&error))?;
                        return Ok(RunOutcome::Ended(end));
                    }
                }
                Ok(None) | Err(AttachError::Io(_)) => return Ok(RunOutcome::Lost),
                Err(error) => return Err(error),
            }
        }
    }

    /// Has a command begin on these streams.
    pub fn begin(
        mut self,
        request: &RunRequest,
        streams: [BorrowedFd<'_>; 3],
    ) -> Result<RunBeginning, AttachError> {
        let line = message::request(method::RUN, request).map_err(|error| unreadable(&error))?;
        if send(self.stream.get_ref(), &line, &streams).is_err() {
            return Ok(RunBeginning::NotBegun);
        }
        self.stream.get_ref().set_read_timeout(Some(BEGUN_WITHIN))?;
        let mut heard = self.next();
        let is_late = matches!(&heard, Err(AttachError::Io(error)) if is_timeout(error));
        if is_late {
            // From here on it cannot say that it begins, and so does not. It may have said so just now.
            self.stream.get_ref().shutdown(Shutdown::Read)?;
            heard = self.next();
        }
        match heard {
            Ok(Some(heard)) if heard.method.as_deref() == Some(method::BEGUN) => {
                if is_late {
                    return Ok(RunBeginning::Lost);
                }
            }
            Ok(None) if is_late => {
                return Err(self.silence());
            }
            Ok(Some(heard)) => {
                let error = heard.error.unwrap_or_default();
                let refused = serde_json::from_value(error).map_err(|error| unreadable(&error))?;
                return Ok(RunBeginning::Refused(refused));
            }
            Ok(None) | Err(AttachError::Io(_)) => return Ok(RunBeginning::NotBegun),
            Err(error) => return Err(error),
        }
        self.stream.get_ref().set_read_timeout(None)?;
        Ok(RunBeginning::Begun(self))
    }

    /// What an error means where an answer is waited for.
    fn told_apart(&self, error: AttachError) -> AttachError {
        match error {
            AttachError::Io(error) if is_timeout(&error) => self.silence(),
            AttachError::Io(error) => without_answer(error),
            other => other,
        }
    }

    fn silence(&self) -> AttachError {
        let lock = self.folder.join(DaemonSocket::lock_name());
        AttachError::Silent { lock }
    }

    /// The connection of a command that has begun, and what was read of it already.
    pub fn into_parts(self) -> (UnixStream, Vec<u8>) {
        let read = self.stream.buffer().to_vec();
        (self.stream.into_inner(), read)
    }

    fn next(&mut self) -> Result<Option<HeardMessage>, AttachError> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(LONGEST);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        serde_json::from_slice(&line)
            .map(Some)
            .map_err(|error| unreadable(&error))
    }
}

/// Where the signals of this process come from.
pub trait SignalFeed {
    /// Waits until a signal comes or the daemon says something; gives the signals.
    fn wait(&mut self, daemon: &UnixStream) -> io::Result<Vec<i32>>;

    /// Whether the daemon had something to say when that ended.
    fn has_answer(&self) -> bool;
}

/// Nothing is said to another user.
#[cfg(target_os = "linux")]
fn refuse_strangers(stream: &UnixStream) -> Result<(), AttachError> {
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(io::Error::from)?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    let uid = peer.uid.as_raw();
    Err(AttachError::Stranger { uid })
}

/// The folder was checked: nobody else can listen there.
#[cfg(not(target_os = "linux"))]
fn refuse_strangers(_: &UnixStream) -> Result<(), AttachError> {
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Sends a line, its beginning together with the streams.
fn send(stream: &UnixStream, line: &[u8], streams: &[BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(streams)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = loop {
        match sendmsg(
            stream,
            &[IoSlice::new(line)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Ok(sent) => break sent,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    let mut stream = stream;
    stream.write_all(&line[sent..])
}

/// A daemon that ends closes what it has not read, and its client sees any of these.
fn without_answer(error: io::Error) -> AttachError {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => AttachError::Gone,
        _ => AttachError::Io(error),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// A signal, as it is passed on.
pub fn signal_note(signal: i32) -> Vec<u8> {
    message::notification(method::SIGNAL, &json!({ "signal": signal }))
}

fn unreadable(error: &serde_json::Error) -> AttachError {
    AttachError::Unreadable(error.to_string())
}
