//! Who a request comes from: the token that it shows, and whose that is.
//!
//! Owns finding the token in a request, and the contract with whoever knows tokens. A token is read
//! from the `Authorization` header alone, is never logged, and reaches nobody behind this check
//! (SEC-27, SEC-46). What an identity may do is for the service.

mod oauth;
mod token;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, StatusCode};

pub use crate::conversation::AccessLease;
pub use oauth::OAuthAccess;
pub use token::OwnerToken;

/// The longest token that is looked at.
const MAX_TOKEN: usize = toolway_auth::inbound::MAX_TOKEN;

/// Who may come in.
#[derive(Clone, Default)]
pub enum Access {
    /// Whoever reaches this machine's loopback address. Nobody is the owner.
    #[default]
    Open,
    /// Those whose token is taken.
    Checked(Arc<dyn Authenticator>),
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "Open",
            Self::Checked(_) => "Checked",
        })
    }
}

/// Who knows which tokens are good, and whose they are.
pub trait Authenticator: Send + Sync + 'static {
    /// Whose token this is. Without a token the refusal says how to get one.
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a>;

    /// The document that tells clients where to get tokens, where there is one.
    fn resource_metadata(&self) -> Option<Bytes> {
        None
    }
}

/// The check of a token on its way.
pub type AccessCheck<'a> = BoxFuture<'a, Result<Arc<Identity>, AccessRefusal>>;

/// Who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// For whom it acts: what sessions, limits and sealed values are bound to.
    pub principal: Arc<str>,
    /// What people are shown of it.
    pub shown: Arc<str>,
    /// The profile that its token is bound to; it gets no other.
    pub profile: Option<Arc<str>>,
    /// What its token allows, where tokens say so.
    pub scopes: Vec<String>,
    /// Whether it is whoever runs this program.
    pub is_owner: bool,
    /// How long what it showed is good.
    pub lease: AccessLease,
}

impl Identity {
    /// Whoever runs this program.
    pub fn owner(shown: &str) -> Self {
        Self {
            principal: "owner".into(),
            shown: shown.into(),
            profile: None,
            scopes: Vec::new(),
            is_owner: true,
            lease: AccessLease::default(),
        }
    }

    /// Whoever reaches this machine's loopback address.
    pub fn anybody() -> Self {
        Self {
            principal: "anybody".into(),
            shown: "http".into(),
            profile: None,
            scopes: Vec::new(),
            is_owner: false,
            lease: AccessLease::default(),
        }
    }
}

/// How a request is answered whose token is not taken. Shows nothing of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct AccessRefusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// Its `WWW-Authenticate`.
    pub challenge: Option<HeaderValue>,
    /// Its `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// Why, for people.
    pub why: String,
}

impl AccessRefusal {
    /// A token is wanted.
    pub fn no_token() -> Self {
        Self::unauthorized(
            HeaderValue::from_static("Bearer"),
            "the request shows no bearer token",
        )
    }

    /// The token is none of those that are known.
    pub fn unknown_token() -> Self {
        Self::unauthorized(
            HeaderValue::from_static("Bearer error=\"invalid_token\""),
            "the token is not known",
        )
    }

    fn unauthorized(challenge: HeaderValue, why: &str) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            challenge: Some(challenge),
            retry_after: None,
            why: why.to_owned(),
        }
    }

    fn malformed(why: &str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            challenge: Some(HeaderValue::from_static("Bearer error=\"invalid_request\"")),
            retry_after: None,
            why: why.to_owned(),
        }
    }
}

/// Several who know tokens: the first that takes one counts. Where none does, the last one says so.
pub struct AnyOf(pub Vec<Arc<dyn Authenticator>>);

impl Authenticator for AnyOf {
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a> {
        Box::pin(async move {
            let mut refusal = AccessRefusal::no_token();
            for one in &self.0 {
                match one.check(token).await {
                    Ok(identity) => return Ok(identity),
                    Err(refused) => refusal = refused,
                }
            }
            Err(refusal)
        })
    }

    fn resource_metadata(&self) -> Option<Bytes> {
        self.0.iter().find_map(|one| one.resource_metadata())
    }
}

/// The one token of a request. Anything from which two readers could take two is refused.
pub(super) fn shown_token<'a>(
    headers: &'a HeaderMap,
    query: Option<&str>,
) -> Result<Option<&'a str>, AccessRefusal> {
    // Addresses are logged, kept and passed on; a token in one is no secret any more.
    let names = query.unwrap_or_default().split('&');
    let mut names = names.map(|pair| pair.split('=').next().unwrap_or_default());
    if names.any(|name| name.eq_ignore_ascii_case("access_token")) {
        let why = "the request has a token in its address: use the Authorization header";
        return Err(AccessRefusal::malformed(why));
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(AccessRefusal::malformed(
            "the request shows more than one token",
        ));
    }
    let value = value.to_str().map_err(|_| AccessRefusal::unknown_token())?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim_start_matches(' ');
    // The characters of RFC 6750, section 2.1: no list of several, nothing to be decoded.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || token.len() > MAX_TOKEN || !token.bytes().all(is_plain) {
        return Err(AccessRefusal::unknown_token());
    }
    Ok(Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_token_stands_in_one_header_and_nowhere_else() {
        let token = |values: &[&str], query| {
            let headers = headers(values);
            let shown = shown_token(&headers, query);
            shown
                .map(|token| token.map(str::to_owned))
                .map_err(|refusal| refusal.status.as_u16())
        };
        let good = Ok(Some("abc.DEF-1_~+/=".to_owned()));
        assert_eq!(token(&["Bearer abc.DEF-1_~+/="], Some("a=b")), good);
        assert_eq!(token(&["bearer  abc.DEF-1_~+/="], None), good);
        assert_eq!(token(&[], None), Ok(None));
        assert_eq!(token(&["Basic abc"], None), Ok(None));
        assert_eq!(token(&["Bearer a", "Bearer b"], None), Err(400));
        for broken in [
            "Bearer",
            "Bearer ",
            "Bearer a,b",
            "Bearer a b",
            "Bearer a\tb",
        ] {
            assert_eq!(token(&[broken], None), Err(401), "{broken}");
        }
        for query in ["access_token=a", "x=1&ACCESS_TOKEN=a", "access_token"] {
            assert_eq!(token(&["Bearer a"], Some(query)), Err(400), "{query}");
        }
        let long = format!("Bearer {}", "x".repeat(MAX_TOKEN + 1));
        assert_eq!(token(&[&long], None), Err(401));
    }
}
