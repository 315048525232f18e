//! The host's side of the launcher: starting it, and one server below it.
//!
//! Owns the socket to each reaper. When it closes, the server and everything it started is killed.

use std::io::{self, ErrorKind, IoSlice};
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
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use toolway_types::StdioSpec;

use super::message::{LaunchReport, LaunchRequest, ReaperKind, STOP};
use super::serve::REAPER_GRACE;
use super::{Launcher, MARK, raw};
use crate::stdio::descriptors;
use crate::stdio::pipes::ChildEnds;
use crate::stdio::shield::ArmedShield;
use crate::stdio::stop_sequence::{AFTER_KILL, STOP_SEQUENCE};

/// How long a launcher may take to say how a start went.
const ANSWER: Duration = Duration::from_secs(10);

/// The pause while the launcher's queue is full.
const BUSY: Duration = Duration::from_millis(2);

/// Why a server was not started.
#[derive(Debug)]
pub(in crate::stdio) enum LaunchError {
    /// The system refused it.
    Refused(io::Error),
    /// There is no launcher to start it.
    NoLauncher(io::Error),
}

/// One launcher, started when it is needed and again when it is gone.
#[derive(Debug)]
pub(in crate::stdio) struct LauncherHandle {
    program: PathBuf,
    running: Mutex<Option<LauncherProcess>>,
}

#[derive(Debug)]
pub(super) struct LauncherProcess {
    pub(super) socket: OwnedFd,
    pub(super) child: LauncherChild,
}

/// A launcher process, by the way it was started.
#[derive(Debug)]
pub(super) enum LauncherChild {
    /// When this is dropped the runtime reaps it.
    Executed(Child),
    /// A fork of this process, before it had a runtime.
    Forked(Pid),
}

impl LauncherChild {
    fn id(&self) -> Option<u32> {
        match self {
            Self::Executed(process) => process.id(),
            Self::Forked(pid) => u32::try_from(pid.as_raw_nonzero().get()).ok(),
        }
    }

    /// Whether it runs; one that has ended is reaped.
    fn is_running(&mut self) -> bool {
        match self {
            Self::Executed(process) => matches!(process.try_wait(), Ok(None)),
            Self::Forked(pid) => matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)),
        }
    }

    /// Waits for its end and reaps it.
    async fn wait(&mut self) -> io::Result<()> {
        match self {
            Self::Executed(process) => process.wait().await.map(drop),
            Self::Forked(pid) => {
                // Older kernels and some sandboxes have no descriptor for a process.
                if let Ok(process) = pidfd_open(*pid, PidfdFlags::empty()) {
                    let _ = raw::readable(process)?.readable().await?;
                }
                while self.is_running() {
                    sleep(BUSY).await;
                }
                Ok(())
            }
        }
    }
}

/// The socket between host and launcher.
pub(super) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

impl LauncherHandle {
    /// A launcher that runs already, or one that the program becomes when it is needed.
    pub(super) fn new(program: PathBuf, running: Option<LauncherProcess>) -> Self {
        Self {
            program,
            running: Mutex::new(running),
        }
    }

    pub(in crate::stdio) fn program(&self) -> &Path {
        &self.program
    }

    /// Lets go of the launcher and waits for its end, which comes after that of everything below
    /// it. A server whose start was given up is among that, and only waited for here.
    pub(in crate::stdio) async fn end(self) {
        let running = self
            .running
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(LauncherProcess { socket, mut child }) = running {
            drop(socket);
            // The launcher waits for its reapers first.
            let _ = timeout(REAPER_GRACE + AFTER_KILL, child.wait()).await;
        }
    }

    pub(in crate::stdio) fn process_id(&self) -> Option<u32> {
        self.with_living(|running| running.as_ref().and_then(|it| it.child.id()))
    }

    /// Passes the running launcher, if any; one that has ended is reaped first.
    fn with_living<T>(&self, work: impl FnOnce(&mut Option<LauncherProcess>) -> T) -> T {
        // It is always consistent, whatever panicked.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *running
            && !known.child.is_running()
        {
            *running = None;
        }
        work(&mut running)
    }

    /// Hands descriptors over, to a launcher that is started if there is none.
    fn hand_over(&self, kind: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.with_living(|running| {
            if running.is_none() {
                *running = Some(LauncherProcess::start(&self.program)?);
            }
            let Some(launcher) = running else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            launcher.send(kind, descriptors).inspect_err(|error| {
                // It has let go of its end, and is on its way out: the next one is another.
                if matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) {
                    *running = None;
                }
            })
        })
    }
}

impl LauncherProcess {
    fn start(program: &Path) -> io::Result<Self> {
        descriptors::close_on_exec_all()?;
        let (socket, theirs) = socket_pair()?;
        let process = Command::new(program)
            .arg0(MARK)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal must not reach it.
            .process_group(0)
            .spawn()?;
        tracing::debug!(pid = process.id(), "the launcher has started");
        Ok(Self {
            socket,
            child: LauncherChild::Executed(process),
        })
    }

    fn send(&self, kind: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.socket, &[IoSlice::new(kind)], &mut control, flags)?;
        Ok(())
    }
}

impl Launcher {
    /// Whether there is a launcher.
    pub(in crate::stdio) fn is_wanted(&self) -> bool {
        self.shared.is_some()
    }

    /// Has a server started. Dropping the future leaves nothing behind.
    pub(in crate::stdio) async fn start(
        &self,
        spec: &StdioSpec,
        directory: &Path,
        shield: Option<&ArmedShield>,
        ends: &ChildEnds,
    ) -> Result<LaunchedProcess, LaunchError> {
        let Some(shared) = &self.handle() else {
            let ended = io::Error::other("the host that starts servers has ended");
            return Err(LaunchError::Refused(ended));
        };
        let start = LaunchRequest::encode(spec, shield).map_err(LaunchError::Refused)?;
        let kind = match shield {
            Some(shield) => ReaperKind::Namespaced(shield.mapping().clone()),
            None => ReaperKind::Plain,
        }
        .encode();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, directory, flags, Mode::empty())
            .map_err(|errno| LaunchError::Refused(errno.into()))?;
        match try_start(shared, &start, &kind, ends, &directory).await {
            // It may have been killed since it was last seen.
            Err(LaunchError::NoLauncher(error)) => {
                tracing::debug!(%error, "the launcher is gone: starting another");
                try_start(shared, &start, &kind, ends, &directory).await
            }
            tried => tried,
        }
    }
}

async fn try_start(
    shared: &Arc<LauncherHandle>,
    start: &[u8],
    kind: &[u8],
    ends: &ChildEnds,
    directory: &OwnedFd,
) -> Result<LaunchedProcess, LaunchError> {
    let (ours, theirs) = StdStream::pair().map_err(LaunchError::Refused)?;
    ours.set_nonblocking(true).map_err(LaunchError::Refused)?;
    let socket = UnixStream::from_std(ours).map_err(LaunchError::Refused)?;
    let descriptors = [
        theirs.as_fd(),
        ends.stdin.as_fd(),
        ends.stdout.as_fd(),
        ends.stderr.as_fd(),
        directory.as_fd(),
    ];
    while let Err(error) = shared.hand_over(kind, &descriptors) {
        match Errno::from_io_error(&error) {
            // The queue is full. (A launcher that cannot be forked is no launcher.)
            Some(Errno::AGAIN) if shared.process_id().is_some() => sleep(BUSY).await,
            // The kernel limits how many descriptors are on their way.
            Some(Errno::TOOMANYREFS) => sleep(BUSY).await,
            _ => return Err(LaunchError::NoLauncher(error)),
        }
    }
    drop(theirs);
    let mut launched = LaunchedProcess {
        socket,
        shared: Arc::clone(shared),
        report_bytes: [0; LaunchReport::LENGTH],
        received: 0,
        reaper: None,
    };
    let answer = async {
        // A refusal is sent without reading the request; it is read below.
        let _ = launched.socket.write_all(start).await;
        launched.await_start().await
    };
    match timeout(ANSWER, answer).await {
        Ok(Ok(())) => Ok(launched),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(LaunchError::NoLauncher(io::ErrorKind::TimedOut.into())),
    }
}

/// A server below its reaper. Dropping it kills everything the server ever started.
pub(crate) struct LaunchedProcess {
    socket: UnixStream,
    shared: Arc<LauncherHandle>,
    /// A report may arrive in pieces, and the waiting future may be dropped in between.
    report_bytes: [u8; LaunchReport::LENGTH],
    received: usize,
    /// Its id is not reused while the socket is open.
    reaper: Option<Pid>,
}

impl LaunchedProcess {
    async fn await_start(&mut self) -> Result<(), LaunchError> {
        loop {
            match self.report().await {
                Some(LaunchReport::Started(pid)) => {
                    tracing::debug!(pid, "the server has started");
                    return Ok(());
                }
                Some(LaunchReport::Refused(code)) => {
                    return Err(LaunchError::Refused(io::Error::from_raw_os_error(code)));
                }
                Some(LaunchReport::Plain(code)) => {
                    let error = io::Error::from_raw_os_error(code);
                    tracing::debug!(%error, "the server shares our process ids");
                }
                Some(LaunchReport::Reaper(_) | LaunchReport::Exited(_)) => {}
                None => return Err(LaunchError::NoLauncher(io::ErrorKind::BrokenPipe.into())),
            }
        }
    }

    /// Waits for the server's end. May be dropped and called again.
    pub(in crate::stdio) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.report().await {
                Some(LaunchReport::Exited(status)) => return Ok(ExitStatus::from_raw(status)),
                Some(_) => {}
                None => {
                    // If it was the launcher, it must not stay a zombie.
                    self.shared.process_id();
                    return Err(io::Error::other(
                        "the process that watches over the server was killed, \
                         and the server with it",
                    ));
                }
            }
        }
    }

    /// Stops it by the stop sequence; returns when nothing of it is left.
    pub(in crate::stdio) async fn stop(&mut self) {
        // The reaper may be gone already.
        let _ = self.socket.try_write(&[STOP]);
        let patience = STOP_SEQUENCE
            .iter()
            .map(|(wait, _)| *wait)
            .sum::<Duration>()
            + AFTER_KILL;
        if timeout(patience, self.gone()).await.is_ok() {
            return;
        }
        // The reaper itself was stopped. When it dies, so does the server; the launcher kills the
        // rest.
        if let Some(reaper) = self.reaper {
            let _ = kill_process(reaper, Signal::KILL);
            let _ = timeout(AFTER_KILL, self.gone()).await;
        }
    }

    async fn gone(&mut self) {
        while self.report().await.is_some() {}
    }

    /// The next report; nothing at the end of the socket.
    async fn report(&mut self) -> Option<LaunchReport> {
        loop {
            while self.received < LaunchReport::LENGTH {
                // A socket that was reset has ended too.
                let Ok(count @ 1..) = self
                    .socket
                    .read(&mut self.report_bytes[self.received..])
                    .await
                else {
                    self.reaper = None;
                    return None;
                };
                self.received += count;
            }
            self.received = 0;
            match LaunchReport::decode(self.report_bytes) {
                Some(LaunchReport::Reaper(pid)) => {
                    self.reaper = Pid::from_raw(pid);
                    return Some(LaunchReport::Reaper(pid));
                }
                Some(report) => return Some(report),
                // No such report exists.
                None => {}
            }
        }
    }
}
