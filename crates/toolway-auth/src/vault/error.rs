//! Why the vault could not do what it was asked.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{KeychainError, LONGEST, VaultKey};

/// Why the vault could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The keychain does not give it, or does not take it.
    #[error("{what} is in the keychain: {trouble}")]
    Keychain {
        /// What it was about.
        what: String,
        /// What is the matter.
        trouble: KeychainError,
    },
    /// Nothing but the keychain may be used, and it cannot be.
    #[error("{what} cannot be saved: {trouble}; or allow the encrypted file")]
    NowhereToWrite {
        /// What it was about.
        what: String,
        /// What is the matter.
        trouble: KeychainError,
    },
    /// A file does not hold what it should.
    #[error("`{}` was damaged and {what} is lost; it is kept as `{}`; log in or set it again", path.display(), aside.display())]
    Corrupt {
        /// What it was about.
        what: String,
        /// The file.
        path: PathBuf,
        /// What it is called now.
        aside: PathBuf,
    },
    /// The key of sealed files is gone, or is another one.
    #[error("{what} is sealed with a key that is not in `{}`: put the right file back, or log in or set it again", path.display())]
    WrongKey {
        /// What it was about.
        what: String,
        /// Where the key should be.
        path: PathBuf,
    },
    /// A passphrase is needed and there is none, or another one.
    #[error("{what} is sealed with a passphrase, and TOOLWAY_VAULT_KEY {}", if *.given { "is another one" } else { "is not set" })]
    Passphrase {
        /// What it was about.
        what: String,
        /// One was handed in.
        given: bool,
    },
    /// Another process did not come to an end.
    #[error("another process has been busy with {what} for {after:?}; end it, or try again later")]
    Busy {
        /// What it was about.
        what: String,
        /// How long was waited.
        after: Duration,
    },
    /// It is larger than anything that is kept.
    #[error("{what} is longer than {LONGEST} bytes")]
    TooLong {
        /// What it was about.
        what: String,
    },
    /// A file cannot be read or written.
    #[error("`{}` cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

pub(super) fn in_keychain(key: &VaultKey, trouble: KeychainError) -> VaultError {
    VaultError::Keychain {
        what: key.to_string(),
        trouble,
    }
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> VaultError + '_ {
    move |source| VaultError::Io {
        path: path.to_owned(),
        source,
    }
}
