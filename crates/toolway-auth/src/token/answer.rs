//! Reading what a token endpoint answers, however oddly it says it (REL-16).
//!
//! Owns the members of a token answer and of a refusal. What is not said is not made up: an expiry
//! that makes no sense is no expiry, and the token is then used until the server refuses it.
//! Does not own: the HTTP exchange (`token.rs`).

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use toolway_types::{Secret, Untrusted};

use super::{TokenKind, Tokens};
use crate::jwt;
use crate::web::{WebError, WebReply};

/// The longest life that is believed. What is beyond says "forever" in some unit or other.
const MAX_LIFE: u64 = 10 * 365 * 24 * 60 * 60;

/// The longest token that is taken. Headers beyond this are refused everywhere.
const MAX_TOKEN: usize = 64 * 1024;

/// The most scopes that are kept, and the longest one.
const MAX_SCOPES: usize = 256;
const MAX_SCOPE: usize = 256;

/// When an answer came.
#[derive(Debug, Clone, Copy)]
pub struct AnswerTime {
    /// By our clock, in seconds since 1970.
    pub now: u64,
    /// By the server's clock (its `Date`).
    pub server: Option<u64>,
}

/// An answer that is no token. Holds no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedTokenAnswer {
    /// `access_token` is not there, or is no string.
    #[error("it has no `access_token`")]
    NoToken,
    /// It could not be sent in a header.
    #[error("its `access_token` is too long or has characters that no token may have")]
    BadToken,
    /// A kind of token that is not understood.
    #[error("its `token_type` is neither Bearer nor DPoP")]
    Kind,
    /// A token bound to a key, when no key was shown.
    #[error("its token is bound to a key that was never shown")]
    Unbound,
    /// The issued token is not of the type that was asked for.
    #[error("it gives another type of token than was asked for (`issued_token_type`)")]
    IssuedType,
}

/// A refusal, as the server put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRefusal {
    /// Its `error`, such as `invalid_grant`; `unknown` when it is no such word.
    pub code: String,
    /// Its `error_description`.
    pub description: Option<Untrusted>,
}

/// The tokens of an answer. `asked` are the scopes that were asked for: a server that gives exactly
/// those need not repeat them. `exchanged` is the type that an exchange asked for, which the answer
/// must then name; such a token need not be an access token.
pub fn tokens(
    answer: &Map<String, Value>,
    arrival: AnswerTime,
    asked: &[String],
    exchanged: Option<&str>,
) -> Result<Tokens, MalformedTokenAnswer> {
    let issued = answer.get("issued_token_type").and_then(Value::as_str);
    if exchanged.is_some() && issued != exchanged {
        return Err(MalformedTokenAnswer::IssuedType);
    }
    let access = answer
        .get("access_token")
        .and_then(Value::as_str)
        .filter(|token| !token.is_empty())
        .ok_or(MalformedTokenAnswer::NoToken)?;
    let kind = match answer.get("token_type") {
        None | Some(Value::Null) => TokenKind::Bearer,
        Some(Value::String(word)) if word.is_empty() || word.eq_ignore_ascii_case("bearer") => {
            TokenKind::Bearer
        }
        Some(Value::String(word)) if word.eq_ignore_ascii_case("dpop") => TokenKind::Dpop,
        Some(Value::String(word)) if exchanged.is_some() && word.eq_ignore_ascii_case("n_a") => {
            TokenKind::Bearer
        }
        Some(_) => return Err(MalformedTokenAnswer::Kind),
    };
    Ok(Tokens {
        access: presentable(access).ok_or(MalformedTokenAnswer::BadToken)?,
        kind,
        refresh: optional(answer, "refresh_token"),
        id_token: optional(answer, "id_token"),
        expires_at: expiry(answer, access, arrival),
        received_at: arrival.now,
        scopes: scopes(answer.get("scope")).unwrap_or_else(|| asked.to_vec()),
    })
}

/// The refusal in an answer, if it is one. Some servers say 200 to a refusal, and some put an
/// object where the word belongs.
pub fn refusal(answer: &Map<String, Value>) -> Option<TokenRefusal> {
    let text = |object: &Map<String, Value>, names: &[&str]| {
        names
            .iter()
            .find_map(|name| object.get(*name).and_then(Value::as_str))
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let (code, description) = match answer.get("error")? {
        Value::String(word) => (
            Some(word.clone()),
            text(answer, &["error_description", "message"]),
        ),
        Value::Object(inner) => (
            text(inner, &["code", "type", "error"]),
            text(inner, &["error_description", "message"]),
        ),
        Value::Null | Value::Bool(false) => return None,
        _ => (None, text(answer, &["error_description", "message"])),
    };
    Some(TokenRefusal {
        code: code
            .filter(|word| is_word(word))
            .unwrap_or_else(|| "unknown".to_owned()),
        description: description.map(Untrusted::new),
    })
}

/// The refusal in what was received, if it is one.
pub(super) fn refusal_in(reply: &WebReply) -> Option<TokenRefusal> {
    refusal(&object(reply).ok()?)
}

/// The members of what was received. Some old servers write a form whatever is asked for.
pub(super) fn object(reply: &WebReply) -> Result<Map<String, Value>, WebError> {
    let kind = reply.headers.get(http::header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| {
        kind.as_bytes()
            .starts_with(b"application/x-www-form-urlencoded")
    });
    if is_form && !reply.body.trim_ascii_start().starts_with(b"{") {
        return Ok(form(&reply.body));
    }
    reply.object()
}

fn form(body: &[u8]) -> Map<String, Value> {
    url::form_urlencoded::parse(body)
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .collect()
}

/// Error codes are short words; anything else is not repeated.
fn is_word(word: &str) -> bool {
    (1..=64).contains(&word.len())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'))
}

/// A token that can stand in a header: visible ASCII, of a sane length.
fn presentable(token: &str) -> Option<Secret> {
    let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    (visible && token.len() <= MAX_TOKEN).then(|| Secret::new(token))
}

/// A secret that need not be there: empty, `null` and nonsense are the same as absent.
fn optional(answer: &Map<String, Value>, name: &str) -> Option<Secret> {
    answer
        .get(name)
        .and_then(Value::as_str)
        .filter(|value| !value.is_empty() && value.len() <= MAX_TOKEN)
        .map(Secret::new)
}

/// Until when the token is good, by our clock: what the server says, else what the token itself
/// says, else nothing.
fn expiry(answer: &Map<String, Value>, access: &str, arrival: AnswerTime) -> Option<u64> {
    let life = answer
        .get("expires_in")
        .and_then(seconds)
        .or_else(|| life_of_jwt(access, arrival))?;
    arrival.now.checked_add(life.min(MAX_LIFE))
}

/// A positive number of seconds. Zero and less would say that the token was given out expired;
/// servers mean by it that they do not tell, and believing it would renew without end.
fn seconds(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => {
            let text = text.trim();
            text.parse::<u64>()
                .ok()
                .or_else(|| text.parse::<f64>().ok().and_then(whole))
        }
        _ => None,
    };
    number.filter(|seconds| *seconds > 0)
}

fn whole(number: f64) -> Option<u64> {
    if number.is_nan() || number < 1.0 {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is positive, and a cast that saturates is what is wanted"
    )]
    Some(number as u64)
}

/// How much longer a token is good that says so itself. It says so by the server's clock, so the
/// server's `Date` is what it is measured from; our clock only stands in for it.
fn life_of_jwt(access: &str, arrival: AnswerTime) -> Option<u64> {
    let claims = jwt::peek(access)?;
    let expires = claims.get("exp").and_then(seconds)?;
    let now = arrival.server.unwrap_or(arrival.now);
    expires.checked_sub(now).filter(|life| *life > 0)
}

/// The scopes of an answer: separated by spaces, or in an array. `None` when it names none.
fn scopes(value: Option<&Value>) -> Option<Vec<String>> {
    let words: Vec<&str> = match value? {
        Value::String(text) => text.split_ascii_whitespace().collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let mut scopes: Vec<String> = Vec::new();
    for word in words {
        let fits = !word.is_empty()
            && word.len() <= MAX_SCOPE
            && word.bytes().all(|byte| byte.is_ascii_graphic());
        if fits && scopes.len() < MAX_SCOPES && !scopes.iter().any(|known| known == word) {
            scopes.push(word.to_owned());
        }
    }
    (!scopes.is_empty()).then_some(scopes)
}
