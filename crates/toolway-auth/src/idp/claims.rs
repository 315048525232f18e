//! Whether an id token is to be believed (OIDC Core, section 3.1.3.7).
//!
//! Owns the keys of the provider, fetched from where its metadata says and fetched again for a key
//! that is not among them, and every check of the claims. A token that comes straight from the
//! token endpoint is checked like any other.

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use toolway_types::Secret;
use url::Url;

use crate::clock::unix_now;
use crate::jwt::published::{KEEP, PAUSE, PublishedKeys};
use crate::jwt::{self, JwtAlgorithm, VerifyError};
use crate::token::SKEW;
use crate::web::{WebClient, WebError};

/// The longest name of a user.
const MAX_SUBJECT: usize = 255;

/// What is wrong with an id token. Shows nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenError {
    /// It is not signed by the provider.
    #[error(transparent)]
    Signature(#[from] VerifyError),
    /// `iss`
    #[error("it comes from another issuer")]
    Issuer,
    /// `aud` or `azp`
    #[error("it is for another client")]
    Audience,
    /// `exp`
    #[error("it has expired, or does not say when it will")]
    Expired,
    /// `iat` or `nbf`
    #[error("it is not good yet: look at this machine's clock")]
    NotYet,
    /// `nonce`
    #[error("it belongs to another login")]
    Nonce,
    /// `sub`
    #[error("it does not say who the person is")]
    Subject,
}

/// What an id token must say.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedIdToken<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    /// Of a login in a browser.
    pub(super) nonce: Option<&'a str>,
    /// What the provider says it signs by; everything allowed here when it does not say.
    pub(super) algorithms: &'a [String],
}

/// What an id token said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IdTokenClaims {
    pub(super) subject: String,
    /// By our clock.
    pub(super) expires_at: u64,
}

/// Checks the id tokens of one provider.
#[derive(Default)]
pub(super) struct IdTokenVerifier(Mutex<Option<PublishedKeys>>);

impl IdTokenVerifier {
    /// Checks a token. The outer failure is that of fetching the keys.
    pub(super) async fn check(
        &self,
        web: &WebClient,
        place: &Url,
        token: &Secret,
        expected: &ExpectedIdToken<'_>,
    ) -> Result<Result<IdTokenClaims, IdTokenError>, WebError> {
        let mut keys = self.0.lock().await;
        let age = keys.as_ref().map(PublishedKeys::age);
        if age.is_none_or(|age| age >= KEEP) {
            *keys = Some(PublishedKeys::fetch(web, place).await?);
        }
        let allowed = allowed(expected.algorithms);
        let judged = judge(keys.as_ref(), token, &allowed, expected);
        let worth_a_look = age.is_some_and(|age| (PAUSE..KEEP).contains(&age));
        if judged == Err(IdTokenError::Signature(VerifyError::UnknownKey)) && worth_a_look {
            *keys = Some(PublishedKeys::fetch(web, place).await?);
            return Ok(judge(keys.as_ref(), token, &allowed, expected));
        }
        Ok(judged)
    }
}

fn allowed(said: &[String]) -> Vec<JwtAlgorithm> {
    let said: Vec<JwtAlgorithm> = said
        .iter()
        .filter_map(|word| JwtAlgorithm::named(word))
        .collect();
    JwtAlgorithm::ALL
        .into_iter()
        .filter(|algorithm| said.is_empty() || said.contains(algorithm))
        .collect()
}

fn judge(
    keys: Option<&PublishedKeys>,
    token: &Secret,
    allowed: &[JwtAlgorithm],
    expected: &ExpectedIdToken<'_>,
) -> Result<IdTokenClaims, IdTokenError> {
    let keys = keys.ok_or(IdTokenError::Signature(VerifyError::UnknownKey))?;
    let claims = keys.keys.verify(token.expose(), allowed)?;
    let now = unix_now();
    known(
        &claims,
        expected,
        now,
        now.saturating_add_signed(keys.ahead),
    )
}

/// What claims say, when they say what they must. `theirs` is the provider's clock.
fn known(
    claims: &Map<String, Value>,
    expected: &ExpectedIdToken<'_>,
    now: u64,
    theirs: u64,
) -> Result<IdTokenClaims, IdTokenError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(IdTokenError::Issuer);
    }
    let audiences = jwt::audiences(claims);
    let party = text("azp");
    let ours = audiences.contains(&expected.client_id)
        && party.is_none_or(|party| party == expected.client_id)
        && (audiences.len() == 1 || party.is_some());
    if !ours {
        return Err(IdTokenError::Audience);
    }
    // A provider's `Date` can be as wrong as our own clock; one of the two must make sense of it.
    let left = left(claims, theirs).or_else(|error| left(claims, now).map_err(|_| error))?;
    if expected
        .nonce
        .is_some_and(|nonce| text("nonce") != Some(nonce))
    {
        return Err(IdTokenError::Nonce);
    }
    let subject = text("sub")
        .filter(|subject| (1..=MAX_SUBJECT).contains(&subject.len()))
        .ok_or(IdTokenError::Subject)?;
    Ok(IdTokenClaims {
        subject: subject.to_owned(),
        expires_at: now.saturating_add(left),
    })
}

/// How much longer claims are good at a moment, in seconds.
fn left(claims: &Map<String, Value>, now: u64) -> Result<u64, IdTokenError> {
    let begins = ["iat", "nbf"].map(|name| jwt::seconds(claims, name));
    if begins
        .into_iter()
        .flatten()
        .any(|begins| begins > now.saturating_add(SKEW))
    {
        return Err(IdTokenError::NotYet);
    }
    let expires = jwt::seconds(claims, "exp");
    expires
        .and_then(|expires| expires.checked_sub(now))
        .filter(|left| *left > 0)
        .ok_or(IdTokenError::Expired)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn read(changes: &Value, theirs: u64) -> Result<IdTokenClaims, IdTokenError> {
        let mut claims = json!({
            "iss": "https://idp.example", "aud": "me", "sub": "person", "nonce": "n",
            "iat": theirs, "exp": theirs + 600,
        });
        for (name, value) in changes.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        let expected = ExpectedIdToken {
            issuer: "https://idp.example",
            client_id: "me",
            nonce: Some("n"),
            algorithms: &[],
        };
        known(
            claims.as_object().expect("an object"),
            &expected,
            NOW,
            theirs,
        )
    }

    #[test]
    fn sec_45_every_claim_must_be_right() {
        let good = IdTokenClaims {
            subject: "person".to_owned(),
            expires_at: NOW + 600,
        };
        assert_eq!(read(&json!({}), NOW), Ok(good));
        for (changes, error) in [
            (
                json!({ "iss": "https://idp.example/" }),
                IdTokenError::Issuer,
            ),
            (json!({ "iss": null }), IdTokenError::Issuer),
            (json!({ "aud": "you" }), IdTokenError::Audience),
            (json!({ "aud": [] }), IdTokenError::Audience),
            (json!({ "aud": ["me", "you"] }), IdTokenError::Audience),
            (
                json!({ "aud": ["me", "you"], "azp": "you" }),
                IdTokenError::Audience,
            ),
            (json!({ "azp": "you" }), IdTokenError::Audience),
            (json!({ "exp": NOW }), IdTokenError::Expired),
            (json!({ "exp": null }), IdTokenError::Expired),
            (json!({ "exp": "tomorrow" }), IdTokenError::Expired),
            (json!({ "exp": -1 }), IdTokenError::Expired),
            (json!({ "iat": NOW + 61 }), IdTokenError::NotYet),
            (json!({ "nbf": NOW + 61 }), IdTokenError::NotYet),
            (json!({ "nonce": "other" }), IdTokenError::Nonce),
            (json!({ "nonce": null }), IdTokenError::Nonce),
            (json!({ "sub": "" }), IdTokenError::Subject),
            (json!({ "sub": "x".repeat(256) }), IdTokenError::Subject),
        ] {
            assert_eq!(read(&changes, NOW), Err(error), "{changes}");
        }
        for fine in [
            json!({ "aud": ["me"] }),
            json!({ "aud": ["me", "you"], "azp": "me" }),
            json!({ "iat": NOW + 60 }),
        ] {
            assert!(read(&fine, NOW).is_ok(), "{fine}");
        }
    }

    #[test]
    fn the_providers_clock_is_what_its_tokens_are_measured_by() {
        let year = 365 * 24 * 3600;
        for theirs in [NOW - year, NOW - 3600, NOW + 3600, NOW + year] {
            assert_eq!(
                read(&json!({}), theirs).expect("good").expires_at,
                NOW + 600
            );
        }
    }

    #[test]
    fn a_provider_without_a_clock_is_measured_by_ours() {
        let year = 365 * 24 * 3600;
        let claims = json!({ "iat": NOW, "exp": NOW + 600 });
        for theirs in [NOW - year, NOW + year] {
            assert_eq!(read(&claims, theirs).expect("good").expires_at, NOW + 600);
        }
    }

    #[test]
    fn what_the_provider_does_not_sign_by_is_not_taken() {
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(allowed(&[]).len(), JwtAlgorithm::ALL.len());
        assert_eq!(
            allowed(&words(&["RS256", "none", "HS256"])),
            [JwtAlgorithm::Rs256]
        );
        // It names nothing that is known here: then its tokens cannot be checked in any case.
        assert_eq!(allowed(&words(&["HS256"])).len(), JwtAlgorithm::ALL.len());
    }
}
