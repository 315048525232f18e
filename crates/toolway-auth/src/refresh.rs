//! Renewing a login's tokens, once for all processes of a user (REL-14, REL-15).
//!
//! Owns the steps: lock, read again, use what another process renewed meanwhile, note what is about
//! to be sent, send, save to disk, unlock. And what a failure means: only a refusal of the grant
//! itself ends a login, and only after looking once more whether it is still the one that was sent.
//! Does not own: the request (`token/request.rs`) or the locks (`vault/lock.rs`).

mod hold_off;
mod intent;
mod shared;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolway_types::Secret;
use tracing::{debug, warn};

use self::hold_off::HoldOffs;
pub use self::hold_off::{DEFAULT_HOLD_OFF, LONGEST_WAIT};
use self::intent::RefreshIntent;
use self::shared::RunningRenewals;
use crate::assertion::ClientKey;
use crate::clock::unix_now;
use crate::detached::DetachedTasks;
use crate::logins::{Login, Logins, LoginsError};
use crate::registration::ClientSource;
use crate::token::{OauthClient, TokenError, TokenGrant, TokenRequest, Tokens};
use crate::vault::{VaultError, VaultKey};
use crate::web::{WebClient, WebError};

/// What a renewal needs. It may outlive its caller, so nothing is borrowed.
#[derive(Clone)]
pub struct RenewalContext {
    /// Where the request goes through.
    pub web: WebClient,
    /// The key of a client that signs.
    pub client_key: Option<Arc<ClientKey>>,
    /// Gets tokens without a user where there is no refresh token: the identity provider's
    /// assertion, a workload's token.
    pub renewer: Option<Arc<dyn TokenRenewer>>,
}

/// Getting tokens once more, without a user.
pub trait TokenRenewer: Send + Sync {
    /// Gets them.
    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Tokens, TokenError>>;
}

/// Why there is no token that can be used. All callers of one renewal get the same.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RefreshError {
    /// A user must log in.
    #[error("`{server}` needs a login: {why}; run `toolway login {server}`")]
    NeedsLogin {
        /// The server.
        server: String,
        /// What ended it.
        why: LoginEnd,
    },
    /// It may work again later, and the login is kept.
    #[error("the login of `{server}` cannot be renewed now: {source}")]
    Unavailable {
        /// The server.
        server: String,
        /// Why not.
        source: Arc<TokenError>,
    },
    /// The login cannot be read.
    #[error(transparent)]
    Logins(Arc<LoginsError>),
}

/// What ended a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginEnd {
    /// There is none.
    #[error("nobody is logged in")]
    NotLoggedIn,
    /// The token has expired and cannot be renewed.
    #[error("the login has expired, and there is no refresh token")]
    Expired,
    /// The server does not take the token although it has not expired, and it cannot be renewed.
    #[error("the server no longer takes the token, and there is no refresh token")]
    Refused,
    /// The authorization server does not take the refresh token.
    #[error("the authorization server has ended the login")]
    Revoked,
    /// Answers were lost, and the authorization server has moved on without us.
    #[error("the authorization server's answer to the last renewal was lost")]
    Lost,
    /// The authorization server does not know us any more.
    #[error("the authorization server no longer knows this client")]
    ClientGone,
}

impl From<LoginsError> for RefreshError {
    fn from(error: LoginsError) -> Self {
        Self::Logins(Arc::new(error))
    }
}

impl From<VaultError> for RefreshError {
    fn from(error: VaultError) -> Self {
        LoginsError::from(error).into()
    }
}

/// The logins of a user, renewed when they are used. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RenewedLogins {
    logins: Logins,
    state: Arc<RenewalsState>,
}

/// What this process knows of renewals.
#[derive(Default)]
struct RenewalsState {
    under_way: RunningRenewals,
    /// The authorization servers that are left alone for a while.
    hold_offs: HoldOffs,
    /// Finishes renewals whose callers are gone.
    detached: DetachedTasks,
}

impl fmt::Debug for RenewalsState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RenewalsState")
    }
}

impl Deref for RenewedLogins {
    type Target = Logins;

    fn deref(&self) -> &Logins {
        &self.logins
    }
}

impl RenewedLogins {
    /// These logins; they are renewed once for all clones.
    pub fn new(logins: Logins) -> Self {
        Self {
            logins,
            state: Arc::default(),
        }
    }

    /// A login whose token can be used. `refused` is a token that the server did not take: that one
    /// is not given again. Callers in any process share a renewal that is under way. A caller that
    /// goes away does not cancel it: the answer is saved all the same.
    pub async fn fresh(
        &self,
        key: &VaultKey,
        refused: Option<&Secret>,
        means: &RenewalContext,
    ) -> Result<Login, RefreshError> {
        let login = self.present(key).await?;
        if is_usable(&login, refused) {
            return Ok(login);
        }
        if let Some(outcome) = self.held_off(&login, refused) {
            return outcome;
        }
        self.shared(key, refused, means).await
    }

    /// Waits until what is being renewed is saved, and no longer than this. For a program that is
    /// about to end: an answer that is not saved is a lost login.
    pub async fn settle(&self, within: Duration) {
        self.state.detached.settle(within).await;
    }

    /// Takes the lock among all processes, and renews if that is still needed then.
    async fn in_turn(
        &self,
        key: &VaultKey,
        refused: Option<&Secret>,
        means: &RenewalContext,
    ) -> Result<Login, RefreshError> {
        let _turn = self.vault().lock(key).await?;
        // The previous holder of the lock has most likely renewed it.
        let login = self.present(key).await?;
        if is_usable(&login, refused) {
            return Ok(login);
        }
        if let Some(outcome) = self.held_off(&login, refused) {
            return outcome;
        }
        self.renew(login, refused, means).await
    }

    async fn present(&self, key: &VaultKey) -> Result<Login, RefreshError> {
        self.read(key)
            .await?
            .ok_or_else(|| needs_login(&key.server, LoginEnd::NotLoggedIn))
    }

    /// Renews. The key is locked.
    async fn renew(
        &self,
        mut login: Login,
        refused: Option<&Secret>,
        means: &RenewalContext,
    ) -> Result<Login, RefreshError> {
        // It may be good for some more seconds, whatever comes of this.
        let still_good = still_good(&login, refused);
        let intent = RefreshIntent::of(self, &login);
        let client = client(&login, means);
        let sent = match (&login.tokens.refresh, login.how.repeated(), &means.renewer) {
            (Some(token), _, _) => self.refresh(&login, token, &intent, &client, means).await,
            (None, Some(grant), _) => {
                let request = request(&login, &client, &login.requested);
                request.send(&means.web, &grant).await
            }
            (None, _, Some(renewer)) => renewer.renew(&login).await,
            (None, _, None) if still_good => return Ok(login),
            (None, _, None) if refused == Some(&login.tokens.access) => {
                return Err(needs_login(&login.server, LoginEnd::Refused));
            }
            (None, _, None) => return Err(needs_login(&login.server, LoginEnd::Expired)),
        };
        login.client.learn(&client);
        let end = |why| needs_login(&login.server, why);
        let error = match sent {
            Ok(tokens) => return Ok(self.keep(login, tokens, &intent).await),
            Err(error) => Arc::new(error),
        };
        let key = login.key();
        let is_again = intent.is_repeated();
        match &*error {
            TokenError::Refused { code, .. } if code == "invalid_grant" => {
                // The user may have logged in meanwhile, without the lock or with another program.
                let now = self.read(&key).await?;
                if let Some(other) = now.filter(|now| now.tokens != login.tokens) {
                    intent.clear();
                    return Ok(other);
                }
                warn!(server = login.server, %error, "the login has ended");
                self.unsaved().remove(&key);
                self.vault().remove(&key).await?;
                intent.clear();
                Err(end(if is_again {
                    LoginEnd::Lost
                } else {
                    LoginEnd::Revoked
                }))
            }
            TokenError::Refused { code, .. } if is_about_client(code) => {
                if login.client.source == ClientSource::Dynamic {
                    let (issuer, id) = (&login.issuer, &login.client.client_id);
                    self.remove_client(issuer, id).await?;
                }
                Err(end(LoginEnd::ClientGone))
            }
            _ if still_good => {
                self.hold_off(&login, &error);
                debug!(server = login.server, %error, "not renewed, but still good for a while");
                Ok(login)
            }
            // The token may be spent by now; the next attempt will show it.
            TokenError::Lost => Err(end(LoginEnd::Lost)),
            _ => {
                self.hold_off(&login, &error);
                Err(RefreshError::Unavailable {
                    server: login.server,
                    source: error,
                })
            }
        }
    }

    /// Sends a refresh token; a second time when the answer was lost, because most authorization
    /// servers answer it again within a few seconds.
    async fn refresh(
        &self,
        login: &Login,
        token: &Secret,
        intent: &RefreshIntent,
        client: &OauthClient,
        means: &RenewalContext,
    ) -> Result<Tokens, TokenError> {
        // When a process died over this very token, this is the second time already.
        let mut may_repeat = !intent.is_noted();
        intent.note();
        let request = request(login, client, &login.tokens.scopes);
        loop {
            let sent = request.send(&means.web, &TokenGrant::refresh(token)).await;
            match sent {
                Err(TokenError::Lost) if may_repeat => {
                    may_repeat = false;
                    intent.repeat();
                }
                Err(
                    TokenError::Web(WebError::Unreachable { .. } | WebError::Forbidden { .. })
                    | TokenError::Busy { .. },
                ) => {
                    // Nothing was done with it.
                    intent.clear();
                    return sent;
                }
                _ => return sent,
            }
        }
    }

    /// Saves what was renewed. When that is not possible this process goes on with it, and tries
    /// to save it whenever it is read: the old one is spent.
    async fn keep(&self, login: Login, tokens: Tokens, intent: &RefreshIntent) -> Login {
        let renewed = Login {
            tokens: tokens.succeeding(&login.tokens),
            ..login
        };
        match self.write(&renewed).await {
            Ok(()) => {
                self.unsaved().remove(&renewed.key());
                intent.clear();
            }
            Err(error) => {
                let server = &renewed.server;
                warn!(server, %error, "a renewed login could not be saved; only this process has it");
                self.unsaved().insert(renewed.key(), renewed.clone());
            }
        }
        renewed
    }
}

fn needs_login(server: &str, why: LoginEnd) -> RefreshError {
    RefreshError::NeedsLogin {
        server: server.to_owned(),
        why,
    }
}

/// Whether a token can be sent as it is.
fn is_usable(login: &Login, refused: Option<&Secret>) -> bool {
    refused != Some(&login.tokens.access) && !login.tokens.is_due(unix_now())
}

/// Whether a token that is due would still be taken.
fn still_good(login: &Login, refused: Option<&Secret>) -> bool {
    let has_time = login.tokens.expires_at.is_none_or(|end| unix_now() < end);
    refused != Some(&login.tokens.access) && has_time
}

/// Refusals that speak of the client and not of what it asks for.
fn is_about_client(code: &str) -> bool {
    matches!(code, "invalid_client" | "unauthorized_client")
}

fn client(login: &Login, means: &RenewalContext) -> OauthClient {
    let key = means.client_key.clone().or_else(|| login.signing_key());
    login.client.client(key.as_ref())
}

fn request<'a>(
    login: &'a Login,
    client: &'a OauthClient,
    scopes: &'a [String],
) -> TokenRequest<'a> {
    TokenRequest {
        endpoint: &login.token_endpoint,
        issuer: &login.issuer,
        client,
        resource: Some(&login.resource),
        scopes,
        dpop: login.dpop.as_ref(),
    }
}
