//! How long an answer may be used again: `ttlMs`, and the small cache that honours it.
//!
//! Owns the cache of one session and the spread of waits. Nothing of it is shared between
//! sessions, so what a server marks as private never leaves the connection it was sent over.
//! When lists are fetched again is `follow.rs`'s.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolway_types::Budget;
use toolway_wire::RawJson;
use toolway_wire::era::method;

use crate::lock::lock;

/// How much is kept: the least recently used goes first.
const KEPT: Budget = Budget::new(8 << 20, 20);

/// A larger answer is not kept.
const LARGEST: usize = 1 << 20;

/// However long a server says, no answer is believed for longer.
const LONGEST: Duration = Duration::from_hours(24);

/// The answers of one session that are still fresh.
#[derive(Debug, Default)]
pub(super) struct Freshness(Mutex<VecDeque<CachedAnswer>>);

#[derive(Debug)]
struct CachedAnswer {
    method: Box<str>,
    params: Box<str>,
    result: RawJson,
    fresh_until: Instant,
}

impl CachedAnswer {
    fn size(&self) -> usize {
        self.method.len() + self.params.len() + self.result.get().len()
    }
}

impl Freshness {
    /// A fresh answer to exactly this request.
    pub(super) fn get(&self, method: &str, params: &RawValue) -> Option<RawJson> {
        if !is_kept(method) {
            return None;
        }
        let now = Instant::now();
        let mut entries = lock(&self.0);
        entries.retain(|entry| entry.fresh_until > now);
        let place = entries
            .iter()
            .position(|entry| *entry.method == *method && *entry.params == *params.get())?;
        let entry = entries.remove(place)?;
        let result = entry.result.clone();
        entries.push_back(entry);
        Some(result)
    }

    /// Keeps an answer for as long as it says. Only for one that answers the request itself: what
    /// took rounds of input depends on more than the request.
    pub(super) fn put(&self, method: &str, params: &RawValue, result: &RawJson) {
        if !is_kept(method) || result.get().len() > LARGEST {
            return;
        }
        let Some(ttl) = time_to_live(result) else {
            return;
        };
        let mut entries = lock(&self.0);
        entries.retain(|entry| *entry.method != *method || *entry.params != *params.get());
        let mut room = KEPT;
        let entry = CachedAnswer {
            method: method.into(),
            params: params.get().into(),
            result: result.detached(),
            fresh_until: Instant::now() + ttl,
        };
        let mut fits = |entry: &CachedAnswer| room.take(entry.size()).is_ok();
        if !fits(&entry) {
            return;
        }
        // From the newest on, as many as there is room for.
        let kept = entries.iter().rev().take_while(|entry| fits(entry)).count();
        let gone = entries.len() - kept;
        entries.drain(..gone);
        entries.push_back(entry);
    }

    /// The server said that this resource changed.
    pub(super) fn forget_resource(&self, uri: &str) {
        lock(&self.0).retain(|entry| {
            let params: Value = serde_json::from_str(&entry.params).unwrap_or_default();
            params["uri"] != uri
        });
    }
}

/// Whether answers to this method are kept. Lists are not: the catalogue holds each of them once,
/// as long as its connection stands.
fn is_kept(name: &str) -> bool {
    name == method::RESOURCES_READ
}

/// For how long a result is fresh; `None` for one that is stale at once.
fn time_to_live(result: &RawJson) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Hints {
        #[serde(default, rename = "ttlMs")]
        ttl_ms: Value,
    }
    let hints: Hints = serde_json::from_str(result.get()).ok()?;
    lifetime(hints.ttl_ms.as_u64())
}

/// What a `ttlMs` means: absent and nought say nothing, and nothing is for ever.
pub(crate) fn lifetime(ttl_ms: Option<u64>) -> Option<Duration> {
    ttl_ms
        .filter(|ttl| *ttl > 0)
        .map(|ttl| Duration::from_millis(ttl).min(LONGEST))
}

/// The wait, and up to a quarter more, so that many who wait for the same do not ask at once.
pub(crate) fn spread(wait: Duration) -> Duration {
    // Each state is seeded anew, which is all the chance that is needed here.
    let chance = RandomState::new().hash_one(()) % 1024;
    let share = u32::try_from(chance).unwrap_or_default();
    wait + wait / 4 * share / 1024
}

#[cfg(test)]
mod tests;
