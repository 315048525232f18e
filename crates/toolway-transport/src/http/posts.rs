//! The messages on their way to a server, each a POST of its own.
//!
//! Owns in what order they start, giving them up, and reporting their failures. One driver polls
//! them all; none is spawned.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::channel::{ChannelCommand, ChannelEvent, CommandInbox, OutgoingMessage, RequestTag};
use crate::error::SendFailure;

/// How long later messages wait for a notification to arrive before them.
const NOTIFICATION_HOLD: Duration = Duration::from_secs(2);

/// The messages on their way.
#[derive(Default)]
pub(crate) struct PendingPosts {
    /// Each ends with its tag, when its failure has been reported.
    under_way: FuturesUnordered<BoxFuture<'static, Option<RequestTag>>>,
    abort: HashMap<RequestTag, AbortHandle>,
    /// Until when later messages wait for a notification.
    held_until: Option<Instant>,
}

impl PendingPosts {
    /// Posts until the end is asked for.
    pub(crate) async fn carry_down<P>(
        &mut self,
        inbox: &mut CommandInbox,
        events: &mpsc::Sender<ChannelEvent>,
        post: impl Fn(OutgoingMessage) -> P,
    ) where
        P: Future<Output = Result<(), SendFailure>> + Send + 'static,
    {
        loop {
            let hold = self.held_until;
            tokio::select! {
                command = inbox.next(), if hold.is_none() => match command {
                    Some(ChannelCommand::Send(outgoing)) => {
                        self.start(outgoing.tag, post(outgoing), events.clone());
                    }
                    Some(ChannelCommand::Abandon(tag)) => {
                        if let Some(handle) = self.abort.remove(&tag) {
                            handle.abort();
                        }
                    }
                    None => return,
                },
                Some(landed) = self.under_way.next() => match landed {
                    Some(tag) => drop(self.abort.remove(&tag)),
                    None => self.held_until = None,
                },
                () = sleep_until(hold.unwrap_or_else(Instant::now)), if hold.is_some() => {
                    self.held_until = None;
                }
            }
        }
    }

    fn start(
        &mut self,
        tag: Option<RequestTag>,
        posting: impl Future<Output = Result<(), SendFailure>> + Send + 'static,
        events: mpsc::Sender<ChannelEvent>,
    ) {
        let Some(tag) = tag else {
            // `initialized` must not be overtaken by the first real request.
            self.held_until = Some(Instant::now() + NOTIFICATION_HOLD);
            self.under_way.push(Box::pin(async move {
                if let Err(failure) = posting.await {
                    tracing::debug!(?failure, "a notification was not delivered");
                }
                None
            }));
            return;
        };
        let (handle, registration) = AbortHandle::new_pair();
        self.abort.insert(tag, handle);
        let reporting = async move {
            if let Err(failure) = posting.await {
                let _ = events.send(ChannelEvent::Failed { tag, failure }).await;
            }
        };
        self.under_way.push(Box::pin(async move {
            // Aborted: no report is expected.
            let _ = Abortable::new(reporting, registration).await;
            Some(tag)
        }));
    }

    /// Waits for those that are left, this long at most.
    pub(crate) async fn finish(mut self, patience: Duration) {
        let rest = async { while self.under_way.next().await.is_some() {} };
        let _ = timeout(patience, rest).await;
    }
}
