//! The vault: secrets by key, in the system's keychain or in a file of our own.
//!
//! Owns where a secret lies and that it is never lost silently. The keychain is
//! `vault/keychain.rs`, the sealed file `vault/file.rs`, the list of what there is
//! `vault/index.rs`, taking turns `vault/lock.rs`, and hearing of others `vault/changes.rs`.
//! Does not own: what a secret means. Logins are `logins.rs`.
//!
//! Invariants: opening never waits. What stands in the keychain is read from the keychain or the
//! reading fails; it never looks as if there had been nothing. A secret lies in one place only.

mod changes;
pub mod export;
mod file;
mod index;
mod keychain;
mod lock;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use toolway_types::Secret;
use tracing::warn;

use changes::Changes;
use file::Sealed;
use index::Index;
use keychain::Keychain;
use lock::Locks;

pub use keychain::KeychainTrouble;
pub use lock::Guard;

/// The longest secret that is kept, in bytes. Tokens are a few kilobytes.
const LONGEST: usize = 1024 * 1024;

/// What a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The tokens of a login at a server.
    Login,
    /// A client that was registered at an authorization server.
    Client,
    /// A login at an identity provider.
    Identity,
    /// A login at a provider of connectors.
    Account,
    /// Something a person put there under a name, for `${keychain:name}`.
    Named,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Client => "client",
            Self::Identity => "identity",
            Self::Account => "account",
            Self::Named => "named",
        }
    }
}

/// What a secret is found by. None of it is secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// The server's name.
    pub server: String,
    /// The digest of the server's definition: another definition under the same name is another
    /// server.
    pub definition: String,
    /// The authorization server that gave it.
    pub issuer: String,
    /// The resource it is for.
    pub resource: String,
    /// The person's word for the account, or the name of a named secret.
    pub account: String,
}

impl Key {
    /// The key of something a person put there under a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            kind: Kind::Named,
            server: String::new(),
            definition: String::new(),
            issuer: String::new(),
            resource: String::new(),
            account: name.into(),
        }
    }

    /// What it is called where a name must be short, plain and the same for ever.
    pub(crate) fn id(&self) -> String {
        let parts = [
            self.kind.as_str(),
            &self.server,
            &self.definition,
            &self.issuer,
            &self.resource,
            &self.account,
        ];
        let mut digest = Sha256::new();
        for part in parts {
            // With its length, so that no two keys run together.
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        hex::encode(&digest.finalize()[..16])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Named => write!(formatter, "the secret `{}`", self.account),
            Kind::Login => write!(formatter, "the login of `{}`", self.server),
            Kind::Client => write!(formatter, "the client for `{}`", self.issuer),
            Kind::Identity => write!(formatter, "the identity of `{}`", self.issuer),
            Kind::Account => write!(formatter, "the account `{}`", self.account),
        }
    }
}

/// Where secrets lie, with what protects them there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The keychain of the system: what unlocks the person's session unlocks it.
    Keychain,
    /// A file sealed with a key that lies next to it. Protects against copying the one file, not
    /// against someone who can read the person's home.
    FileWithKey,
    /// A file sealed with a passphrase that is handed in at every start. As good as the passphrase.
    FileWithPassphrase,
    /// A file that anyone can read who can read the person's home.
    PlainFile,
}

impl Backend {
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
pub enum Storage {
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
    pub storage: Storage,
    /// What the file is sealed with; without it, a random key in a file of its own.
    pub passphrase: Option<Secret>,
    /// The file is not sealed at all. Only when a person asked for it and no policy forbids it.
    pub insecure: bool,
    /// How long the keychain has to answer for the first time.
    pub probe: Duration,
}

impl VaultOptions {
    /// The usual: keychain first, then a file below `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            storage: Storage::Any,
            passphrase: None,
            insecure: false,
            probe: Duration::from_secs(3),
        }
    }
}

/// Something that is in the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it is found by.
    pub key: Key,
    /// When it was saved, in seconds since 1970.
    pub saved_at: u64,
    /// Where it lies.
    pub backend: Backend,
}

/// Why the vault could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The keychain does not give it, or does not take it.
    #[error("{what} is in the keychain: {trouble}")]
    Keychain {
        /// What it was about.
        what: String,
        /// What is the matter.
        trouble: KeychainTrouble,
    },
    /// Nothing but the keychain may be used, and it cannot be.
    #[error("{what} cannot be saved: {trouble}; or allow the encrypted file")]
    NowhereToWrite {
        /// What it was about.
        what: String,
        /// What is the matter.
        trouble: KeychainTrouble,
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

/// Secrets by key. Cheap to clone; all clones are the same vault.
#[derive(Clone)]
pub struct Vault {
    inner: Arc<Inner>,
}

struct Inner {
    options: VaultOptions,
    keychain: Option<Keychain>,
    sealed: Sealed,
    index: Index,
    locks: Locks,
    changes: Changes,
}

impl fmt::Debug for Vault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Vault")
            .field("folder", &self.inner.options.folder)
            .field("storage", &self.inner.options.storage)
            .finish_non_exhaustive()
    }
}

impl Vault {
    /// Opens a vault. This waits for nothing; the keychain is asked on a thread of its own, when it
    /// is needed for the first time.
    pub fn open(options: VaultOptions) -> Self {
        let folder = &options.folder;
        let keychain = (options.storage != Storage::File).then(|| Keychain::new(options.probe));
        let inner = Inner {
            keychain,
            sealed: Sealed::new(folder, options.passphrase.clone(), options.insecure),
            index: Index::new(folder),
            locks: Locks::new(folder.join("locks")),
            changes: Changes::new(folder.join(index::FILE)),
            options,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.inner.options.folder
    }

    /// Where something would be saved now.
    pub async fn backend(&self) -> Backend {
        match &self.inner.keychain {
            Some(keychain) if keychain.ready().await.is_ok() => Backend::Keychain,
            Some(_) if self.inner.options.storage == Storage::Keychain => Backend::Keychain,
            _ => self.inner.sealed.backend(),
        }
    }

    /// Why the keychain is not used although it may be.
    pub async fn keychain_trouble(&self) -> Option<KeychainTrouble> {
        self.inner.keychain.as_ref()?.ready().await.err()
    }

    /// Reads a secret.
    pub async fn read(&self, key: &Key) -> Result<Option<Secret>, VaultError> {
        let inner = &self.inner;
        let seen = self.blocking({
            let key = key.clone();
            move |inner| inner.index.find(&inner.sealed, &key)
        });
        let seen = seen.await?;
        let in_file = match seen.backend {
            Some(Backend::Keychain) => false,
            Some(_) => true,
            // A process may have died between the secret and the list.
            None => inner.sealed.holds(&key.id()),
        };
        if in_file {
            let key = key.clone();
            return self.blocking(move |inner| inner.read_file(&key)).await;
        }
        match (&inner.keychain, seen.backend) {
            (Some(keychain), Some(_)) => keychain
                .read(key)
                .await
                .map_err(|trouble| in_keychain(key, trouble)),
            (None, Some(_)) => Err(in_keychain(key, KeychainTrouble::NotAllowed)),
            // The list was lost once, so what it does not name may be there all the same.
            (Some(keychain), None) if seen.is_rebuilt => {
                Ok(keychain.read(key).await.ok().flatten())
            }
            _ => Ok(None),
        }
    }

    /// Saves a secret. When this returns without an error it is on the disk.
    pub async fn write(&self, key: &Key, secret: &Secret) -> Result<(), VaultError> {
        if secret.expose().len() > LONGEST {
            return Err(VaultError::TooLong {
                what: key.to_string(),
            });
        }
        let inner = &self.inner;
        let kept = match &inner.keychain {
            Some(keychain) => keychain.write(key, secret).await,
            None => Err(KeychainTrouble::NotAllowed),
        };
        let backend = match kept {
            Ok(()) => {
                inner.sealed.forget(&key.id());
                Backend::Keychain
            }
            Err(trouble) if inner.options.storage == Storage::Keychain => {
                let what = key.to_string();
                return Err(VaultError::NowhereToWrite { what, trouble });
            }
            Err(_) => {
                let (key, secret) = (key.clone(), secret.clone());
                let written = self.blocking(move |inner| inner.sealed.write(&key, &secret));
                written.await?
            }
        };
        let key = key.clone();
        let before = self.blocking(move |inner| inner.index.add(&inner.sealed, &key, backend));
        let (before, key) = before.await?;
        if before == Some(Backend::Keychain)
            && backend != Backend::Keychain
            && let Some(keychain) = &inner.keychain
            && let Err(trouble) = keychain.remove(&key).await
        {
            // The list says where the right one is, so the old one is only untidy.
            warn!(%key, %trouble, "an older secret stays in the keychain");
        }
        Ok(())
    }

    /// Removes a secret. One that is not there is no error.
    pub async fn remove(&self, key: &Key) -> Result<bool, VaultError> {
        let inner = &self.inner;
        let wanted = key.clone();
        let seen = self.blocking(move |inner| inner.index.find(&inner.sealed, &wanted));
        let seen = seen.await?;
        if seen.backend == Some(Backend::Keychain) {
            let removed = match &inner.keychain {
                Some(keychain) => keychain.remove(key).await,
                None => Err(KeychainTrouble::NotAllowed),
            };
            removed.map_err(|trouble| in_keychain(key, trouble))?;
        }
        let in_file = inner.sealed.forget(&key.id());
        let key = key.clone();
        let removing = self.blocking(move |inner| inner.index.remove(&inner.sealed, &key));
        removing.await?;
        Ok(in_file || seen.backend.is_some())
    }

    /// What there is, without any secret, in order.
    pub async fn list(&self) -> Result<Vec<Listed>, VaultError> {
        self.blocking(|inner| inner.index.list(&inner.sealed)).await
    }

    /// Waits until nobody else is busy with this key, in this process and in all others, in the
    /// order of asking.
    pub async fn lock(&self, key: &Key) -> Result<Guard, VaultError> {
        self.inner.locks.take(key, lock::PATIENCE).await
    }

    /// As [`Vault::lock`], with another patience.
    pub async fn lock_within(&self, key: &Key, patience: Duration) -> Result<Guard, VaultError> {
        self.inner.locks.take(key, patience).await
    }

    /// Counts up whenever something was saved or removed, by any process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Files may lie on a disk that does not answer.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|_| {
            Err(VaultError::Io {
                path: self.inner.options.folder.clone(),
                source: io::Error::other("the work was given up"),
            })
        })
    }
}

impl Inner {
    fn read_file(&self, key: &Key) -> Result<Option<Secret>, VaultError> {
        let read = self.sealed.read(key);
        if let Err(VaultError::Corrupt { .. }) = &read {
            // What is kept aside is no longer in the vault.
            self.index.remove(&self.sealed, key)?;
        }
        read
    }
}

fn in_keychain(key: &Key, trouble: KeychainTrouble) -> VaultError {
    VaultError::Keychain {
        what: key.to_string(),
        trouble,
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> VaultError + '_ {
    move |source| VaultError::Io {
        path: path.to_owned(),
        source,
    }
}
