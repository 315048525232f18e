//! The keychains of macOS and Windows, and what stands in for one where none is known.
//!
//! Owns what an entry is filed under. They open a window of their own where one is needed.

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use toolway_types::Secret;

use super::{KeychainError, SERVICE, VaultKey, no_text};

/// An open keychain.
pub(super) struct NativeKeychain(Arc<CredentialStore>);

impl NativeKeychain {
    #[cfg(target_os = "macos")]
    pub(super) fn new() -> Result<Self, KeychainError> {
        let store = apple_native_keyring_store::keychain::Store::new();
        Ok(Self(store.map_err(|error| super::absent(&error))?))
    }

    #[cfg(target_os = "windows")]
    pub(super) fn new() -> Result<Self, KeychainError> {
        let store = windows_native_keyring_store::Store::new();
        Ok(Self(store.map_err(|error| super::absent(&error))?))
    }

    #[cfg(not(any(target_os = "macos", target_os = "windows")))]
    pub(super) fn new() -> Result<Self, KeychainError> {
        Err(KeychainError::Absent {
            why: "none is known for this system".to_owned(),
        })
    }

    pub(super) fn require_unlocked(&self) -> Result<(), KeychainError> {
        Ok(())
    }

    pub(super) fn read(&self, key: &VaultKey) -> Result<Option<Secret>, KeychainError> {
        match self.entry(key)?.get_password() {
            Ok(secret) => Ok(Some(Secret::new(secret))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(trouble(&error)),
        }
    }

    pub(super) fn write(&self, key: &VaultKey, secret: &Secret) -> Result<(), KeychainError> {
        let set = self.entry(key)?.set_password(secret.expose());
        set.map_err(|error| trouble(&error))
    }

    pub(super) fn remove(&self, key: &VaultKey) -> Result<(), KeychainError> {
        match self.entry(key)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(trouble(&error)),
        }
    }

    fn entry(&self, key: &VaultKey) -> Result<Entry, KeychainError> {
        let built = self.0.build(SERVICE, &key.id(), None);
        built.map_err(|error| trouble(&error))
    }
}

/// Errors of keychains name attributes, never contents; the two that hold contents do not show
/// them.
fn trouble(error: &Error) -> KeychainError {
    match error {
        Error::NoStorageAccess(_) => KeychainError::Locked,
        Error::BadEncoding(_) | Error::BadDataFormat(..) => no_text(),
        error => KeychainError::Refused {
            why: error.to_string(),
        },
    }
}
