//! A login from its beginning to its tokens.
//!
//! Owns the order of the steps: discovery, the choice of scopes and of a client, then a code from
//! the user's browser, a code typed on another device, or no user at all. No message holds a code, a
//! state, a verifier or a token; the address that a user has to open is given to [`LoginUi`] alone.
//! Does not own: any of the steps, which have files of their own, nor keeping the result.

mod client_history;
mod code;
mod error;
mod prepared;

use std::sync::Arc;

use toolway_types::{OauthSpec, Secret};
use url::Url;

use crate::assertion::ClientKey;
use crate::challenge::BearerChallenge;
use crate::device::DeviceLogin;
pub use crate::grant::LoginMethod;
pub use crate::login_ui::{DeviceCodePrompt, LoginPage, LoginProgress, LoginUi};
use crate::logins::{Login, Logins};
use crate::metadata::shown;
use crate::registration::{
    ClientDocument, ClientRequest, ClientSource, RegisteredClient, known_client, register,
};
use crate::scopes::LoginAttempts;
use crate::token::request::DEVICE_CODE;
use crate::token::{TokenGrant, Tokens};
use crate::web::WebClient;

use client_history::{ClientOrigin, LoginClient};
pub use error::{LoginError, LoginFault, LoginRemedy};
pub(crate) use prepared::PreparedLogin;

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
    /// The digest of its definition.
    pub definition: &'a str,
    /// The user's word for the account.
    pub account: &'a str,
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
    /// Where the clients are that were registered before.
    pub logins: &'a Logins,
    /// How many logins are under way.
    pub attempts: &'a LoginAttempts,
    /// Who logs in.
    pub ui: &'a dyn LoginUi,
}

/// Logs in.
pub async fn obtain(
    context: LoginContext<'_>,
    request: &LoginRequest<'_>,
) -> Result<Login, LoginError> {
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

impl LoginRun<'_> {
    async fn run(&self) -> Result<Login, LoginFault> {
        self.context.ui.say(LoginProgress::Discovering);
        let (web, request) = (self.context.web, self.request);
        let prepared = PreparedLogin::new(web, request, request.method.grant()).await?;
        let (client, tokens) = match request.method {
            LoginMethod::Browser | LoginMethod::Paste => self.by_code(&prepared).await?,
            LoginMethod::Device => self.by_device(&prepared).await?,
            LoginMethod::ClientCredentials => self.by_itself(&prepared).await?,
        };
        Ok(prepared.login(request, client, tokens))
    }

    /// The client for this login, registered if need be and kept at once: a login that is broken
    /// off must not leave one registration after the other behind.
    async fn client(
        &self,
        prepared: &PreparedLogin,
        redirect_uri: Option<&str>,
    ) -> Result<LoginClient, LoginFault> {
        let server = &prepared.found.server;
        let kept = self.context.logins.client(&server.issuer).await?;
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
            ..self.request.client()
        };
        if let Some(client) = known_client(server, &wanted) {
            let binding =
                (self.request).check_binding(self.context.logins, &client, &server.issuer);
            binding.await?;
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
        (self.context.logins)
            .save_client(&server.issuer, &client)
            .await?;
        Ok(LoginClient::of(client, ClientOrigin::Registered))
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
        let mut registered = known_client(server, &self.request.client())
            .filter(|client| client.source == ClientSource::Configured)
            .filter(|client| client.client_secret.is_some() || self.request.client_key.is_some())
            .ok_or(LoginFault::NoCredentials)?;
        let (request, logins) = (self.request, self.context.logins);
        let binding = request.check_binding(logins, &registered, &server.issuer);
        binding.await?;
        let client = registered.client(self.request.client_key);
        let tokens = prepared
            .ask(&client, &TokenGrant::client_credentials())
            .await?;
        registered.learn(&client);
        Ok((registered, tokens))
    }
}
