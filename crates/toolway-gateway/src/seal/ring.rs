//! The keys of seals: made at random, or kept in a file that instances share.
//!
//! Owns the file. It has one key for each line, 32 bytes in hexadecimal digits; the first seals,
//! those below it only open. To change keys, put a new line first, restart every instance, and take
//! the last line away when everything that it sealed is over. While instances with the old and the
//! new file run side by side, put the new key second first: then all of them can open it already.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use rustix::fs::{CWD, fstat};
use sha2::{Digest as _, Sha256};
use toolway_files::private_file::open_own;
use toolway_files::state_file::replace_within;

use super::{SealError, SealKeys};

/// More keys than anybody has who changes them now and then.
const MAX_KEYS: usize = 16;
const MAX_FILE: u64 = 4096;
/// How long is waited for another instance that makes the file.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct SealKey {
    pub(super) cipher: XChaCha20Poly1305,
    /// Which key to try; tells nothing about it.
    pub(super) mark: u8,
}

impl SealKey {
    fn new(bytes: [u8; 32]) -> Self {
        let [mark, ..] = <[u8; 32]>::from(
            Sha256::new()
                .chain_update(b"toolway-seal-mark")
                .chain_update(bytes)
                .finalize(),
        );
        Self {
            cipher: XChaCha20Poly1305::new(&bytes.into()),
            mark,
        }
    }
}

impl SealKeys {
    /// One key that no other instance has, and that ends with this one.
    pub fn random() -> Result<Self, SealError> {
        Ok(Self::of(vec![SealKey::new(random_bytes()?)]))
    }

    /// The keys in a private file. One that is absent is made, with one random key: by one instance
    /// only, however many begin at a time.
    pub fn load_or_create(path: &Path) -> Result<Self, SealError> {
        let fault = |source| SealError::KeyFile {
            path: path.to_owned(),
            source,
        };
        let text = match read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = hex::encode(random_bytes()?) + "\n";
                create(path, made).and_then(|()| read(path))
            }
            other => other,
        };
        let keys = text.and_then(|text| keys(&text)).map_err(fault)?;
        Ok(Self::of(keys))
    }
}

fn random_bytes() -> Result<[u8; 32], SealError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(SealError::NoRandom)?;
    Ok(bytes)
}

fn create(path: &Path, text: String) -> io::Result<()> {
    replace_within(path, LOCK_PATIENCE, || match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(text)),
        // Another instance was faster.
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    })
}

fn read(path: &Path) -> io::Result<String> {
    let file = open_own(CWD, path)?;
    // A key that others could read may be theirs too: closing the file now would not help.
    if fstat(&file)?.st_mode & 0o077 != 0 {
        return Err(io::Error::other(
            "others may read it; after `chmod 600`, put a new key in it",
        ));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn keys(text: &str) -> io::Result<Vec<SealKey>> {
    let mut keys = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let mut bytes = [0; 32];
        if keys.len() == MAX_KEYS || hex::decode_to_slice(line, &mut bytes).is_err() {
            // Without the line itself: it may be a key with one digit too many.
            let wrong = format!(
                "line {} should be one of at most {MAX_KEYS} keys, each 64 hexadecimal digits",
                place + 1
            );
            return Err(io::Error::other(wrong));
        }
        keys.push(SealKey::new(bytes));
    }
    if keys.is_empty() {
        return Err(io::Error::other("it has no key"));
    }
    Ok(keys)
}
