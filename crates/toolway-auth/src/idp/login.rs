//! The login at the provider (OIDC): in a browser, or on another device.
//!
//! Owns the steps of that login. Whether to log in is decided by the caller.

use futures_util::future::BoxFuture;

use super::{IdentityProvider, IdpError, UserIdentity};
use crate::authorize::{AuthorizationCode, AuthorizationOptions, PendingAuthorization};
use crate::callback::{Callback, CallbackAddress};
use crate::device::DeviceLogin;
use crate::grant::LoginMethod;
use crate::login_ui::{DeviceCodePrompt, LoginUi};
use crate::metadata::ServerMetadata;
use crate::random;
use crate::token::TokenGrant;

/// What the provider is called in front of a user who knows servers by their names.
const NAME: &str = "identity provider";

/// Where the browser comes back to unless the settings say otherwise: an administrator registers
/// it with the provider, so it cannot be random. The port is ours to choose (RFC 8252).
const REDIRECT: &str = "http://localhost/callback";

impl IdentityProvider {
    pub(super) async fn by_browser(
        &self,
        ui: &dyn LoginUi,
        method: LoginMethod,
    ) -> Result<UserIdentity, IdpError> {
        let metadata = self.metadata().await?;
        let page = self.endpoint(
            metadata.authorization_endpoint.as_ref(),
            "authorization_endpoint",
        )?;
        let endpoint = self.idp_endpoint().await?;
        let place = self
            .settings
            .callback_port
            .map_or(CallbackAddress::Known(REDIRECT), CallbackAddress::Port);
        let callback = Callback::bind(&self.name(), place).await?;
        let nonce = random::word(32)?;
        let scopes = self.scopes(&metadata);
        // Many providers support PKCE without announcing it; the provider in the settings is
        // trusted to. One that announces other methods is still refused.
        let usual = ["S256".to_owned()];
        let methods = metadata.challenge_methods.as_deref().unwrap_or(&usual);
        let attempt = PendingAuthorization::new(&AuthorizationOptions {
            issuer: &self.settings.issuer,
            endpoint: page,
            challenge_methods: Some(methods),
            promises_issuer: metadata.promises_issuer,
            client_id: &self.settings.client_id,
            redirect_uri: callback.redirect_uri(),
            resource: None,
            scopes: &scopes,
            extra: &[("nonce", &nonce)],
        })?;
        ui.send_off(NAME, method, &attempt).await;
        let request = &self.request(&endpoint, &scopes);
        let nonce = nonce.as_str();
        let spend = |code: AuthorizationCode| -> BoxFuture<'_, Result<UserIdentity, IdpError>> {
            Box::pin(async move {
                let tokens = request.send(&self.web, &TokenGrant::code(&code)).await?;
                self.believed(tokens, Some(nonce)).await
            })
        };
        ui.returned(callback, &attempt, spend).await
    }

    pub(super) async fn by_device(&self, ui: &dyn LoginUi) -> Result<UserIdentity, IdpError> {
        let metadata = self.metadata().await?;
        let begin = self.endpoint(
            metadata.device_authorization_endpoint.as_ref(),
            "device_authorization_endpoint",
        )?;
        let endpoint = self.idp_endpoint().await?;
        let scopes = self.scopes(&metadata);
        let request = self.request(&endpoint, &scopes);
        let login = DeviceLogin::begin(&self.web, begin, &request).await?;
        ui.device(DeviceCodePrompt {
            server: NAME,
            login: &login,
        });
        let tokens = login.wait(&self.web, &request).await?;
        // There is no nonce in this way: the code in the answer is what ties it to this login.
        self.believed(tokens, None).await
    }

    fn scopes(&self, metadata: &ServerMetadata) -> Vec<String> {
        let mut scopes = vec!["openid".to_owned()];
        let offline = "offline_access".to_owned();
        let offered = metadata.scopes.contains(&offline).then_some(offline);
        for scope in self.settings.scopes.iter().cloned().chain(offered) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }
}
