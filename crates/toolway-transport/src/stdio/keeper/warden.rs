//! The process between the keeper and one server.
//!
//! Owns starting the server, and everything the server ever starts: whoever loses its parent
//! becomes the warden's child, however often it forked or left its session. Nothing outlives a
//! warden that ends by itself, and it ends when its server does, when the host asks, and at once
//! when the host or the keeper is gone.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, setsid, wait,
};

use super::message::{Handed, Report, Start, code};
use super::raw::{self, End};
use super::tree;
use crate::stdio::process::LADDER;

/// How often what was killed is killed again, and at most how long: what is stuck in the kernel
/// is then the keeper's.
const AGAIN: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(2);

/// How far a warden's signals reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    /// Its descendants, which it has to find.
    Tree,
    /// Its namespace, which is everything it sees.
    Namespace,
}

/// The descriptors a warden shares with the keeper.
pub(super) struct Shared<'a> {
    /// Says when a child has ended.
    pub(super) signals: &'a OwnedFd,
    /// Closed when the keeper is gone.
    pub(super) keeper: &'a OwnedFd,
}

/// Lives a warden's life.
pub(super) fn run(handed: Handed, shared: &Shared<'_>, domain: Domain) -> ! {
    let Handed { line, .. } = handed;
    let mut line = UnixStream::from(line);
    let pipes = [handed.stdin, handed.stdout, handed.stderr];
    let end = match start(&mut line, pipes, handed.directory, domain) {
        Err(error) => {
            report(&line, Report::Refused(code(&error)));
            End::Clean
        }
        Ok(leader) => {
            report(&line, Report::Started(leader.as_raw_nonzero().get()));
            let mut warden = Warden {
                line,
                leader: Some(leader),
                domain,
                phase: Phase::Serving,
            };
            warden.watch(shared)
        }
    };
    raw::exit(end)
}

fn start(
    line: &mut UnixStream,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    directory: OwnedFd,
    domain: Domain,
) -> io::Result<Pid> {
    // Not `toolway`: whoever ends programs by their name means the host.
    rustix::thread::set_name(c"tw-warden")?;
    // A session without a terminal: no server types into the person's shell.
    setsid()?;
    if domain == Domain::Tree {
        set_child_subreaper(Some(getpid()))?;
    }
    let start = Start::receive(line)?;
    let mut command = Command::new(start.program);
    command
        .arg0(start.name)
        .args(start.args)
        .env_clear()
        .envs(start.environment)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    // Behind a shield the directory is entered by its path instead: the descriptor is of the
    // host's mounts, and what is reached through it is not protected.
    raw::begin(&mut command, start.shield.is_none().then_some(directory));
    match (start.shield, domain) {
        (None, _) => {}
        (Some(shield), Domain::Tree) => shield.guard(&mut command),
        (Some(shield), Domain::Namespace) => {
            shield.protect()?;
            shield.guard_inside(&mut command);
        }
    }
    raw::die_with(&mut command, getpid());
    Ok(Pid::from_child(&command.spawn()?))
}

/// The host may be gone; then there is nobody to tell.
pub(super) fn report(line: &UnixStream, report: Report) {
    let _ = send(line, &report.encode(), SendFlags::NOSIGNAL);
}

struct Warden {
    line: UnixStream,
    /// Until it is reaped, its number is its own, and so is its group's.
    leader: Option<Pid>,
    domain: Domain,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Serving,
    /// The host has asked for the end; this many steps of the ladder are behind us.
    Stopping {
        since: Instant,
        steps: usize,
    },
    Killing {
        since: Instant,
    },
}

impl Warden {
    /// Returns when nothing is left, or nothing more can be done.
    fn watch(&mut self, shared: &Shared<'_>) -> End {
        while self.reap() {
            let patience = match self.phase {
                Phase::Serving => None,
                Phase::Stopping { since, steps } => Some(self.climb(since, steps)),
                Phase::Killing { since } if since.elapsed() > LONGEST => return End::Unfinished,
                Phase::Killing { .. } => {
                    self.kill();
                    Some(AGAIN)
                }
            };
            self.listen(shared, patience);
        }
        End::Clean
    }

    /// Reaps whoever has ended. Whether anybody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
                Ok(Some((pid, status))) => {
                    if Some(pid) == self.leader {
                        self.leader = None;
                        report(&self.line, Report::Exited(status.as_raw()));
                        // What it leaves behind would hold its pipes open for ever.
                        if matches!(self.phase, Phase::Serving) {
                            self.phase = Phase::Killing {
                                since: Instant::now(),
                            };
                        }
                    }
                }
            }
        }
    }

    /// Sends the signal whose time has come; how long until the next.
    fn climb(&mut self, since: Instant, mut steps: usize) -> Duration {
        let mut due = Duration::ZERO;
        for (step, (wait, signal)) in LADDER.into_iter().enumerate() {
            due += wait;
            if step < steps {
                continue;
            }
            let left = due.saturating_sub(since.elapsed());
            if !left.is_zero() {
                self.phase = Phase::Stopping { since, steps };
                return left;
            }
            steps = step + 1;
            if signal != Signal::KILL {
                self.signal(signal);
            }
        }
        self.phase = Phase::Killing {
            since: Instant::now(),
        };
        Duration::ZERO
    }

    fn signal(&self, signal: Signal) {
        match self.domain {
            Domain::Namespace => raw::signal_all(signal),
            Domain::Tree => {
                if let Some(leader) = self.leader {
                    let _ = kill_process_group(leader, signal);
                }
                tree::signal_outside(self.leader, signal);
            }
        }
    }

    /// Kills; whoever the dead leave behind becomes our child and is killed the next time.
    fn kill(&self) {
        match self.domain {
            Domain::Namespace => raw::signal_all(Signal::KILL),
            Domain::Tree => {
                if let Some(leader) = self.leader {
                    let _ = kill_process_group(leader, Signal::KILL);
                }
                tree::kill_children(|_| true);
            }
        }
    }

    /// Waits until something happens, at most this long.
    fn listen(&mut self, shared: &Shared<'_>, patience: Option<Duration>) {
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut waiting = [
            PollFd::new(shared.signals, PollFlags::IN),
            PollFd::new(shared.keeper, PollFlags::IN),
            PollFd::new(&self.line, PollFlags::IN),
        ];
        // Nobody stops a killing.
        let count = match self.phase {
            Phase::Killing { .. } => 1,
            Phase::Serving | Phase::Stopping { .. } => waiting.len(),
        };
        let _ = poll(&mut waiting[..count], timeout.as_ref());
        let [signals, keeper, line] = waiting.map(|waiting| !waiting.revents().is_empty());
        if signals {
            forget_signals(shared.signals);
        }
        if keeper || (line && !self.is_asked_to_stop()) {
            self.phase = Phase::Killing {
                since: Instant::now(),
            };
        }
    }

    /// Whether it was an order, and not the end of the line.
    fn is_asked_to_stop(&mut self) -> bool {
        if !matches!(self.line.read(&mut [0; 1]), Ok(1)) {
            return false;
        }
        if matches!(self.phase, Phase::Serving) {
            self.phase = Phase::Stopping {
                since: Instant::now(),
                steps: 0,
            };
        }
        true
    }
}

/// Empties the descriptor; who has ended is asked elsewhere, because signals of one kind merge.
pub(super) fn forget_signals(signals: &OwnedFd) {
    let mut buffer = [0; 128];
    while matches!(rustix::io::read(signals.as_fd(), &mut buffer), Ok(1..)) {}
}
