//! A login by code: the user's browser goes there and comes back, or they bring the answer
//! themselves.

use futures_util::future::BoxFuture;
use toolway_types::UnannouncedPkce;

use crate::authorize::{
    AuthorizationCode, AuthorizationOptions, AuthorizationStartError, PendingAuthorization, S256,
};
use crate::callback::{Callback, CallbackAddress};
use crate::metadata::shown;
use crate::registration::{ClientSource, RegisteredClient};
use crate::scopes::OFFLINE_ACCESS;
use crate::token::{DpopKey, TokenGrant, Tokens};

use super::{AccountChoice, LoginFault, LoginProgress, LoginRun, PreparedLogin};

/// The redirect address of a configured client without a callback port.
const CONFIGURED: &str = "http://localhost/callback";

impl LoginRun<'_> {
    pub(super) async fn by_code(
        &self,
        prepared: &PreparedLogin,
    ) -> Result<(RegisteredClient, Tokens), LoginFault> {
        let server = &prepared.found.server;
        let endpoint = server.authorization_endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| LoginFault::NoEndpoint {
            issuer: shown(&server.issuer),
            field: "authorization_endpoint",
        })?;
        // Looked at before anything is registered or opened.
        let assumed = [S256.to_owned()];
        let methods = match (
            &server.challenge_methods,
            self.request.spec.unannounced_pkce,
        ) {
            (None, UnannouncedPkce::Allowed) => {
                let issuer = shown(&server.issuer);
                self.context.ui.say(LoginProgress::UnannouncedPkce(issuer));
                Some(&assumed[..])
            }
            (announced, _) => announced.as_deref(),
        };
        if !methods.is_some_and(|methods| methods.iter().any(|method| method == S256)) {
            return Err(AuthorizationStartError::NoPkce {
                issuer: shown(&server.issuer),
                is_announced: methods.is_some(),
            }
            .into());
        }
        let callback = self.listen(prepared).await?;
        let chosen = self.client(prepared, Some(callback.redirect_uri())).await?;
        let registered = &chosen.registered;
        let thumbprint = prepared.dpop.as_ref().map(DpopKey::thumbprint);
        let mut extra = Vec::new();
        if let Some(thumbprint) = &thumbprint {
            extra.push(("dpop_jkt", thumbprint.as_str()));
        }
        let prompt = self.prompt(prepared);
        if !prompt.is_empty() {
            extra.push(("prompt", &prompt));
        }
        let attempt = PendingAuthorization::new(&AuthorizationOptions {
            issuer: &server.issuer,
            endpoint,
            challenge_methods: methods,
            promises_issuer: server.promises_issuer,
            client_id: &registered.client_id,
            redirect_uri: callback.redirect_uri(),
            resource: Some(&prepared.found.resource),
            scopes: &prepared.scopes,
            extra: &extra,
        })?;
        self.set_out(&chosen, &server.issuer).await?;
        let (ui, request) = (self.context.ui, self.request);
        ui.send_off(request.server, request.method, &attempt).await;
        let client = registered.client(request.client_key);
        let asks = &client;
        let spend = |code: AuthorizationCode| -> BoxFuture<'_, Result<Tokens, LoginFault>> {
            Box::pin(async move {
                ui.say(LoginProgress::Finishing);
                Ok(prepared.ask(asks, &TokenGrant::code(&code)).await?)
            })
        };
        let result = ui.returned(callback, &attempt, spend).await;
        self.concluded(chosen, &client, result, &server.issuer)
            .await
    }

    /// What the server is to ask the user for.
    fn prompt(&self, prepared: &PreparedLogin) -> String {
        let mut words = Vec::new();
        if self.request.account_choice == AccountChoice::Ask {
            words.push(prepared.found.server.choosing_prompt());
        }
        // OIDC gives what lasts only to those who ask the user for it.
        if prepared.scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
            words.push("consent");
        }
        words.join(" ")
    }

    /// Listens where this client's logins come back to.
    async fn listen(&self, prepared: &PreparedLogin) -> Result<Callback, LoginFault> {
        let (request, server) = (self.request, &prepared.found.server);
        let document = request.document.filter(|_| server.takes_documents);
        let kept = self.context.logins.client(&server.issuer).await?;
        let kept = kept
            .filter(|kept| kept.source == ClientSource::Dynamic)
            .and_then(|kept| kept.redirect_uri);
        let place = match (
            request.spec.callback_port,
            &request.spec.client_id,
            document,
            &kept,
        ) {
            (Some(port), ..) => CallbackAddress::Port(port),
            (None, Some(_), ..) => CallbackAddress::Known(CONFIGURED),
            (None, None, Some(document), _) => CallbackAddress::Known(&document.redirect_uri),
            (None, None, None, Some(kept)) => CallbackAddress::Known(kept),
            (None, None, None, None) => CallbackAddress::Free,
        };
        Ok(Callback::bind(request.server, place).await?)
    }
}
