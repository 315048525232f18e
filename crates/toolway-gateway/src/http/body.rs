//! Reading request bodies, bounded in size, in time, and in all bodies together.
//!
//! Owns the budget that large bodies share. Small ones need none of it, so that slow or large
//! requests keep no ordinary request out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::{BODY_TIMEOUT, MAX_BODIES, MAX_BODY, SMALL_BODY};
use crate::error::RequestRefusal;

/// The bytes left for large bodies.
#[derive(Debug)]
pub(super) struct BodyBudget(AtomicUsize);

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(super) struct BodyShare {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl BodyBudget {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(MAX_BODIES)))
    }
}

impl BodyShare {
    fn of(budget: &Arc<BodyBudget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Makes this part as large as a body of so many bytes needs it.
    fn grow_for(&mut self, body: usize) -> Result<(), RequestRefusal> {
        if body <= SMALL_BODY {
            return Ok(());
        }
        let more = body - self.bytes;
        let enough = |left: usize| left.checked_sub(more);
        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
        match self.budget.0.fetch_update(done, seen, enough) {
            Ok(_) => {
                self.bytes = body;
                Ok(())
            }
            Err(_) => Err(RequestRefusal::Crowded),
        }
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// Reads a body. What is given with it is to be kept for as long as the body is.
pub(super) async fn read(
    body: Incoming,
    budget: &Arc<BodyBudget>,
) -> Result<(Bytes, BodyShare), RequestRefusal> {
    // What announces too much is not waited for.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(RequestRefusal::TooLarge { limit: MAX_BODY });
    }
    let mut gathering = std::pin::pin!(gather(body, budget));
    // Mostly it is there already, and then needs no clock.
    if let Poll::Ready(read) = futures_util::poll!(gathering.as_mut()) {
        return read;
    }
    match tokio::time::timeout(BODY_TIMEOUT, gathering).await {
        Err(_) => Err(RequestRefusal::TooSlow),
        Ok(read) => read,
    }
}

async fn gather(
    mut body: Incoming,
    budget: &Arc<BodyBudget>,
) -> Result<(Bytes, BodyShare), RequestRefusal> {
    let mut share = BodyShare::of(budget);
    // The only piece, mostly: it is not copied.
    let mut first = Bytes::new();
    let mut gathered = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers say nothing here.
        let Ok(data) = frame.map_err(|_| RequestRefusal::Cut)?.into_data() else {
            continue;
        };
        let length = first.len() + gathered.len() + data.len();
        if length > MAX_BODY {
            return Err(RequestRefusal::TooLarge { limit: MAX_BODY });
        }
        // Only what has arrived counts: announcing much must not keep others out.
        share.grow_for(length)?;
        if first.is_empty() && gathered.is_empty() {
            first = data;
        } else {
            gathered.extend_from_slice(&std::mem::take(&mut first));
            gathered.extend_from_slice(&data);
        }
    }
    let whole = if gathered.is_empty() {
        first
    } else {
        gathered.freeze()
    };
    Ok((whole, share))
}
