//! The process between the launcher and one server.
//!
//! Owns starting the server and killing everything the server ever started: orphans become the
//! reaper's children, however often they forked or changed their session. A reaper ends when its
//! server does, when the host asks, and at once when the host or the launcher is gone.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, getpid, kill_process_group, set_child_subreaper, setsid};

use super::message::{LaunchReport, LaunchRequest, PassedDescriptors, code};
use super::raw::{self, Cleanup};
use super::tree;
use crate::stdio::stop_sequence::{AFTER_KILL, STOP_SEQUENCE};

/// How often killing is repeated. The launcher takes over what is stuck in the kernel.
const AGAIN: Duration = Duration::from_millis(5);

/// Which processes a reaper signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalScope {
    /// Its descendants, which it has to find.
    Tree,
    /// Its namespace, which is everything it sees.
    Namespace,
}

/// The descriptors a reaper shares with the launcher.
pub(super) struct InheritedDescriptors<'a> {
    /// Says when a child has ended.
    pub(super) signals: &'a OwnedFd,
    /// Closed when the launcher is gone.
    pub(super) launcher: &'a OwnedFd,
}

/// Runs the reaper to its end.
pub(super) fn run(
    passed: PassedDescriptors,
    shared: &InheritedDescriptors<'_>,
    scope: SignalScope,
) -> ! {
    let PassedDescriptors { socket, .. } = passed;
    let mut socket = UnixStream::from(socket);
    let pipes = [passed.stdin, passed.stdout, passed.stderr];
    let end = match start(&mut socket, pipes, passed.directory, scope) {
        Err(error) => {
            report(&socket, LaunchReport::Refused(code(&error)));
            Cleanup::Complete
        }
        Ok(leader) => {
            report(
                &socket,
                LaunchReport::Started(leader.as_raw_nonzero().get()),
            );
            let mut reaper = Reaper {
                socket,
                leader: Some(leader),
                scope,
                phase: ReaperPhase::Serving,
            };
            reaper.watch(shared)
        }
    };
    raw::exit(end)
}

fn start(
    socket: &mut UnixStream,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    directory: OwnedFd,
    scope: SignalScope,
) -> io::Result<Pid> {
    // Not `toolway`: `pkill toolway` is meant for the host.
    rustix::thread::set_name(c"tw-reaper")?;
    // A session without a terminal, so that no server can type into the user's shell.
    setsid()?;
    if scope == SignalScope::Tree {
        set_child_subreaper(Some(getpid()))?;
    }
    let start = LaunchRequest::receive(socket)?;
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
    raw::unblock_signals_in(&mut command, start.shield.is_none().then_some(directory));
    match (start.shield, scope) {
        (None, _) => {}
        (Some(shield), SignalScope::Tree) => shield.guard(&mut command),
        (Some(shield), SignalScope::Namespace) => {
            shield.protect()?;
            shield.guard_inside(&mut command);
        }
    }
    if let Some(umask) = start.umask {
        // The reaper makes no files of its own.
        rustix::process::umask(Mode::from_raw_mode(umask));
    }
    raw::die_with(&mut command, getpid());
    Ok(Pid::from_child(&command.spawn()?))
}

/// The host may be gone, which is no error.
pub(super) fn report(socket: &UnixStream, report: LaunchReport) {
    let _ = send(socket, &report.encode(), SendFlags::NOSIGNAL);
}

struct Reaper {
    socket: UnixStream,
    /// Until it is reaped, its id and its group's id are not reused.
    leader: Option<Pid>,
    scope: SignalScope,
    phase: ReaperPhase,
}

#[derive(Debug, Clone, Copy)]
enum ReaperPhase {
    Serving,
    /// The host has asked for the end; this many steps of the stop sequence are done.
    Stopping {
        since: Instant,
        steps: usize,
    },
    Killing {
        since: Instant,
    },
}

impl Reaper {
    /// Returns when nothing is left, or nothing more can be done.
    fn watch(&mut self, shared: &InheritedDescriptors<'_>) -> Cleanup {
        while self.reap() {
            let patience = match self.phase {
                ReaperPhase::Serving => None,
                ReaperPhase::Stopping { since, steps } => Some(self.send_due_signals(since, steps)),
                ReaperPhase::Killing { since } if since.elapsed() > AFTER_KILL => {
                    return Cleanup::Incomplete;
                }
                ReaperPhase::Killing { .. } => {
                    self.kill();
                    Some(AGAIN)
                }
            };
            self.listen(shared, patience);
        }
        Cleanup::Complete
    }

    /// Reaps ended children. Whether any child is left.
    fn reap(&mut self) -> bool {
        tree::reap(|pid, status| {
            if Some(pid) != self.leader {
                return;
            }
            self.leader = None;
            report(&self.socket, LaunchReport::Exited(status.as_raw()));
            // Its orphans would hold its pipes open.
            if matches!(self.phase, ReaperPhase::Serving) {
                self.phase = ReaperPhase::Killing {
                    since: Instant::now(),
                };
            }
        })
    }

    /// Sends the signals that are due; how long until the next.
    fn send_due_signals(&mut self, since: Instant, mut steps: usize) -> Duration {
        let mut due = Duration::ZERO;
        for (step, (wait, signal)) in STOP_SEQUENCE.into_iter().enumerate() {
            due += wait;
            if step < steps {
                continue;
            }
            let left = due.saturating_sub(since.elapsed());
            if !left.is_zero() {
                self.phase = ReaperPhase::Stopping { since, steps };
                return left;
            }
            steps = step + 1;
            if signal != Signal::KILL {
                self.signal(signal);
            }
        }
        self.phase = ReaperPhase::Killing {
            since: Instant::now(),
        };
        Duration::ZERO
    }

    fn signal(&self, signal: Signal) {
        match self.scope {
            SignalScope::Namespace => raw::signal_all(signal),
            SignalScope::Tree => {
                if let Some(leader) = self.leader {
                    let _ = kill_process_group(leader, signal);
                }
                tree::signal_outside(self.leader, signal);
            }
        }
    }

    /// Kills; orphans of the killed become our children and are killed the next time.
    fn kill(&self) {
        match self.scope {
            SignalScope::Namespace => raw::signal_all(Signal::KILL),
            SignalScope::Tree => {
                if let Some(leader) = self.leader {
                    let _ = kill_process_group(leader, Signal::KILL);
                }
                tree::kill_children(|_| true);
            }
        }
    }

    /// Waits until something happens, at most this long.
    fn listen(&mut self, shared: &InheritedDescriptors<'_>, patience: Option<Duration>) {
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut waiting = [
            PollFd::new(shared.signals, PollFlags::IN),
            PollFd::new(shared.launcher, PollFlags::IN),
            PollFd::new(&self.socket, PollFlags::IN),
        ];
        // Killing cannot be stopped.
        let count = match self.phase {
            ReaperPhase::Killing { .. } => 1,
            ReaperPhase::Serving | ReaperPhase::Stopping { .. } => waiting.len(),
        };
        let _ = poll(&mut waiting[..count], timeout.as_ref());
        let [signals, launcher, socket] = waiting.map(|waiting| !waiting.revents().is_empty());
        if signals {
            drain_signals(shared.signals);
        }
        if launcher || (socket && !self.is_asked_to_stop()) {
            self.phase = ReaperPhase::Killing {
                since: Instant::now(),
            };
        }
    }

    /// Whether it was a stop request, and not the end of the socket.
    fn is_asked_to_stop(&mut self) -> bool {
        if !matches!(self.socket.read(&mut [0; 1]), Ok(1)) {
            return false;
        }
        if matches!(self.phase, ReaperPhase::Serving) {
            self.phase = ReaperPhase::Stopping {
                since: Instant::now(),
                steps: 0,
            };
        }
        true
    }
}

/// Empties the descriptor; `wait` says which child ended, because signals of one kind merge.
pub(super) fn drain_signals(signals: &OwnedFd) {
    let mut buffer = [0; 128];
    while matches!(rustix::io::read(signals.as_fd(), &mut buffer), Ok(1..)) {}
}
