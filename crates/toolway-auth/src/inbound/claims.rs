//! Whether the claims of an access token are for us and for now (RFC 9068, section 4).

use serde_json::{Map, Value};
use url::Url;

use super::is_more_than_a_place;
use crate::discovery::canonical;
use crate::jwt;
use crate::scopes::is_scope;
use crate::token::SKEW;

/// The longest subject or client id.
const MAX_NAME: usize = 255;
/// The most scopes that are read of a token.
const MAX_SCOPES: usize = 200;

/// What is wrong with a token that its issuer signed. Shows nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessClaimError {
    /// `iss`
    #[error("the token is from an issuer that is not accepted here")]
    Issuer,
    /// `aud`
    #[error("the token is for somebody else")]
    Audience,
    /// `exp`
    #[error("the token has expired, or does not say when it will")]
    Expired,
    /// `nbf` or `iat`
    #[error("the token is not good yet")]
    NotYet,
    /// `typ`
    #[error("the token is of another kind than an access token")]
    Kind,
    /// `sub`
    #[error("the token does not say who it is about")]
    Subject,
    /// `cnf`: it is bound to a key, whose proof is not checked here.
    #[error("the token is bound to a key (DPoP or TLS); only plain bearer tokens are taken here")]
    Bound,
}

/// What claims must say.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedAccessClaims<'a> {
    pub(super) issuer: &'a str,
    /// Our address in its canonical form.
    pub(super) resource: &'a str,
    /// Seconds since 1970.
    pub(super) now: u64,
}

/// What they said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AccessClaims {
    pub(super) subject: String,
    pub(super) client_id: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) expires_at: u64,
}

pub(super) fn known(
    header: &Map<String, Value>,
    claims: &Map<String, Value>,
    expected: &ExpectedAccessClaims<'_>,
) -> Result<AccessClaims, AccessClaimError> {
    if !is_access_token(header) {
        return Err(AccessClaimError::Kind);
    }
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(AccessClaimError::Issuer);
    }
    let ours = |audience: &&str| is_ours(audience, expected.resource);
    if !jwt::audiences(claims).iter().any(ours) {
        return Err(AccessClaimError::Audience);
    }
    let expires_at = jwt::seconds(claims, "exp").ok_or(AccessClaimError::Expired)?;
    if expires_at.saturating_add(SKEW) <= expected.now {
        return Err(AccessClaimError::Expired);
    }
    for name in ["nbf", "iat"] {
        let begins = jwt::seconds(claims, name);
        // One that is there and cannot be read is no leave to begin at once.
        let is_good = match begins {
            Some(begins) => begins <= expected.now.saturating_add(SKEW),
            None => claims.get(name).is_none_or(Value::is_null),
        };
        if !is_good {
            return Err(AccessClaimError::NotYet);
        }
    }
    if claims.get("cnf").is_some_and(|bound| !bound.is_null()) {
        return Err(AccessClaimError::Bound);
    }
    let name = |text: Option<&str>| {
        let fitting = text.filter(|text| (1..=MAX_NAME).contains(&text.len()));
        fitting.map(str::to_owned)
    };
    Ok(AccessClaims {
        subject: name(text("sub")).ok_or(AccessClaimError::Subject)?,
        client_id: name(text("client_id").or_else(|| text("azp"))),
        scopes: scopes(claims),
        expires_at,
    })
}

/// Whether a header says that this is an access token. Several large issuers say plain `JWT`, or
/// nothing; a token of another kind that says so (a logout, a proof, an assertion) is none.
fn is_access_token(header: &Map<String, Value>) -> bool {
    let kind = match header.get("typ") {
        None => return true,
        Some(Value::String(kind)) => kind.to_ascii_lowercase(),
        Some(_) => return false,
    };
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    matches!(kind, "at+jwt" | "jwt")
}

/// Whether an audience is our address: in the canonical form, as clients ask for tokens, and
/// nothing beyond a place, since another place's owner would write that.
fn is_ours(audience: &str, resource: &str) -> bool {
    // A URL type drops some of these in silence.
    if audience.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return false;
    }
    Url::parse(audience)
        .is_ok_and(|audience| !is_more_than_a_place(&audience) && canonical(&audience) == resource)
}

/// `scope`, or the `scp` that some write in its place.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    let said = claims.get("scope").or_else(|| claims.get("scp"));
    let words: Vec<&str> = match said {
        Some(Value::String(all)) => all.split(' ').collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fitting = words.into_iter().filter(|word| is_scope(word));
    fitting.take(MAX_SCOPES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn a_minute_of_clocks_that_disagree_is_forgiven_and_no_more() {
        let expected = ExpectedAccessClaims {
            issuer: "https://issuer.example",
            resource: "https://us.example",
            now: NOW,
        };
        let read = |changes: &Value| {
            let mut claims = json!({
                "iss": "https://issuer.example", "aud": "https://us.example/", "sub": "person",
                "exp": NOW + 600,
            });
            for (name, value) in changes.as_object().expect("an object") {
                claims[name] = value.clone();
            }
            let claims = claims.as_object().expect("an object");
            known(&Map::new(), claims, &expected).map(|_| ())
        };
        for (changes, verdict) in [
            (json!({ "exp": NOW - 59 }), Ok(())),
            (json!({ "exp": NOW - 60 }), Err(AccessClaimError::Expired)),
            (json!({ "nbf": NOW + 60 }), Ok(())),
            (json!({ "nbf": NOW + 61 }), Err(AccessClaimError::NotYet)),
            (json!({ "iat": NOW + 60 }), Ok(())),
            (json!({ "iat": NOW + 61 }), Err(AccessClaimError::NotYet)),
            (json!({ "exp": u64::MAX }), Ok(())),
            (json!({ "exp": 1e300 }), Ok(())),
        ] {
            assert_eq!(read(&changes), verdict, "{changes}");
        }
    }
}
