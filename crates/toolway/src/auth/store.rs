//! Logins in a vault as the host uses them: renewed as they are needed.
//!
//! Owns the way from a server to its login, what identifies a client without a user there (the
//! program's or the entry's, never the server's), and what a failure to renew means for a request.
//! Does not own: renewing across processes (`toolway-auth`, `refresh.rs`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolway_auth::federated::FederatedRenewal;
use toolway_auth::logins::{Login, LoginGrant, LoginsError};
use toolway_auth::references::{ReferenceError, ReferenceResolver, no_resolver_error};
use toolway_auth::refresh::{LoginEnd, RefreshError, RenewalContext, RenewedLogins, TokenRenewer};
use toolway_auth::token::{SKEW, TokenError};
use toolway_auth::vault::{SecretKind, VaultKey};
use toolway_auth::voucher::Voucher;
use toolway_auth::web::{NetworkReach, SlowListener, WebClient};
use toolway_transport::OpenOptions;
use toolway_transport::client::HttpClient;
use toolway_types::{OauthSpec, Secret};

use super::Auth;
use super::organisation::CurrentOrganisation;
use crate::auth::access_token::{AccessToken, AccessTokenError, AccessTokenSource, LoginTarget};
use crate::auth::client_identity::ClientIdentities;
use crate::lock::lock;
use crate::server_source::definition::ServerIdentity;

/// The logins of a vault.
#[derive(Clone)]
pub(crate) struct LoginStore {
    pub(crate) logins: RenewedLogins,
    pub(crate) client: HttpClient,
    /// The organisation of federated logins.
    pub(crate) organisation: CurrentOrganisation,
    /// What logins can show that no person types.
    pub(super) client_identities: Arc<ClientIdentities>,
    /// What finds the secrets that an entry names for its login.
    pub(super) references: Option<ReferenceResolver>,
    /// Who is being asked to renew logins.
    pub(super) asked: RenewalsUnderWay,
    /// Who hears of answers that take long.
    pub(super) tell: Option<SlowListener>,
}

/// The authorization servers that are being asked to renew a login, by server.
#[derive(Debug, Clone, Default)]
pub(crate) struct RenewalsUnderWay(Arc<Mutex<BTreeMap<ServerIdentity, String>>>);

/// One is being asked until this is dropped.
struct RenewalGuard<'a>(&'a RenewalsUnderWay, ServerIdentity);

impl RenewalsUnderWay {
    fn note(&self, server: ServerIdentity, issuer: &str) -> RenewalGuard<'_> {
        lock(&self.0).insert(server.clone(), issuer.to_owned());
        RenewalGuard(self, server)
    }
}

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).remove(&self.1);
    }
}

impl Auth {
    /// The authorization server that is being asked to renew the login of this server.
    pub(crate) fn asks(&self, server: &ServerIdentity) -> Option<String> {
        let store = self.store.as_ref()?;
        lock(&store.asked.0).get(server).cloned()
    }

    /// Waits until what is being renewed is saved, and no longer than this.
    pub(crate) async fn settle(&self, within: Duration) {
        let Some(store) = &self.store else {
            return;
        };
        let organisation = async {
            if let Some(organisation) = store.organisation.get() {
                organisation.settle(within).await;
            }
        };
        tokio::join!(store.logins.settle(within), organisation);
    }
}

impl fmt::Debug for LoginStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LoginStore")
            .field("logins", &self.logins)
            .finish_non_exhaustive()
    }
}

impl LoginStore {
    /// What asks the authorization server of a server's login.
    pub(crate) async fn web(&self, target: &LoginTarget) -> WebClient {
        if target.oauth.auth_server_metadata_url.is_some() {
            return WebClient::trusted(self.client.clone()).within(&target.rules);
        }
        WebClient::new(self.client.clone(), NetworkReach::of(&target.url).await)
            .within(&target.rules)
    }

    /// Who vouches for the client: whoever the program or the entry names, unless policy has another
    /// way in mind.
    pub(super) fn voucher(&self, target: &LoginTarget) -> Option<Voucher> {
        let workload = self.client_identities.workloads.get(target.server.as_str());
        let voucher = if let Some(workload) = workload {
            Voucher::Platform {
                source: Arc::clone(&workload.source),
                audience: workload.audience.clone(),
            }
        } else {
            let spec = target.oauth.voucher.as_ref()?;
            Voucher::of(spec, self.references.clone(), self.open())
        };
        target.allows(voucher.grant()).then_some(voucher)
    }

    /// The settings of a login with the secrets that they name.
    pub(super) async fn filled(&self, spec: OauthSpec) -> Result<OauthSpec, ReferenceError> {
        let Some(first) = spec.references.first() else {
            return Ok(spec);
        };
        let finder = self
            .references
            .as_ref()
            .ok_or_else(|| no_resolver_error(first))?;
        finder.resolve_login(&spec, &self.open()).await
    }

    fn open(&self) -> OpenOptions {
        OpenOptions {
            client: self.client.clone(),
            ..OpenOptions::default()
        }
    }

    async fn login(
        &self,
        target: &LoginTarget,
        refused: Option<&Secret>,
    ) -> Result<Option<Login>, RefreshError> {
        let account = target.oauth.account.as_deref();
        let found = self
            .logins
            .find(target.server.as_str(), &target.definition, account)
            .await?;
        // One that policy does not allow any more is as good as none.
        let Some(login) = found.filter(|login| target.allows(login.how)) else {
            return Ok(None);
        };
        let web = self.web(target).await;
        let voucher = match login.how {
            LoginGrant::CrossApp => self.organisation_voucher(target).await.ok(),
            LoginGrant::Vouched(_) => self.voucher(target),
            _ => None,
        };
        let client_key = self.client_identities.key(target.server.as_str()).cloned();
        let renewal = voucher.map(|voucher| FederatedRenewal {
            voucher,
            web: web.clone(),
            client_key: client_key.clone(),
        });
        let means = RenewalContext {
            web,
            client_key,
            renewer: renewal.map(|renewal| Arc::new(renewal) as Arc<dyn TokenRenewer>),
        };
        let _asking = self.asked.note(target.identity(), &login.issuer);
        self.logins
            .fresh(&login.key(), refused, &means)
            .await
            .map(Some)
    }

    /// Whether the way of the first login is to be gone once more, from the beginning: then it is
    /// also said what is missing.
    async fn begins_anew(&self, target: &LoginTarget, error: &RefreshError) -> bool {
        if !target.takes_federated_login() {
            return false;
        }
        match (error, self.organisation.get()) {
            (RefreshError::NeedsLogin { .. }, _) => true,
            (RefreshError::Unavailable { .. }, Some(organisation)) => {
                !organisation.knows_somebody().await
            }
            _ => false,
        }
    }

    /// The secret of a server's client that a person gave at an earlier login.
    pub(super) async fn client_secret(
        &self,
        target: &LoginTarget,
        client_id: &str,
    ) -> Option<Secret> {
        let kept = self
            .logins
            .vault()
            .read(&secret_of(target, client_id))
            .await;
        kept.ok().flatten()
    }

    /// Keeps it: the next login at the server is made without a user who could give it.
    pub(super) async fn keep_client_secret(
        &self,
        target: &LoginTarget,
        client_id: &str,
        secret: &Secret,
    ) -> Result<(), LoginsError> {
        let key = secret_of(target, client_id);
        Ok(self.logins.vault().write(&key, secret).await?)
    }
}

impl AccessTokenSource for LoginStore {
    fn access_token<'a>(
        &'a self,
        target: &'a LoginTarget,
        refused: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<AccessToken>, AccessTokenError>> {
        async move {
            match self.login(target, refused).await {
                Ok(login) => Ok(login.map(AccessToken::from)),
                Err(RefreshError::NeedsLogin {
                    why: LoginEnd::NotLoggedIn,
                    ..
                }) => Ok(None),
                Err(error) if self.begins_anew(target, &error).await => Ok(None),
                Err(error @ RefreshError::NeedsLogin { .. }) => {
                    Err(AccessTokenError::Over(error.to_string()))
                }
                Err(error) => Err(match later(&error) {
                    Some(after) => AccessTokenError::Later {
                        why: error.to_string(),
                        after,
                    },
                    None => AccessTokenError::Unavailable(error.to_string()),
                }),
            }
        }
        .boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.logins.vault().changes()
    }
}

/// How long the authorization server wants to be left alone.
fn later(error: &RefreshError) -> Option<Duration> {
    match error {
        RefreshError::Unavailable { source, .. } => match **source {
            TokenError::Busy { retry_after } => retry_after,
            _ => None,
        },
        _ => None,
    }
}

impl From<Login> for AccessToken {
    fn from(login: Login) -> Self {
        let tokens = login.tokens;
        let renew_at = tokens.expires_at.map(|end| {
            let life = end.saturating_sub(tokens.received_at);
            end.saturating_sub(SKEW.min(life / 4))
        });
        Self {
            access: tokens.access,
            kind: tokens.kind,
            key: login.dpop,
            issuer: login.issuer,
            resource: login.resource,
            renew_at,
        }
    }
}

/// Where the secret of a configured client is kept.
fn secret_of(target: &LoginTarget, client_id: &str) -> VaultKey {
    VaultKey {
        server: target.server.as_str().to_owned(),
        definition: target.definition.clone(),
        account: client_id.to_owned(),
        ..VaultKey::of(SecretKind::Client)
    }
}
