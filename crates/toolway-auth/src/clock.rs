//! The time as tokens and what is kept about logins tell it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn unix_now() -> u64 {
    unix(SystemTime::now())
}

pub(crate) fn unix(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
