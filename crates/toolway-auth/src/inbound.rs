//! Checks the tokens that clients show to us, where we are the server.
//!
//! Owns the resource server's side of OAuth (SEC-46): finding the token in a request, whether an
//! issuer that we accept made it for us, what is answered when not, and the document that tells
//! clients where to get tokens (RFC 9728). A token is read once and stored nowhere: the result of a
//! check identifies the caller without it, so nothing behind the check can send it on.
//! Does not own: HTTP. The listener passes in a request's headers and query, and sends the refusal.

pub mod claims;
mod issuer;
pub mod refusal;

use std::fmt;

use http::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};

use crate::clock::unix_now;
use crate::discovery::{canonical, of_issuer, well_known};
use crate::jwt::{self, JwtAlgorithm, VerifyError};
use crate::metadata::shown;
use crate::scopes::is_scope;
use crate::web::WebClient;

pub use claims::AccessClaimError;
use claims::ExpectedAccessClaims;
use issuer::TrustedIssuer;
pub use refusal::{InboundFault, InboundRefusal};

/// The longest token that is looked at. What carries it, a request's headers, is bounded alike.
pub const MAX_TOKEN: usize = 16 * 1024;

/// Whose tokens are taken, and for what.
#[derive(Debug, Clone)]
pub struct InboundOptions {
    /// Our own address, as clients reach us: what a token must be for.
    pub resource: Url,
    /// Who may issue tokens for us, byte for byte. No other issuer is ever asked, whatever a token
    /// says.
    pub issuers: Vec<String>,
    /// What tokens may be signed by. There is no symmetric algorithm and no `none` to choose.
    pub algorithms: Vec<JwtAlgorithm>,
    /// What every request's token must allow.
    pub scopes: Vec<String>,
    /// What tokens for us can allow at all, as clients are told.
    pub offered: Vec<String>,
    /// What people call us.
    pub name: Option<String>,
}

impl InboundOptions {
    /// Takes the tokens of these issuers for this address.
    pub fn new(resource: Url, issuers: impl IntoIterator<Item = String>) -> Self {
        Self {
            resource,
            issuers: issuers.into_iter().collect(),
            algorithms: JwtAlgorithm::ALL.to_vec(),
            scopes: Vec::new(),
            offered: Vec::new(),
            name: None,
        }
    }
}

/// Why nothing can be checked like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    /// Our own address is none that a token can be for.
    #[error("{resource} cannot be the address that tokens are for: {why}")]
    Resource {
        /// The address.
        resource: String,
        /// The rule.
        why: &'static str,
    },
    /// No issuer is configured.
    #[error("no issuer is accepted: name at least one")]
    NoIssuers,
    /// An issuer is no address.
    #[error("the issuer `{issuer}` is not usable: {why}")]
    Issuer {
        /// Which.
        issuer: String,
        /// The rule.
        why: &'static str,
    },
    /// Nothing may be signed by anything.
    #[error("no algorithm is allowed: name at least one")]
    NoAlgorithms,
    /// A scope that no token can hold.
    #[error("`{0}` is no scope")]
    Scope(String),
}

/// The caller of a request. Holds no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// Who says so.
    pub issuer: String,
    /// Who it is, to that issuer.
    pub subject: String,
    /// The program they use, when the token says.
    pub client_id: Option<String>,
    /// What they are allowed.
    pub scopes: Vec<String>,
    /// Until when, in seconds since 1970.
    pub expires_at: u64,
    /// Which token it was, to bind what begins with it to it.
    pub fingerprint: Fingerprint,
}

impl Principal {
    /// Whether all of these are allowed.
    pub fn may(&self, scopes: &[String]) -> bool {
        scopes.iter().all(|scope| self.scopes.contains(scope))
    }
}

/// A token's digest: tells one token from another, and gives none back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two apart in a log.
        write!(formatter, "Fingerprint({})", hex::encode(&self.0[..4]))
    }
}

/// Accepts or rejects requests by their tokens.
#[derive(Debug)]
pub struct InboundAuthorizer {
    options: InboundOptions,
    resource: String,
    metadata: Url,
    issuers: Vec<TrustedIssuer>,
    web: WebClient,
}

impl InboundAuthorizer {
    /// A check. `web` fetches the issuers' keys, so it must be one for addresses that the user or
    /// the administrator wrote ([`WebClient::trusted`]). Nothing is fetched before the first token.
    pub fn new(options: InboundOptions, web: WebClient) -> Result<Self, InboundError> {
        let ours = |why| InboundError::Resource {
            resource: crate::web::shown(&options.resource),
            why,
        };
        let resource = &options.resource;
        if !matches!(resource.scheme(), "http" | "https") || !resource.has_host() {
            return Err(ours("it is no `http` or `https` address"));
        }
        if is_more_than_a_place(resource) {
            return Err(ours("it holds a login, a query or a fragment"));
        }
        if options.issuers.is_empty() {
            return Err(InboundError::NoIssuers);
        }
        if options.algorithms.is_empty() {
            return Err(InboundError::NoAlgorithms);
        }
        if let Some(scope) = options
            .scopes
            .iter()
            .chain(&options.offered)
            .find(|scope| !is_scope(scope))
        {
            return Err(InboundError::Scope(shown(scope)));
        }
        let issuers = options.issuers.iter().map(|name| {
            let places = of_issuer(name, web.reach()).map_err(|why| InboundError::Issuer {
                issuer: shown(name),
                why,
            })?;
            Ok(TrustedIssuer::new(name.clone(), places))
        });
        Ok(Self {
            issuers: issuers.collect::<Result<_, InboundError>>()?,
            resource: canonical(resource),
            metadata: well_known(resource),
            options,
            web,
        })
    }

    /// Who sent a request, by its headers and the query of its address.
    pub async fn check(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Principal, InboundRefusal> {
        let checked = match token(headers, query) {
            Ok(token) => self.believed(token).await,
            Err(why) => Err(why),
        };
        let principal = checked.map_err(|why| {
            tracing::debug!(%why, "a request was turned away");
            self.refusal(why, &self.options.scopes)
        })?;
        self.demand(&principal, &self.options.scopes)?;
        Ok(principal)
    }

    /// Whether the caller has these scopes; the refusal tells the client which to request.
    pub fn demand(&self, principal: &Principal, scopes: &[String]) -> Result<(), InboundRefusal> {
        if principal.may(scopes) {
            return Ok(());
        }
        Err(self.refusal(InboundFault::Scopes, scopes))
    }

    /// What clients are told about us (RFC 9728), to be served at
    /// [`InboundAuthorizer::document_path`].
    pub fn document(&self) -> Value {
        let mut document = json!({
            "resource": self.resource,
            "authorization_servers": self.options.issuers,
            "bearer_methods_supported": ["header"],
        });
        if !self.options.offered.is_empty() {
            document["scopes_supported"] = json!(self.options.offered);
        }
        if let Some(name) = &self.options.name {
            document["resource_name"] = json!(name);
        }
        document
    }

    /// Where that document is looked for, at our origin. Needs no token.
    pub fn document_path(&self) -> &str {
        self.metadata.path()
    }

    fn refusal(&self, why: InboundFault, scopes: &[String]) -> InboundRefusal {
        InboundRefusal::new(why, &self.metadata, scopes)
    }

    async fn believed(&self, token: &str) -> Result<Principal, InboundFault> {
        let (header, unproven) = jwt::peek_all(token).ok_or(VerifyError::Malformed)?;
        // What the token says about itself only chooses among those that were accepted before.
        let named = unproven.get("iss").and_then(Value::as_str);
        let issuer = self
            .issuers
            .iter()
            .find(|issuer| named == Some(&issuer.name))
            .ok_or(AccessClaimError::Issuer)?;
        let claims = issuer
            .verified(&self.web, token, &self.options.algorithms)
            .await?;
        let expected = ExpectedAccessClaims {
            issuer: &issuer.name,
            resource: &self.resource,
            now: unix_now(),
        };
        let known = claims::known(&header, &claims, &expected)?;
        Ok(Principal {
            issuer: issuer.name.clone(),
            subject: known.subject,
            client_id: known.client_id,
            scopes: known.scopes,
            expires_at: known.expires_at,
            fingerprint: Fingerprint::of(token),
        })
    }
}

/// The one token of a request. Anything from which two readers could take two is refused.
fn token<'a>(headers: &'a HeaderMap, query: Option<&str>) -> Result<&'a str, InboundFault> {
    // Addresses are logged, kept and passed on; a token in one is no secret any more.
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    if pairs.any(|(name, _)| name.eq_ignore_ascii_case("access_token")) {
        return Err(InboundFault::InAddress);
    }
    let mut shown = headers.get_all(http::header::AUTHORIZATION).iter();
    let Some(value) = shown.next() else {
        return Err(InboundFault::NoToken);
    };
    if shown.next().is_some() {
        return Err(InboundFault::Several);
    }
    let value = value.to_str().map_err(|_| VerifyError::Malformed)?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if scheme.eq_ignore_ascii_case("dpop") {
        return Err(AccessClaimError::Bound.into());
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(InboundFault::NoToken);
    }
    let token = token.trim_start_matches(' ');
    if token.contains(',') {
        return Err(InboundFault::Several);
    }
    if token.len() > MAX_TOKEN {
        return Err(InboundFault::TooLong);
    }
    Ok(token)
}

/// Whether an address says more than where something is.
fn is_more_than_a_place(url: &Url) -> bool {
    url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
}
