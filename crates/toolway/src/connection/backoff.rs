//! When to try again: how often, after how long, and what is not tried again at all.
//!
//! Owns the numbers and the rule; pure, so that it can be tested without a server. Does not own
//! the waiting (`connection.rs`).

use std::hash::{BuildHasher as _, RandomState};
use std::io::ErrorKind;
use std::time::Duration;

use toolway_auth::references::ReferenceFault;
use toolway_transport::{CredentialsError, OpenError, SendFailure};

use crate::error::{ConnectError, RequestError};

/// How many attempts one series has.
pub(crate) const ATTEMPTS: u32 = 5;
/// The wait before the first attempt of a series that was not ordered.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait between two attempts, unless the server itself names one.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest wait that a server can ask for.
const LONGEST_ASKED: Duration = Duration::from_mins(5);
/// A connection that stood this long was a good one: the next loss starts a new series.
const STEADY: Duration = Duration::from_mins(1);

/// Whether a first connection that fails is tried again. A connection that was lost always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryFirst {
    /// It fails at once: for a program that does one thing and ends.
    #[default]
    Never,
    /// It is tried like a lost one: up to five attempts with growing pauses.
    Backoff,
}

/// The next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Its number, from 1.
    pub attempt: u32,
    /// How long to wait for it.
    pub delay: Duration,
}

/// The state of one series of attempts.
#[derive(Debug)]
pub(crate) struct Backoff {
    attempt: u32,
    /// Whether the series began with a loss, so that a success alone does not end it: a server
    /// that connects and dies at once would be started for ever.
    healing: bool,
    random: u64,
}

impl Backoff {
    /// A series that begins now.
    pub(crate) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one(std::process::id()))
    }

    fn seeded(random: u64) -> Self {
        Self {
            attempt: 1,
            healing: false,
            random,
        }
    }

    /// The attempt under way.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// A connection was ordered: a new series, whose first attempt does not wait.
    pub(crate) fn renew(&mut self) {
        self.attempt = 1;
        self.healing = false;
    }

    /// The attempt under way failed.
    pub(crate) fn failed(&mut self) -> Option<Retry> {
        if self.attempt >= ATTEMPTS {
            return None;
        }
        self.attempt += 1;
        let whole = FIRST
            .saturating_mul(1 << (self.attempt - 1).min(16))
            .min(LONGEST);
        // Half is certain and half is chance: many clients of one server that came back must not
        // come all at once.
        let half = whole / 2;
        let delay = half + half.mul_f64(self.chance());
        Some(Retry {
            attempt: self.attempt,
            delay,
        })
    }

    /// A connection that had stood for this long is gone.
    pub(crate) fn lost(&mut self, stood: Duration) -> Option<Retry> {
        if !self.healing || stood >= STEADY {
            self.attempt = 0;
        }
        self.healing = true;
        self.failed()
    }

    /// A number from 0 to 1. (`SplitMix64`: plenty for spreading waits.)
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let upper = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(upper) / f64::from(u32::MAX)
    }
}

/// Whether another attempt would end the same way, so that waiting for it is useless.
pub(crate) fn is_final(error: &ConnectError) -> bool {
    match error {
        ConnectError::Open(OpenError::Spawn { source, .. }) => {
            !matches!(
                source.kind(),
                // The machine is short of something at the moment.
                ErrorKind::WouldBlock | ErrorKind::OutOfMemory | ErrorKind::ResourceBusy
            ) && !is_exhausted(source)
        }
        ConnectError::Open(_)
        | ConnectError::NoServerObject
        | ConnectError::NeedsAuth { .. }
        | ConnectError::Version { .. }
        | ConnectError::NotStreamable { .. }
        | ConnectError::Stopped
        | ConnectError::Request {
            source: RequestError::Malformed(_),
            ..
        } => true,
        // A keychain may be unlocked, or a file mended, while we wait.
        ConnectError::Secret(error) => !matches!(error.why, ReferenceFault::Vault(_)),
        ConnectError::TimedOut { .. } | ConnectError::NotRenewed { .. } => false,
        ConnectError::Request { .. } => match error.transport_failure() {
            // Too slow, too early, too many: all of them pass.
            Some(SendFailure::Status { status, .. }) => {
                (400..500).contains(status) && !matches!(status, 408 | 425 | 429)
            }
            Some(
                SendFailure::NotMcp { .. }
                | SendFailure::Encoded { .. }
                | SendFailure::Redirected { .. }
                | SendFailure::Denied { .. }
                | SendFailure::TooLarge { .. }
                | SendFailure::Certificate { .. }
                | SendFailure::Credentials(CredentialsError::Broken(_)),
            ) => true,
            _ => false,
        },
    }
}

/// Too many open files, here or on the whole machine.
fn is_exhausted(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// The wait that the server asked for.
pub(crate) fn asked_for(error: &ConnectError) -> Duration {
    let Some(SendFailure::Status { retry_after, .. }) = error.transport_failure() else {
        return Duration::ZERO;
    };
    retry_after.unwrap_or_default().min(LONGEST_ASKED)
}

#[cfg(test)]
mod tests;
