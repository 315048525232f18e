//! Giving tokens back (RFC 7009).
//!
//! Owns the requests to a revocation endpoint.
//! Does not own: forgetting the login here, which a user who logs out gets whatever the server
//! answers.

use toolway_types::Secret;
use url::Url;

use crate::assertion::AssertionError;
use crate::clock::unix_now;
use crate::metadata::shown;
use crate::token::{OauthClient, Tokens};
use crate::web::{WebClient, WebError, WebReply};

/// Where and as which client tokens are revoked.
#[derive(Debug, Clone, Copy)]
pub struct Revocation<'a> {
    /// The revocation endpoint.
    pub endpoint: &'a Url,
    /// Whose it is, as its metadata writes it.
    pub issuer: &'a str,
    /// Who had the tokens.
    pub client: &'a OauthClient,
}

/// A token may still be good.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// The server would not.
    #[error(
        "the authorization server {issuer} did not take the token back (HTTP {status}): it stays good there until it expires"
    )]
    Refused {
        /// Who.
        issuer: String,
        /// The HTTP status.
        status: u16,
    },
    /// It could not be asked.
    #[error("the token could not be given back, and stays good until it expires: {0}")]
    Web(#[from] WebError),
    /// The client's assertion could not be made.
    #[error(transparent)]
    Assertion(#[from] AssertionError),
}

impl Revocation<'_> {
    /// Gives both tokens back, the one that could get others first. One that fails does not keep
    /// the other.
    pub async fn send(&self, web: &WebClient, tokens: &Tokens) -> Result<(), RevokeError> {
        let client = self.client.or_by_empty_secret();
        let mut first = Ok(());
        if let Some(refresh) = &tokens.refresh {
            first = self.one(web, &client, refresh, "refresh_token").await;
        }
        // Who does not answer is not asked again.
        if let Err(RevokeError::Web(WebError::TimedOut { .. })) = first {
            return first;
        }
        let second = self.one(web, &client, &tokens.access, "access_token").await;
        first.and(second)
    }

    /// Gives back what could get others.
    pub async fn refresh_token(&self, web: &WebClient, token: &Secret) -> Result<(), RevokeError> {
        let client = self.client.or_by_empty_secret();
        self.one(web, &client, token, "refresh_token").await
    }

    async fn ask(
        &self,
        web: &WebClient,
        client: &OauthClient,
        token: &Secret,
        kind: &str,
    ) -> Result<(WebReply, ()), RevokeError> {
        let said = client.introduce(self.issuer, unix_now())?;
        let mut form = vec![("token", token.expose()), ("token_type_hint", kind)];
        let who = said.form.iter();
        form.extend(who.map(|(name, value)| (*name, value.expose())));
        let reply = web.post_form(self.endpoint, &form, said.headers).await?;
        Ok((reply, ()))
    }

    async fn one(
        &self,
        web: &WebClient,
        client: &OauthClient,
        token: &Secret,
        kind: &str,
    ) -> Result<(), RevokeError> {
        let (reply, ()) = client.ask(|| self.ask(web, client, token, kind)).await?;
        if reply.is_success() {
            return Ok(());
        }
        // Many servers revoke no access tokens; what got them is gone, and they end soon.
        let code = reply.object().ok();
        let code = code
            .as_ref()
            .and_then(|answer| answer.get("error")?.as_str());
        if code == Some("unsupported_token_type") && kind == "access_token" {
            return Ok(());
        }
        Err(RevokeError::Refused {
            issuer: shown(self.issuer),
            status: reply.status,
        })
    }
}
