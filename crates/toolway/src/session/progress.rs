//! Reading `notifications/progress`.
//!
//! Owns the shape on the wire. Whose progress it is, and that it reaches its listener in order,
//! is `correlator.rs`'s work; the value that listeners get is `call.rs`'s.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolway_types::Untrusted;
use toolway_types::text::cut;
use toolway_wire::{Id, RawJson};

use crate::call::Progress;

/// How many characters of a message are passed on: listeners may keep many of them.
const MAX_MESSAGE: usize = 4096;

/// The largest notification that is passed on as it is.
const MAX_RAW: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    progress_token: Value,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// Reads a notification: the request it belongs to (our tokens are our request ids) and the
/// report.
pub(super) fn read(message: &Bytes, params: &RawValue) -> Option<(u64, Progress)> {
    let raw = RawJson::part_of(message, params);
    let params: ProgressParams = serde_json::from_str(params.get()).ok()?;
    let token = match params.progress_token {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => Id::Text(text).as_ours()?,
        _ => return None,
    };
    let report = Progress {
        progress: params.progress,
        total: params.total,
        message: params
            .message
            .map(|message| Untrusted::new(cut(&message, MAX_MESSAGE))),
        raw: Some(raw).filter(|raw| raw.len() <= MAX_RAW),
    };
    Some((token, report))
}
