//! The keeper process: one per host, single-threaded, starts wardens and outlives the host by as
//! long as it takes to see everything dead.
//!
//! Owns the keeper's life. It holds no secret: what a server is started with passes from the host
//! to its warden.

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
    DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper,
    set_dumpable_behavior, wait,
};

use super::message::{Birth, Handed, Report, code};
use super::raw::{self, End};
use super::tree;
use super::warden::{self, Domain, Shared};
use crate::stdio::descriptors;
use crate::stdio::shield::Mapping;

/// How long wardens have to see for themselves that the host is gone.
pub(super) const WARDENS_TURN: Duration = Duration::from_secs(2);

/// How often is looked for strays, while there may be any: less and less, because what is stuck in
/// the kernel may be so for days.
const LOOK: Duration = Duration::from_millis(10);
const RAREST_LOOK: Duration = Duration::from_secs(1);

/// How long a warden may take to settle in its namespaces.
const SETTLE: Duration = Duration::from_secs(5);

/// Whether this process was started to be a keeper: its stdin is then the line to the host.
pub(super) fn line_to_host() -> Option<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    if sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return None;
    }
    rustix::io::fcntl_dupfd_cloexec(stdin, 3).ok()
}

/// Lives a keeper's life.
pub(super) fn run(host: OwnedFd) -> ! {
    // Without what it needs there is no keeper, and the host sees that.
    if let Ok(mut keeper) = Keeper::new(host) {
        keeper.watch();
    }
    raw::exit(End::Clean)
}

struct Keeper {
    host: Option<OwnedFd>,
    signals: OwnedFd,
    /// Wardens hold the one end and wait for the other to close.
    alive: OwnedFd,
    lives: Option<OwnedFd>,
    wardens: Vec<Pid>,
    /// The error with which the system refused namespaces, once it has.
    refused: Option<i32>,
    /// Whether a warden ended before its work was done.
    strays: bool,
    /// How often in a row was looked.
    looks: u32,
}

impl Keeper {
    fn new(host: OwnedFd) -> io::Result<Self> {
        rustix::thread::set_name(c"tw-keeper")?;
        let signals = raw::hold_signals()?;
        // Nobody of the same user looks into it, or traces it.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_child_subreaper(Some(getpid()))?;
        descriptors::seal()?;
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::process::chdir("/")?;
        let (alive, lives) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            host: Some(host),
            signals,
            alive,
            lives: Some(lives),
            wardens: Vec::new(),
            refused: None,
            strays: false,
            looks: 0,
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
                if since.elapsed() > WARDENS_TURN {
                    for warden in std::mem::take(&mut self.wardens) {
                        let _ = kill_process(warden, Signal::KILL);
                    }
                    self.strays = true;
                }
            }
            if self.strays {
                self.strays = tree::kill_children(|pid| !self.wardens.contains(&pid)) > 0;
            }
            self.listen();
        }
    }

    /// Reaps whoever has ended. Whether anybody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
                Ok(Some((pid, status))) => {
                    let known = self.wardens.iter().position(|warden| *warden == pid);
                    if let Some(index) = known {
                        self.wardens.swap_remove(index);
                    }
                    // A warden that was killed leaves its charges to us; so do strays.
                    self.strays |= known.is_none() || status.exit_status() != Some(0);
                }
            }
        }
    }

    fn listen(&mut self) {
        self.looks = if self.strays || self.host.is_none() {
            self.looks.saturating_add(1)
        } else {
            0
        };
        let pause = (LOOK * self.looks.div_ceil(100)).min(RAREST_LOOK);
        let timeout = (self.looks > 0)
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
            warden::forget_signals(&self.signals);
        }
        if host {
            self.receive();
        }
    }

    /// One request of the host's, or its end.
    fn receive(&mut self) {
        let Some(host) = &self.host else { return };
        let mut bytes = vec![0; Birth::LONGEST];
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
        let mut descriptors = descriptors.into_iter();
        let Some(line) = descriptors.next() else {
            return;
        };
        let rest = (
            descriptors.next(),
            descriptors.next(),
            descriptors.next(),
            descriptors.next(),
        );
        let (Some(stdin), Some(stdout), Some(stderr), Some(directory)) = rest else {
            // The kernel passes as many as there is room for.
            let complaint = Report::Refused(Errno::MFILE.raw_os_error());
            warden::report(&UnixStream::from(line), complaint);
            return;
        };
        let handed = Handed {
            line,
            stdin,
            stdout,
            stderr,
            directory,
        };
        let line = match handed.line.try_clone() {
            Ok(line) => UnixStream::from(line),
            Err(error) => {
                let complaint = Report::Refused(code(&error));
                warden::report(&UnixStream::from(handed.line), complaint);
                return;
            }
        };
        let born = match Birth::decode(&bytes[..length]) {
            None => Err(io::ErrorKind::InvalidData.into()),
            Some(Birth::Plain) => self.fork(handed),
            Some(Birth::Apart(mapping)) => self.fork_apart(handed, &mapping, &line),
        };
        let said = match born {
            Ok(warden) => {
                self.wardens.push(warden);
                Report::Warden(warden.as_raw_nonzero().get())
            }
            Err(error) => Report::Refused(code(&error)),
        };
        warden::report(&line, said);
    }

    fn fork(&mut self, handed: Handed) -> io::Result<Pid> {
        match raw::fork()? {
            Some(warden) => Ok(warden),
            None => self.become_warden(handed, Domain::Tree),
        }
    }

    /// A warden that is the first process of its namespaces, or a plain one where the system
    /// refuses them.
    fn fork_apart(
        &mut self,
        mut handed: Handed,
        mapping: &Mapping,
        line: &UnixStream,
    ) -> io::Result<Pid> {
        let refused = match self.refused {
            Some(refused) => refused,
            None => match self.try_apart(handed, mapping)? {
                Ok(warden) => return Ok(warden),
                Err((back, refused)) => {
                    handed = back;
                    refused
                }
            },
        };
        warden::report(line, Report::Plain(refused));
        self.fork(handed)
    }

    /// The inner error is the system's refusal.
    fn try_apart(
        &mut self,
        handed: Handed,
        mapping: &Mapping,
    ) -> io::Result<Result<Pid, (Handed, i32)>> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let refusal = match raw::fork_apart() {
            Ok(None) => {
                drop(ours);
                if settle(mapping, theirs).is_err() {
                    raw::exit(End::Clean);
                }
                self.become_warden(handed, Domain::Namespace)
            }
            Ok(Some(warden)) => {
                drop(theirs);
                match confirm(mapping, warden, &mut ours) {
                    Ok(()) => return Ok(Ok(warden)),
                    Err(error) => {
                        let _ = kill_process(warden, Signal::KILL);
                        self.wardens.push(warden);
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
        Ok(Err((handed, refused)))
    }

    /// What only the keeper may hold is let go.
    fn become_warden(&mut self, handed: Handed, domain: Domain) -> ! {
        self.host = None;
        self.lives = None;
        let shared = Shared {
            signals: &self.signals,
            keeper: &self.alive,
        };
        warden::run(handed, &shared, domain)
    }
}

/// In a warden that was born apart: its users, and its own view of processes.
fn settle(mapping: &Mapping, mut parent: UnixStream) -> io::Result<()> {
    if mapping.needs_parent() {
        parent.read_exact(&mut [0])?;
    } else {
        mapping.write_for_oneself()?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = mount(c"proc", c"/proc", c"proc", flags, None);
    parent.write_all(&mounted.err().map_or(0, Errno::raw_os_error).to_le_bytes())?;
    Ok(mounted?)
}

/// In the keeper: helps the warden to settle, and hears how it went.
fn confirm(mapping: &Mapping, warden: Pid, child: &mut UnixStream) -> io::Result<()> {
    child.set_read_timeout(Some(SETTLE))?;
    if mapping.needs_parent() {
        mapping.write_for_child(warden)?;
        child.write_all(b"!")?;
    }
    let mut answer = [0; 4];
    child.read_exact(&mut answer)?;
    match i32::from_le_bytes(answer) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}
