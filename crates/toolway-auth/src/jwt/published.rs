//! The keys of an issuer as it publishes them now, and for how long that holds.

use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::KeySet;
use crate::clock::{unix, unix_now};
use crate::web::{self, WebClient, WebError};

/// How long keys are good without another look.
pub(crate) const KEEP: Duration = Duration::from_hours(1);
/// How often a key that is not among them is worth another look: issuers change their keys, but a
/// token must not make us ask without end.
pub(crate) const PAUSE: Duration = Duration::from_mins(1);

/// Keys as last seen, and the issuer's clock then.
pub(crate) struct PublishedKeys {
    pub(crate) keys: KeySet,
    seen: Instant,
    /// How far its clock is ahead of ours, in seconds.
    pub(crate) ahead: i64,
}

impl PublishedKeys {
    /// Asks for them.
    pub(crate) async fn fetch(web: &WebClient, place: &Url) -> Result<Self, WebError> {
        let reply = web.get(place).await?;
        if !reply.is_success() {
            return Err(WebError::Status {
                url: web::shown(place),
                status: reply.status,
            });
        }
        let ahead = reply.date().map_or(0, |date| {
            let ours = i64::try_from(unix_now()).unwrap_or(i64::MAX);
            let theirs = i64::try_from(unix(date)).unwrap_or(i64::MAX);
            theirs.saturating_sub(ours)
        });
        Ok(Self {
            keys: KeySet::read(&reply.object()?),
            seen: Instant::now(),
            ahead,
        })
    }

    /// How long ago they were seen.
    pub(crate) fn age(&self) -> Duration {
        self.seen.elapsed()
    }
}
