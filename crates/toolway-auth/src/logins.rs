//! Logins: the tokens for each server and account, stored in the vault.
//!
//! Owns [`Login`], how it is written into the vault, which one belongs to a server, and the
//! registered clients, which outlive logins. Renewing tokens is `refresh.rs`; getting them is
//! `login.rs`.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use toolway_types::Secret;
use tracing::warn;
use url::Url;

use crate::assertion::ClientKey;
pub use crate::grant::LoginGrant;
use crate::jwt::SigningKey;
use crate::registration::RegisteredClient;
use crate::token::{DpopKey, Tokens};
use crate::vault::{SecretKind, Vault, VaultError, VaultKey};

/// The account of a user who names none.
pub const DEFAULT_ACCOUNT: &str = "default";

/// Stands in place of a server's name in the login at a provider of connectors. A server that is
/// called so has another definition.
pub const ACCOUNT_SERVER: &str = "(account)";

/// A login. Serialises with its secrets: into the vault only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The server's name.
    pub server: String,
    /// The digest of its definition.
    pub definition: String,
    /// The user's word for the account.
    pub account: String,
    /// The authorization server, byte for byte as its metadata names it.
    pub issuer: String,
    /// What the tokens are for.
    pub resource: String,
    /// Who we are to the authorization server.
    pub client: RegisteredClient,
    /// What was granted.
    pub tokens: Tokens,
    /// The scopes that were asked for.
    pub requested: Vec<String>,
    /// Where tokens are renewed.
    pub token_endpoint: Url,
    /// Where they are given back.
    #[serde(default)]
    pub revocation_endpoint: Option<Url>,
    /// How it came about.
    pub how: LoginGrant,
    /// The key that the tokens are bound to.
    #[serde(default)]
    pub dpop: Option<DpopKey>,
    /// When the user logged in, in seconds since 1970.
    #[serde(default)]
    pub logged_in_at: u64,
    /// The private key of a client that signs, in PEM, where the renewal has no other source for
    /// it.
    #[serde(default, with = "crate::secret::option")]
    pub client_key: Option<Secret>,
    /// Whether the user or the administrator named the authorization server, which may then be
    /// anywhere; also where tokens are given back.
    #[serde(default)]
    pub is_trusted: bool,
}

impl Login {
    /// Whether it is renewed without the user.
    pub fn renews(&self) -> bool {
        !self.how.needs_user() || self.tokens.refresh.is_some()
    }

    /// The key that its client signs with, where it is kept with the login.
    pub fn signing_key(&self) -> Option<Arc<ClientKey>> {
        let key = SigningKey::from_pem(self.client_key.as_ref()?, None).ok()?;
        Some(Arc::new(ClientKey { key, id: None }))
    }

    /// What it is found by.
    pub fn key(&self) -> VaultKey {
        let kind = match self.server.as_str() {
            ACCOUNT_SERVER => SecretKind::Account,
            _ => SecretKind::Login,
        };
        VaultKey {
            kind,
            server: self.server.clone(),
            definition: self.definition.clone(),
            issuer: self.issuer.clone(),
            resource: self.resource.clone(),
            account: self.account.clone(),
        }
    }
}

/// Why logins could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LoginsError {
    /// The vault could not.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// What is in the vault is no login of this version.
    #[error("{what} is not of a kind that this version understands; log in again")]
    Unreadable {
        /// What it was about.
        what: String,
    },
}

/// The logins of a user. Cheap to clone.
#[derive(Clone)]
pub struct Logins {
    vault: Vault,
    state: Arc<LoginsState>,
}

/// What this process knows beyond the vault.
#[derive(Default)]
struct LoginsState {
    /// Renewed and not saved, because nothing could be: the vault has an older one.
    unsaved: Mutex<HashMap<VaultKey, Login>>,
    /// The keys in use, with the nonces they have learned.
    keys: Mutex<Vec<DpopKey>>,
}

impl fmt::Debug for Logins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Logins").field(&self.vault).finish()
    }
}

impl Logins {
    /// The logins in a vault.
    pub fn new(vault: Vault) -> Self {
        Self {
            vault,
            state: Arc::default(),
        }
    }

    /// The vault that they are in.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The keys of a server's logins: of this definition, and of one account or of all.
    pub async fn keys(
        &self,
        server: &str,
        definition: &str,
        account: Option<&str>,
    ) -> Result<Vec<VaultKey>, LoginsError> {
        let listed = self.vault.list().await?.into_iter();
        let is_wanted = |key: &VaultKey| {
            key.kind == SecretKind::Login
                && key.server == server
                && key.definition == definition
                && account.is_none_or(|account| key.account == account)
        };
        Ok(listed.map(|listed| listed.key).filter(is_wanted).collect())
    }

    /// A server's login. Without an account it is the one called `default`, else the one that the
    /// user logged in to last.
    pub async fn find(
        &self,
        server: &str,
        definition: &str,
        account: Option<&str>,
    ) -> Result<Option<Login>, LoginsError> {
        let mut found: Option<Login> = None;
        for key in self.keys(server, definition, account).await? {
            let Some(login) = self.read(&key).await? else {
                continue;
            };
            let rank = |login: &Login| (login.account == DEFAULT_ACCOUNT, login.logged_in_at);
            if found.as_ref().is_none_or(|best| rank(best) < rank(&login)) {
                found = Some(login);
            }
        }
        Ok(found)
    }

    /// Reads one login.
    pub async fn read(&self, key: &VaultKey) -> Result<Option<Login>, LoginsError> {
        let kept = match self.vault.read(key).await? {
            Some(text) => Some(self.parse(key, &text)?),
            None => None,
        };
        let unsaved = self.unsaved().get(key).cloned();
        match (kept, unsaved) {
            // Another process logged in or renewed after this one; the unsaved login is obsolete.
            (Some(kept), Some(unsaved)) if kept.tokens.received_at > unsaved.tokens.received_at => {
                self.unsaved().remove(key);
                Ok(Some(kept))
            }
            (_, Some(unsaved)) => {
                if self.write(&unsaved).await.is_ok() {
                    self.unsaved().remove(key);
                }
                Ok(Some(unsaved))
            }
            (kept, None) => Ok(kept),
        }
    }

    /// Keeps a new login, in place of the one that this account had at this server. Takes its
    /// turn, so that a renewal under way does not write the old one over it.
    pub async fn save(&self, login: &Login) -> Result<(), LoginsError> {
        let key = login.key();
        let guard = self.vault.lock(&key).await?;
        self.write(login).await?;
        self.unsaved().remove(&key);
        drop(guard);
        let account = Some(login.account.as_str());
        for other in self.keys(&login.server, &login.definition, account).await? {
            if other != key {
                self.remove(&other).await?;
            }
        }
        Ok(())
    }

    /// Forgets a login; gives what it was, to be given back to the authorization server.
    pub async fn remove(&self, key: &VaultKey) -> Result<Option<Login>, LoginsError> {
        let _guard = self.vault.lock(key).await?;
        let login = match self.read(key).await {
            Ok(login) => login,
            // What cannot be read can still be removed.
            Err(LoginsError::Unreadable { .. }) => None,
            Err(error) => return Err(error),
        };
        self.unsaved().remove(key);
        self.vault.remove(key).await?;
        Ok(login)
    }

    /// The client that was registered at an authorization server (SEC-19: only there).
    pub async fn client(&self, issuer: &str) -> Result<Option<RegisteredClient>, LoginsError> {
        let key = client_key(issuer);
        let Some(text) = self.vault.read(&key).await? else {
            return Ok(None);
        };
        let client = serde_json::from_str(text.expose());
        Ok(client
            .inspect_err(|_| warn!(%key, "it is not understood and registered anew"))
            .ok())
    }

    /// Keeps a client.
    pub async fn save_client(
        &self,
        issuer: &str,
        client: &RegisteredClient,
    ) -> Result<(), LoginsError> {
        self.put(&client_key(issuer), client).await
    }

    /// Forgets a client, if it is still this one.
    pub async fn remove_client(&self, issuer: &str, client_id: &str) -> Result<(), LoginsError> {
        let kept = self.client(issuer).await?;
        if kept.is_some_and(|kept| kept.client_id == client_id) {
            self.vault.remove(&client_key(issuer)).await?;
        }
        Ok(())
    }

    /// The issuer at which a configured client was first used. `what` names the client and the
    /// server it is for.
    pub(crate) async fn bound(&self, what: &str) -> Result<Option<String>, LoginsError> {
        let issuer = self.vault.read(&bound_key(what)).await?;
        Ok(issuer.map(|issuer| issuer.expose().to_owned()))
    }

    /// Remembers it.
    pub(crate) async fn bind(&self, what: &str, issuer: &str) -> Result<(), LoginsError> {
        let issuer = Secret::new(issuer);
        Ok(self.vault.write(&bound_key(what), &issuer).await?)
    }

    pub(crate) async fn write(&self, login: &Login) -> Result<(), LoginsError> {
        self.put(&login.key(), login).await
    }

    async fn put(&self, key: &VaultKey, value: &impl Serialize) -> Result<(), LoginsError> {
        let text = serde_json::to_string(value).map_err(|_| unreadable(key))?;
        Ok(self.vault.write(key, &Secret::new(text)).await?)
    }

    pub(crate) fn unsaved(&self) -> std::sync::MutexGuard<'_, HashMap<VaultKey, Login>> {
        let unsaved = self.state.unsaved.lock();
        unsaved.unwrap_or_else(PoisonError::into_inner)
    }

    fn parse(&self, key: &VaultKey, text: &Secret) -> Result<Login, LoginsError> {
        let login: Result<Login, _> = serde_json::from_str(text.expose());
        let mut login = login
            .ok()
            .filter(|login| login.key() == *key)
            .ok_or_else(|| unreadable(key))?;
        if let Some(read) = &mut login.dpop {
            let mut keys = self
                .state
                .keys
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            match keys.iter().find(|known| *known == read) {
                Some(known) => *read = known.clone(),
                None => keys.push(read.clone()),
            }
        }
        Ok(login)
    }
}

fn client_key(issuer: &str) -> VaultKey {
    VaultKey {
        issuer: issuer.to_owned(),
        ..VaultKey::of(SecretKind::Client)
    }
}

fn bound_key(what: &str) -> VaultKey {
    VaultKey {
        account: what.to_owned(),
        ..VaultKey::of(SecretKind::Client)
    }
}

fn unreadable(key: &VaultKey) -> LoginsError {
    LoginsError::Unreadable {
        what: key.to_string(),
    }
}
