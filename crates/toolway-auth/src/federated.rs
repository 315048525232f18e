//! Federated logins: another party vouches for the user, their organisation (`xaa.rs`) or the
//! platform that this program runs on (`workload.rs`), so the server has no login page.
//!
//! Owns the steps of both, for the first login and for renewals: find the authorization server,
//! choose the client and the scopes, get a token.
//! Does not own: keeping the login (`logins.rs`), or whether the user may be asked.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::assertion::ClientKey;
use crate::clock::unix_now;
use crate::discovery::{DiscoveryError, DiscoveryOptions, discover};
use crate::idp::{self, IdentityProvider, IdpError};
use crate::login::{ClientStore, ClientStoreError, LoginRequest, bound_as};
use crate::logins::{Login, LoginGrant};
use crate::metadata::{ServerMetadata, shown};
use crate::refresh::TokenRenewer;
use crate::registration::{ClientRequest, ClientSource, RegisteredClient, known_client};
use crate::scopes::{self, OFFLINE_ACCESS, ScopeSources};
use crate::token::{DpopKey, TokenError, Tokens};
use crate::web::WebClient;
use crate::workload::{self, PlatformTokenSource, WorkloadError};
use crate::xaa::{self, CrossAppOutcome, CrossAppRule, TokenTarget, XaaError};

/// Who vouches for the user.
#[derive(Clone, Copy)]
pub enum FederatedSource<'a> {
    /// The user's organisation.
    Organisation {
        /// Its identity provider.
        provider: &'a IdentityProvider,
        /// How the user is reached, if they must be.
        method: idp::IdpLoginMethod<'a>,
        /// Whether another way to log in may follow.
        rule: CrossAppRule,
    },
    /// The platform.
    Platform {
        /// Where its token comes from.
        source: &'a PlatformTokenSource,
        /// Its audience, when it is not the authorization server itself.
        audience: Option<&'a str>,
    },
}

/// A federated login, without its definition and account.
#[derive(Debug, Clone)]
pub struct FederatedLogin {
    server: String,
    issuer: String,
    resource: String,
    client: RegisteredClient,
    tokens: Tokens,
    requested: Vec<String>,
    token_endpoint: url::Url,
    revocation_endpoint: Option<url::Url>,
    how: LoginGrant,
    dpop: Option<DpopKey>,
    is_trusted: bool,
}

impl FederatedLogin {
    /// The login to keep.
    pub fn login(self, definition: impl Into<String>, account: impl Into<String>) -> Login {
        Login {
            server: self.server,
            definition: definition.into(),
            account: account.into(),
            issuer: self.issuer,
            resource: self.resource,
            client: self.client,
            logged_in_at: self.tokens.received_at,
            is_trusted: self.is_trusted,
            client_key: None,
            tokens: self.tokens,
            requested: self.requested,
            token_endpoint: self.token_endpoint,
            revocation_endpoint: self.revocation_endpoint,
            how: self.how,
            dpop: self.dpop,
        }
    }
}

/// Why there is no login at a server.
#[derive(Debug, thiserror::Error)]
#[error("`{server}` cannot be logged in to: {fault}")]
pub struct FederatedLoginError {
    /// Which server.
    pub server: String,
    /// What went wrong.
    #[source]
    pub fault: FederatedLoginFault,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum FederatedLoginFault {
    /// It is not known who speaks for the server.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The authorization server has no token endpoint.
    #[error("the authorization server {issuer} has no token endpoint")]
    NoEndpoint {
        /// Which.
        issuer: String,
    },
    /// No client is configured or registered there.
    #[error("{issuer} must know us: register a client there and set `oauth.clientId`")]
    NoClient {
        /// Which authorization server.
        issuer: String,
    },
    /// The secret in the configuration belongs to another authorization server.
    #[error(
        "the server now names the authorization server {to}, but the client secret in its configuration belongs to {from}: nothing was sent"
    )]
    Moved {
        /// Whose the secret is.
        from: String,
        /// Who wants it.
        to: String,
    },
    /// What is kept of clients cannot be had.
    #[error(transparent)]
    Keep(#[from] ClientStoreError),
    /// The organisation gave no assertion, or it was refused.
    #[error(transparent)]
    Organisation(#[from] XaaError),
    /// The platform gave no token, or it was refused.
    #[error(transparent)]
    Platform(#[from] WorkloadError),
    /// The key for the token could not be made.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Logs in. `None` when the authorization server does not take what the organisation gives and the
/// rule allows another way.
pub async fn log_in(
    web: &WebClient,
    clients: &dyn ClientStore,
    request: &LoginRequest<'_>,
    source: FederatedSource<'_>,
) -> Result<Option<FederatedLogin>, FederatedLoginError> {
    let outcome = try_log_in(web, clients, request, source).await;
    outcome.map_err(|fault| FederatedLoginError {
        server: request.server.to_owned(),
        fault,
    })
}

async fn try_log_in(
    web: &WebClient,
    clients: &dyn ClientStore,
    request: &LoginRequest<'_>,
    source: FederatedSource<'_>,
) -> Result<Option<FederatedLogin>, FederatedLoginFault> {
    let options = DiscoveryOptions {
        metadata_url: request.spec.auth_server_metadata_url.clone(),
        known_issuer: request.known_issuer.map(str::to_owned),
    };
    let found = discover(web, request.url, request.challenge, &options).await?;
    let server = &found.server;
    let issuer = || shown(&server.issuer);
    let endpoint = server.token_endpoint.clone();
    let token_endpoint =
        endpoint.ok_or_else(|| FederatedLoginFault::NoEndpoint { issuer: issuer() })?;
    let wanted = ClientRequest {
        client_id: request.spec.client_id.as_deref(),
        client_secret: request.client_secret,
        has_key: request.client_key.is_some(),
        document: request.document,
        now: unix_now(),
        ..ClientRequest::default()
    };
    let mut client = known_client(server, &wanted)
        .ok_or_else(|| FederatedLoginFault::NoClient { issuer: issuer() })?;
    check_secret_binding(clients, request, &client, &server.issuer).await?;
    let mut requested = match request.scopes {
        Some(scopes) => scopes.to_vec(),
        None => scopes::initial(&ScopeSources {
            configured: request.spec.scopes.as_deref(),
            challenged: request
                .challenge
                .map(|challenge| challenge.scopes.as_slice())
                .unwrap_or_default(),
            resource: found.resource_metadata.as_ref(),
            server: Some(server),
        }),
    };
    // The vouching party is asked each time, so there is nothing to refresh.
    requested.retain(|scope| scope != OFFLINE_ACCESS);
    let wants_dpop = request.wants_dpop
        || found
            .resource_metadata
            .as_ref()
            .is_some_and(|resource| resource.requires_dpop || !resource.dpop_algorithms.is_empty());
    let dpop = wants_dpop
        .then(DpopKey::generate)
        .transpose()
        .map_err(TokenError::from)?;
    let asks = client.client(request.client_key);
    let target = TokenTarget {
        server,
        resource: &found.resource,
        client: &asks,
        scopes: &requested,
        dpop: dpop.as_ref(),
    };
    let Some(tokens) = source.tokens(&found.web, &target).await? else {
        return Ok(None);
    };
    client.learn(&asks);
    Ok(Some(FederatedLogin {
        server: request.server.to_owned(),
        issuer: found.server.issuer,
        resource: found.resource,
        client,
        tokens,
        requested,
        token_endpoint,
        revocation_endpoint: found.server.revocation_endpoint,
        how: source.how(),
        dpop,
        is_trusted: request.spec.auth_server_metadata_url.is_some(),
    }))
}

/// A configured secret belongs to the authorization server it was first used at, for this server:
/// another one may have a client of the same name somewhere else (SEC-19).
async fn check_secret_binding(
    clients: &dyn ClientStore,
    request: &LoginRequest<'_>,
    client: &RegisteredClient,
    issuer: &str,
) -> Result<(), FederatedLoginFault> {
    if client.source != ClientSource::Configured || client.client_secret.is_none() {
        return Ok(());
    }
    let is_named = request.spec.auth_server_metadata_url.is_some();
    let what = bound_as(&client.client_id, request.url);
    match clients.bound(&what).await? {
        Some(bound) if bound == issuer => Ok(()),
        Some(bound) if !is_named => Err(FederatedLoginFault::Moved {
            from: shown(&bound),
            to: shown(issuer),
        }),
        _ => Ok(clients.bind(&what, issuer).await?),
    }
}

/// Who vouches when a login is renewed without the user. Owned, because a renewal may outlive its
/// caller.
#[derive(Clone)]
pub enum RenewalSource {
    /// The user's organisation.
    Organisation {
        /// Its identity provider.
        provider: IdentityProvider,
        /// Whether another way to log in may follow.
        rule: CrossAppRule,
    },
    /// The platform.
    Platform {
        /// Where its token comes from.
        source: Arc<PlatformTokenSource>,
        /// Its audience, when it is not the authorization server itself.
        audience: Option<String>,
    },
}

impl RenewalSource {
    /// The same, borrowed.
    pub fn federated_source(&self) -> FederatedSource<'_> {
        match self {
            RenewalSource::Organisation { provider, rule } => FederatedSource::Organisation {
                provider,
                method: idp::IdpLoginMethod::StoredOnly,
                rule: *rule,
            },
            RenewalSource::Platform { source, audience } => FederatedSource::Platform {
                source,
                audience: audience.as_deref(),
            },
        }
    }
}

impl FederatedSource<'_> {
    fn how(self) -> LoginGrant {
        match self {
            FederatedSource::Organisation { .. } => LoginGrant::CrossApp,
            FederatedSource::Platform { .. } => LoginGrant::Workload,
        }
    }

    async fn tokens(
        self,
        web: &WebClient,
        target: &TokenTarget<'_>,
    ) -> Result<Option<Tokens>, FederatedLoginFault> {
        match self {
            FederatedSource::Organisation {
                provider,
                method,
                rule,
            } => match xaa::obtain(provider, method, web, target, rule).await? {
                CrossAppOutcome::Tokens(tokens) => Ok(Some(tokens)),
                CrossAppOutcome::Otherwise => Ok(None),
            },
            FederatedSource::Platform { source, audience } => {
                let tokens = workload::obtain(web, target, source, audience).await?;
                Ok(Some(tokens))
            }
        }
    }
}

/// Renews a login that is kept, by the way it came about.
#[derive(Clone)]
pub struct FederatedRenewal {
    /// Who vouches for the user.
    pub source: RenewalSource,
    /// What asks.
    pub web: WebClient,
    /// The key of the client, if it has one.
    pub client_key: Option<Arc<ClientKey>>,
}

impl TokenRenewer for FederatedRenewal {
    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Tokens, TokenError>> {
        Box::pin(async move {
            let source = self.source.federated_source();
            if login.how != source.how() {
                return Err(TokenError::NotAsked(format!(
                    "`{}` was logged in to in another way: log in again",
                    login.server
                )));
            }
            // The issuer was validated when the login was made, and is part of what it is kept by.
            let server = ServerMetadata {
                issuer: login.issuer.clone(),
                token_endpoint: Some(login.token_endpoint.clone()),
                ..ServerMetadata::default()
            };
            let target = TokenTarget {
                server: &server,
                resource: &login.resource,
                client: &login.client.client(self.client_key.as_ref()),
                scopes: &login.requested,
                dpop: login.dpop.as_ref(),
            };
            match source.tokens(&self.web, &target).await {
                Ok(Some(tokens)) => Ok(tokens),
                Ok(None) => Err(TokenError::NotAsked(
                    "the authorization server no longer takes cross-app access".to_owned(),
                )),
                Err(fault) => Err(token_error(fault)),
            }
        })
    }
}

/// A fault as the renewal of a login understands it: what the login's own authorization server
/// said stays what it said, and everything before that means that it was not asked.
fn token_error(fault: FederatedLoginFault) -> TokenError {
    match fault {
        FederatedLoginFault::Organisation(XaaError::Token(error))
        | FederatedLoginFault::Platform(WorkloadError::Token(error))
        | FederatedLoginFault::Token(error) => error,
        FederatedLoginFault::Organisation(XaaError::Identity(IdpError::Together(error))) => {
            TokenError::NotAsked(error.to_string())
        }
        other => TokenError::NotAsked(other.to_string()),
    }
}
