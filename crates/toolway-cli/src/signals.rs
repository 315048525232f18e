//! When the program is told to end.
//!
//! Owns the signals (SIGINT, SIGTERM, SIGHUP), ending by the one that came, and noticing that the
//! reader of stdout is gone. The first signal is an orderly end, the second an immediate one (REL-32).

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Exit;

/// The last signal that was meant for the program; nought before there is one. Signals are the
/// process's, and so is what is known of them.
static TOLD: AtomicI32 = AtomicI32::new(0);

/// Ends the program by the signal that told it to; returns when none did. A shell stops its loop only
/// when its child ended by the Ctrl-C itself, which an exit code does not say. SIGTERM and SIGHUP are
/// how a command without an end of its own succeeds.
pub(crate) fn end_as_told(exit: Exit) {
    let signal = TOLD.load(Ordering::Relaxed);
    let is_ctrl_c = signal == SignalKind::interrupt().as_raw_value();
    if signal == 0 || (exit == Exit::Success && !is_ctrl_c) {
        return;
    }
    // A process that ends by a signal flushes nothing.
    let _ = io::stdout().flush();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// The signals that end a program, listened to from the start: none is lost between two waits.
pub(crate) struct Signals {
    signals: Vec<(SignalKind, Signal)>,
    heard: u32,
}

impl Signals {
    /// Takes over from the system's own way, which would leave processes behind. Must run inside
    /// a runtime.
    pub(crate) fn listen() -> Self {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        // One that cannot be listened to ends the program as it always did.
        Self {
            signals: kinds
                .into_iter()
                .flat_map(|kind| signal(kind).map(|signal| (kind, signal)))
                .collect(),
            heard: 0,
        }
    }

    /// How many have come so far.
    pub(crate) fn heard(&self) -> u32 {
        self.heard
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> SignalKind {
        let kind = std::future::poll_fn(|context| {
            let mut told = self
                .signals
                .iter_mut()
                .filter_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
            match told.next() {
                Some(kind) => std::task::Poll::Ready(kind),
                None => std::task::Poll::Pending,
            }
        })
        .await;
        self.heard += 1;
        TOLD.store(kind.as_raw_value(), Ordering::Relaxed);
        kind
    }

    /// The last one was not meant for the program.
    pub(crate) fn forget_last(&mut self) {
        self.heard = self.heard.saturating_sub(1);
        TOLD.store(0, Ordering::Relaxed);
    }
}

/// Resolves when the reader of stdout is gone, which a program that writes rarely would not notice.
/// Never for what is no pipe.
pub(crate) async fn stdout_closed() {
    let (tell, told) = oneshot::channel();
    // A thread, since the runtime cannot wait for an error alone. It ends with the program.
    let watcher = std::thread::Builder::new().name("stdout".to_owned());
    let watching = watcher.spawn(move || {
        if is_a_pipe() && error_on_stdout().is_ok() {
            // The receiver may be gone.
            let _ = tell.send(());
        }
    });
    if watching.is_err() || told.await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn is_a_pipe() -> bool {
    rustix::fs::fstat(io::stdout()).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::Socket
        )
    })
}

/// Waits until the other end of stdout is closed.
fn error_on_stdout() -> io::Result<()> {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    loop {
        match rustix::event::poll(&mut watched, None) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
