//! The login at a provider of connectors: getting it, keeping it in the vault, giving it back.
//!
//! Owns where the provider's metadata is looked for when only its issuer is known, that the issuer
//! is the one that was written, byte for byte, and holding a token between requests so that a
//! keychain is not asked for each of them.
//! Does not own: the steps of a login (`login.rs`) and of a renewal (`refresh.rs`).

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use toolway_types::{OauthSpec, Secret};
use url::Url;

use super::ProviderAccountError;
use crate::clock::unix_now;
use crate::discovery::of_issuer;
use crate::login::{
    AccountChoice, LoginContext, LoginError, LoginMethod, LoginRequest, LoginUi, obtain,
};
use crate::logins::{ACCOUNT_SERVER, Login, Logins, LoginsError};
use crate::refresh::{LoginEnd, RefreshError, RenewalContext, RenewedLogins};
use crate::revoke::{Revocation, RevokeError};
use crate::scopes::LoginAttempts;
use crate::token::Tokens;
use crate::vault::{SecretKind, VaultKey};
use crate::web::{WebClient, WebError};

/// What to log in to.
#[derive(Debug, Clone)]
pub struct AccountLoginTarget {
    /// The provider's host, which is also what the account is called.
    pub host: String,
    /// What the login belongs to: another shape of the provider is another account.
    pub definition: String,
    /// The authorization server, byte for byte.
    pub issuer: String,
    /// Where its metadata lies, when the standard places are wrong.
    pub metadata_url: Option<Url>,
    /// What the tokens are for.
    pub directory: Url,
    /// A client id registered beforehand.
    pub client_id: Option<String>,
    /// The scopes to ask for.
    pub scopes: Option<Vec<String>>,
    /// The fixed port of the login callback.
    pub callback_port: Option<u16>,
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum AccountLoginError {
    /// The authorization server is not found.
    #[error(
        "no metadata was found for the authorization server {issuer}; set `account.metadataUrl` if it is elsewhere: {why}"
    )]
    NoMetadata {
        /// Whose.
        issuer: String,
        /// What became of the last place.
        why: String,
    },
    /// The metadata is from another issuer.
    #[error(
        "the metadata is that of {named}, not of {issuer}: mend `account.issuer`, or nothing is kept"
    )]
    OtherIssuer {
        /// Who was meant.
        issuer: String,
        /// Who it says it is.
        named: String,
    },
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// It cannot be kept.
    #[error("the login cannot be kept: {0}")]
    Kept(#[from] LoginsError),
}

/// The result of a logout.
#[derive(Debug)]
pub struct AccountLogout {
    /// Why the provider may still take the token.
    pub not_revoked: Option<RevokeError>,
}

/// What is known of a login. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountStatus {
    /// The authorization server.
    pub issuer: String,
    /// When the user logged in, in seconds since 1970.
    pub logged_in_at: u64,
    /// Until when the token is good.
    pub expires_at: Option<u64>,
    /// Whether it renews itself.
    pub renews: bool,
    /// What was granted, as far as is known.
    pub scopes: Vec<String>,
}

/// The login at one provider, in the vault.
pub struct StoredAccount {
    login: AccountLoginTarget,
    logins: RenewedLogins,
    web: WebClient,
    attempts: LoginAttempts,
    cache: Mutex<TokenCache>,
}

/// Cached between requests.
#[derive(Default)]
struct TokenCache {
    /// Where the login was found.
    key: Option<VaultKey>,
    /// The token, and the state of the vault that it is from.
    tokens: Option<(u64, Tokens)>,
}

impl fmt::Debug for StoredAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoredAccount")
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl StoredAccount {
    /// The login that is kept for this provider, if any.
    pub fn new(login: AccountLoginTarget, logins: Logins, web: WebClient) -> Self {
        Self {
            login,
            logins: RenewedLogins::new(logins),
            web,
            attempts: LoginAttempts::default(),
            cache: Mutex::default(),
        }
    }

    /// Logs in, in place of an earlier login.
    pub async fn log_in(
        &self,
        method: LoginMethod,
        ui: &dyn LoginUi,
    ) -> Result<(), AccountLoginError> {
        let metadata_url = match &self.login.metadata_url {
            Some(url) => url.clone(),
            None => self.metadata().await?,
        };
        let spec = OauthSpec {
            client_id: self.login.client_id.clone(),
            callback_port: self.login.callback_port,
            auth_server_metadata_url: Some(metadata_url),
            scopes: self.login.scopes.clone(),
            ..OauthSpec::default()
        };
        let request = LoginRequest {
            server: &self.login.host,
            definition: &self.login.definition,
            account: &self.login.host,
            url: &self.login.directory,
            challenge: None,
            spec: &spec,
            scopes: None,
            method,
            account_choice: AccountChoice::default(),
            client_secret: None,
            client_key: None,
            document: None,
            known_issuer: Some(&self.login.issuer),
            wants_dpop: false,
        };
        let context = LoginContext {
            web: &self.web,
            logins: &self.logins,
            attempts: &self.attempts,
            ui,
        };
        let login = obtain(context, &request).await?;
        if login.issuer != self.login.issuer {
            return Err(AccountLoginError::OtherIssuer {
                issuer: self.login.issuer.clone(),
                named: crate::metadata::shown(&login.issuer),
            });
        }
        let login = Login {
            server: ACCOUNT_SERVER.to_owned(),
            ..login
        };
        self.logins.save(&login).await?;
        for other in self.keys().await? {
            if other != login.key() {
                self.logins.remove(&other).await?;
            }
        }
        *self.cache() = TokenCache::default();
        Ok(())
    }

    /// Forgets the login and revokes its tokens; `None` when there is no login.
    pub async fn log_out(&self) -> Result<Option<AccountLogout>, LoginsError> {
        *self.cache() = TokenCache::default();
        let mut out = None;
        for key in self.keys().await? {
            let login = self.logins.remove(&key).await?;
            let mut not_revoked = None;
            if let Some(login) = login
                && let Some(endpoint) = &login.revocation_endpoint
            {
                let client = login.client.client(None);
                let revocation = Revocation {
                    endpoint,
                    issuer: &login.issuer,
                    client: &client,
                };
                not_revoked = revocation.send(&self.web, &login.tokens).await.err();
            }
            out = Some(AccountLogout { not_revoked });
        }
        Ok(out)
    }

    /// The status of the login; `None` when there is none.
    pub async fn status(&self) -> Result<Option<AccountStatus>, LoginsError> {
        let Some(key) = self.keys().await?.into_iter().next() else {
            return Ok(None);
        };
        let login = self.logins.read(&key).await?;
        Ok(login.map(|login| AccountStatus {
            issuer: login.issuer,
            logged_in_at: login.logged_in_at,
            expires_at: login.tokens.expires_at,
            renews: login.tokens.refresh.is_some(),
            scopes: login.tokens.scopes,
        }))
    }

    /// Where the issuer's metadata is, of the places that the standards know.
    async fn metadata(&self) -> Result<Url, AccountLoginError> {
        let issuer = &self.login.issuer;
        let no_metadata = |why: String| AccountLoginError::NoMetadata {
            issuer: issuer.clone(),
            why,
        };
        let places = of_issuer(issuer, self.web.reach());
        let places = places.map_err(|why| no_metadata(why.to_owned()))?;
        let mut why = String::new();
        for url in places {
            let document = match self.web.get(&url).await {
                Ok(reply) if reply.is_success() => reply.object(),
                Ok(reply) => {
                    why = format!("HTTP {}", reply.status);
                    continue;
                }
                Err(error) => Err(error),
            };
            match document {
                Ok(document) => match document.get("issuer").and_then(|named| named.as_str()) {
                    Some(named) if named != issuer => {
                        return Err(AccountLoginError::OtherIssuer {
                            issuer: issuer.clone(),
                            named: crate::metadata::shown(named),
                        });
                    }
                    _ => return Ok(url),
                },
                Err(error @ WebError::NotJson { .. }) => why = error.to_string(),
                // Nothing else is there either.
                Err(error) => {
                    why = error.to_string();
                    break;
                }
            }
        }
        Err(no_metadata(why))
    }

    async fn keys(&self) -> Result<Vec<VaultKey>, LoginsError> {
        let listed = self.logins.vault().list().await?.into_iter();
        let is_ours = |key: &VaultKey| {
            key.kind == SecretKind::Account && key.definition == self.login.definition
        };
        Ok(listed.map(|listed| listed.key).filter(is_ours).collect())
    }

    /// Changes whenever the user logs in or out, in any process.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.logins.vault().changes()
    }

    /// Waits until what is being renewed is saved, and no longer than this.
    pub(super) async fn settle(&self, within: Duration) {
        self.logins.settle(within).await;
    }

    /// The token that is good now, renewed when it is due. `refused` is one that the provider did
    /// not take: when another is there by now it is that one, and else it is renewed.
    pub(super) async fn token(
        &self,
        refused: Option<&Secret>,
    ) -> Result<Secret, ProviderAccountError> {
        // From before the reading, so that what changes meanwhile is noticed.
        let seen = *self.logins.vault().changes().borrow();
        if let Some((then, tokens)) = &self.cache().tokens
            && *then == seen
            && !tokens.is_due(unix_now())
            && refused != Some(&tokens.access)
        {
            return Ok(tokens.access.clone());
        }
        let means = RenewalContext {
            web: self.web.clone(),
            client_key: None,
            renewer: None,
        };
        let known = self.cache().key.clone();
        let host = || self.login.host.clone();
        let mut outcome = Err(RefreshError::NeedsLogin {
            server: host(),
            why: LoginEnd::NotLoggedIn,
        });
        if let Some(key) = known {
            outcome = self.logins.fresh(&key, refused, &means).await;
        }
        let is_logged_out = |error: &RefreshError| matches!(error, RefreshError::NeedsLogin { why, .. } if *why == LoginEnd::NotLoggedIn);
        // A new login may be for another resource, and so under another key.
        if outcome.as_ref().is_err_and(is_logged_out) {
            let found = self.keys().await;
            let found =
                found.map_err(|error| ProviderAccountError::Unavailable(error.to_string()))?;
            if let Some(key) = found.into_iter().next() {
                outcome = self.logins.fresh(&key, refused, &means).await;
            }
        }
        match outcome {
            Ok(login) => {
                let token = login.tokens.access.clone();
                *self.cache() = TokenCache {
                    key: Some(login.key()),
                    tokens: Some((seen, login.tokens)),
                };
                Ok(token)
            }
            Err(error) if is_logged_out(&error) => {
                Err(ProviderAccountError::LoggedOut { host: host() })
            }
            Err(RefreshError::NeedsLogin { why, .. }) => {
                Err(ProviderAccountError::Ended { host: host(), why })
            }
            Err(RefreshError::Unavailable { source, .. }) => {
                let host = host();
                let message = format!("the login at {host} cannot be renewed now: {source}");
                Err(ProviderAccountError::Unavailable(message))
            }
            Err(RefreshError::Logins(error)) => {
                Err(ProviderAccountError::Unavailable(error.to_string()))
            }
        }
    }

    fn cache(&self) -> MutexGuard<'_, TokenCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
