//! What all clients of a service share.
//!
//! Owns the host, the keys of seals, what is counted and traced, and the way to have something run
//! beside requests. Who polls that is `service.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolway::{Host, RequestAsked, Tracer};

use super::program_side::ProgramSide;
use crate::metrics::Metrics;
use crate::seal::SealKeys;

/// What all clients share.
pub(super) struct ServiceCore {
    pub(super) host: Arc<Host>,
    pub(super) seal: SealKeys,
    pub(super) metrics: Arc<Metrics>,
    pub(super) tracer: Option<Tracer>,
    /// The program that alone is served, where it is one.
    pub(super) program: Option<ProgramSide>,
    numbers: AtomicU64,
    beside: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    end: CancellationToken,
}

impl ServiceCore {
    pub(super) fn new(
        host: Arc<Host>,
        seal: SealKeys,
        tracer: Option<Tracer>,
        program: Option<ProgramSide>,
        beside: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    ) -> Self {
        Self {
            host,
            seal,
            metrics: Metrics::new(),
            tracer,
            program,
            numbers: AtomicU64::new(1),
            beside,
            end: CancellationToken::new(),
        }
    }

    /// Who is asked because of requests of the program that alone is served, as far as it said so.
    pub(super) fn asked_of_program(&self) -> RequestAsked {
        let program = self.program.as_ref();
        let asked = program.and_then(|program| program.asked.get());
        asked.cloned().unwrap_or_default()
    }

    /// Lets everything end that has no end of its own.
    pub(super) fn end(&self) {
        self.end.cancel();
    }

    /// A number that was not used before.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Has something run beside requests.
    pub(super) fn beside(&self, work: BoxFuture<'static, ()>) {
        // Without a driver nothing runs any more.
        let _ = self.beside.send(work);
    }

    /// Resolves when the service ends.
    pub(super) async fn ended(&self) {
        self.end.cancelled().await;
    }
}
