//! Streams that end with the server, because nothing else ends them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::events::EventSource;

/// A source that is cut when the server is about to end.
pub(super) struct UntilClosing {
    source: Box<dyn EventSource>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl UntilClosing {
    pub(super) fn new(source: Box<dyn EventSource>, closing: &CancellationToken) -> Self {
        Self {
            source,
            closing: Box::pin(closing.clone().cancelled_owned()),
        }
    }
}

impl EventSource for UntilClosing {
    fn poll_events(
        &mut self,
        context: &mut Context<'_>,
        ready: &mut VecDeque<Bytes>,
    ) -> Poll<bool> {
        match self.source.poll_events(context, ready) {
            Poll::Pending => self.closing.as_mut().poll(context).map(|()| false),
            polled @ Poll::Ready(_) => polled,
        }
    }
}
