//! When the program is told to end.
//!
//! Owns the signals (SIGINT, SIGTERM, SIGHUP), ending by the one that came, and noticing that the
//! reader of stdout is gone. The first signal is an orderly end, the second an immediate one (REL-32).

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::FileType;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use crate::exit::Exit;
use crate::streams::Streams;

/// Where the signals of one run come from, and the last one that was meant for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignalSource {
    /// Those that another process passes on; this process's own where there is none.
    passed_on: Option<watch::Receiver<Vec<SignalKind>>>,
    /// Nought before there is one.
    told: Arc<AtomicI32>,
}

impl SignalSource {
    /// Signals that another process passes on: all of them so far, in order. An end of it without a
    /// word is its hang-up.
    pub(crate) fn passed_on(signals: watch::Receiver<Vec<SignalKind>>) -> Self {
        Self {
            passed_on: Some(signals),
            told: Arc::default(),
        }
    }

    /// The program is to end by this signal, as one that it ran did.
    pub(crate) fn end_by(&self, signal: i32) {
        self.told.store(signal, Ordering::Relaxed);
    }

    /// The signal that the program ends by; none where it ends by itself. A shell stops its loop only
    /// when its child ended by the Ctrl-C itself, which an exit code does not say. SIGTERM and SIGHUP
    /// are how a command without an end of its own succeeds.
    pub(crate) fn ends_by(&self, exit: Exit) -> Option<i32> {
        let signal = self.told.load(Ordering::Relaxed);
        let is_ctrl_c = signal == SignalKind::interrupt().as_raw_value();
        (signal != 0 && (exit != Exit::Success || is_ctrl_c)).then_some(signal)
    }
}

/// Ends the program by this signal.
pub(crate) fn end_by(signal: i32) {
    // A process that ends by a signal flushes nothing.
    let _ = io::stdout().flush();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// The signals that end a program, listened to from the start: none is lost between two waits.
pub(crate) struct Signals {
    heard_from: HeardFrom,
    heard: u32,
    told: Arc<AtomicI32>,
}

enum HeardFrom {
    System(Vec<(SignalKind, Signal)>),
    /// Another process, and how many of its signals were taken.
    Other(watch::Receiver<Vec<SignalKind>>, usize),
}

impl Signals {
    /// Takes over from the system's own way, which would leave processes behind. Must run inside
    /// a runtime.
    pub(crate) fn listen(source: &SignalSource) -> Self {
        let told = Arc::clone(&source.told);
        if let Some(passed_on) = &source.passed_on {
            return Self {
                heard_from: HeardFrom::Other(passed_on.clone(), 0),
                heard: 0,
                told,
            };
        }
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        // One that cannot be listened to ends the program as it always did.
        let signals = kinds.into_iter();
        let signals = signals.flat_map(|kind| signal(kind).map(|signal| (kind, signal)));
        Self {
            heard_from: HeardFrom::System(signals.collect()),
            heard: 0,
            told,
        }
    }

    /// How many have come so far.
    pub(crate) fn heard(&self) -> u32 {
        self.heard
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> SignalKind {
        let kind = match &mut self.heard_from {
            HeardFrom::System(signals) => next_of_system(signals).await,
            HeardFrom::Other(passed_on, taken) => {
                let more = passed_on.wait_for(|all| all.len() > *taken).await;
                let next = more.ok().and_then(|all| all.get(*taken).copied());
                *taken += 1;
                next.unwrap_or(SignalKind::hangup())
            }
        };
        self.heard += 1;
        self.told.store(kind.as_raw_value(), Ordering::Relaxed);
        kind
    }

    /// The last one was not meant for the program.
    pub(crate) fn forget_last(&mut self) {
        self.heard = self.heard.saturating_sub(1);
        self.told.store(0, Ordering::Relaxed);
    }
}

async fn next_of_system(signals: &mut [(SignalKind, Signal)]) -> SignalKind {
    std::future::poll_fn(|context| {
        let mut told = signals
            .iter_mut()
            .filter_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
        match told.next() {
            Some(kind) => std::task::Poll::Ready(kind),
            None => std::task::Poll::Pending,
        }
    })
    .await
}

/// Resolves when the reader of stdout is gone, which a program that writes rarely would not notice.
/// Never for what is no pipe.
pub(crate) async fn stdout_closed(streams: &Streams) {
    let (tell, told) = oneshot::channel();
    let streams = streams.clone();
    // A thread, since the runtime cannot wait for an error alone. It ends with the program.
    let watcher = std::thread::Builder::new().name("stdout".to_owned());
    let watching = watcher.spawn(move || {
        if is_a_pipe(&streams) && streams.await_output_end().is_ok() {
            // The receiver may be gone.
            let _ = tell.send(());
        }
    });
    if watching.is_err() || told.await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn is_a_pipe(streams: &Streams) -> bool {
    rustix::fs::fstat(streams.output()).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::Socket
        )
    })
}
