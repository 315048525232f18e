//! Cross-app access (SEP-990, enterprise-managed authorization): a token for a server from who the
//! user is at their organisation, without a login there.
//!
//! Owns the way: identity → assertion for the server's authorization server (`idp.rs`) → its token
//! endpoint (RFC 7523), and the checks between the steps (SEC-45): the assertion must be for the
//! issuer that discovery validated and for this server, and goes nowhere else. A renewal goes the
//! same way again, so that the organisation decides again. The [`CrossAppRule`] that is handed in
//! says whether another way to log in may follow.
//! Does not own: the identity, or finding the authorization server (`discovery.rs`).

use serde_json::Value;
use toolway_types::Secret;
use url::Url;

use crate::idp::{IdentityProvider, IdpError, IdpLoginMethod};
use crate::jwt;
use crate::metadata::{ServerMetadata, shown};
use crate::token::request::JWT_BEARER;
use crate::token::{DpopKey, OauthClient, TokenError, TokenGrant, TokenRequest, Tokens};
use crate::web::WebClient;

/// The `typ` of such an assertion.
const TYPE: &str = "oauth-id-jag+jwt";

/// What policy says about other ways to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossAppRule {
    /// Cross-app access or nothing.
    Only,
    /// Cross-app access where the authorization server takes it.
    Preferred,
}

/// The server that a token is for, and its authorization server.
#[derive(Debug, Clone, Copy)]
pub struct TokenTarget<'a> {
    /// The authorization server, as discovery validated it.
    pub server: &'a ServerMetadata,
    /// The MCP server.
    pub resource: &'a str,
    /// Who we are to that authorization server.
    pub client: &'a OauthClient,
    /// What is asked for.
    pub scopes: &'a [String],
    /// The key to bind the token to.
    pub dpop: Option<&'a DpopKey>,
}

impl TokenTarget<'_> {
    /// Shows an assertion. Who made it is asked each time: what would go past them is not kept.
    pub(crate) async fn by_assertion(
        &self,
        web: &WebClient,
        endpoint: &Url,
        assertion: &Secret,
    ) -> Result<Tokens, TokenError> {
        let request = TokenRequest {
            endpoint,
            issuer: &self.server.issuer,
            client: self.client,
            resource: Some(self.resource),
            scopes: self.scopes,
            dpop: self.dpop,
        };
        let tokens = request
            .send(web, &TokenGrant::jwt_bearer(assertion))
            .await?;
        Ok(Tokens {
            refresh: None,
            ..tokens
        })
    }
}

/// Why there is no token. None of these leads to another way to log in.
#[derive(Debug, thiserror::Error)]
pub enum XaaError {
    /// The server's authorization server does not take assertions.
    #[error(
        "the authorization server {issuer} does not take cross-app access, and policy allows no other login"
    )]
    NotOffered {
        /// Which.
        issuer: String,
    },
    /// The authorization server's metadata was not found but assumed.
    #[error(
        "{resource} has no authorization server whose metadata could be checked, so cross-app access is not possible"
    )]
    NotValidated {
        /// Which server.
        resource: String,
    },
    /// The provider's assertion is not what was asked for. It was not sent.
    #[error("the identity provider's assertion was not sent to {issuer}: {why}")]
    Assertion {
        /// Where it would have been sent.
        issuer: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is not known who the user is.
    #[error(transparent)]
    Identity(#[from] IdpError),
    /// The authorization server gave no token.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Gets a token for a server, and again whenever the last one has expired. `None` where the
/// authorization server does not take assertions, and the rule allows another way.
pub async fn obtain(
    provider: &IdentityProvider,
    method: IdpLoginMethod<'_>,
    web: &WebClient,
    target: &TokenTarget<'_>,
    rule: CrossAppRule,
) -> Result<Option<Tokens>, XaaError> {
    let issuer = || shown(&target.server.issuer);
    if target.server.is_assumed {
        return match rule {
            CrossAppRule::Preferred => Ok(None),
            CrossAppRule::Only => Err(XaaError::NotValidated {
                resource: shown(target.resource),
            }),
        };
    }
    let endpoint = target.server.token_endpoint.as_ref();
    let Some(endpoint) = endpoint.filter(|_| target.server.offers(JWT_BEARER)) else {
        return match rule {
            CrossAppRule::Preferred => Ok(None),
            CrossAppRule::Only => Err(XaaError::NotOffered { issuer: issuer() }),
        };
    };
    let assertion = assertion(provider, method, target).await?;
    check(&assertion, target).map_err(|why| XaaError::Assertion {
        issuer: issuer(),
        why,
    })?;
    Ok(Some(target.by_assertion(web, endpoint, &assertion).await?))
}

/// The assertion. An identity that the provider no longer accepts is renewed or asked for again,
/// once.
async fn assertion(
    provider: &IdentityProvider,
    method: IdpLoginMethod<'_>,
    target: &TokenTarget<'_>,
) -> Result<Secret, XaaError> {
    let ask = async |identity| {
        let audience = &target.server.issuer;
        provider
            .assertion(identity, audience, target.resource, target.scopes)
            .await
    };
    let identity = provider.identity(method).await?;
    match ask(&identity).await {
        Err(IdpError::Token(error))
            if error.is_refusal("invalid_grant") || error.is_refusal("invalid_token") =>
        {
            provider.refused(&identity).await?;
            let identity = provider.identity(method).await?;
            Ok(ask(&identity).await?)
        }
        answered => Ok(answered?),
    }
}

/// Whether an assertion is the one that was asked for. The authorization server checks its
/// signature; its audience is checked here, before it is sent.
fn check(assertion: &Secret, target: &TokenTarget<'_>) -> Result<(), &'static str> {
    let (header, claims) = jwt::peek_all(assertion.expose()).ok_or("it cannot be read")?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let kind = header.get("typ").and_then(Value::as_str);
    if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case(TYPE)) {
        return Err("it is of another type");
    }
    let audience = match claims.get("aud") {
        Some(Value::Array(all)) => match all.as_slice() {
            [Value::String(one)] => Some(one.as_str()),
            _ => None,
        },
        Some(Value::String(one)) => Some(one.as_str()),
        _ => None,
    };
    if audience != Some(&target.server.issuer) {
        return Err("it is for another authorization server");
    }
    if text("resource").is_some_and(|resource| resource != target.resource) {
        return Err("it is for another server");
    }
    if text("client_id").is_some_and(|client| client != target.client.id) {
        return Err("it is for another client: the organisation's settings and ours disagree");
    }
    Ok(())
}
