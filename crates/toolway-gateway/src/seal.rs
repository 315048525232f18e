//! Values that leave the gateway and come back from a client, sealed.
//!
//! Owns their form, what they are bound to, and when they are over. A sealed value is encrypted and
//! authenticated: a client can neither read nor change it, nor use it as another principal, for
//! another purpose, with another request, or too late. Where the keys come from is in [`ring`].
//! Does not own what is sealed, and keeps nothing: every instance with the same keys opens it.
//!
//! The bytes, before base64: the version of the form (1), the mark of the key (1), the nonce (24),
//! and, encrypted, the end of its time (5) and the content, with a tag (16). What it is bound to is
//! hashed into the tag and stands nowhere in it.

mod ring;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead as _, AeadInOut as _, Payload};
use sha2::{Digest as _, Sha256};
use toolway_types::limits;

use self::ring::SealKey;

/// The largest content of a sealed value.
pub const MAX_SEALED: usize = limits::gateway::SEALED;

/// The first byte. No bit of it is random, so no sealed value looks like an option of a command.
const VERSION: u8 = 1;
const NONCE: usize = 24;
const TAG: usize = 16;
const EXPIRY: usize = 5;
/// What stands in front of what is encrypted.
const HEAD: usize = 2 + NONCE;

/// What a sealed value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealPurpose {
    /// `requestState` around that of a server.
    RequestState,
    /// The handle of a call that waits for input of its client.
    ParkedCall,
    /// The id of a task.
    Task,
    /// The place in a list.
    Cursor,
}

impl SealPurpose {
    /// Values that clients hold were made with this number: it never changes.
    fn number(self) -> u8 {
        match self {
            Self::RequestState => 1,
            Self::ParkedCall => 2,
            Self::Task => 3,
            Self::Cursor => 4,
        }
    }
}

/// What a sealed value is bound to: it opens for exactly the same.
#[derive(Debug, Clone, Copy)]
pub struct SealBinding<'a> {
    /// What it is for.
    pub purpose: SealPurpose,
    /// Whom it was given to.
    pub principal: &'a str,
    /// What it must come back with; empty where it may come with any request.
    pub request: &'a [u8],
}

impl SealBinding<'_> {
    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(b"toolway-seal");
        digest.update([VERSION, self.purpose.number()]);
        // With its length, so that no two bindings run together.
        digest.update((self.principal.len() as u64).to_be_bytes());
        digest.update(self.principal);
        digest.update(self.request);
        digest.finalize().into()
    }
}

/// Why nothing was sealed or opened. The messages tell a client nothing that it may not know.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Changed, made by another gateway, or for another principal, purpose or request: which of
    /// these is not told.
    #[error("this value was not given out for this request")]
    Refused,
    /// It was genuine, and its time is over.
    #[error("this value has expired")]
    Expired,
    /// The content is larger than [`MAX_SEALED`].
    #[error("a value of {size} bytes is too large to be sealed: at most {MAX_SEALED}")]
    TooLarge {
        /// Its size.
        size: usize,
    },
    /// The system gave no random bytes.
    #[error("the system has no random bytes: {0}")]
    NoRandom(getrandom::Error),
    /// The file of keys cannot be used.
    #[error("the seal keys in `{}` cannot be used: {source}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
}

/// What time it is, for the end of a value's time: a clock that all instances share.
pub type SealClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The keys that seal and open: one seals, and older ones still open what they sealed.
#[derive(Clone)]
pub struct SealKeys {
    /// Never empty; the first one seals.
    keys: Arc<[SealKey]>,
    clock: SealClock,
}

impl SealKeys {
    fn of(keys: Vec<SealKey>) -> Self {
        Self {
            keys: keys.into(),
            clock: Arc::new(SystemTime::now),
        }
    }

    /// The same keys, with another clock.
    #[must_use]
    pub fn with_clock(self, clock: SealClock) -> Self {
        Self { clock, ..self }
    }

    /// Seals `content` for a time. The text has only characters of URLs (`A-Z a-z 0-9 - _`), begins
    /// with a letter, and is 63 characters longer than the content in base64.
    pub fn seal(
        &self,
        binding: &SealBinding<'_>,
        lasts: Duration,
        content: &[u8],
    ) -> Result<String, SealError> {
        let size = content.len();
        if size > MAX_SEALED {
            return Err(SealError::TooLarge { size });
        }
        // There is always one.
        let key = self.keys.first().ok_or(SealError::Refused)?;
        let mut sealed = Vec::with_capacity(HEAD + EXPIRY + size + TAG);
        sealed.extend_from_slice(&[VERSION, key.mark]);
        let mut nonce = [0; NONCE];
        // Random nonces of this length never meet.
        getrandom::fill(&mut nonce).map_err(SealError::NoRandom)?;
        sealed.extend_from_slice(&nonce);
        let until = self.now().saturating_add(lasts);
        sealed.extend_from_slice(&expiry(until));
        sealed.extend_from_slice(content);
        let (_, open) = sealed.split_at_mut(HEAD);
        let tag = key
            .cipher
            .encrypt_inout_detached(&XNonce::from(nonce), &binding.digest(), open.into())
            .map_err(|_| SealError::TooLarge { size })?;
        sealed.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens what [`Self::seal`] made with these keys for the same binding.
    pub fn open(&self, binding: &SealBinding<'_>, sealed: &str) -> Result<Vec<u8>, SealError> {
        // Nothing of this length was ever sealed; do not even decode it.
        if sealed.len() > (HEAD + EXPIRY + MAX_SEALED + TAG).div_ceil(3) * 4 {
            return Err(SealError::Refused);
        }
        let sealed = URL_SAFE_NO_PAD
            .decode(sealed)
            .map_err(|_| SealError::Refused)?;
        let [VERSION, mark, rest @ ..] = sealed.as_slice() else {
            return Err(SealError::Refused);
        };
        let (nonce, encrypted) = rest
            .split_first_chunk::<NONCE>()
            .ok_or(SealError::Refused)?;
        let (nonce, digest) = (XNonce::from(*nonce), binding.digest());
        let mut opened = self
            .keys
            .iter()
            .filter(|key| key.mark == *mark)
            .find_map(|key| {
                let (msg, aad) = (encrypted, digest.as_slice());
                key.cipher.decrypt(&nonce, Payload { msg, aad }).ok()
            })
            .ok_or(SealError::Refused)?;
        let until = opened.first_chunk::<EXPIRY>().ok_or(SealError::Refused)?;
        if seconds(*until) <= self.now().as_secs() {
            return Err(SealError::Expired);
        }
        opened.drain(..EXPIRY);
        Ok(opened)
    }

    /// Since 1970.
    fn now(&self) -> Duration {
        let since = (self.clock)().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default()
    }
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SealKeys")
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

/// Seconds in five bytes, which last for 34,000 years. A part of a second counts as one: nothing ends
/// before its time.
fn expiry(until: Duration) -> [u8; EXPIRY] {
    let seconds = until
        .as_secs()
        .saturating_add(u64::from(until.subsec_nanos() > 0));
    let [_, _, _, rest @ ..] = seconds.min((1 << (8 * EXPIRY)) - 1).to_be_bytes();
    rest
}

fn seconds(expiry: [u8; EXPIRY]) -> u64 {
    expiry
        .iter()
        .fold(0, |seconds, byte| seconds << 8 | u64::from(*byte))
}
