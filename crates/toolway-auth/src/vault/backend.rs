//! The storage backends of secrets, what protects each, and the choice between them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolway_types::Secret;

/// Where secrets lie, with what protects them there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VaultBackend {
    /// The keychain of the system: what unlocks the user's session unlocks it.
    Keychain,
    /// A file sealed with a key that lies next to it. Protects against copying the one file, not
    /// against someone who can read the user's home.
    FileWithKey,
    /// A file sealed with a passphrase that is handed in at every start. As good as the passphrase.
    FileWithPassphrase,
    /// A file that anyone can read who can read the user's home.
    PlainFile,
}

impl VaultBackend {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keychain => "keychain",
            Self::FileWithKey => "file-with-key",
            Self::FileWithPassphrase => "file-with-passphrase",
            Self::PlainFile => "plain-file",
        }
    }

    /// What it protects against, in a sentence.
    pub fn protects(self) -> &'static str {
        match self {
            Self::Keychain => "the system's keychain: unlocked with your session",
            Self::FileWithKey => {
                "an encrypted file: protects against copying the one file, not against someone \
                 who can read your home"
            }
            Self::FileWithPassphrase => {
                "an encrypted file: protected by the passphrase in TOOLWAY_VAULT_KEY"
            }
            Self::PlainFile => "a plain file: not protected from anyone who can read your home",
        }
    }
}

/// Which places may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StorageChoice {
    /// The keychain, and where there is none that answers, the file.
    #[default]
    Any,
    /// The keychain or nothing.
    Keychain,
    /// The file; the keychain is not even looked for.
    File,
}

/// How to open a vault.
#[derive(Debug, Clone)]
pub struct VaultOptions {
    /// The folder of the files. It is made when it is absent, and closed to others.
    pub folder: PathBuf,
    /// Which places may be used.
    pub storage: StorageChoice,
    /// What the file is sealed with; without it, a random key in a file of its own.
    pub passphrase: Option<Secret>,
    /// Everything is written to the file, unsealed, whatever keychain there is; what was saved
    /// before is read from where it lies. Only when a user asked for it and no policy forbids it.
    /// [`StorageChoice::Keychain`] outdoes it.
    pub insecure: bool,
    /// How long the keychain has to answer for the first time.
    pub probe: Duration,
}

impl VaultOptions {
    /// The usual: keychain first, then a file below `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            storage: StorageChoice::Any,
            passphrase: None,
            insecure: false,
            probe: Duration::from_secs(3),
        }
    }
}
