//! The daemon's end of its socket.
//!
//! Owns that one process of a user on one machine listens, and reading what a connection is opened
//! with: one line, and the streams that came with it.

use std::fs::File;
use std::io::{self, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use toolway_files::private_file;
use toolway_wire::error;

use super::message::{
    self, DaemonRequest, RunEnd, RunRefusal, RunRequest, SignalNote, WhyMoving, line, method,
};
use crate::owner_socket::{SocketFolder, SocketFolderError, is_own};

/// The longest opening: an environment is bounded by the system, but not this closely.
const LONGEST: usize = 8 * 1024 * 1024;

/// How long a connection may take to say what it wants.
const OPENED_WITHIN: Duration = Duration::from_secs(10);

/// How much is read at once.
const STEP: usize = 16 * 1024;

/// Stdin, stdout and stderr.
const STREAMS: usize = 3;

/// The longest thing that is said while a command runs: the number of a signal.
const LONGEST_NOTE: u64 = 4 * 1024;

/// The socket, listened on.
#[derive(Debug)]
pub struct DaemonSocket {
    folder: SocketFolder,
    name: String,
    listener: UnixListener,
    /// Held for as long as this listens.
    _lock: File,
    /// Somebody else made the socket, and goes on listening when this one ends.
    is_lent: bool,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum DaemonSocketError {
    /// Another process has it.
    #[error("a daemon is running already")]
    Taken,
    /// The folder, or the socket in it.
    #[error(transparent)]
    Folder(#[from] SocketFolderError),
    /// The lock beside the socket.
    #[error("the lock in `{}` cannot be had: {source}", folder.display())]
    Lock {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A connection that said what it wants.
#[derive(Debug)]
pub enum DaemonOpening {
    /// To have a command run.
    Run(Box<AskedRun>),
    /// Something else.
    Other(Box<(DaemonRequest, Replies)>),
}

/// A command to run, and the connection on which its end is waited for.
#[derive(Debug)]
pub struct AskedRun {
    /// What.
    pub request: RunRequest,
    /// On which streams.
    pub streams: [OwnedFd; 3],
    /// Who waits for it.
    pub replies: Replies,
}

/// The connection that something was asked on.
#[derive(Debug)]
pub struct Replies {
    id: Value,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// What whoever asked says while a command runs.
#[derive(Debug)]
pub struct Heard(BufReader<OwnedReadHalf>);

/// Where is told what becomes of a command.
#[derive(Debug)]
pub struct EndTeller {
    id: Value,
    writer: OwnedWriteHalf,
}

impl DaemonSocket {
    /// What the socket of this machine is called: homes are shared between machines, sockets are not.
    pub fn name() -> String {
        format!("{}.sock", host_word())
    }

    /// What is held there by the process that listens.
    pub(super) fn lock_name() -> String {
        format!("{}.lock", host_word())
    }

    /// Listens in this folder, if no other process does.
    pub fn bind(folder: &Path) -> Result<Self, DaemonSocketError> {
        let folder = SocketFolder::open(folder)?;
        let lock = lock(&folder)?;
        let name = Self::name();
        let unfinished = format!("{name}.new");
        // Whoever holds the lock may clear away what those before left.
        folder.remove(&unfinished);
        let failed = |source| SocketFolderError::Socket {
            path: folder.path().to_owned(),
            source,
        };
        let listener = UnixListener::bind(folder.address(&unfinished)?).map_err(failed)?;
        folder.publish(&unfinished, &name).map_err(failed)?;
        Ok(Self {
            folder,
            name,
            listener,
            _lock: lock,
            is_lent: false,
        })
    }

    /// Listens on a socket that the system's service manager made.
    pub fn adopt(folder: &Path, listener: OwnedFd) -> Result<Self, DaemonSocketError> {
        let folder = SocketFolder::open(folder)?;
        let lock = lock(&folder)?;
        let listener = std::os::unix::net::UnixListener::from(listener);
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| UnixListener::from_std(listener));
        let listener = listener.map_err(|source| SocketFolderError::Socket {
            path: folder.path().to_owned(),
            source,
        })?;
        Ok(Self {
            name: Self::name(),
            folder,
            listener,
            _lock: lock,
            is_lent: true,
        })
    }

    /// The next connection of the same user.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if is_own(&peer) => return Ok(stream),
                Ok(peer) => tracing::warn!(uid = peer.uid(), "another user is turned away"),
                Err(error) => tracing::warn!(%error, "whose connection it is cannot be told"),
            }
        }
    }
}

impl Drop for DaemonSocket {
    fn drop(&mut self) {
        if !self.is_lent {
            self.folder.remove(&self.name);
        }
    }
}

/// Takes the lock beside the socket.
fn lock(folder: &SocketFolder) -> Result<File, DaemonSocketError> {
    let name = DaemonSocket::lock_name();
    let flags = OFlags::RDWR | OFlags::CREATE;
    let failed = |source| DaemonSocketError::Lock {
        folder: folder.path().to_owned(),
        source,
    };
    let file = private_file::open_file(folder.directory(), &name, flags).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            // For people who want to end it where it cannot be talked to. A full disk, on which it
            // cannot be written, is no reason to do without a daemon.
            let process = format!("{}\n", std::process::id());
            let _ = file
                .set_len(0)
                .and_then(|()| (&file).write_all(process.as_bytes()));
            Ok(file)
        }
        Err(std::fs::TryLockError::WouldBlock) => Err(DaemonSocketError::Taken),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The name of this machine, as far as it can stand in a file's name.
fn host_word() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let word: String = name.chars().filter(|c| is_plain(*c)).take(64).collect();
    match word.trim_matches('.') {
        "" => "localhost".to_owned(),
        word => word.to_owned(),
    }
}

impl DaemonOpening {
    /// Reads what a connection is opened with; nothing where that is no message of ours.
    pub async fn read(stream: UnixStream) -> Option<Self> {
        let read = tokio::time::timeout(OPENED_WITHIN, first_line(&stream)).await;
        let (line, descriptors) = match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a connection said nothing that can be read");
                return None;
            }
            Err(_) => return None,
        };
        let parsed: Result<DaemonRequest, _> = serde_json::from_slice(&line);
        let (reader, mut writer) = stream.into_split();
        let Ok(mut request) = parsed else {
            let refused = json!({ "code": error::PARSE_ERROR, "message": "that is no message" });
            let _ = writer
                .write_all(&reply(&Value::Null, "error", &refused))
                .await;
            return None;
        };
        let mut replies = Replies {
            id: request.id.take()?,
            reader: BufReader::new(reader),
            writer,
        };
        if request.method != method::RUN {
            return Some(Self::Other(Box::new((request, replies))));
        }
        let asked = serde_json::from_value(request.params).ok();
        let streams: Option<[OwnedFd; STREAMS]> = descriptors.try_into().ok();
        let (Some(request), Some(streams)) = (asked, streams) else {
            replies.refuse(RunRefusal::NotHere).await;
            return None;
        };
        Some(Self::Run(Box::new(AskedRun {
            request,
            streams,
            replies,
        })))
    }
}

/// The first line, and the descriptors that came with it. Nothing may stand behind it: whoever asks
/// waits before they say more.
async fn first_line(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut line = Vec::new();
    let mut descriptors = Vec::new();
    loop {
        stream.readable().await?;
        let read = stream.try_io(Interest::READABLE, || {
            receive(stream, &mut line, &mut descriptors).map_err(io::Error::from)
        });
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if line.ends_with(b"\n") => return Ok((line, descriptors)),
            Ok(_) if line.len() > LONGEST => return Err(io::ErrorKind::InvalidData.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn receive(
    stream: &UnixStream,
    line: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; STEP];
    let received = recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    // What did not fit was closed by the system; what fits is not taken again and again either.
    if descriptors.len() > STREAMS || received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::INVAL);
    }
    line.extend_from_slice(&bytes[..received.bytes]);
    Ok(received.bytes)
}

impl Replies {
    /// Says that it is not run, and why.
    pub async fn refuse(&mut self, why: RunRefusal) {
        let error = why.as_error();
        // Whoever asked may be gone.
        let _ = self
            .writer
            .write_all(&reply(&self.id, "error", &error))
            .await;
    }

    /// Says that there is no such method.
    pub async fn refuse_method(&mut self, name: &str) {
        let message = format!("the daemon has no method `{name}`");
        let error = json!({ "code": error::METHOD_NOT_FOUND, "message": message });
        let _ = self
            .writer
            .write_all(&reply(&self.id, "error", &error))
            .await;
    }

    /// Answers.
    pub async fn answer(&mut self, result: &impl Serialize) {
        let result = serde_json::to_value(result).unwrap_or_default();
        let _ = self
            .writer
            .write_all(&reply(&self.id, "result", &result))
            .await;
    }

    /// Says that a command begins. An error means that whoever asked is gone.
    pub async fn begin(mut self) -> io::Result<(Heard, EndTeller)> {
        let begun = message::notification(method::BEGUN, &json!({}));
        self.writer.write_all(&begun).await?;
        let Self { id, reader, writer } = self;
        Ok((Heard(reader), EndTeller { id, writer }))
    }
}

impl Heard {
    /// The next signal; nothing when whoever asked is gone.
    pub async fn signal(&mut self) -> Option<i32> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = (&mut self.0).take(LONGEST_NOTE);
            let read = bounded.read_until(b'\n', &mut line).await;
            // Whoever says something else without an end is treated as gone.
            if !matches!(read, Ok(count) if count > 0) || !line.ends_with(b"\n") {
                return None;
            }
            let said = serde_json::from_slice::<DaemonRequest>(&line).ok();
            let said = said.filter(|said| said.method == method::SIGNAL);
            let note = said.and_then(|said| serde_json::from_value::<SignalNote>(said.params).ok());
            if let Some(note) = note {
                return Some(note.signal);
            }
        }
    }
}

impl EndTeller {
    /// Tells that the daemon is about to end, and why.
    pub async fn tell_moving(&mut self, why: WhyMoving) {
        let moving = message::notification(method::MOVING, &json!({ "why": why }));
        // Whoever asked may be gone.
        let _ = self.writer.write_all(&moving).await;
    }

    /// Tells how it ended.
    pub async fn tell(mut self, end: RunEnd) {
        let end = serde_json::to_value(end).unwrap_or_default();
        // Whoever asked may be gone.
        let _ = self
            .writer
            .write_all(&reply(&self.id, "result", &end))
            .await;
    }
}

fn reply(id: &Value, member: &str, value: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, member: value }))
}
