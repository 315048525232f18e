//! The launcher process: one per host, single-threaded. It forks reapers and ends after the host,
//! when everything it started is dead.
//!
//! Is given no secret: what a server is started with passes from the host to its reaper.

use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recvmsg, sockopt,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, kill_process, set_child_subreaper, set_dumpable_behavior,
};

use super::message::{LaunchReport, PassedDescriptors, ReaperKind, code};
use super::raw::{self, Cleanup};
use super::reaper::{self, InheritedDescriptors, SignalScope};
use super::tree;
use crate::stdio::descriptors;
use crate::stdio::shield::IdMapping;

/// How long reapers have to notice that the host is gone.
pub(super) const REAPER_GRACE: Duration = Duration::from_secs(2);

/// How often to look for orphans while there may be any: less and less, because a process may be
/// stuck in the kernel for days.
const POLL: Duration = Duration::from_millis(10);
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// How long a reaper may take to set up its namespaces.
const SETTLE: Duration = Duration::from_secs(5);

/// Whether this process was started to be a launcher: its stdin is then the socket to the host.
pub(super) fn host_socket() -> Option<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    if sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return None;
    }
    rustix::io::fcntl_dupfd_cloexec(stdin, 3).ok()
}

/// Runs the launcher to its end.
pub(super) fn run(host: OwnedFd) -> ! {
    // On failure it exits at once, which the host notices.
    if let Ok(mut launcher) = LauncherLoop::new(host) {
        launcher.watch();
    }
    raw::exit(Cleanup::Complete)
}

struct LauncherLoop {
    host: Option<OwnedFd>,
    signals: OwnedFd,
    /// The two ends of a pipe: reapers poll the one and see the other close when the launcher is
    /// gone.
    launcher_gone: OwnedFd,
    liveness: Option<OwnedFd>,
    reapers: Vec<Pid>,
    /// The error with which the system refused namespaces, once it has.
    refused: Option<i32>,
    /// Whether a reaper ended before its work was done.
    orphans: bool,
    /// How often in a row orphans were looked for.
    polls: u32,
}

impl LauncherLoop {
    fn new(host: OwnedFd) -> io::Result<Self> {
        rustix::thread::set_name(c"tw-launcher")?;
        let signals = raw::block_signals()?;
        // Processes of the same user cannot read or trace it.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_child_subreaper(Some(getpid()))?;
        descriptors::close_on_exec_all()?;
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::process::chdir("/")?;
        let (launcher_gone, liveness) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            host: Some(host),
            signals,
            launcher_gone,
            liveness: Some(liveness),
            reapers: Vec::new(),
            refused: None,
            orphans: false,
            polls: 0,
        })
    }

    /// Returns when the host is gone and nothing is left.
    fn watch(&mut self) {
        let mut gone: Option<Instant> = None;
        loop {
            let any = self.reap();
            if self.host.is_none() {
                let since = *gone.get_or_insert_with(Instant::now);
                if !any {
                    return;
                }
                if since.elapsed() > REAPER_GRACE {
                    for reaper in std::mem::take(&mut self.reapers) {
                        let _ = kill_process(reaper, Signal::KILL);
                    }
                    self.orphans = true;
                }
            }
            if self.orphans {
                self.orphans = tree::kill_children(|pid| !self.reapers.contains(&pid)) > 0;
            }
            self.listen();
        }
    }

    /// Reaps ended children. Whether any child is left.
    fn reap(&mut self) -> bool {
        tree::reap(|pid, status| {
            let known = self.reapers.iter().position(|reaper| *reaper == pid);
            if let Some(index) = known {
                self.reapers.swap_remove(index);
            }
            // The children of a killed reaper are now ours; orphans as well.
            self.orphans |= known.is_none() || status.exit_status() != Some(0);
        })
    }

    fn listen(&mut self) {
        self.polls = if self.orphans || self.host.is_none() {
            self.polls.saturating_add(1)
        } else {
            0
        };
        let pause = (POLL * self.polls.div_ceil(100)).min(LONGEST_POLL);
        let timeout = (self.polls > 0)
            .then(|| Timespec::try_from(pause).ok())
            .flatten();
        let mut waiting = vec![PollFd::new(&self.signals, PollFlags::IN)];
        waiting.extend(
            self.host
                .iter()
                .map(|host| PollFd::new(host, PollFlags::IN)),
        );
        let _ = poll(&mut waiting, timeout.as_ref());
        let ready = |at: usize| waiting.get(at).is_some_and(|it| !it.revents().is_empty());
        let (signals, host) = (ready(0), ready(1));
        if signals {
            reaper::drain_signals(&self.signals);
        }
        if host {
            self.receive();
        }
    }

    /// One request of the host's, or its end.
    fn receive(&mut self) {
        let Some(host) = &self.host else { return };
        let mut bytes = vec![0; ReaperKind::LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            host,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        );
        let length = match received {
            Err(Errno::INTR | Errno::AGAIN) => return,
            // A request is never empty.
            Err(_) => 0,
            Ok(message) => message.bytes,
        };
        if length == 0 {
            self.host = None;
            return;
        }
        let mut descriptors: Vec<OwnedFd> = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                descriptors.extend(more);
            }
        }
        let Some(socket) = descriptors.first() else {
            return;
        };
        let socket = match socket.try_clone() {
            Ok(socket) => UnixStream::from(socket),
            Err(error) => {
                let complaint = LaunchReport::Refused(code(&error));
                reaper::report(&UnixStream::from(descriptors.swap_remove(0)), complaint);
                return;
            }
        };
        let Ok(passed) = <[OwnedFd; 5]>::try_from(descriptors) else {
            // The kernel passes as many as there is room for.
            reaper::report(&socket, LaunchReport::Refused(Errno::MFILE.raw_os_error()));
            return;
        };
        let [host, stdin, stdout, stderr, directory] = passed;
        let passed = PassedDescriptors {
            socket: host,
            stdin,
            stdout,
            stderr,
            directory,
        };
        let forked = match ReaperKind::decode(&bytes[..length]) {
            None => Err(io::ErrorKind::InvalidData.into()),
            Some(ReaperKind::Plain) => self.fork(passed),
            Some(ReaperKind::Namespaced(mapping)) => {
                self.fork_in_namespaces(passed, &mapping, &socket)
            }
        };
        let answer = match forked {
            Ok(reaper) => {
                self.reapers.push(reaper);
                LaunchReport::Reaper(reaper.as_raw_nonzero().get())
            }
            Err(error) => LaunchReport::Refused(code(&error)),
        };
        reaper::report(&socket, answer);
    }

    fn fork(&mut self, passed: PassedDescriptors) -> io::Result<Pid> {
        match raw::fork()? {
            Some(reaper) => Ok(reaper),
            None => self.become_reaper(passed, SignalScope::Tree),
        }
    }

    /// A reaper that is the first process of its namespaces, or a plain one where the system
    /// refuses them.
    fn fork_in_namespaces(
        &mut self,
        mut passed: PassedDescriptors,
        mapping: &IdMapping,
        socket: &UnixStream,
    ) -> io::Result<Pid> {
        let refused = match self.refused {
            Some(refused) => refused,
            None => match self.try_in_namespaces(passed, mapping)? {
                Ok(reaper) => return Ok(reaper),
                Err((back, refused)) => {
                    passed = back;
                    refused
                }
            },
        };
        reaper::report(socket, LaunchReport::Plain(refused));
        self.fork(passed)
    }

    /// The inner error is the system's refusal.
    fn try_in_namespaces(
        &mut self,
        passed: PassedDescriptors,
        mapping: &IdMapping,
    ) -> io::Result<Result<Pid, (PassedDescriptors, i32)>> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let refusal = match raw::fork_in_namespaces() {
            Ok(None) => {
                drop(ours);
                if settle(mapping, theirs).is_err() {
                    raw::exit(Cleanup::Complete);
                }
                self.become_reaper(passed, SignalScope::Namespace)
            }
            Ok(Some(reaper)) => {
                drop(theirs);
                match confirm(mapping, reaper, &mut ours) {
                    Ok(()) => return Ok(Ok(reaper)),
                    Err(error) => {
                        let _ = kill_process(reaper, Signal::KILL);
                        self.reapers.push(reaper);
                        error
                    }
                }
            }
            Err(error) => error,
        };
        let refused = code(&refusal);
        match Errno::from_raw_os_error(refused) {
            // There is no room for any process.
            Errno::AGAIN => return Err(refusal),
            // There is no room now.
            Errno::NOSPC | Errno::NOMEM => {}
            _ => self.refused = Some(refused),
        }
        Ok(Err((passed, refused)))
    }

    /// Closes what only the launcher may hold.
    fn become_reaper(&mut self, passed: PassedDescriptors, scope: SignalScope) -> ! {
        self.host = None;
        self.liveness = None;
        let shared = InheritedDescriptors {
            signals: &self.signals,
            launcher: &self.launcher_gone,
        };
        reaper::run(passed, &shared, scope)
    }
}

/// In a reaper that was forked into namespaces: its users, and its own view of processes.
fn settle(mapping: &IdMapping, mut parent: UnixStream) -> io::Result<()> {
    if mapping.needs_parent() {
        parent.read_exact(&mut [0])?;
    } else {
        mapping.write_for_self()?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = mount(c"proc", c"/proc", c"proc", flags, None);
    parent.write_all(&mounted.err().map_or(0, Errno::raw_os_error).to_le_bytes())?;
    Ok(mounted?)
}

/// In the launcher: writes the reaper's id maps where needed, and reads how it went.
fn confirm(mapping: &IdMapping, reaper: Pid, child: &mut UnixStream) -> io::Result<()> {
    child.set_read_timeout(Some(SETTLE))?;
    if mapping.needs_parent() {
        mapping.write_for_child(reaper)?;
        child.write_all(b"!")?;
    }
    let mut answer = [0; 4];
    child.read_exact(&mut answer)?;
    match i32::from_le_bytes(answer) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}
