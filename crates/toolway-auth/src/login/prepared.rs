//! What a login of any grant knows before it asks for a token.
//!
//! Owns finding the authorization server, the choice of scopes, the key to bind tokens to, the rule
//! that a configured secret stays at its authorization server, and the login that is made of it all.

use std::time::Duration;

use url::Url;

use super::{LoginFault, LoginRequest};
use crate::clock::unix_now;
use crate::discovery::{DiscoveredServer, DiscoveryOptions, canonical, discover};
use crate::grant::LoginGrant;
use crate::logins::{Login, Logins};
use crate::metadata::shown;
use crate::registration::{ClientRequest, ClientSource, RegisteredClient};
use crate::scopes::{self, OFFLINE_ACCESS, ScopeSources};
use crate::token::{DpopKey, OauthClient, TokenError, TokenGrant, TokenRequest, Tokens};
use crate::web::WebClient;

/// The most requests of one grant to a server that is busy, and the longest wait between them.
const MAX_TRIES: u32 = 3;
const MAX_WAIT: Duration = Duration::from_secs(20);

pub(crate) struct PreparedLogin {
    pub(crate) found: DiscoveredServer,
    pub(crate) token_endpoint: Url,
    pub(crate) scopes: Vec<String>,
    pub(crate) dpop: Option<DpopKey>,
    pub(crate) grant: LoginGrant,
}

impl LoginRequest<'_> {
    /// The client that is wanted, as far as the entry says.
    pub(crate) fn client(&self) -> ClientRequest<'_> {
        ClientRequest {
            client_id: self.spec.client_id.as_deref(),
            client_secret: self.client_secret,
            has_key: self.client_key.is_some(),
            document: self.document,
            now: unix_now(),
            ..ClientRequest::default()
        }
    }

    /// A configured secret belongs to the authorization server it was first used at: a server that
    /// names another one later does not get it sent there (SEC-19).
    pub(crate) async fn check_binding(
        &self,
        logins: &Logins,
        client: &RegisteredClient,
        issuer: &str,
    ) -> Result<(), LoginFault> {
        if client.source != ClientSource::Configured || client.client_secret.is_none() {
            return Ok(());
        }
        // Two servers may have clients of one name at two authorization servers.
        let what = format!("{} for {}", client.client_id, canonical(self.url));
        // An authorization server that the user configured is the one for this secret.
        let is_named = self.spec.auth_server_metadata_url.is_some();
        match logins.bound(&what).await? {
            Some(bound) if bound == issuer => Ok(()),
            Some(bound) if !is_named => Err(LoginFault::Moved {
                from: shown(&bound),
                to: shown(issuer),
            }),
            _ => Ok(logins.bind(&what, issuer).await?),
        }
    }
}

impl PreparedLogin {
    pub(crate) async fn new(
        web: &WebClient,
        request: &LoginRequest<'_>,
        grant: LoginGrant,
    ) -> Result<Self, LoginFault> {
        let options = DiscoveryOptions {
            metadata_url: request.spec.auth_server_metadata_url.clone(),
            known_issuer: request.known_issuer.map(str::to_owned),
        };
        let found = discover(web, request.url, request.challenge, &options).await?;
        let token_endpoint = found.server.token_endpoint.clone();
        let token_endpoint = token_endpoint.ok_or_else(|| LoginFault::NoEndpoint {
            issuer: shown(&found.server.issuer),
            field: "token_endpoint",
        })?;
        // What cannot be reached is known before a user is sent anywhere.
        found.web.check(&token_endpoint)?;
        let mut scopes = match request.scopes {
            Some(scopes) => scopes.to_vec(),
            None => scopes::initial(&ScopeSources {
                configured: request.spec.scopes.as_deref(),
                challenged: request
                    .challenge
                    .map(|challenge| challenge.scopes.as_slice())
                    .unwrap_or_default(),
                resource: found.resource_metadata.as_ref(),
                server: Some(&found.server),
            }),
        };
        if !grant.needs_user() {
            // There is no user who could be absent.
            scopes.retain(|scope| scope != OFFLINE_ACCESS);
        }
        // Only where the resource knows of it: an authorization server alone would hand out
        // tokens that a resource, which looks for a bearer, does not take.
        let wants_dpop = request.wants_dpop
            || found.resource_metadata.as_ref().is_some_and(|resource| {
                resource.requires_dpop || !resource.dpop_algorithms.is_empty()
            });
        let dpop = wants_dpop.then(DpopKey::generate).transpose();
        Ok(Self {
            found,
            token_endpoint,
            scopes,
            dpop: dpop.map_err(TokenError::from)?,
            grant,
        })
    }

    pub(crate) fn request<'a>(&'a self, client: &'a OauthClient) -> TokenRequest<'a> {
        TokenRequest {
            endpoint: &self.token_endpoint,
            issuer: &self.found.server.issuer,
            client,
            resource: Some(&self.found.resource),
            scopes: &self.scopes,
            dpop: self.dpop.as_ref(),
        }
    }

    /// Asks for tokens; again, after the wait it asks for, when the server is busy: it did not
    /// look at the grant then (REL-27).
    pub(super) async fn ask(
        &self,
        client: &OauthClient,
        grant: &TokenGrant<'_>,
    ) -> Result<Tokens, TokenError> {
        for _ in 1..MAX_TRIES {
            let retry_after = match self.request(client).send(&self.found.web, grant).await {
                Err(TokenError::Busy { retry_after }) => retry_after,
                done => return done,
            };
            let wait = retry_after.unwrap_or(Duration::from_secs(1));
            if wait > MAX_WAIT {
                return Err(TokenError::Busy { retry_after });
            }
            tokio::time::sleep(wait).await;
        }
        self.request(client).send(&self.found.web, grant).await
    }

    /// The login to keep.
    pub(crate) fn login(
        self,
        request: &LoginRequest<'_>,
        client: RegisteredClient,
        tokens: Tokens,
    ) -> Login {
        Login {
            server: request.server.to_owned(),
            definition: request.definition.to_owned(),
            account: request.account.to_owned(),
            issuer: self.found.server.issuer,
            resource: self.found.resource,
            client,
            logged_in_at: tokens.received_at,
            tokens,
            requested: self.scopes,
            token_endpoint: self.token_endpoint,
            revocation_endpoint: self.found.server.revocation_endpoint,
            how: self.grant,
            dpop: self.dpop,
            client_key: None,
            // The user named the authorization server: its endpoints may be anywhere.
            is_trusted: request.spec.auth_server_metadata_url.is_some(),
        }
    }
}
