//! Federated logins: another party vouches for the user (`voucher.rs`), so the server has no login
//! page.
//!
//! Owns the steps, for the first login and for renewals: find the authorization server, choose the
//! client and the scopes, get a token.
//! Does not own: keeping the login (`logins.rs`), or whether the user may be asked.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::assertion::ClientKey;
use crate::idp::IdpLoginMethod;
use crate::login::{LoginFault, LoginRequest, PreparedLogin};
use crate::logins::{Login, Logins};
use crate::metadata::{ServerMetadata, shown};
use crate::refresh::TokenRenewer;
use crate::registration::known_client;
use crate::token::{TokenError, Tokens};
use crate::voucher::Voucher;
use crate::voucher::xaa::TokenTarget;
use crate::web::WebClient;

/// Logs in. `None` when the authorization server does not take what the organisation gives and the
/// rule allows another way. `method` is how the user is reached, if they must be.
pub async fn log_in(
    web: &WebClient,
    logins: &Logins,
    request: &LoginRequest<'_>,
    voucher: &Voucher,
    method: IdpLoginMethod<'_>,
) -> Result<Option<Login>, LoginFault> {
    let prepared = PreparedLogin::new(web, request, voucher.grant()).await?;
    let server = &prepared.found.server;
    let mut client =
        known_client(server, &request.client()).ok_or_else(|| LoginFault::NoClient {
            issuer: shown(&server.issuer),
        })?;
    let binding = request.check_binding(logins, &client, &server.issuer);
    binding.await?;
    let asks = client.client(request.client_key);
    let target = TokenTarget {
        server,
        resource: &prepared.found.resource,
        client: &asks,
        scopes: &prepared.scopes,
        dpop: prepared.dpop.as_ref(),
    };
    let tokens = voucher.tokens(&prepared.found.web, &target, method).await?;
    client.learn(&asks);
    Ok(tokens.map(|tokens| prepared.login(request, client, tokens)))
}

/// Renews a login that is kept, by the way it came about.
#[derive(Clone)]
pub struct FederatedRenewal {
    /// Who vouches for the user.
    pub voucher: Voucher,
    /// What asks.
    pub web: WebClient,
    /// The key of the client, if it has one.
    pub client_key: Option<Arc<ClientKey>>,
}

impl TokenRenewer for FederatedRenewal {
    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Tokens, TokenError>> {
        Box::pin(async move {
            if login.how != self.voucher.grant() {
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
            let stored = IdpLoginMethod::StoredOnly;
            match self.voucher.tokens(&self.web, &target, stored).await {
                Ok(Some(tokens)) => Ok(tokens),
                Ok(None) => Err(TokenError::NotAsked(
                    "the authorization server no longer takes cross-app access".to_owned(),
                )),
                Err(error) => Err(error.into()),
            }
        })
    }
}
