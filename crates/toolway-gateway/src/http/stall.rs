//! A socket whose peer must read: a write that makes no progress for too long is an error.
//!
//! Without it a client that asks and never reads would keep its connection, and the answer in
//! memory, forever (REL-29, SEC-30).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::counters::{Counter as _, FrontCounters};
use super::slots::ConnectionSlot;

/// A connection's socket.
pub(super) struct StallingSocket {
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
    counters: Arc<FrontCounters>,
    limit: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl StallingSocket {
    pub(super) fn new(
        stream: TcpStream,
        slot: Arc<ConnectionSlot>,
        counters: Arc<FrontCounters>,
        limit: Duration,
    ) -> Self {
        Self {
            stream,
            slot,
            counters,
            limit,
            stalled: None,
        }
    }

    fn watch(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &progress {
            self.stalled = None;
            self.slot.touch();
            self.counters
                .sent_bytes
                .add(*written.as_ref().unwrap_or(&0));
            return progress;
        }
        let limit = self.limit;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        stalled
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for StallingSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let progress = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        self.counters.received_bytes.add(read);
        progress
    }
}

impl AsyncWrite for StallingSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
