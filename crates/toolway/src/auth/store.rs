//! Logins in a vault as the host uses them: renewed as they are needed.
//!
//! Owns the way from a server to its login, and what a failure to renew means for a request.
//! Does not own: renewing across processes (`toolway-auth`, `refresh.rs`).

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolway_auth::badge::{Badge, Renewal};
use toolway_auth::idp;
use toolway_auth::login::{Clients, KeepError, Keeping};
use toolway_auth::logins::{How, Login, Logins, LoginsError};
use toolway_auth::refresh::{Again, Ended, Means, RefreshError};
use toolway_auth::registration::Registered;
use toolway_auth::token::SKEW;
use toolway_auth::vault::{Key, Kind};
use toolway_auth::web::{Reach, Web};
use toolway_transport::client::Client;
use toolway_types::Secret;

use super::organisation::Organisation;
use super::papers::Papers;
use super::pass::{Pass, PassError, Passes, Target};

/// The logins of a vault.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) logins: Logins,
    pub(crate) client: Client,
    /// Who vouches for the person.
    pub(crate) organisation: Option<Organisation>,
    /// What logins can show that no person types.
    pub(super) papers: Arc<Papers>,
}

impl Store {
    /// What asks the authorization server of a server's login.
    pub(crate) async fn web(&self, target: &Target) -> Web {
        if target.names_issuer {
            return Web::trusted(self.client.clone());
        }
        Web::new(self.client.clone(), Reach::of(&target.url).await)
    }

    async fn login(
        &self,
        target: &Target,
        refused: Option<&Secret>,
    ) -> Result<Option<Login>, RefreshError> {
        let account = target.account.as_deref();
        let found = self
            .logins
            .find(target.server.as_str(), &target.definition, account)
            .await?;
        // One that policy does not allow any more is as good as none.
        let Some(login) = found.filter(|login| target.allows(login.how)) else {
            return Ok(None);
        };
        let web = self.web(target).await;
        let provider = match &self.organisation {
            Some(organisation) if login.how == How::CrossApp => organisation.provider().await.ok(),
            _ => None,
        };
        let organisation = provider.map(|provider| Badge::Organisation {
            provider,
            way: idp::Way::Kept,
            rule: target.rule(),
        });
        let badge = match login.how {
            How::Workload => self.papers.platform(target),
            _ => organisation,
        };
        let client_key = self.papers.key(target.server.as_str());
        let renewal = badge.map(|badge| Renewal {
            badge,
            web: &web,
            client_key,
        });
        let means = Means {
            web: &web,
            client_key,
            again: renewal.as_ref().map(|renewal| renewal as &dyn Again),
        };
        self.logins
            .fresh(&login.key(), refused, &means)
            .await
            .map(Some)
    }

    /// Whether the way of the first login is to be gone once more, from the beginning: then it is
    /// also said what is missing.
    async fn begins_anew(&self, target: &Target, error: &RefreshError) -> bool {
        if !target.is_vouched_for() {
            return false;
        }
        match (error, &self.organisation) {
            (RefreshError::NeedsLogin { .. }, _) => true,
            (RefreshError::Unavailable { .. }, Some(organisation)) => {
                !organisation.knows_somebody().await
            }
            _ => false,
        }
    }

    /// The secret of a server's client that a person gave at an earlier login.
    pub(super) async fn client_secret(&self, target: &Target, client_id: &str) -> Option<Secret> {
        let kept = self
            .logins
            .vault()
            .read(&secret_of(target, client_id))
            .await;
        kept.ok().flatten()
    }

    /// Keeps it: the server is logged in to anew without anybody who could give it.
    pub(super) async fn keep_client_secret(
        &self,
        target: &Target,
        client_id: &str,
        secret: &Secret,
    ) -> Result<(), LoginsError> {
        let key = secret_of(target, client_id);
        Ok(self.logins.vault().write(&key, secret).await?)
    }
}

impl Passes for Store {
    fn pass<'a>(
        &'a self,
        target: &'a Target,
        refused: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Pass>, PassError>> {
        async move {
            match self.login(target, refused).await {
                Ok(login) => Ok(login.map(Pass::from)),
                Err(RefreshError::NeedsLogin {
                    why: Ended::NotLoggedIn,
                    ..
                }) => Ok(None),
                Err(error) if self.begins_anew(target, &error).await => Ok(None),
                Err(error @ RefreshError::NeedsLogin { .. }) => {
                    Err(PassError::Over(error.to_string()))
                }
                Err(error) => Err(PassError::Unavailable(error.to_string())),
            }
        }
        .boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.logins.vault().changes()
    }
}

impl From<Login> for Pass {
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

fn kept(error: &LoginsError) -> KeepError {
    KeepError(error.to_string())
}

/// Where it is kept at which issuer a configured client was first used.
fn bound(client_id: &str) -> Key {
    Key {
        kind: Kind::Client,
        server: String::new(),
        definition: String::new(),
        issuer: String::new(),
        resource: String::new(),
        account: client_id.to_owned(),
    }
}

/// Where the secret of a configured client is kept.
fn secret_of(target: &Target, client_id: &str) -> Key {
    Key {
        kind: Kind::Client,
        server: target.server.as_str().to_owned(),
        definition: target.definition.clone(),
        issuer: String::new(),
        resource: String::new(),
        account: client_id.to_owned(),
    }
}

/// Registered clients outlive logins.
impl Clients for Store {
    fn find<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Registered>> {
        async move {
            self.logins
                .client(issuer)
                .await
                .map_err(|error| kept(&error))
        }
        .boxed()
    }

    fn keep<'a>(&'a self, issuer: &'a str, client: &'a Registered) -> Keeping<'a, ()> {
        async move {
            self.logins
                .save_client(issuer, client)
                .await
                .map_err(|error| kept(&error))
        }
        .boxed()
    }

    fn forget<'a>(&'a self, issuer: &'a str) -> Keeping<'a, ()> {
        async move {
            let known = self
                .logins
                .client(issuer)
                .await
                .map_err(|error| kept(&error))?;
            let Some(known) = known else { return Ok(()) };
            let removed = self.logins.remove_client(issuer, &known.client_id);
            removed.await.map_err(|error| kept(&error))
        }
        .boxed()
    }

    fn bound<'a>(&'a self, client_id: &'a str) -> Keeping<'a, Option<String>> {
        async move {
            let read = self.logins.vault().read(&bound(client_id)).await;
            let read = read.map_err(|error| kept(&error.into()))?;
            Ok(read.map(|issuer| issuer.expose().to_owned()))
        }
        .boxed()
    }

    fn bind<'a>(&'a self, client_id: &'a str, issuer: &'a str) -> Keeping<'a, ()> {
        async move {
            let issuer = Secret::new(issuer);
            let written = self.logins.vault().write(&bound(client_id), &issuer).await;
            written.map_err(|error| kept(&error.into()))
        }
        .boxed()
    }
}
