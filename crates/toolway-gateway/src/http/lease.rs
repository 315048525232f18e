//! Streams that end when their reader is let in no longer: its token was revoked, or is over.
//!
//! Owns looking now and then. Requests are checked when they come; only what stays open needs this.

use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Interval, MissedTickBehavior};

use super::events::{EventSource, EventStream};
use crate::conversation::AccessLease;

/// How often is looked whether a lease has ended.
const LOOKED_AT: Duration = Duration::from_secs(10);

/// A stream that ends with the lease of who reads it.
pub(super) fn leased(
    source: Box<dyn EventSource>,
    held: Box<dyn Send>,
    lease: &AccessLease,
) -> EventStream {
    EventStream::new(Box::new(LeasedSource::new(source, lease)), held)
}

/// A source that is cut when the lease of its reader is over.
struct LeasedSource {
    source: Box<dyn EventSource>,
    lease: AccessLease,
    looks: Interval,
}

impl LeasedSource {
    fn new(source: Box<dyn EventSource>, lease: &AccessLease) -> Self {
        let mut looks = tokio::time::interval(LOOKED_AT);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            source,
            lease: lease.clone(),
            looks,
        }
    }
}

impl EventSource for LeasedSource {
    fn poll_events(
        &mut self,
        context: &mut Context<'_>,
        ready: &mut VecDeque<Bytes>,
    ) -> Poll<bool> {
        // Before the source: what it has to say is not theirs to hear any more.
        while self.looks.poll_tick(context).is_ready() {
            if self.lease.is_over() {
                return Poll::Ready(false);
            }
        }
        self.source.poll_events(context, ready)
    }
}
