//! The identity provider of an organisation: one login for all servers.
//!
//! Owns when the user is asked and what is kept of the answer, and having it turned into an
//! assertion for another server's authorization server (RFC 8693). Everything about the provider is
//! handed in from managed or user settings, nothing comes from a server's metadata (SEC-45). What
//! the provider issues goes back to it, and the assertion to the authorization server it names.
//! Does not own: what is done with the assertion (`voucher/xaa.rs`).

pub mod claims;
mod endpoint;
pub mod error;
mod login;
mod logout;
pub mod store;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, OwnedMutexGuard};
use toolway_types::Secret;
use url::Url;

use crate::assertion::ClientKey;
use crate::clock::unix_now;
use crate::detached::DetachedTasks;
use crate::grant::{LoginGrant, LoginMethod};
use crate::jwt;
use crate::login_ui::LoginUi;
use crate::metadata::{ServerMetadata, shown};
use crate::token::{SKEW, TokenError, TokenExchange, TokenGrant, TokenRequest, Tokens};
use crate::vault::VaultLockGuard;
use crate::web::WebClient;

pub use claims::IdTokenError;
use claims::{ExpectedIdToken, IdTokenVerifier};
pub use error::IdpError;
pub use logout::IdpLogoutOutcome;
pub use store::IdentityStore;

/// An assertion about a user for another server (identity assertion authorization grant).
pub const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// What it is made from.
pub const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// The provider as the settings describe it.
#[derive(Debug, Clone, Default)]
pub struct IdpSettings {
    /// Its issuer, byte for byte.
    pub issuer: String,
    /// Who we are there.
    pub client_id: String,
    /// The secret of that client, if it has one.
    pub client_secret: Option<Secret>,
    /// The key of that client, if it has one.
    pub client_key: Option<Arc<ClientKey>>,
    /// Its token endpoint, in place of its metadata.
    pub token_endpoint: Option<Url>,
    /// The port of the callback that was registered there.
    pub callback_port: Option<u16>,
    /// What is asked for beside `openid`.
    pub scopes: Vec<String>,
}

/// Who the user is. Serialises with its secrets: into the vault only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdentity {
    /// The id token.
    #[serde(with = "crate::secret")]
    pub id_token: Secret,
    /// Until when that is good, in seconds since 1970 by this machine's clock.
    pub expires_at: u64,
    /// The provider's name for the user.
    pub subject: String,
    /// What gets the next one without the user.
    #[serde(default, with = "crate::secret::option")]
    pub refresh: Option<Secret>,
}

impl UserIdentity {
    /// An identity from an id token that the caller has, such as from a platform that logs users in
    /// itself. It is not checked here; the provider will check it.
    pub fn given(id_token: Secret) -> Option<Self> {
        let claims = jwt::peek(id_token.expose())?;
        Some(Self {
            expires_at: claims.get("exp")?.as_u64()?,
            subject: claims.get("sub")?.as_str()?.to_owned(),
            id_token,
            refresh: None,
        })
    }

    /// Whether it can still be used, now or once it is renewed.
    pub fn is_of_use(&self) -> bool {
        self.refresh.is_some() || !self.is_due(unix_now())
    }

    fn is_due(&self, now: u64) -> bool {
        now.saturating_add(SKEW) >= self.expires_at
    }
}

/// How the user logs in when the provider requires it.
#[derive(Clone, Copy)]
pub enum IdpLoginMethod<'a> {
    /// In a browser of this machine.
    Browser(&'a dyn LoginUi),
    /// In a browser anywhere, whose answer is pasted.
    Paste(&'a dyn LoginUi),
    /// On another device.
    Device(&'a dyn LoginUi),
    /// Not at all: only a stored identity is used.
    StoredOnly,
}

impl<'a> IdpLoginMethod<'a> {
    /// The way that comes nearest to that of a login at a server.
    pub fn of(method: LoginMethod, ui: &'a dyn LoginUi) -> Self {
        match method.grant() {
            _ if method == LoginMethod::Paste => Self::Paste(ui),
            LoginGrant::Device => Self::Device(ui),
            grant if grant.needs_user() => Self::Browser(ui),
            _ => Self::StoredOnly,
        }
    }
}

/// The provider, for every server that needs it. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct IdentityProvider {
    settings: Arc<IdpSettings>,
    web: WebClient,
    store: Arc<IdentityStore>,
    checker: Arc<IdTokenVerifier>,
    /// How many logins have ended.
    ended: Arc<AtomicU64>,
    /// One login at a time; holds how the last one failed, and which it was.
    turn: Arc<Mutex<LastFailure>>,
    metadata: Arc<Mutex<Option<Arc<ServerMetadata>>>>,
    /// Finishes renewals whose callers are gone.
    detached: DetachedTasks,
}

type LastFailure = Option<(u64, Arc<IdpError>)>;

/// Held while the user may be asked: in this process, and in all others.
type LoginLocks = (OwnedMutexGuard<LastFailure>, Option<VaultLockGuard>);

impl fmt::Debug for IdentityProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IdentityProvider")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl IdentityProvider {
    /// A provider. `web` must be one for addresses that the user or the administrator wrote.
    pub fn new(settings: IdpSettings, web: WebClient, store: Arc<IdentityStore>) -> Self {
        Self {
            settings: Arc::new(settings),
            web,
            store,
            checker: Arc::default(),
            ended: Arc::default(),
            turn: Arc::default(),
            metadata: Arc::default(),
            detached: DetachedTasks::default(),
        }
    }

    /// Its settings.
    pub fn settings(&self) -> &IdpSettings {
        &self.settings
    }

    /// Who the user is: as it is kept, else renewed, else by asking them.
    ///
    /// However many servers ask at once, the user is asked once and all callers get the outcome: a
    /// declined login opens no second window.
    pub async fn identity(&self, method: IdpLoginMethod<'_>) -> Result<UserIdentity, IdpError> {
        if let Some(identity) = self.kept().await? {
            return Ok(identity);
        }
        let begun = self.ended.load(Ordering::Acquire);
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if let Some((which, error)) = turn.as_ref()
            && *which > begun
        {
            return Err(IdpError::Together(Arc::clone(error)));
        }
        let turns = (turn, self.store.turn(&self.settings).await?);
        let (mut turns, renewed) = self.renewed_in_turn(turns).await?;
        let known = match renewed {
            Ok(None) => self.asked(method).await,
            Ok(Some(identity)) => Ok(identity),
            Err(error) => Err(error),
        };
        let turn = &mut turns.0;
        match known {
            Ok(identity) => {
                **turn = None;
                Ok(identity)
            }
            // The user was not asked: the next caller may be able to.
            Err(error @ IdpError::NeedsLogin { .. }) => Err(error),
            Err(error) => {
                let which = self.ended.fetch_add(1, Ordering::AcqRel) + 1;
                let error = Arc::new(error);
                **turn = Some((which, Arc::clone(&error)));
                Err(IdpError::Together(error))
            }
        }
    }

    /// Logs the user in, in place of an earlier login.
    pub async fn login(&self, method: IdpLoginMethod<'_>) -> Result<UserIdentity, IdpError> {
        self.store.remove(&self.settings).await?;
        self.identity(method).await
    }

    /// The stored identity, valid or not. Makes no request.
    pub async fn stored(&self) -> Result<Option<UserIdentity>, IdpError> {
        Ok(self.store.read(&self.settings).await?)
    }

    /// The stored identity, if still valid. Makes no request.
    pub async fn kept(&self) -> Result<Option<UserIdentity>, IdpError> {
        let kept = self.store.read(&self.settings).await?;
        Ok(kept.filter(|identity| !identity.is_due(unix_now())))
    }

    /// An assertion about the user, for the authorization server of another server: an ID-JAG. It
    /// is shown to that authorization server at once, and kept nowhere.
    pub async fn assertion(
        &self,
        identity: &UserIdentity,
        audience: &str,
        resource: &str,
        scopes: &[String],
    ) -> Result<Secret, IdpError> {
        let endpoint = self.idp_endpoint().await?;
        let request = TokenRequest {
            resource: Some(resource),
            ..self.request(&endpoint, scopes)
        };
        let exchange = TokenGrant::exchange(TokenExchange {
            subject: &identity.id_token,
            subject_type: ID_TOKEN,
            requested_type: ID_JAG,
            audience,
        });
        Ok(request.send(&self.web, &exchange).await?.access)
    }

    /// What is kept is refused, or has expired for the provider: renewed without the user if that
    /// works, else forgotten.
    pub(crate) async fn refused(&self, identity: &UserIdentity) -> Result<(), IdpError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let turns: LoginLocks = (turn, self.store.turn(&self.settings).await?);
        let (provider, identity) = (self.clone(), identity.clone());
        let task = self.detached.start(async move {
            let _turns = turns;
            let kept = provider.store.read(&provider.settings).await?;
            // Another process was quicker.
            if kept.as_ref().map(|kept| &kept.id_token) != Some(&identity.id_token) {
                return Ok(());
            }
            match provider.renewed(&identity).await? {
                Some(renewed) => Ok(provider.store.write(&provider.settings, &renewed).await?),
                None => Ok(provider.store.remove(&provider.settings).await?),
            }
        });
        task.await.unwrap_or_else(|lost| Err(lost.into()))
    }

    /// Waits until what is being renewed is saved, and no longer than this.
    pub async fn settle(&self, within: Duration) {
        self.detached.settle(within).await;
    }

    /// The identity that another process renewed while this one waited for the lock, or one that is
    /// renewed now, in a detached task. `None` when the provider requires a login; the holder of
    /// the locks may ask the user.
    async fn renewed_in_turn(
        &self,
        turns: LoginLocks,
    ) -> Result<(LoginLocks, Result<Option<UserIdentity>, IdpError>), IdpError> {
        let provider = self.clone();
        let task = self.detached.start(async move {
            if let Some(identity) = provider.kept().await? {
                return Ok((turns, Ok(Some(identity))));
            }
            let renewed = match provider.store.read(&provider.settings).await {
                Ok(Some(kept)) => provider.renewed(&kept).await,
                Ok(None) => Ok(None),
                Err(error) => Err(error.into()),
            };
            if let Ok(Some(identity)) = &renewed {
                provider.store.write(&provider.settings, identity).await?;
            }
            Ok((turns, renewed))
        });
        task.await.unwrap_or_else(|lost| Err(lost.into()))
    }

    /// Asks the user, and keeps what comes of it.
    async fn asked(&self, method: IdpLoginMethod<'_>) -> Result<UserIdentity, IdpError> {
        let identity = match method {
            IdpLoginMethod::Browser(ui) => self.by_browser(ui, LoginMethod::Browser).await?,
            IdpLoginMethod::Paste(ui) => self.by_browser(ui, LoginMethod::Paste).await?,
            IdpLoginMethod::Device(ui) => self.by_device(ui).await?,
            IdpLoginMethod::StoredOnly => {
                return Err(IdpError::NeedsLogin {
                    issuer: self.name(),
                });
            }
        };
        self.store.write(&self.settings, &identity).await?;
        Ok(identity)
    }

    /// The successor of an identity, without the user; `None` when the provider wants to see them.
    async fn renewed(&self, old: &UserIdentity) -> Result<Option<UserIdentity>, IdpError> {
        let Some(refresh) = &old.refresh else {
            return Ok(None);
        };
        let endpoint = self.idp_endpoint().await?;
        let request = self.request(&endpoint, &[]);
        let tokens = match request.send(&self.web, &TokenGrant::refresh(refresh)).await {
            Ok(tokens) => tokens,
            Err(TokenError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Not every provider gives a new one here.
        if tokens.id_token.is_none() {
            return Ok(None);
        }
        let mut renewed = self.believed(tokens, None).await?;
        if renewed.subject != old.subject {
            return Err(IdpError::OtherPerson {
                issuer: self.name(),
            });
        }
        renewed.refresh = renewed.refresh.or_else(|| Some(refresh.clone()));
        Ok(Some(renewed))
    }

    /// The identity in an answer, if everything about it is right.
    async fn believed(
        &self,
        tokens: Tokens,
        nonce: Option<&str>,
    ) -> Result<UserIdentity, IdpError> {
        let issuer = || self.name();
        let id_token = tokens
            .id_token
            .ok_or_else(|| IdpError::NoIdToken { issuer: issuer() })?;
        let metadata = self.metadata().await?;
        let keys = self.endpoint(metadata.jwks_uri.as_ref(), "jwks_uri")?;
        let expected = ExpectedIdToken {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce,
            algorithms: &metadata.id_token_algorithms,
        };
        let known = self
            .checker
            .check(&self.web, keys, &id_token, &expected)
            .await?
            .map_err(|fault| IdpError::Claims {
                issuer: issuer(),
                fault,
            })?;
        Ok(UserIdentity {
            id_token,
            expires_at: known.expires_at,
            subject: known.subject,
            refresh: tokens.refresh,
        })
    }

    fn name(&self) -> String {
        shown(&self.settings.issuer)
    }
}
