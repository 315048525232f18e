//! Keeps identities: in the vault for every process of the user, and in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use toolway_types::Secret;

use super::{IdpSettings, UserIdentity};
use crate::callback::LOGIN_TIMEOUT;
use crate::vault::{SecretKind, Vault, VaultError, VaultKey, VaultLockGuard};

/// How long another process may take to log a user in.
const TURN: Duration = Duration::from_secs(LOGIN_TIMEOUT.as_secs() + 60);

/// Keeps identities, one per provider and client; without a vault for as long as it lives.
#[derive(Debug, Default)]
pub struct IdentityStore {
    vault: Option<(Vault, watch::Receiver<u64>)>,
    memory: Mutex<IdentityMemory>,
}

/// What the vault holds until something there changes: a keychain is slow, and may ask.
#[derive(Debug, Default)]
struct IdentityMemory {
    identities: HashMap<VaultKey, UserIdentity>,
    /// The state of the vault that the memory is of.
    seen: Option<u64>,
}

impl IdentityStore {
    /// Keeps identities there.
    pub fn new(vault: Vault) -> Self {
        let changes = vault.changes();
        Self {
            vault: Some((vault, changes)),
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, IdentityMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, key: VaultKey, identity: Option<UserIdentity>) {
        let mut memory = self.memory();
        match identity {
            Some(identity) => memory.identities.insert(key, identity),
            None => memory.identities.remove(&key),
        };
    }

    /// What is kept, good or not.
    pub async fn read(&self, provider: &IdpSettings) -> Result<Option<UserIdentity>, VaultError> {
        let key = key(provider);
        let now = self.vault.as_ref().map(|(_, changes)| *changes.borrow());
        let (known, is_fresh) = {
            let mut memory = self.memory();
            let is_fresh = std::mem::replace(&mut memory.seen, now) == now;
            (memory.identities.get(&key).cloned(), is_fresh)
        };
        let Some((vault, _)) = &self.vault else {
            return Ok(known);
        };
        if is_fresh && known.is_some() {
            return Ok(known);
        }
        let kept = vault.read(&key).await;
        let kept = kept.inspect_err(|_| self.memory().seen = None)?;
        // What another version wrote and this one cannot read is as good as nothing.
        let kept: Option<UserIdentity> =
            kept.and_then(|kept| serde_json::from_str(kept.expose()).ok());
        self.set(key, kept.clone());
        Ok(kept)
    }

    /// Keeps one.
    pub async fn write(
        &self,
        provider: &IdpSettings,
        identity: &UserIdentity,
    ) -> Result<(), VaultError> {
        let key = key(provider);
        let Some((vault, _)) = &self.vault else {
            self.set(key, Some(identity.clone()));
            return Ok(());
        };
        let text = serde_json::to_string(identity).unwrap_or_default();
        let written = vault.write(&key, &Secret::new(text)).await;
        self.memory().seen = None;
        written
    }

    /// Forgets it.
    pub async fn remove(&self, provider: &IdpSettings) -> Result<(), VaultError> {
        let key = key(provider);
        let removed = match &self.vault {
            Some((vault, _)) => vault.remove(&key).await.map(drop),
            None => Ok(()),
        };
        self.set(key, None);
        self.memory().seen = None;
        removed
    }

    /// Waits until no other process is asking the user.
    pub(super) async fn turn(
        &self,
        provider: &IdpSettings,
    ) -> Result<Option<VaultLockGuard>, VaultError> {
        let Some((vault, _)) = &self.vault else {
            return Ok(None);
        };
        let guard = vault.lock_within(&key(provider), TURN).await?;
        // The previous holder may have logged in.
        self.memory().seen = None;
        Ok(Some(guard))
    }
}

/// An identity belongs to a provider and to who we are there; no server has a part in it.
fn key(provider: &IdpSettings) -> VaultKey {
    VaultKey {
        issuer: provider.issuer.clone(),
        account: provider.client_id.clone(),
        ..VaultKey::of(SecretKind::Identity)
    }
}
