//! The provider's token endpoint, and the client for it.
//!
//! Owns its metadata, which is asked for once it is needed, and the client that the settings name.

use std::sync::Arc;

use url::Url;

use super::{IdentityProvider, IdpError};
use crate::metadata::{ServerMetadata, shown};
use crate::registration::RegisteredClient;
use crate::token::{OauthClient, TokenRequest};

/// A token endpoint, and the client for it.
pub(super) struct IdpEndpoint {
    pub(super) endpoint: Url,
    pub(super) client: OauthClient,
}

impl IdentityProvider {
    pub(super) fn request<'a>(
        &'a self,
        idp: &'a IdpEndpoint,
        scopes: &'a [String],
    ) -> TokenRequest<'a> {
        TokenRequest {
            endpoint: &idp.endpoint,
            issuer: &self.settings.issuer,
            client: &idp.client,
            resource: None,
            scopes,
            dpop: None,
        }
    }

    /// The token endpoint and the client. The metadata is not fetched when the settings name the
    /// endpoint.
    pub(super) async fn idp_endpoint(&self) -> Result<IdpEndpoint, IdpError> {
        let settings = &self.settings;
        let (endpoint, offered) = if let Some(endpoint) = &settings.token_endpoint {
            (endpoint.clone(), None)
        } else {
            let metadata = self.metadata().await?;
            let endpoint = self.endpoint(metadata.token_endpoint.as_ref(), "token_endpoint")?;
            (endpoint.clone(), metadata.token_auth_methods.clone())
        };
        Ok(IdpEndpoint {
            endpoint,
            client: self.client(offered.as_deref()),
        })
    }

    /// Who we are to an endpoint that takes these ways to say so.
    pub(super) fn client(&self, offered: Option<&[String]>) -> OauthClient {
        let settings = &self.settings;
        let registered = RegisteredClient::configured(
            &settings.client_id,
            settings.client_secret.clone(),
            settings.client_key.is_some(),
            offered,
        );
        registered.client(settings.client_key.as_ref())
    }

    pub(super) fn endpoint<'a>(
        &self,
        endpoint: Option<&'a Url>,
        name: &'static str,
    ) -> Result<&'a Url, IdpError> {
        endpoint.ok_or_else(|| IdpError::NoEndpoint {
            issuer: self.name(),
            endpoint: name,
        })
    }

    /// The provider's metadata, asked for once it is needed and kept while it is good.
    pub(super) async fn metadata(&self) -> Result<Arc<ServerMetadata>, IdpError> {
        let mut known = self.metadata.lock().await;
        if let Some(metadata) = known.as_ref() {
            return Ok(Arc::clone(metadata));
        }
        let issuer = &self.settings.issuer;
        let place = format!(
            "{}/.well-known/openid-configuration",
            issuer.strip_suffix('/').unwrap_or(issuer)
        );
        let place = Url::parse(&place).map_err(|_| IdpError::BadIssuer {
            issuer: self.name(),
        })?;
        let document = self.web.get(&place).await?.object()?;
        let metadata = ServerMetadata::read(&document, self.web.reach()).map_err(|fault| {
            IdpError::Metadata {
                issuer: self.name(),
                fault,
            }
        })?;
        if metadata.issuer != *issuer {
            return Err(IdpError::OtherIssuer {
                issuer: self.name(),
                named: shown(&metadata.issuer),
            });
        }
        let metadata = Arc::new(metadata);
        *known = Some(Arc::clone(&metadata));
        Ok(metadata)
    }
}
