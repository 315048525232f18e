//! The host's side of the keeper: starting it, and one server below it.
//!
//! Owns the line to each warden. Closing it, by whatever death, kills the server and everything
//! it started.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use toolway_types::StdioSpec;

use super::message::{Birth, Report, STOP, Start};
use super::serve::WARDENS_TURN;
use super::{Keeper, MARK};
use crate::stdio::descriptors;
use crate::stdio::process::{ChildEnds, LADDER};
use crate::stdio::shield::Armed;

/// How long a keeper may take to say how a start went.
const ANSWER: Duration = Duration::from_secs(10);

/// How long is waited while the keeper's queue is full.
const BUSY: Duration = Duration::from_millis(2);

/// The longest a killed tree is waited for: one stuck in the kernel must not hold the host.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Why a server was not started.
#[derive(Debug)]
pub(in crate::stdio) enum StartError {
    /// The system refused it.
    Refused(io::Error),
    /// There is no keeper to start it.
    NoKeeper(io::Error),
}

/// One keeper, started when it is needed and again when it is gone.
#[derive(Debug)]
pub(in crate::stdio) struct Shared {
    program: PathBuf,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    line: OwnedFd,
    /// When this is dropped the runtime reaps it.
    process: Child,
}

impl Shared {
    pub(in crate::stdio) fn new(program: PathBuf) -> Self {
        Self {
            program,
            running: Mutex::new(None),
        }
    }

    pub(in crate::stdio) fn program(&self) -> &Path {
        &self.program
    }

    /// Lets go of the keeper and waits for its end, which comes after that of everything below
    /// it. A server whose start was given up is among that, and nobody else waits for it.
    pub(in crate::stdio) async fn end(self) {
        let running = self
            .running
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(Running { line, mut process }) = running {
            drop(line);
            // It gives its wardens their time first.
            let _ = timeout(WARDENS_TURN + AFTER_KILL, process.wait()).await;
        }
    }

    pub(in crate::stdio) fn process_id(&self) -> Option<u32> {
        self.with_living(|running| running.as_ref().and_then(|it| it.process.id()))
    }

    /// Works on the keeper, if one lives: one that has ended is reaped first.
    fn with_living<T>(&self, work: impl FnOnce(&mut Option<Running>) -> T) -> T {
        // A panic elsewhere cannot have left it half done.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *running
            && !matches!(known.process.try_wait(), Ok(None))
        {
            *running = None;
        }
        work(&mut running)
    }

    /// Hands descriptors over, to a keeper that is started if there is none.
    fn hand_over(&self, birth: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.with_living(|running| {
            if running.is_none() {
                *running = Some(Running::start(&self.program)?);
            }
            match running {
                Some(running) => running.send(birth, descriptors),
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        })
    }
}

impl Running {
    fn start(program: &Path) -> io::Result<Self> {
        descriptors::seal()?;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let process = Command::new(program)
            .arg0(MARK)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What is typed at the terminal is not for it.
            .process_group(0)
            .spawn()?;
        tracing::debug!(pid = process.id(), "the keeper has started");
        Ok(Self {
            line: ours,
            process,
        })
    }

    fn send(&self, birth: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.line, &[IoSlice::new(birth)], &mut control, flags)?;
        Ok(())
    }
}

impl Keeper {
    /// Whether servers are kept.
    pub(in crate::stdio) fn is_wanted(&self) -> bool {
        self.shared.is_some()
    }

    /// Has a server started. Dropping the future leaves nothing behind.
    pub(in crate::stdio) async fn start(
        &self,
        spec: &StdioSpec,
        directory: &Path,
        shield: Option<&Armed>,
        ends: &ChildEnds,
    ) -> Result<Kept, StartError> {
        let Some(shared) = &self.shared else {
            return Err(StartError::NoKeeper(io::ErrorKind::Unsupported.into()));
        };
        let start = Start::encode(spec, shield).map_err(StartError::Refused)?;
        let birth = match shield {
            Some(shield) => Birth::Apart(shield.mapping().clone()),
            None => Birth::Plain,
        }
        .encode();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, directory, flags, Mode::empty())
            .map_err(|errno| StartError::Refused(errno.into()))?;
        match try_start(shared, &start, &birth, ends, &directory).await {
            // It may have been killed since it was last seen.
            Err(StartError::NoKeeper(error)) => {
                tracing::debug!(%error, "the keeper is gone: starting another");
                try_start(shared, &start, &birth, ends, &directory).await
            }
            tried => tried,
        }
    }
}

async fn try_start(
    shared: &Arc<Shared>,
    start: &[u8],
    birth: &[u8],
    ends: &ChildEnds,
    directory: &OwnedFd,
) -> Result<Kept, StartError> {
    let (ours, theirs) = StdStream::pair().map_err(StartError::Refused)?;
    ours.set_nonblocking(true).map_err(StartError::Refused)?;
    let line = UnixStream::from_std(ours).map_err(StartError::Refused)?;
    let descriptors = [
        theirs.as_fd(),
        ends.stdin.as_fd(),
        ends.stdout.as_fd(),
        ends.stderr.as_fd(),
        directory.as_fd(),
    ];
    while let Err(error) = shared.hand_over(birth, &descriptors) {
        match Errno::from_io_error(&error) {
            // The queue is full. (A keeper that cannot be forked is no keeper.)
            Some(Errno::AGAIN) if shared.process_id().is_some() => sleep(BUSY).await,
            // The kernel limits how many descriptors are on their way.
            Some(Errno::TOOMANYREFS) => sleep(BUSY).await,
            _ => return Err(StartError::NoKeeper(error)),
        }
    }
    drop(theirs);
    let mut kept = Kept {
        line,
        shared: Arc::clone(shared),
        heard: [0; Report::LENGTH],
        count: 0,
        warden: None,
    };
    let answer = async {
        // Whoever refuses does so without reading; its word is there all the same.
        let _ = kept.line.write_all(start).await;
        kept.first_word().await
    };
    match timeout(ANSWER, answer).await {
        Ok(Ok(())) => Ok(kept),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::NoKeeper(io::ErrorKind::TimedOut.into())),
    }
}

/// A server below its warden. Dropping it kills everything the server ever started.
pub(crate) struct Kept {
    line: UnixStream,
    shared: Arc<Shared>,
    /// A report may arrive in pieces, and whoever waits for it may go away meanwhile.
    heard: [u8; Report::LENGTH],
    count: usize,
    /// Its number is its own while the line is open.
    warden: Option<Pid>,
}

impl Kept {
    async fn first_word(&mut self) -> Result<(), StartError> {
        loop {
            match self.report().await {
                Some(Report::Started(pid)) => {
                    tracing::debug!(pid, "the server has started");
                    return Ok(());
                }
                Some(Report::Refused(code)) => {
                    return Err(StartError::Refused(io::Error::from_raw_os_error(code)));
                }
                Some(Report::Plain(code)) => {
                    let error = io::Error::from_raw_os_error(code);
                    tracing::debug!(%error, "the server shares our process ids");
                }
                Some(Report::Warden(_) | Report::Exited(_)) => {}
                None => return Err(StartError::NoKeeper(io::ErrorKind::BrokenPipe.into())),
            }
        }
    }

    /// Waits for the server's end. May be dropped and called again.
    pub(in crate::stdio) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.report().await {
                Some(Report::Exited(status)) => return Ok(ExitStatus::from_raw(status)),
                Some(_) => {}
                None => {
                    // If it was the keeper, it must not stay a zombie.
                    self.shared.process_id();
                    return Err(io::Error::other(
                        "the process that watches over the server was killed, \
                         and the server with it",
                    ));
                }
            }
        }
    }

    /// Asks for its end, with growing insistence; returns when nothing of it is left.
    pub(in crate::stdio) async fn stop(&mut self) {
        // The warden may be gone, which is the end that is asked for.
        let _ = self.line.try_write(&[STOP]);
        let patience = LADDER.iter().map(|(wait, _)| *wait).sum::<Duration>() + AFTER_KILL;
        if timeout(patience, self.gone()).await.is_ok() {
            return;
        }
        // Somebody has stopped the warden itself. With it dies the server; the keeper does the
        // rest.
        if let Some(warden) = self.warden {
            let _ = kill_process(warden, Signal::KILL);
            let _ = timeout(AFTER_KILL, self.gone()).await;
        }
    }

    async fn gone(&mut self) {
        while self.report().await.is_some() {}
    }

    /// The next report; nothing at the end of the line.
    async fn report(&mut self) -> Option<Report> {
        loop {
            while self.count < Report::LENGTH {
                // A line that was reset has ended too.
                let Ok(count @ 1..) = self.line.read(&mut self.heard[self.count..]).await else {
                    self.warden = None;
                    return None;
                };
                self.count += count;
            }
            self.count = 0;
            match Report::decode(self.heard) {
                Some(Report::Warden(pid)) => {
                    self.warden = Pid::from_raw(pid);
                    return Some(Report::Warden(pid));
                }
                Some(report) => return Some(report),
                // Nobody says that.
                None => {}
            }
        }
    }
}
