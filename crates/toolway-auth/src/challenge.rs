//! Challenges: what a server's `WWW-Authenticate` asks for.
//!
//! Owns the grammar of RFC 9110 section 11 (several challenges in one header, parameters, quoted
//! strings, token68) and the bearer parameters of RFC 6750 and RFC 9728.
//! Does not own: trusting any of it. A metadata URL found here is only a place to look; discovery
//! decides whether it may be fetched.
//!
//! Servers get this header wrong in many ways, so nothing is an error: what cannot be read is
//! skipped, what can be read is kept. Reading is linear in the header's length.

mod grammar;
#[cfg(test)]
mod tests;

use toolway_types::Untrusted;
use url::Url;

pub use grammar::parse;

/// One challenge as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme in lower case, e.g. `bearer`.
    pub scheme: String,
    /// The bare value of schemes that have one in place of parameters.
    pub token68: Option<String>,
    /// The parameters in order, names in lower case, values unquoted.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The first parameter of that name (in lower case). A repeated one is a mistake or an
    /// attempt to make two readers disagree; the first is what proxies look at.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A `Bearer` challenge, typed. A `DPoP` one has the same parameters (RFC 9449, RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BearerChallenge {
    /// `realm`
    pub realm: Option<Untrusted>,
    /// `resource_metadata`: where the protected resource describes itself (RFC 9728). Absent
    /// when it is no absolute `http` or `https` URL.
    pub resource_metadata: Option<Url>,
    /// `scope`, split; tokens that the grammar forbids are left out.
    pub scopes: Vec<String>,
    /// `error`; absent when the request simply had no token.
    pub error: Option<BearerError>,
    /// `error_description`
    pub error_description: Option<Untrusted>,
}

/// The `error` of a bearer challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BearerError {
    /// `invalid_request`
    InvalidRequest,
    /// `invalid_token`: expired, revoked or for another resource.
    InvalidToken,
    /// `insufficient_scope`
    InsufficientScope,
    /// Any other word.
    Other(Untrusted),
}

/// What a refusal asks the user for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthNeed {
    /// A login (401), with what the server said about it.
    Login(Option<BearerChallenge>),
    /// A token with more scopes (403 with `insufficient_scope` or a scope).
    Scopes(BearerChallenge),
}

/// The first `Bearer` or `DPoP` challenge that says where to log in, else the first one.
pub fn bearer(header: &str) -> Option<BearerChallenge> {
    best(parse(header))
}

/// Tells a server that wants a login, or a wider one, from a server that failed (`None`), by the
/// HTTP status and the `WWW-Authenticate` header of its answer.
pub fn need(status: u16, header: Option<&str>) -> Option<AuthNeed> {
    let bearer = header.and_then(bearer);
    match status {
        401 => Some(AuthNeed::Login(bearer)),
        403 => bearer
            .filter(|bearer| {
                bearer.error == Some(BearerError::InsufficientScope)
                    || (bearer.error.is_none() && !bearer.scopes.is_empty())
            })
            .map(AuthNeed::Scopes),
        _ => None,
    }
}

fn best(challenges: impl IntoIterator<Item = Challenge>) -> Option<BearerChallenge> {
    let mut first = None;
    for challenge in challenges
        .into_iter()
        .filter(|challenge| matches!(challenge.scheme.as_str(), "bearer" | "dpop"))
    {
        let bearer = BearerChallenge::from(&challenge);
        if bearer.resource_metadata.is_some() {
            return Some(bearer);
        }
        first = first.or(Some(bearer));
    }
    first
}

impl From<&Challenge> for BearerChallenge {
    fn from(challenge: &Challenge) -> Self {
        let text = |name| challenge.parameter(name).map(Untrusted::new);
        Self {
            realm: text("realm"),
            resource_metadata: challenge
                .parameter("resource_metadata")
                .and_then(|value| Url::parse(value.trim()).ok())
                .filter(|url| matches!(url.scheme(), "https" | "http")),
            scopes: challenge.parameter("scope").map(scopes).unwrap_or_default(),
            error: challenge.parameter("error").map(BearerError::from),
            error_description: text("error_description"),
        }
    }
}

impl From<&str> for BearerError {
    fn from(word: &str) -> Self {
        match word {
            "invalid_request" => BearerError::InvalidRequest,
            "invalid_token" => BearerError::InvalidToken,
            "insufficient_scope" => BearerError::InsufficientScope,
            other => BearerError::Other(Untrusted::new(other)),
        }
    }
}

/// The scope tokens of RFC 6749 section 3.3, each once.
fn scopes(value: &str) -> Vec<String> {
    let allowed = |byte: u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
    let mut scopes: Vec<String> = Vec::new();
    for token in value
        .split_ascii_whitespace()
        .filter(|token| token.bytes().all(allowed))
    {
        if !scopes.iter().any(|known| known == token) {
            scopes.push(token.to_owned());
        }
    }
    scopes
}
