//! The organisation's identity provider, as a host and its front-ends use it.
//!
//! Owns making it of the settings, which one it is at the moment, looking up its client's secret
//! when it is first needed, and who the person in front of it is. There is one for all servers, so
//! that they share one login. Does not own: the login there (`toolway-auth`, `idp.rs`), or what
//! servers get of it (`federated_login.rs`).

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::OnceCell;
use toolway_auth::idp::{
    self, IdentityProvider, IdentityStore, IdpError, IdpLoginMethod, IdpLogoutOutcome, IdpSettings,
};
use toolway_auth::login::{LoginMethod, LoginUi};
use toolway_auth::references::{ReferenceError, ReferenceResolver, no_resolver_error};
use toolway_auth::vault::Vault;
use toolway_auth::web::WebClient;
use toolway_config::IdentitySettings;
use toolway_transport::OpenOptions;
use toolway_transport::client::HttpClient;

/// An organisation whose word counts at servers.
#[derive(Clone)]
pub struct Organisation(Arc<OrganisationInner>);

struct OrganisationInner {
    settings: Arc<IdentitySettings>,
    vault: Vault,
    open: OpenOptions,
    references: Option<ReferenceResolver>,
    provider: OnceCell<IdentityProvider>,
}

impl fmt::Debug for Organisation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Organisation")
            .field(&self.0.settings.issuer)
            .finish()
    }
}

/// The organisation of this moment: settings may name another one while a host runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentOrganisation(Arc<RwLock<Option<Organisation>>>);

impl CurrentOrganisation {
    pub(crate) fn new(organisation: Option<Organisation>) -> Self {
        Self(Arc::new(RwLock::new(organisation)))
    }

    /// The current one. What has begun with one is finished with it.
    pub(crate) fn get(&self) -> Option<Organisation> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    pub(crate) fn replace(&self, organisation: Option<Organisation>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = organisation;
    }
}

/// Who is logged in there, without any secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganisationUser {
    /// The provider's name for the person.
    pub subject: String,
    /// Until when its word is good, in seconds since 1970.
    pub expires_at: u64,
    /// Whether it is renewed without the person.
    pub renews: bool,
    /// Whether it can still be used.
    pub is_of_use: bool,
}

/// Why there is no login by the organisation.
#[derive(Debug, thiserror::Error)]
pub enum OrganisationError {
    /// The secret of its client is not there.
    #[error(transparent)]
    Secret(#[from] ReferenceError),
    /// The provider does not say who the person is.
    #[error(transparent)]
    Identity(#[from] IdpError),
}

impl Organisation {
    /// The organisation of these settings. What it says of the person is kept in the vault;
    /// `references` finds the secret of its client.
    pub fn new(
        settings: Arc<IdentitySettings>,
        vault: Vault,
        client: HttpClient,
        references: Option<ReferenceResolver>,
    ) -> Self {
        Self(Arc::new(OrganisationInner {
            settings,
            vault,
            open: OpenOptions {
                client,
                ..OpenOptions::default()
            },
            references,
            provider: OnceCell::new(),
        }))
    }

    /// The settings.
    pub fn settings(&self) -> &IdentitySettings {
        &self.0.settings
    }

    /// Logs the user in, whichever user was logged in before.
    pub async fn login(
        &self,
        way: LoginMethod,
        person: &dyn LoginUi,
    ) -> Result<OrganisationUser, OrganisationError> {
        let method = IdpLoginMethod::of(way, person);
        let identity = self.provider().await?.login(method).await?;
        Ok(OrganisationUser::from(&identity))
    }

    /// Forgets who the person is, and has the provider forget it. What servers were given stays
    /// good there until it expires.
    pub async fn logout(&self) -> Result<IdpLogoutOutcome, OrganisationError> {
        Ok(self.provider().await?.logout().await?)
    }

    /// Who is logged in, without asking the provider.
    pub async fn current_user(&self) -> Result<Option<OrganisationUser>, OrganisationError> {
        let stored = self.provider().await?.stored().await?;
        Ok(stored.as_ref().map(OrganisationUser::from))
    }

    /// Whether a user is logged in there, as far as is known without asking.
    pub(super) async fn knows_somebody(&self) -> bool {
        let current_user = self.current_user().await;
        matches!(current_user, Ok(Some(current_user)) if current_user.is_of_use)
    }

    /// Waits until what is being renewed is saved, and no longer than this.
    pub async fn settle(&self, within: Duration) {
        if let Some(provider) = self.0.provider.get() {
            provider.settle(within).await;
        }
    }

    pub(super) async fn provider(&self) -> Result<&IdentityProvider, OrganisationError> {
        let inner = &self.0;
        let make = async || -> Result<IdentityProvider, OrganisationError> {
            let settings = &inner.settings;
            let client_secret = match (&settings.client_secret, &inner.references) {
                (None, _) => None,
                (Some(reference), Some(references)) => {
                    Some(references.find(reference, &inner.open).await?)
                }
                (Some(reference), None) => return Err(no_resolver_error(reference).into()),
            };
            let settings = IdpSettings {
                issuer: settings.issuer.clone(),
                client_id: settings.client_id.clone(),
                client_secret,
                client_key: None,
                token_endpoint: settings.token_endpoint.clone(),
                callback_port: settings.callback_port,
                scopes: settings.scopes.clone(),
            };
            // The person or the administrator wrote its address.
            let web = WebClient::trusted(inner.open.client.clone());
            let store = Arc::new(IdentityStore::new(inner.vault.clone()));
            Ok(IdentityProvider::new(settings, web, store))
        };
        inner.provider.get_or_try_init(make).await
    }
}

impl From<&idp::UserIdentity> for OrganisationUser {
    fn from(identity: &idp::UserIdentity) -> Self {
        Self {
            subject: identity.subject.clone(),
            expires_at: identity.expires_at,
            renews: identity.refresh.is_some(),
            is_of_use: identity.is_of_use(),
        }
    }
}
