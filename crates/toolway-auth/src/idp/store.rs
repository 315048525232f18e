//! Stores identities: in memory, and in the vault for the next start.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolway_types::Secret;

use super::{IdpSettings, UserIdentity};
use crate::callback::LOGIN_TIMEOUT;
use crate::vault::{SecretKind, Vault, VaultError, VaultKey};

/// How long another process may take to log a user in.
const TURN: Duration = Duration::from_secs(LOGIN_TIMEOUT.as_secs() + 60);

/// What is kept cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityStoreError {
    /// The vault does not give it, or does not take it.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Held while the user is asked; waiters read the store again afterwards.
pub type LoginLock = Box<dyn Send>;

/// Keeps identities, one per provider and client.
pub trait IdentityStore: Send + Sync + fmt::Debug {
    /// What is kept, good or not.
    fn read<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<Option<UserIdentity>, IdentityStoreError>>;
    /// Keeps one.
    fn write<'a>(
        &'a self,
        provider: &'a IdpSettings,
        identity: &'a UserIdentity,
    ) -> BoxFuture<'a, Result<(), IdentityStoreError>>;
    /// Forgets it.
    fn remove<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<(), IdentityStoreError>>;
    /// Waits until no other process is asking the user.
    fn turn<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<LoginLock, IdentityStoreError>>;
}

/// Stores identities in memory.
#[derive(Default)]
pub struct MemoryIdentityStore(Mutex<HashMap<(String, String), UserIdentity>>);

impl fmt::Debug for MemoryIdentityStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memory")
    }
}

impl MemoryIdentityStore {
    fn all(&self) -> MutexGuard<'_, HashMap<(String, String), UserIdentity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(provider: &IdpSettings) -> (String, String) {
    (provider.issuer.clone(), provider.client_id.clone())
}

impl IdentityStore for MemoryIdentityStore {
    fn read<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<Option<UserIdentity>, IdentityStoreError>> {
        let kept = self.all().get(&name(provider)).cloned();
        Box::pin(async { Ok(kept) })
    }

    fn write<'a>(
        &'a self,
        provider: &'a IdpSettings,
        identity: &'a UserIdentity,
    ) -> BoxFuture<'a, Result<(), IdentityStoreError>> {
        self.all().insert(name(provider), identity.clone());
        Box::pin(async { Ok(()) })
    }

    fn remove<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<(), IdentityStoreError>> {
        self.all().remove(&name(provider));
        Box::pin(async { Ok(()) })
    }

    fn turn<'a>(
        &'a self,
        _: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<LoginLock, IdentityStoreError>> {
        Box::pin(async { Ok(Box::new(()) as LoginLock) })
    }
}

/// In the vault, for every process of the user, and in memory until something there changes: a
/// keychain is slow, and may ask.
#[derive(Debug)]
pub struct VaultIdentityStore {
    vault: Vault,
    memory: MemoryIdentityStore,
    changes: watch::Receiver<u64>,
    /// The state of the vault that the memory is of.
    seen: Mutex<Option<u64>>,
}

impl VaultIdentityStore {
    /// Keeps identities there.
    pub fn new(vault: Vault) -> Self {
        Self {
            changes: vault.changes(),
            vault,
            memory: MemoryIdentityStore::default(),
            seen: Mutex::new(None),
        }
    }

    /// Whether the memory is still what the vault holds; if not, it is from now on.
    fn is_fresh(&self) -> bool {
        let now = *self.changes.borrow();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.replace(now) == Some(now)
    }

    fn forget(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// An identity belongs to a provider and to who we are there; no server has a part in it.
fn key(provider: &IdpSettings) -> VaultKey {
    VaultKey {
        kind: SecretKind::Identity,
        server: String::new(),
        definition: String::new(),
        issuer: provider.issuer.clone(),
        resource: String::new(),
        account: provider.client_id.clone(),
    }
}

impl IdentityStore for VaultIdentityStore {
    fn read<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<Option<UserIdentity>, IdentityStoreError>> {
        Box::pin(async {
            if self.is_fresh()
                && let Some(identity) = self.memory.read(provider).await?
            {
                return Ok(Some(identity));
            }
            let kept = match self.vault.read(&key(provider)).await {
                Ok(kept) => kept,
                Err(error) => {
                    self.forget();
                    return Err(error.into());
                }
            };
            // What another version wrote and this one cannot read is as good as nothing.
            let kept = kept.and_then(|kept| serde_json::from_str(kept.expose()).ok());
            match &kept {
                Some(identity) => self.memory.write(provider, identity).await?,
                None => self.memory.remove(provider).await?,
            }
            Ok(kept)
        })
    }

    fn write<'a>(
        &'a self,
        provider: &'a IdpSettings,
        identity: &'a UserIdentity,
    ) -> BoxFuture<'a, Result<(), IdentityStoreError>> {
        Box::pin(async {
            let text = serde_json::to_string(identity).unwrap_or_default();
            let written = self.vault.write(&key(provider), &Secret::new(text)).await;
            self.forget();
            Ok(written?)
        })
    }

    fn remove<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<(), IdentityStoreError>> {
        Box::pin(async {
            let removed = self.vault.remove(&key(provider)).await;
            self.forget();
            removed?;
            Ok(())
        })
    }

    fn turn<'a>(
        &'a self,
        provider: &'a IdpSettings,
    ) -> BoxFuture<'a, Result<LoginLock, IdentityStoreError>> {
        Box::pin(async {
            let guard = self.vault.lock_within(&key(provider), TURN).await?;
            // The previous holder may have logged in.
            self.forget();
            Ok(Box::new(guard) as LoginLock)
        })
    }
}
