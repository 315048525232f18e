//! A login from its beginning to its tokens.
//!
//! Owns the order of the steps: discovery, the choice of scopes and of a client, then a code from
//! the user's browser, a code typed on another device, or no user at all; and what is told to the
//! user meanwhile. No terminal is touched here: that is what [`LoginUi`] is for.
//! Does not own: any of the steps, which have files of their own, nor keeping the result.
//!
//! No message holds a code, a state, a verifier or a token. The address that a user has to open is
//! handed to [`LoginUi`] and to nothing else.

mod client_history;
mod clients;
mod code;
mod error;
mod ui;

use std::sync::Arc;
use std::time::Duration;

use toolway_types::{OauthSpec, Secret};
use url::Url;

use crate::assertion::ClientKey;
use crate::challenge::BearerChallenge;
use crate::clock::unix_now;
use crate::device::DeviceLogin;
use crate::discovery::{DiscoveredServer, DiscoveryOptions, discover};
use crate::metadata::shown;
use crate::registration::{
    ClientDocument, ClientRequest, ClientSource, RegisteredClient, known_client, register,
};
use crate::scopes::{self, LoginAttempts, OFFLINE_ACCESS, ScopeSources};
use crate::token::{DpopKey, OauthClient, TokenError, TokenGrant, TokenRequest, Tokens};
use crate::web::WebClient;

use client_history::{ClientOrigin, LoginClient};
pub(crate) use clients::bound_as;
pub use clients::{ClientStore, ClientStoreError, ClientStoreFuture, MemoryClientStore};
pub use error::{LoginError, LoginFault};
pub use ui::{DeviceCodePrompt, LoginPage, LoginProgress, LoginUi};

/// The most requests of one grant to a server that is busy, and the longest wait between them.
const MAX_TRIES: u32 = 3;
const MAX_WAIT: Duration = Duration::from_secs(20);

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// How to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoginMethod {
    /// A browser on this machine is opened, and comes back to it.
    Browser,
    /// The user opens the page wherever they like, and pastes the address it ended at.
    Paste,
    /// The user types a code on another device (RFC 8628).
    Device,
    /// No user: the client logs in for itself.
    ClientCredentials,
}

/// Which account a user logs in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AccountChoice {
    /// The account of the browser's session.
    #[default]
    BrowserSession,
    /// The user is asked for the account, whichever was used last.
    Ask,
}

/// What to log in to, and how.
#[derive(Debug, Clone)]
pub struct LoginRequest<'a> {
    /// The server, as the user calls it.
    pub server: &'a str,
    /// Its address.
    pub url: &'a Url,
    /// What it said when it refused us.
    pub challenge: Option<&'a BearerChallenge>,
    /// The `oauth` settings of its entry.
    pub spec: &'a OauthSpec,
    /// The scopes of a step-up, in place of a first choice.
    pub scopes: Option<&'a [String]>,
    /// How.
    pub method: LoginMethod,
    /// Which account.
    pub account_choice: AccountChoice,
    /// The secret of the configured client.
    pub client_secret: Option<&'a Secret>,
    /// The key of the configured client.
    pub client_key: Option<&'a Arc<ClientKey>>,
    /// Our metadata document.
    pub document: Option<&'a ClientDocument>,
    /// The issuer of an earlier login.
    pub known_issuer: Option<&'a str>,
    /// Whether the server asked for a proof of possession in its challenge.
    pub wants_dpop: bool,
}

/// What a login is made with.
#[derive(Clone, Copy)]
pub struct LoginContext<'a> {
    /// What asks.
    pub web: &'a WebClient,
    /// The clients that were registered before.
    pub clients: &'a dyn ClientStore,
    /// How many logins are under way.
    pub attempts: &'a LoginAttempts,
    /// Who logs in.
    pub ui: &'a dyn LoginUi,
}

/// The result of a login.
#[derive(Debug, Clone)]
pub struct ObtainedLogin {
    /// The authorization server, as its metadata writes it.
    pub issuer: String,
    /// The resource that the tokens are for.
    pub resource: String,
    /// Who we are there.
    pub client: RegisteredClient,
    /// What it gave.
    pub tokens: Tokens,
    /// The scopes that were asked for.
    pub requested: Vec<String>,
    /// Where tokens are refreshed.
    pub token_endpoint: Url,
    /// Where they are given back.
    pub revocation_endpoint: Option<Url>,
    /// How.
    pub method: LoginMethod,
    /// The key that the tokens are bound to.
    pub dpop: Option<DpopKey>,
    /// The user named the authorization server: its endpoints may be anywhere.
    pub is_trusted: bool,
}

/// Logs in.
pub async fn obtain(
    context: LoginContext<'_>,
    request: &LoginRequest<'_>,
) -> Result<ObtainedLogin, LoginError> {
    let named = |fault| LoginError {
        server: request.server.to_owned(),
        fault,
        is_configured: request.spec.client_id.is_some(),
    };
    let _guard = context
        .attempts
        .open(request.server)
        .map_err(|spent| named(spent.into()))?;
    LoginRun { context, request }.run().await.map_err(named)
}

/// A login that is under way.
struct LoginRun<'a> {
    context: LoginContext<'a>,
    request: &'a LoginRequest<'a>,
}

/// What is known before any request for a token.
struct PreparedLogin {
    found: DiscoveredServer,
    token_endpoint: Url,
    scopes: Vec<String>,
    dpop: Option<DpopKey>,
}

impl LoginRun<'_> {
    async fn run(&self) -> Result<ObtainedLogin, LoginFault> {
        self.context.ui.say(LoginProgress::Discovering);
        let prepared = self.prepare().await?;
        let (client, tokens) = match self.request.method {
            LoginMethod::Browser | LoginMethod::Paste => self.by_code(&prepared).await?,
            LoginMethod::Device => self.by_device(&prepared).await?,
            LoginMethod::ClientCredentials => self.by_itself(&prepared).await?,
        };
        let PreparedLogin {
            found,
            token_endpoint,
            scopes,
            dpop,
        } = prepared;
        Ok(ObtainedLogin {
            issuer: found.server.issuer,
            resource: found.resource,
            client,
            tokens,
            requested: scopes,
            token_endpoint,
            revocation_endpoint: found.server.revocation_endpoint,
            method: self.request.method,
            dpop,
            is_trusted: self.request.spec.auth_server_metadata_url.is_some(),
        })
    }

    async fn prepare(&self) -> Result<PreparedLogin, LoginFault> {
        let request = self.request;
        let options = DiscoveryOptions {
            metadata_url: request.spec.auth_server_metadata_url.clone(),
            known_issuer: request.known_issuer.map(str::to_owned),
        };
        let found = discover(self.context.web, request.url, request.challenge, &options).await?;
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
        if request.method == LoginMethod::ClientCredentials {
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
        Ok(PreparedLogin {
            found,
            token_endpoint,
            scopes,
            dpop: dpop.map_err(TokenError::from)?,
        })
    }

    /// The client for this login, registered if need be and kept at once: a login that is broken
    /// off must not leave one registration after the other behind.
    async fn client(
        &self,
        prepared: &PreparedLogin,
        redirect_uri: Option<&str>,
    ) -> Result<LoginClient, LoginFault> {
        let server = &prepared.found.server;
        let kept = self.context.clients.find(&server.issuer).await?;
        let mut grants = Vec::new();
        if redirect_uri.is_some() {
            grants.push("authorization_code");
        }
        if server.offers("refresh_token") {
            grants.push("refresh_token");
        }
        // Only what can be used: there are servers that give a client one kind of login, and refuse
        // a client that asks for two.
        let takes_devices = server.device_authorization_endpoint.is_some();
        if takes_devices && server.grant_types.is_some() && server.offers(DEVICE_CODE) {
            grants.push(DEVICE_CODE);
        }
        let wanted = ClientRequest {
            redirect_uri,
            grants: &grants,
            scopes: &prepared.scopes,
            kept: kept.as_ref(),
            ..self.wanted()
        };
        if let Some(client) = known_client(server, &wanted) {
            self.belongs(&client, &server.issuer).await?;
            return Ok(LoginClient::of(client, ClientOrigin::AtHand));
        }
        self.context.ui.say(
            if (kept.as_ref()).is_some_and(|kept| kept.history.is_unanswered) {
                LoginProgress::RegisteringAnew
            } else {
                LoginProgress::Registering
            },
        );
        let client = register(&prepared.found.web, server, &wanted).await?;
        self.context.clients.keep(&server.issuer, &client).await?;
        Ok(LoginClient::of(client, ClientOrigin::Registered))
    }

    fn wanted(&self) -> ClientRequest<'_> {
        ClientRequest {
            client_id: self.request.spec.client_id.as_deref(),
            client_secret: self.request.client_secret,
            has_key: self.request.client_key.is_some(),
            document: self.request.document,
            now: unix_now(),
            ..ClientRequest::default()
        }
    }

    /// A configured secret belongs to the authorization server it was first used at: a server that
    /// names another one later does not get it sent there (SEC-19).
    async fn belongs(&self, client: &RegisteredClient, issuer: &str) -> Result<(), LoginFault> {
        if client.source != ClientSource::Configured || client.client_secret.is_none() {
            return Ok(());
        }
        let clients = self.context.clients;
        let what = bound_as(&client.client_id, self.request.url);
        // An authorization server that the user configured is the one for this secret.
        let is_named = self.request.spec.auth_server_metadata_url.is_some();
        match clients.bound(&what).await? {
            Some(bound) if bound == issuer => Ok(()),
            Some(bound) if !is_named => Err(LoginFault::Moved {
                from: shown(&bound),
                to: shown(issuer),
            }),
            _ => Ok(clients.bind(&what, issuer).await?),
        }
    }

    /// A code typed on another device.
    async fn by_device(
        &self,
        prepared: &PreparedLogin,
    ) -> Result<(RegisteredClient, Tokens), LoginFault> {
        let server = &prepared.found.server;
        let endpoint = server.device_authorization_endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| LoginFault::NoEndpoint {
            issuer: shown(&server.issuer),
            field: "device_authorization_endpoint",
        })?;
        let chosen = self.client(prepared, None).await?;
        let client = chosen.registered.client(self.request.client_key);
        let request = prepared.request(&client);
        let typed = async {
            let web = &prepared.found.web;
            let device = DeviceLogin::begin(web, endpoint, &request).await?;
            self.context.ui.device(DeviceCodePrompt {
                server: self.request.server,
                login: &device,
            });
            device.wait(web, &request).await
        };
        let typed = typed.await.map_err(LoginFault::from);
        self.concluded(chosen, &client, typed, &server.issuer).await
    }

    /// Only the client.
    async fn by_itself(
        &self,
        prepared: &PreparedLogin,
    ) -> Result<(RegisteredClient, Tokens), LoginFault> {
        let server = &prepared.found.server;
        let mut registered = known_client(server, &self.wanted())
            .filter(|client| client.source == ClientSource::Configured)
            .filter(|client| client.client_secret.is_some() || self.request.client_key.is_some())
            .ok_or(LoginFault::NoCredentials)?;
        self.belongs(&registered, &server.issuer).await?;
        let client = registered.client(self.request.client_key);
        let tokens = prepared.ask(&client, TokenGrant::ClientCredentials).await?;
        registered.learn(&client);
        Ok((registered, tokens))
    }
}

impl PreparedLogin {
    fn request<'a>(&'a self, client: &'a OauthClient) -> TokenRequest<'a> {
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
    async fn ask(&self, client: &OauthClient, grant: TokenGrant<'_>) -> Result<Tokens, TokenError> {
        let mut tries = 1;
        loop {
            let error = match self.request(client).send(&self.found.web, grant).await {
                Err(error @ TokenError::Busy { .. }) if tries < MAX_TRIES => error,
                done => return done,
            };
            let TokenError::Busy { retry_after } = error else {
                return Err(error);
            };
            let wait = retry_after.unwrap_or(Duration::from_secs(1));
            if wait > MAX_WAIT {
                return Err(TokenError::Busy { retry_after });
            }
            tokio::time::sleep(wait).await;
            tries += 1;
        }
    }
}
