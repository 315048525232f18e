//! The vault: secrets by key, in the system's keychain or in a file of our own.
//!
//! Owns where a secret lies (in one place only) and that it is never lost silently: what stands in
//! the keychain is read from there or the reading fails. Opening never waits.
//! Does not own: what a secret means. Logins are `logins.rs`.

mod backend;
mod changes;
mod error;
pub mod export;
mod file;
mod index;
mod key;
mod keychain;
mod lock;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use toolway_types::{Secret, limits};
use tracing::warn;

use changes::VaultChanges;
use error::{in_keychain, io_error};
use file::SealedFiles;
use index::{IndexLookup, VaultIndex};
use keychain::Keychain;
use lock::VaultLocks;

pub use backend::{StorageChoice, VaultBackend, VaultOptions};
pub use error::VaultError;
pub use key::{SecretKind, VaultKey};
pub use keychain::KeychainError;
pub use lock::VaultLockGuard;

/// The longest secret that is kept, in bytes. Tokens are a few kilobytes.
const LONGEST: usize = limits::login::SECRET;

/// Something that is in the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultEntry {
    /// What it is found by.
    #[serde(flatten)]
    pub key: VaultKey,
    /// When it was saved, in seconds since 1970.
    pub saved_at: u64,
    /// Where it lies.
    pub backend: VaultBackend,
}

/// Secrets by key. Cheap to clone; all clones are the same vault.
#[derive(Clone)]
pub struct Vault {
    inner: Arc<VaultInner>,
}

struct VaultInner {
    options: VaultOptions,
    keychain: Option<Keychain>,
    sealed: SealedFiles,
    index: VaultIndex,
    locks: VaultLocks,
    changes: VaultChanges,
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
        let keychain =
            (options.storage != StorageChoice::File).then(|| Keychain::new(options.probe));
        let inner = VaultInner {
            keychain,
            sealed: SealedFiles::new(folder, options.passphrase.clone(), options.insecure),
            index: VaultIndex::new(folder),
            locks: VaultLocks::new(folder.join("locks")),
            changes: VaultChanges::new(folder.join(index::FILE)),
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

    /// Whether nothing was ever put into it. Costs one look at a file, and asks no keychain.
    pub fn is_unused(&self) -> bool {
        let index = self.folder().join(index::FILE).symlink_metadata();
        index.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Where something would be saved now.
    pub async fn backend(&self) -> VaultBackend {
        match &self.inner.keychain {
            _ if self.inner.is_plain() => self.inner.sealed.backend(),
            Some(keychain) if keychain.ready().await.is_ok() => VaultBackend::Keychain,
            Some(_) if self.inner.options.storage == StorageChoice::Keychain => {
                VaultBackend::Keychain
            }
            _ => self.inner.sealed.backend(),
        }
    }

    /// Why the keychain is not used although it may be.
    pub async fn keychain_trouble(&self) -> Option<KeychainError> {
        self.inner.keychain.as_ref()?.ready().await.err()
    }

    /// Reads a secret.
    pub async fn read(&self, key: &VaultKey) -> Result<Option<Secret>, VaultError> {
        let inner = &self.inner;
        let seen = self.find(key).await?;
        let in_file = match seen.backend {
            Some(VaultBackend::Keychain) => false,
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
            (None, Some(_)) => Err(in_keychain(key, KeychainError::NotAllowed)),
            // The list was lost once, so what it does not name may be there all the same.
            (Some(keychain), None) if seen.is_rebuilt => {
                Ok(keychain.read(key).await.ok().flatten())
            }
            _ => Ok(None),
        }
    }

    /// Saves a secret. When this returns without an error it is on the disk.
    pub async fn write(&self, key: &VaultKey, secret: &Secret) -> Result<(), VaultError> {
        if secret.expose().len() > LONGEST {
            return Err(VaultError::TooLong {
                what: key.to_string(),
            });
        }
        let inner = &self.inner;
        let kept = match &inner.keychain {
            Some(keychain) if !inner.is_plain() => keychain.write(key, secret).await,
            _ => Err(KeychainError::NotAllowed),
        };
        let backend = match kept {
            Ok(()) => {
                inner.sealed.forget(&key.id());
                VaultBackend::Keychain
            }
            Err(trouble) if inner.options.storage == StorageChoice::Keychain => {
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
        if before == Some(VaultBackend::Keychain)
            && backend != VaultBackend::Keychain
            && let Some(keychain) = &inner.keychain
            && let Err(trouble) = keychain.remove(&key).await
        {
            // The list says where the right one is, so the old one is only untidy.
            warn!(%key, %trouble, "an older secret stays in the keychain");
        }
        Ok(())
    }

    /// Removes a secret. One that is not there is no error.
    pub async fn remove(&self, key: &VaultKey) -> Result<bool, VaultError> {
        let inner = &self.inner;
        let seen = self.find(key).await?;
        if seen.backend == Some(VaultBackend::Keychain) {
            let removed = match &inner.keychain {
                Some(keychain) => keychain.remove(key).await,
                None => Err(KeychainError::NotAllowed),
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
    pub async fn list(&self) -> Result<Vec<VaultEntry>, VaultError> {
        self.blocking(|inner| inner.index.list(&inner.sealed)).await
    }

    /// Waits for the lock of this key, among all tasks and processes, first come first served.
    pub async fn lock(&self, key: &VaultKey) -> Result<VaultLockGuard, VaultError> {
        self.inner.locks.take(key, lock::LOCK_TIMEOUT).await
    }

    /// As [`Vault::lock`], with another time limit.
    pub async fn lock_within(
        &self,
        key: &VaultKey,
        patience: Duration,
    ) -> Result<VaultLockGuard, VaultError> {
        self.inner.locks.take(key, patience).await
    }

    /// Counts up whenever something was saved or removed, by any process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    async fn find(&self, key: &VaultKey) -> Result<IndexLookup, VaultError> {
        let key = key.clone();
        let found = self.blocking(move |inner| inner.index.find(&inner.sealed, &key));
        found.await
    }

    /// Files may lie on a disk that does not answer.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&VaultInner) -> Result<T, VaultError> + Send + 'static,
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

impl VaultInner {
    /// Nothing that is saved is protected, because a user said so.
    fn is_plain(&self) -> bool {
        self.options.insecure && self.options.storage != StorageChoice::Keychain
    }

    fn read_file(&self, key: &VaultKey) -> Result<Option<Secret>, VaultError> {
        let read = self.sealed.read(key);
        if let Err(VaultError::Corrupt { .. }) = &read {
            // What is kept aside is no longer in the vault.
            self.index.remove(&self.sealed, key)?;
        }
        read
    }
}
