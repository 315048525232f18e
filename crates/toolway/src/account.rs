//! The account's connectors: who one is to them, and which there are.
//!
//! Owns the credentials of a connector, which are the account's and go to the provider's proxy
//! alone, which account it is (`account/current.rs`), logging in to it from inside a
//! host (`account/login.rs`), and keeping the list of connectors fresh while
//! a host runs (`account/follow.rs`).
//! Does not own: how tokens are kept and renewed (`toolway-auth`), what a directory may say and
//! where its copy stands in the plan (`toolway-config`).

mod current;
mod follow;
mod login;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolway_auth::account::{
    AccountLoginTarget, AccountSpec, ProviderAccount, ProviderAccountError, StoredAccount,
};
use toolway_auth::logins::Logins;
use toolway_auth::web::WebClient;
use toolway_config::{AccountProvider, Plan};
use toolway_transport::client::HttpClient;
use toolway_transport::credentials::{
    CredentialHeaders, CredentialRefusal, CredentialRequest, Credentials, CredentialsError,
    RetryDecision,
};
use toolway_types::Secret;

pub(crate) use self::current::{AccountChange, CurrentAccount};
pub use self::follow::{DirectoryState, PATIENCE, Refreshed, forget, refresh};
pub(crate) use self::login::AccountLoginRunner;
use crate::journal::JournalWriter;
use crate::server_source::ServerSource;

/// An account and what a host needs to have its connectors.
#[derive(Debug, Clone)]
pub struct Connectors {
    /// Who asks.
    pub account: ProviderAccount,
    /// Who is asked.
    pub provider: Arc<AccountProvider>,
    /// Where the copy of the directory is kept.
    pub copy: PathBuf,
    /// Where a person logs in to it.
    pub(crate) login_runner: Arc<AccountLoginRunner>,
}

/// What a host needs to have the connectors of a plan's account; nothing where it has none.
/// Asked again with every new plan.
pub type ConnectorsOf = Arc<dyn Fn(&Plan) -> Option<Connectors> + Send + Sync>;

impl Connectors {
    /// The connectors of the login that is kept for this provider. `client` is how servers are
    /// reached, and so the provider.
    pub fn kept(
        provider: Arc<AccountProvider>,
        logins: Logins,
        client: HttpClient,
        copy: PathBuf,
    ) -> Self {
        let kept = Arc::new(kept(&provider, logins, client.clone()));
        let login_runner = Arc::new(AccountLoginRunner::new(Arc::clone(&kept)));
        let spec = AccountSpec {
            host: provider.host().to_owned(),
            directory: provider.directory_url.clone(),
            headers: provider.headers.clone(),
            token_header: provider.token_header.clone(),
            token_prefix: provider.token_prefix.clone(),
        };
        let account = ProviderAccount::new(spec, WebClient::trusted(client), kept);
        Self {
            account,
            provider,
            copy,
            login_runner,
        }
    }
}

/// The login that is kept for a provider.
pub fn kept(provider: &AccountProvider, logins: Logins, client: HttpClient) -> StoredAccount {
    let login = AccountLoginTarget {
        host: provider.host().to_owned(),
        definition: provider.digest(),
        issuer: provider.issuer.clone(),
        metadata_url: provider.metadata_url.clone(),
        directory: provider.directory_url.clone(),
        client_id: provider.client_id.clone(),
        scopes: provider.scopes.clone(),
        callback_port: provider.callback_port,
    };
    StoredAccount::new(login, logins, WebClient::trusted(client))
}

/// The credentials for one connection to a connector; none for every other server, and none for
/// an entry that calls itself a connector and leads elsewhere.
pub(crate) fn credentials(
    source: &ServerSource,
    connectors: Option<&Connectors>,
    journal: Option<&JournalWriter>,
) -> Option<Arc<dyn Credentials>> {
    let connectors = connectors?;
    let remote = source.spec()?.transport.remote()?;
    if !source.is_connector() || !connectors.provider.proxy.leads_to(&remote.url) {
        return None;
    }
    Some(Arc::new(Bearer {
        account: connectors.account.clone(),
        provider: Arc::clone(&connectors.provider),
        journal: journal.cloned(),
    }))
}

/// The account's token, for one connector.
struct Bearer {
    account: ProviderAccount,
    provider: Arc<AccountProvider>,
    journal: Option<JournalWriter>,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Bearer")
            .field(&self.account)
            .finish()
    }
}

impl Credentials for Bearer {
    fn present<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<CredentialHeaders, CredentialsError>> {
        Box::pin(async move {
            // The transport keeps to the origin; the token keeps to the proxy's addresses.
            if !self.provider.proxy.leads_to(request.url) {
                return Ok(CredentialHeaders::default());
            }
            let headers = self.account.present().await;
            let headers = headers.map_err(|error| explained(&error))?;
            if let Some(journal) = &self.journal {
                let shown: Vec<(String, Secret)> = headers
                    .iter()
                    .filter_map(|(name, value)| {
                        Some((name.to_string(), Secret::new(value.to_str().ok()?)))
                    })
                    .collect();
                journal.keep_back(&shown);
            }
            Ok(CredentialHeaders::new(headers))
        })
    }

    fn refused<'a>(
        &'a self,
        presented: &'a CredentialHeaders,
        refusal: CredentialRefusal<'a>,
    ) -> BoxFuture<'a, RetryDecision> {
        Box::pin(async move {
            // A 403 is the connector's own word on what the account may do there.
            if refusal.status != 401 {
                return RetryDecision::GiveUp;
            }
            match self.account.instead_of(presented.headers()).await {
                Ok(Some(_)) => RetryDecision::Again,
                Ok(None) => RetryDecision::GiveUp,
                Err(error) => {
                    tracing::warn!(%error, "the account's token was refused and is not renewed");
                    RetryDecision::GiveUp
                }
            }
        })
    }
}

fn explained(error: &ProviderAccountError) -> CredentialsError {
    let message = error.to_string();
    if error.wants_login() {
        CredentialsError::Login(message)
    } else {
        CredentialsError::Unavailable(message)
    }
}
