//! One attempt to get a code: the address a user opens, and what may come back from it.
//!
//! Owns PKCE, `state`, the recorded issuer, the authorization URL and every check of the answer
//! (SEC-18, SEC-44). [`answer`] reads what came back: from the callback, or pasted by a user.
//! Does not own: opening a browser, listening (`callback.rs`), or spending the code (`token.rs`).
//!
//! Nothing of the answer is looked at before its `state` and its issuer are known to be right: an
//! error from another source must not end this login, nor be shown.

pub mod answer;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use toolway_types::{Secret, Untrusted};
use url::Url;

use crate::random::{self, NoRandom};

pub use answer::{AuthorizationResponse, PasteError, pasted};

/// The only method of PKCE that is used.
pub(crate) const S256: &str = "S256";

/// What an attempt is made of.
#[derive(Debug, Clone)]
pub struct AuthorizationOptions<'a> {
    /// The authorization server's issuer, byte for byte as its metadata has it.
    pub issuer: &'a str,
    /// Where the user goes.
    pub endpoint: &'a Url,
    /// `code_challenge_methods_supported`; `None` when the metadata does not have it.
    pub challenge_methods: Option<&'a [String]>,
    /// `authorization_response_iss_parameter_supported`
    pub promises_issuer: bool,
    /// Who we are to that server.
    pub client_id: &'a str,
    /// Where the answer goes.
    pub redirect_uri: &'a str,
    /// The server that the token is for (RFC 8707); `None` only at an identity provider.
    pub resource: Option<&'a str>,
    /// What is asked for; the parameter is left out when there is nothing.
    pub scopes: &'a [String],
    /// Further parameters, such as `nonce`, `prompt` or `dpop_jkt`.
    pub extra: &'a [(&'a str, &'a str)],
}

/// An attempt cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationStartError {
    /// The server may not know PKCE, so a stolen code could be used.
    #[error(
        "the authorization server {issuer} does not offer PKCE with S256 (`code_challenge_methods_supported`), so a login there could be stolen; its operator must switch it on"
    )]
    NoPkce {
        /// Whose.
        issuer: String,
        /// Whether it says which methods it offers.
        is_announced: bool,
    },
    /// No randomness.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// Why an answer is not taken. No variant holds a code, a state or what another server wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationResponseError {
    /// It belongs to no login that is under way here.
    #[error("the answer does not belong to this login (its `state` is missing or another one)")]
    State,
    /// A parameter is there twice, so that two readers could read it differently.
    #[error("the answer has `{0}` more than once")]
    Repeated(&'static str),
    /// The server promised to say who it is, and this answer does not.
    #[error(
        "the answer does not say which authorization server it comes from, though {expected} promises to: it was ignored"
    )]
    IssuerMissing {
        /// Whose answer was awaited.
        expected: String,
    },
    /// It comes from another server.
    #[error("the answer comes from another authorization server than {expected}: it was ignored")]
    IssuerMismatch {
        /// Whose answer was awaited.
        expected: String,
    },
    /// The user declined.
    #[error("the login was declined at {issuer}")]
    Declined {
        /// Where.
        issuer: String,
    },
    /// The server refused.
    #[error("the authorization server {issuer} refused the login: {}{}", .code.cut(64), because(.description.as_ref()))]
    Refused {
        /// Who.
        issuer: String,
        /// Its `error`.
        code: Untrusted,
        /// Its `error_description`.
        description: Option<Untrusted>,
    },
    /// Everything is right, but there is no code.
    #[error("the authorization server {issuer} answered without a code")]
    NoCode {
        /// Who.
        issuer: String,
    },
}

fn because(description: Option<&Untrusted>) -> String {
    description.map_or_else(String::new, |text| {
        format!(" ({})", toolway_types::text::cut(&text.line(), 300))
    })
}

/// A login that was begun. It knows by what its answer is recognised.
#[derive(Clone)]
pub struct PendingAuthorization {
    issuer: String,
    promises_issuer: bool,
    state: Secret,
    verifier: Secret,
    redirect_uri: String,
    resource: Option<String>,
    scopes: Vec<String>,
    url: Url,
}

/// The URL has the state in it.
impl fmt::Debug for PendingAuthorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PendingAuthorization")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A code that came back, with what it takes to spend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationCode {
    /// The code.
    pub code: Secret,
    /// The verifier of the attempt.
    pub verifier: Secret,
    /// The redirect URI of the attempt, which must be repeated.
    pub redirect_uri: String,
}

impl PendingAuthorization {
    /// Begins.
    pub fn new(options: &AuthorizationOptions<'_>) -> Result<Self, AuthorizationStartError> {
        let offers = |methods: &[String]| methods.iter().any(|method| method == S256);
        if !options.challenge_methods.is_some_and(offers) {
            return Err(AuthorizationStartError::NoPkce {
                issuer: options.issuer.to_owned(),
                is_announced: options.challenge_methods.is_some(),
            });
        }
        let state = Secret::new(random::word(32)?);
        let verifier = Secret::new(random::word(32)?);
        let url = address(options, &state, &challenge(&verifier));
        Ok(Self {
            issuer: options.issuer.to_owned(),
            promises_issuer: options.promises_issuer,
            state,
            verifier,
            redirect_uri: options.redirect_uri.to_owned(),
            resource: options.resource.map(str::to_owned),
            scopes: options.scopes.to_vec(),
            url,
        })
    }

    /// The address the user opens. It holds the state: it is for their eyes and their browser.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whose answer is awaited.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Where the answer goes.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The server that the token will be for.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// What was asked for.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The code of an answer, if the answer is this attempt's.
    pub fn check(
        &self,
        answer: &AuthorizationResponse,
    ) -> Result<AuthorizationCode, AuthorizationResponseError> {
        if let Some(name) = answer.repeated {
            return Err(AuthorizationResponseError::Repeated(name));
        }
        let state = answer.state.as_ref().map_or("", Secret::expose);
        // Lengths are no secret; contents are compared in a time that does not depend on them.
        if !bool::from(self.state.expose().as_bytes().ct_eq(state.as_bytes())) {
            return Err(AuthorizationResponseError::State);
        }
        self.check_issuer(answer.issuer.as_deref())?;
        let issuer = || self.issuer.clone();
        if let Some(code) = &answer.error {
            if code.as_received() == "access_denied" {
                return Err(AuthorizationResponseError::Declined { issuer: issuer() });
            }
            return Err(AuthorizationResponseError::Refused {
                issuer: issuer(),
                code: code.clone(),
                description: answer.error_description.clone(),
            });
        }
        match &answer.code {
            Some(code) if !code.expose().is_empty() => Ok(AuthorizationCode {
                code: code.clone(),
                verifier: self.verifier.clone(),
                redirect_uri: self.redirect_uri.clone(),
            }),
            _ => Err(AuthorizationResponseError::NoCode { issuer: issuer() }),
        }
    }

    /// The table of RFC 9207 as MCP has it: an issuer that is there must be the recorded one, byte
    /// for byte; one that was promised must be there.
    fn check_issuer(&self, given: Option<&str>) -> Result<(), AuthorizationResponseError> {
        let expected = || self.issuer.clone();
        match given {
            Some(given) if given == self.issuer => Ok(()),
            Some(_) => Err(AuthorizationResponseError::IssuerMismatch {
                expected: expected(),
            }),
            None if self.promises_issuer => Err(AuthorizationResponseError::IssuerMissing {
                expected: expected(),
            }),
            None => Ok(()),
        }
    }
}

/// The challenge of a verifier (RFC 7636 section 4.2).
pub fn challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()))
}

/// The endpoint with our parameters. What the endpoint's own address says under one of our names
/// goes: of two values, each reader picks its own.
fn address(options: &AuthorizationOptions<'_>, state: &Secret, challenge: &str) -> Url {
    let scope = options.scopes.join(" ");
    let mut ours = vec![
        ("response_type", "code"),
        ("client_id", options.client_id),
        ("redirect_uri", options.redirect_uri),
        ("state", state.expose()),
        ("code_challenge", challenge),
        ("code_challenge_method", S256),
    ];
    if let Some(resource) = options.resource {
        ours.push(("resource", resource));
    }
    if !scope.is_empty() {
        ours.push(("scope", &scope));
    }
    ours.extend(options.extra);
    let mut url = options.endpoint.clone();
    url.set_fragment(None);
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !ours.iter().any(|(our, _)| our == name))
        // Without these two, a request object could say something else than we do.
        .filter(|(name, _)| !matches!(name.as_ref(), "request" | "request_uri"))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(kept)
        .extend_pairs(ours);
    url
}
