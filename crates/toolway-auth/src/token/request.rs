//! Asking a token endpoint.
//!
//! Owns the grants and what a request for each of them says, the one repetition that a server's
//! `DPoP` nonce makes necessary, and what kind of failure a failure was: whether the server
//! refused, is busy, or may have acted although no answer arrived. `refresh.rs` decides by that
//! whether a login is over (REL-14, REL-15).
//! Does not own: reading the answer's members (`answer.rs`), nor repeating anything else.

use std::time::Duration;

use http::HeaderValue;
use toolway_types::text::cut;
use toolway_types::{Secret, Untrusted};
use url::Url;

use super::answer::{self, AnswerTime, MalformedTokenAnswer, TokenRefusal};
use super::client::{ClientAuthParts, OauthClient};
use super::dpop::{DPOP, DpopKey, ProofError, USE_NONCE};
use super::{TokenKind, Tokens};
use crate::assertion::AssertionError;
use crate::authorize::AuthorizationCode;
use crate::clock::{unix, unix_now};
use crate::web::{WebClient, WebError, WebReply};

/// The longest time that a server may keep us away.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

const REQUESTED_TYPE: &str = "requested_token_type";

/// The `grant_type` of a device login (RFC 8628), and of an assertion (RFC 7523).
pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// What is given for a token.
#[derive(Debug, Clone, Default)]
pub struct TokenGrant<'a> {
    /// The `grant_type`.
    pub kind: &'static str,
    /// What the request says beside it.
    pub words: Vec<(&'static str, &'a str)>,
    /// What it says that must not be shown.
    pub secrets: Vec<(&'static str, &'a Secret)>,
    /// Whether the scopes are named here; elsewhere they were named before, and stay.
    pub names_scopes: bool,
}

/// A token that is to become another one.
#[derive(Debug, Clone, Copy)]
pub struct TokenExchange<'a> {
    /// The token.
    pub subject: &'a Secret,
    /// What it is.
    pub subject_type: &'static str,
    /// What it is to become.
    pub requested_type: &'static str,
    /// Who will be shown the new one.
    pub audience: &'a str,
}

impl<'a> TokenGrant<'a> {
    /// A code from a login.
    pub fn code(code: &'a AuthorizationCode) -> Self {
        Self {
            kind: "authorization_code",
            words: vec![("redirect_uri", &code.redirect_uri)],
            secrets: vec![("code", &code.code), ("code_verifier", &code.verifier)],
            names_scopes: false,
        }
    }

    /// A refresh token.
    pub fn refresh(token: &'a Secret) -> Self {
        Self {
            kind: "refresh_token",
            secrets: vec![("refresh_token", token)],
            ..Self::default()
        }
    }

    /// Only who the client is.
    pub fn client_credentials() -> Self {
        Self {
            kind: "client_credentials",
            names_scopes: true,
            ..Self::default()
        }
    }

    /// The code of a device login (RFC 8628).
    pub fn device(code: &'a Secret) -> Self {
        Self {
            kind: DEVICE_CODE,
            secrets: vec![("device_code", code)],
            ..Self::default()
        }
    }

    /// Another party's assertion (RFC 7523): an ID-JAG, or a workload's token.
    pub fn jwt_bearer(assertion: &'a Secret) -> Self {
        Self {
            kind: JWT_BEARER,
            secrets: vec![("assertion", assertion)],
            names_scopes: true,
            ..Self::default()
        }
    }

    /// Another token (RFC 8693).
    pub fn exchange(exchange: TokenExchange<'a>) -> Self {
        Self {
            kind: "urn:ietf:params:oauth:grant-type:token-exchange",
            words: vec![
                (REQUESTED_TYPE, exchange.requested_type),
                ("subject_token_type", exchange.subject_type),
                ("audience", exchange.audience),
            ],
            secrets: vec![("subject_token", exchange.subject)],
            names_scopes: true,
        }
    }

    /// The type of token that an exchange asks for.
    fn requested_type(&self) -> Option<&str> {
        let mut words = self.words.iter();
        let word = words.find(|(name, _)| *name == REQUESTED_TYPE)?;
        Some(word.1)
    }
}

/// Why there is no token. No message holds anything that was sent, even if the server repeats it.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The server said no, and why.
    #[error("the authorization server refused: {code}{}", because(.description))]
    Refused {
        /// Its `error`; `http_<status>` when it gave none.
        code: String,
        /// Its `error_description`; empty when it gave none.
        description: Untrusted,
    },
    /// The request went out, and what became of it is not known.
    #[error("the authorization server's answer was lost: whether it acted is not known")]
    Lost,
    /// The server has no time now.
    #[error("the authorization server is busy{}", again(*.retry_after))]
    Busy {
        /// After which it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The server failed by its own account.
    #[error("the authorization server failed (HTTP {status})")]
    Failed {
        /// The HTTP status.
        status: u16,
    },
    /// The request was not made, or the answer is none.
    #[error(transparent)]
    Web(WebError),
    /// The answer has no token that can be used.
    #[error("the authorization server's answer cannot be used: {0}")]
    Malformed(#[from] MalformedTokenAnswer),
    /// The authorization server was not asked, because what it would have been shown is not there
    /// or not for it. Says why, and what to do.
    #[error("{0}")]
    NotAsked(String),
    /// The client's assertion could not be made.
    #[error(transparent)]
    Assertion(#[from] AssertionError),
    /// The proof of possession could not be made.
    #[error(transparent)]
    Proof(#[from] ProofError),
}

impl TokenError {
    /// Whether the server refused with this code.
    pub fn is_refusal(&self, named: &str) -> bool {
        matches!(self, TokenError::Refused { code, .. } if code == named)
    }
}

fn because(description: &Untrusted) -> String {
    let line = description.line();
    if line.is_empty() {
        String::new()
    } else {
        format!(" ({})", cut(&line, 300))
    }
}

fn again(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |after| {
        format!(" and wants to be asked again in {} s", after.as_secs())
    })
}

/// The token endpoint, and the client for it.
#[derive(Debug, Clone, Copy)]
pub struct TokenRequest<'a> {
    /// The token endpoint.
    pub endpoint: &'a Url,
    /// Whose it is, byte for byte as its metadata has it.
    pub issuer: &'a str,
    /// Who asks.
    pub client: &'a OauthClient,
    /// The server that the token is for (RFC 8707). Only an identity provider is asked without.
    pub resource: Option<&'a str>,
    /// What the token is to be good for.
    pub scopes: &'a [String],
    /// The key to bind the token to.
    pub dpop: Option<&'a DpopKey>,
}

impl TokenRequest<'_> {
    /// Asks once; a second time only when the server demands its nonce in the proof of possession,
    /// or does not recognise the client.
    pub async fn send(
        &self,
        web: &WebClient,
        grant: &TokenGrant<'_>,
    ) -> Result<Tokens, TokenError> {
        let (reply, said) = self.client.ask(|| self.exchange(web, grant)).await?;
        let mut secrets = said.secrets;
        secrets.extend(
            grant
                .secrets
                .iter()
                .map(|(_, secret)| Secret::clone(secret)),
        );
        let object = members(&reply, &secrets)?;
        let arrival = AnswerTime {
            now: unix_now(),
            server: reply.date().map(unix),
        };
        let tokens = answer::tokens(&object, arrival, self.scopes, grant.requested_type())?;
        if tokens.kind == TokenKind::Dpop && self.dpop.is_none() {
            return Err(MalformedTokenAnswer::Unbound.into());
        }
        Ok(tokens)
    }

    async fn exchange(
        &self,
        web: &WebClient,
        grant: &TokenGrant<'_>,
    ) -> Result<(WebReply, ClientAuthParts), TokenError> {
        let (reply, said) = self.once(web, grant).await?;
        let Some(key) = self.dpop else {
            return Ok((reply, said));
        };
        let fresh = key.learn(self.endpoint, &reply.headers);
        let wants_nonce = matches!(reply.status, 400 | 401)
            && answer::refusal_in(&reply).is_some_and(|refusal| refusal.code == USE_NONCE);
        if !(fresh && wants_nonce) {
            return Ok((reply, said));
        }
        let (reply, said) = self.once(web, grant).await?;
        key.learn(self.endpoint, &reply.headers);
        Ok((reply, said))
    }

    async fn once(
        &self,
        web: &WebClient,
        grant: &TokenGrant<'_>,
    ) -> Result<(WebReply, ClientAuthParts), TokenError> {
        let mut said = self.client.introduce(self.issuer, unix_now())?;
        if let Some(key) = self.dpop {
            let proof = key.proof("POST", self.endpoint, None, None)?;
            if let Ok(proof) = HeaderValue::try_from(proof) {
                said.headers.insert(DPOP, proof);
            }
        }
        let scope = self.scopes.join(" ");
        let mut form = vec![("grant_type", grant.kind)];
        form.extend(&grant.words);
        form.extend(
            grant
                .secrets
                .iter()
                .map(|(name, secret)| (*name, secret.expose())),
        );
        if let Some(resource) = self.resource {
            form.push(("resource", resource));
        }
        if grant.names_scopes && !scope.is_empty() {
            form.push(("scope", &scope));
        }
        form.extend(
            said.form
                .iter()
                .map(|(name, value)| (*name, value.expose())),
        );
        let reply = web
            .post_form(self.endpoint, &form, said.headers.clone())
            .await
            .map_err(request_failed)?;
        Ok((reply, said))
    }
}

/// What the failure of a request says about whether the server acted.
fn request_failed(error: WebError) -> TokenError {
    match error {
        WebError::Lost { .. } | WebError::TooLarge { .. } => TokenError::Lost,
        // It may have been carried out, too. But who does not answer is to be named, and not asked
        // once more at once.
        error => TokenError::Web(error),
    }
}

/// The members of an answer that is no refusal. What was sent is taken out of a refusal's text,
/// in case the server repeats it.
pub(crate) fn members(
    reply: &WebReply,
    secrets: &[Secret],
) -> Result<serde_json::Map<String, serde_json::Value>, TokenError> {
    let status = reply.status;
    let object = answer::object(reply);
    let refusal = object.as_ref().ok().and_then(answer::refusal);
    let temporary = refusal
        .as_ref()
        .is_some_and(|refusal| refusal.code == "temporarily_unavailable");
    if matches!(status, 429 | 503) || temporary {
        return Err(TokenError::Busy {
            retry_after: reply.retry_after().map(|after| after.min(MAX_RETRY_AFTER)),
        });
    }
    match (status, refusal) {
        // What stands in between does not know what happened behind it.
        (502 | 504, _) => Err(TokenError::Lost),
        (500.., _) => Err(TokenError::Failed { status }),
        (_, Some(refusal)) => Err(refused(refusal, secrets)),
        (200..300, None) => object.map_err(TokenError::Web),
        (_, None) => Err(TokenError::Refused {
            code: format!("http_{status}"),
            description: Untrusted::default(),
        }),
    }
}

fn refused(refusal: TokenRefusal, secrets: &[Secret]) -> TokenError {
    let mut description = refusal
        .description
        .map(|text| text.as_received().to_owned())
        .unwrap_or_default();
    let mut code = refusal.code;
    for secret in secrets.iter().map(Secret::expose) {
        if secret.is_empty() {
            continue;
        }
        description = description.replace(secret, "[redacted]");
        if code.contains(secret) {
            "unknown".clone_into(&mut code);
        }
    }
    TokenError::Refused {
        code,
        description: Untrusted::new(description),
    }
}
