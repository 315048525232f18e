//! The note on the disk that a refresh token is about to be sent.
//!
//! Owns its path and its content. A later process that finds it knows that the token may be spent.
//! Holds a digest only. Best effort: without it a login works all the same, and its end is
//! explained less well.
//! Does not own: what follows from it (`refresh.rs`).

use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use toolway_files::private_file::open_directory;
use toolway_files::state_file;
use toolway_types::Secret;
use tracing::debug;

use crate::logins::{Login, Logins};

/// A note about one refresh token.
pub(super) struct RefreshIntent {
    path: PathBuf,
    digest: String,
}

/// A word behind the digest: it was sent a second time.
const REPEATED: &str = " again";

impl RefreshIntent {
    pub(super) fn of(logins: &Logins, login: &Login) -> Self {
        let folder = logins.vault().folder().join("intents");
        let token = login.tokens.refresh.as_ref().map_or("", Secret::expose);
        let digest = Sha256::digest(["intent ", token].concat());
        Self {
            path: folder.join(login.key().id()),
            digest: hex::encode(&digest[..16]),
        }
    }

    fn read(&self) -> String {
        state_file::read(&self.path, 256).unwrap_or_default()
    }

    pub(super) fn is_noted(&self) -> bool {
        self.read().starts_with(&self.digest)
    }

    pub(super) fn is_repeated(&self) -> bool {
        let text = self.read();
        text.strip_prefix(&self.digest) == Some(REPEATED)
    }

    pub(super) fn note(&self) {
        let text = if self.is_noted() {
            format!("{}{REPEATED}", self.digest)
        } else {
            self.digest.clone()
        };
        self.write(text);
    }

    pub(super) fn repeat(&self) {
        self.write(format!("{}{REPEATED}", self.digest));
    }

    fn write(&self, text: String) {
        let folder = self.path.parent().map(open_directory);
        let written = folder.transpose().and_then(|_| {
            state_file::replace_within(&self.path, Duration::from_secs(2), || Ok(Some(text)))
        });
        if let Err(error) = written {
            debug!(%error, "no note of the renewal was left");
        }
    }

    pub(super) fn clear(&self) {
        // One that is not there is fine, and one that stays is about a token that is spent.
        let _ = std::fs::remove_file(&self.path);
    }
}
