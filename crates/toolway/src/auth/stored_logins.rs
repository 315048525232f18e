//! The logins that are kept, with or without a host that uses them.
//!
//! Owns listing them without their secrets, which of them a server uses, and giving them up: here
//! first, then at the authorization server.

use std::sync::Arc;

use toolway_auth::logins::{DEFAULT_ACCOUNT, Login, LoginGrant, Logins, LoginsError};
use toolway_auth::refresh::RenewedLogins;
use toolway_auth::revoke::{Revocation, RevokeError};
use toolway_auth::vault::{SecretKind, Vault, VaultBackend};
use toolway_auth::web::{NetworkReach, SlowListener, WebClient};
use toolway_transport::client::{HttpClient, HttpClientOptions};
use toolway_types::ServerSpec;
use url::Url;

use crate::auth::organisation::CurrentOrganisation;
use crate::auth::store::{LoginStore, RenewalsUnderWay};
use crate::auth::target;
use crate::server_source::ServerSource;

/// The logins in a vault.
#[derive(Debug)]
pub struct StoredLogins(LoginStore);

/// A login, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLogin {
    /// The server's name.
    pub server: String,
    /// The person's word for the account.
    pub account: String,
    /// The authorization server.
    pub issuer: String,
    /// What it is for.
    pub resource: String,
    /// What was granted, as far as is known.
    pub scopes: Vec<String>,
    /// Until when the token is valid, in seconds since 1970; `None` when unknown.
    pub expires_at: Option<u64>,
    /// Whether it renews itself.
    pub renews: bool,
    /// How it came about.
    pub how: LoginGrant,
    /// Where it lies.
    pub backend: VaultBackend,
    /// The digest of the server's definition.
    definition: String,
    /// When the person logged in, in seconds since 1970.
    logged_in_at: u64,
}

/// The login that a server of this definition uses, of all that are kept.
pub fn used<'a>(logins: &'a [StoredLogin], spec: &ServerSpec) -> Option<&'a StoredLogin> {
    let target = target(&spec.name, &ServerSource::Spec(Box::new(spec.clone())))?;
    let account = target.oauth.account.as_deref();
    let fits = |login: &&StoredLogin| {
        login.server == spec.name.as_str()
            && login.definition == target.definition
            && account.is_none_or(|account| login.account == account)
    };
    let rank = |login: &&StoredLogin| (login.account == DEFAULT_ACCOUNT, login.logged_in_at);
    let best = logins.iter().filter(fits).max_by_key(rank)?;
    // One that policy does not allow any more is as good as none.
    target.allows(best.how).then_some(best)
}

/// A login that was given up.
#[derive(Debug)]
pub struct RemovedLogin {
    /// The server's name.
    pub server: String,
    /// The person's word for the account.
    pub account: String,
    /// The authorization server.
    pub issuer: String,
    /// Whether the authorization server takes tokens back at all.
    pub can_revoke: bool,
    /// Why it may still be good there.
    pub not_revoked: Option<RevokeError>,
}

impl StoredLogins {
    /// The logins in a vault.
    pub fn new(vault: Vault, http: HttpClientOptions) -> Self {
        Self(LoginStore {
            logins: RenewedLogins::new(Logins::new(vault)),
            client: HttpClient::new(http),
            organisation: CurrentOrganisation::default(),
            client_identities: Arc::default(),
            references: None,
            asked: RenewalsUnderWay::default(),
            tell: None,
        })
    }

    /// The same; `tell` is called about authorization servers that take long to answer.
    #[must_use]
    pub fn telling(mut self, tell: SlowListener) -> Self {
        self.0.tell = Some(tell);
        self
    }

    /// Every login that can be read.
    pub async fn logins(&self) -> Result<Vec<StoredLogin>, LoginsError> {
        self.0.kept().await
    }

    /// The same, with why others that are kept could not be read.
    pub async fn every_login(&self) -> Result<(Vec<StoredLogin>, Vec<LoginsError>), LoginsError> {
        self.0.every().await
    }

    /// Gives up logins: of one server or of all, of one account or of all.
    pub async fn log_out(
        &self,
        server: Option<&str>,
        account: Option<&str>,
    ) -> Result<Vec<RemovedLogin>, LoginsError> {
        self.0.log_out(server, account).await
    }
}

impl LoginStore {
    pub(super) async fn kept(&self) -> Result<Vec<StoredLogin>, LoginsError> {
        Ok(self.every().await?.0)
    }

    async fn every(&self) -> Result<(Vec<StoredLogin>, Vec<LoginsError>), LoginsError> {
        let (mut logins, mut unread) = (Vec::new(), Vec::new());
        for listed in self.logins.vault().list().await? {
            if listed.key.kind != SecretKind::Login {
                continue;
            }
            // One that cannot be read hides no other.
            match self.logins.read(&listed.key).await {
                Ok(Some(login)) => logins.push(shown(login, listed.backend)),
                Ok(None) => {}
                Err(error) => unread.push(error),
            }
        }
        Ok((logins, unread))
    }

    pub(super) async fn log_out(
        &self,
        server: Option<&str>,
        account: Option<&str>,
    ) -> Result<Vec<RemovedLogin>, LoginsError> {
        let mut out = Vec::new();
        for listed in self.logins.vault().list().await? {
            let key = listed.key;
            let is_wanted = key.kind == SecretKind::Login
                && server.is_none_or(|server| key.server == server)
                && account.is_none_or(|account| key.account == account);
            if !is_wanted {
                continue;
            }
            let removed = self.logins.remove(&key).await?;
            out.push(match removed {
                Some(login) => self.give_back(login).await,
                // It could not be read any more, and is gone.
                None => RemovedLogin {
                    server: key.server,
                    account: key.account,
                    issuer: key.issuer,
                    can_revoke: false,
                    not_revoked: None,
                },
            });
        }
        Ok(out)
    }

    async fn give_back(&self, login: Login) -> RemovedLogin {
        let not_revoked = match &login.revocation_endpoint {
            Some(endpoint) => self.revoke(&login, endpoint).await.err(),
            None => None,
        };
        RemovedLogin {
            server: login.server,
            account: login.account,
            issuer: login.issuer,
            can_revoke: login.revocation_endpoint.is_some(),
            not_revoked,
        }
    }

    async fn revoke(&self, login: &Login, endpoint: &Url) -> Result<(), RevokeError> {
        // What could be reached to log in can be reached to log out.
        let web = if login.is_trusted {
            WebClient::trusted(self.client.clone())
        } else {
            let reach = match login.resource.parse::<Url>() {
                Ok(resource) => NetworkReach::of(&resource).await,
                Err(_) => NetworkReach::Public,
            };
            WebClient::new(self.client.clone(), reach)
        };
        let own = login.signing_key();
        let key = self.client_identities.key(&login.server).or(own.as_ref());
        let client = login.client.client(key);
        let revocation = Revocation {
            endpoint,
            issuer: &login.issuer,
            client: &client,
        };
        let web = web.telling(self.tell.clone());
        revocation.send(&web, &login.tokens).await
    }
}

fn shown(login: Login, backend: VaultBackend) -> StoredLogin {
    StoredLogin {
        renews: login.renews(),
        definition: login.definition,
        logged_in_at: login.logged_in_at,
        server: login.server,
        account: login.account,
        issuer: login.issuer,
        resource: login.resource,
        scopes: login.tokens.scopes,
        expires_at: login.tokens.expires_at,
        how: login.how,
        backend,
    }
}
