//! The Secret Service on the session's bus: the keychain of Linux desktops.
//!
//! Owns what an item is filed under, and that nothing here opens a window: an item or a collection
//! that is locked is an error, never unlocked.

use std::collections::HashMap;

use secret_service::blocking::{Item, SecretService};
use secret_service::{EncryptionType, Error};
use toolway_types::Secret;

use super::{KeychainError, SERVICE, VaultKey, absent, no_text};

/// What a secret is stored as.
const CONTENT: &str = "application/octet-stream";

/// An open connection. What passes over the bus is sealed with a key of this session.
pub(super) struct SecretServiceKeychain(SecretService<'static>);

impl SecretServiceKeychain {
    pub(super) fn new() -> Result<Self, KeychainError> {
        let service = SecretService::connect(EncryptionType::Dh).map_err(|error| absent(&error))?;
        let open = Self(service);
        open.require_unlocked()?;
        Ok(open)
    }

    pub(super) fn require_unlocked(&self) -> Result<(), KeychainError> {
        let collection = self.0.get_default_collection();
        let collection = collection.map_err(|error| absent(&error))?;
        match collection.is_locked() {
            Ok(false) => Ok(()),
            Ok(true) => Err(KeychainError::Locked),
            Err(error) => Err(absent(&error)),
        }
    }

    pub(super) fn read(&self, key: &VaultKey) -> Result<Option<Secret>, KeychainError> {
        let Some(item) = self.item(key)? else {
            return Ok(None);
        };
        let bytes = item.get_secret().map_err(trouble)?;
        let text = String::from_utf8(bytes).map_err(|_| no_text())?;
        Ok(Some(Secret::new(text)))
    }

    pub(super) fn write(&self, key: &VaultKey, secret: &Secret) -> Result<(), KeychainError> {
        let secret = secret.expose().as_bytes();
        if let Some(item) = self.item(key)? {
            return item.set_secret(secret, CONTENT).map_err(trouble);
        }
        let id = key.id();
        let collection = self.0.get_default_collection().map_err(trouble)?;
        let label = format!("Toolway: {key}");
        let made = collection.create_item(&label, attributes(&id), secret, true, CONTENT);
        made.map(drop).map_err(trouble)
    }

    pub(super) fn remove(&self, key: &VaultKey) -> Result<(), KeychainError> {
        match self.item(key)? {
            Some(item) => item.delete().map_err(trouble),
            None => Ok(()),
        }
    }

    fn item(&self, key: &VaultKey) -> Result<Option<Item<'_>>, KeychainError> {
        let id = key.id();
        let mut found = self.0.search_items(attributes(&id)).map_err(trouble)?;
        if !found.locked.is_empty() {
            return Err(KeychainError::Locked);
        }
        let item = found.unlocked.pop();
        if !found.unlocked.is_empty() {
            return Err(KeychainError::Refused {
                why: "it holds several secrets under one name".to_owned(),
            });
        }
        Ok(item)
    }
}

fn attributes(id: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("username", id)])
}

/// Errors of the service name objects of the bus, never contents.
fn trouble(error: Error) -> KeychainError {
    match error {
        Error::Locked | Error::NoResult | Error::Prompt => KeychainError::Locked,
        error => KeychainError::Refused {
            why: error.to_string(),
        },
    }
}
