//! Reading a request's body: so large, so long, and all of them together so much.
//!
//! Owns the room that large bodies share. Small ones need none of it, so that whoever fills the
//! room, slowly or with calls that take long, keeps no ordinary request out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

use super::{BODY_TIMEOUT, MAX_BODIES, MAX_BODY, SMALL_BODY};
use crate::error::Refusal;

/// What is left for large bodies.
#[derive(Debug)]
pub(super) struct Room(AtomicUsize);

/// A part of the room, given back when dropped.
#[derive(Debug)]
pub(super) struct Part {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(MAX_BODIES)))
    }
}

impl Part {
    fn of(room: &Arc<Room>) -> Self {
        Self {
            room: Arc::clone(room),
            bytes: 0,
        }
    }

    /// Makes this part as large as a body of so many bytes needs it.
    fn grow_for(&mut self, body: usize) -> Result<(), Refusal> {
        if body <= SMALL_BODY {
            return Ok(());
        }
        let more = body - self.bytes;
        let enough = |left: usize| left.checked_sub(more);
        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
        match self.room.0.fetch_update(done, seen, enough) {
            Ok(_) => {
                self.bytes = body;
                Ok(())
            }
            Err(_) => Err(Refusal::Crowded),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// Reads a body. What is given with it is to be kept for as long as the body is.
pub(super) async fn read(body: Body, room: &Arc<Room>) -> Result<(Bytes, Part), Refusal> {
    // What announces too much is not waited for.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(Refusal::TooLarge { limit: MAX_BODY });
    }
    match tokio::time::timeout(BODY_TIMEOUT, gather(body, room)).await {
        Err(_) => Err(Refusal::TooSlow),
        Ok(read) => read,
    }
}

async fn gather(mut body: Body, room: &Arc<Room>) -> Result<(Bytes, Part), Refusal> {
    let mut part = Part::of(room);
    let mut gathered = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers say nothing here.
        let Ok(data) = frame.map_err(|_| Refusal::Cut)?.into_data() else {
            continue;
        };
        let length = gathered.len() + data.len();
        if length > MAX_BODY {
            return Err(Refusal::TooLarge { limit: MAX_BODY });
        }
        // Only what has arrived counts: announcing much must not keep others out.
        part.grow_for(length)?;
        gathered.extend_from_slice(&data);
    }
    Ok((gathered.freeze(), part))
}
