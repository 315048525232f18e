//! Signals of the process that was typed, which are the program's to answer.
//!
//! Owns which are passed on. Those that a terminal sends reach the program by themselves, because it is
//! of the same process group; those that were ignored when we were started stay ignored, for the
//! program too (`nohup`).

use rustix::process::{Pid, Signal as SignalNumber, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are passed on, and whether a terminal sends them to the whole group.
const KINDS: [(SignalKind, bool); 6] = [
    (SignalKind::interrupt(), true),
    (SignalKind::quit(), true),
    (SignalKind::terminate(), false),
    (SignalKind::hangup(), false),
    (SignalKind::user_defined1(), false),
    (SignalKind::user_defined2(), false),
];

/// The signals of this process.
pub(super) struct PassedSignals(Vec<(PassedSignal, Signal)>);

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedSignal {
    kind: SignalKind,
    is_terminals: bool,
}

impl PassedSignals {
    /// Takes over from the system's own way. Must run inside a runtime.
    pub(super) fn listen() -> Self {
        let ignored = ignored();
        let kinds = KINDS.into_iter();
        let heeded = kinds.filter(|(kind, _)| !is_in(ignored, *kind));
        let listened = heeded.filter_map(|(kind, is_terminals)| {
            let signal = signal(kind).ok()?;
            Some((PassedSignal { kind, is_terminals }, signal))
        });
        Self(listened.collect())
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> PassedSignal {
        std::future::poll_fn(|context| {
            let mut told = self
                .0
                .iter_mut()
                .filter_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
            match told.next() {
                Some(kind) => std::task::Poll::Ready(kind),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }
}

impl PassedSignal {
    pub(super) fn number(self) -> i32 {
        self.kind.as_raw_value()
    }

    /// Passes it on, unless the terminal did.
    pub(super) fn pass_on(self, child: &Child) {
        if self.is_terminals && is_in_front() {
            return;
        }
        let process = child.id().and_then(|id| i32::try_from(id).ok());
        let process = process.and_then(Pid::from_raw);
        if let (Some(process), Some(signal)) =
            (process, SignalNumber::from_named_raw(self.number()))
        {
            // It may have ended a moment ago.
            let _ = kill_process(process, signal);
        }
    }
}

/// Whether a terminal's keys reach this process and the program: its group is the one in front there.
fn is_in_front() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The signals that this process was started to ignore, one bit each; none where that is not known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .unwrap_or_default()
}

fn is_in(set: u64, kind: SignalKind) -> bool {
    let number = u32::try_from(kind.as_raw_value()).unwrap_or_default();
    number > 0 && set.checked_shr(number - 1).unwrap_or_default() & 1 == 1
}
