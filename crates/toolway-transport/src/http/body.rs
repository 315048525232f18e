//! Reading the body of an answer, bounded in size and in silence; and waiting with a limit or
//! without one.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::time::timeout;

use crate::error_text::root_cause;

/// Waits for something, for this long where there is a limit; gives the limit when it is over.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, Duration> {
    match limit {
        Some(limit) => timeout(limit, work).await.map_err(|_| limit),
        None => Ok(work.await),
    }
}

/// Why a body was not read whole.
pub(super) enum BodyError {
    /// It is larger than asked for; this is its beginning.
    TooLarge(Bytes),
    /// Nothing came for this long.
    Stalled { after: Duration },
    /// The connection broke.
    Cut(String),
}

/// Reads a body up to a cap, however slowly it arrives, as long as it does; without `idle`, the
/// caller limits the wait.
pub(super) async fn bounded(
    mut response: Response,
    limit: usize,
    idle: Option<Duration>,
) -> Result<Bytes, BodyError> {
    let mut first = None;
    let mut whole = BytesMut::new();
    loop {
        let chunk = match within(idle, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            // One chunk is the usual case and is not copied.
            Ok(Ok(None)) if whole.is_empty() => return Ok(first.unwrap_or_default()),
            Ok(Ok(None)) => return Ok(whole.freeze()),
            Ok(Err(error)) => return Err(BodyError::Cut(root_cause(&error))),
            Err(after) => return Err(BodyError::Stalled { after }),
        };
        if let Some(first) = first.take() {
            let first: Bytes = first;
            whole.extend_from_slice(&first);
        }
        let room = limit - whole.len();
        if chunk.len() > room {
            whole.extend_from_slice(&chunk[..room]);
            return Err(BodyError::TooLarge(whole.freeze()));
        }
        if whole.is_empty() {
            first = Some(chunk);
        } else {
            whole.extend_from_slice(&chunk);
        }
    }
}
