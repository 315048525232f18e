//! Signed JSON (RFC 7515, 7519): signing with our keys, and verifying with an issuer's keys.
//!
//! Owns the compact form and the list of algorithms, which has no symmetric one and no `none`, so
//! that a token cannot choose one. The arithmetic is `ring`'s.
//! Does not own: which claims a token must have (`assertion.rs`, `token/dpop.rs`, `idp.rs`,
//! `inbound.rs`).

pub mod key;
pub mod keys;
pub(crate) mod published;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use toolway_wire::scan;

pub use key::{KeyError, SigningKey};
pub use keys::{KeySet, VerifyError};

/// The longest token that is looked into.
const MAX_TOKEN: usize = 64 * 1024;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JwtAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// RSA (PKCS #1 v1.5) with SHA-384.
    Rs384,
    /// RSA (PKCS #1 v1.5) with SHA-512.
    Rs512,
    /// RSA (PSS) with SHA-256.
    Ps256,
    /// Ed25519.
    EdDsa,
}

impl JwtAlgorithm {
    /// Every one there is here, all of them asymmetric.
    pub const ALL: [JwtAlgorithm; 7] = [
        JwtAlgorithm::Es256,
        JwtAlgorithm::Es384,
        JwtAlgorithm::Rs256,
        JwtAlgorithm::Rs384,
        JwtAlgorithm::Rs512,
        JwtAlgorithm::Ps256,
        JwtAlgorithm::EdDsa,
    ];

    /// The word in a token's header.
    pub fn as_str(self) -> &'static str {
        match self {
            JwtAlgorithm::Es256 => "ES256",
            JwtAlgorithm::Es384 => "ES384",
            JwtAlgorithm::Rs256 => "RS256",
            JwtAlgorithm::Rs384 => "RS384",
            JwtAlgorithm::Rs512 => "RS512",
            JwtAlgorithm::Ps256 => "PS256",
            JwtAlgorithm::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of that name, when it is one we use.
    pub fn named(word: &str) -> Option<Self> {
        // RFC 9864 has a second word for the one curve of EdDSA that is used.
        let word = if word == "Ed25519" { "EdDSA" } else { word };
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}

impl fmt::Display for JwtAlgorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The claims of a token, unverified: a hint about a token that another party verifies, such as
/// when it will expire. `None` for everything that is no JWT.
pub fn peek(token: &str) -> Option<Map<String, Value>> {
    JwtParts::of(token)?.claims()
}

/// The header and the claims of a token, unverified.
pub(crate) fn peek_all(token: &str) -> Option<(Map<String, Value>, Map<String, Value>)> {
    let parts = JwtParts::of(token)?;
    let claims = parts.claims()?;
    Some((parts.header, claims))
}

/// A decoded token, not yet verified.
struct JwtParts<'a> {
    signed: &'a str,
    header: Map<String, Value>,
    payload: &'a str,
    signature: Vec<u8>,
}

impl<'a> JwtParts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        Some(Self {
            signed,
            header: object(header)?,
            payload,
            signature: decode(signature)?,
        })
    }

    fn claims(&self) -> Option<Map<String, Value>> {
        object(self.payload)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.header.get(name).and_then(Value::as_str)
    }
}

/// An object in which no key stands twice: two readers would take it for two.
fn object(part: &str) -> Option<Map<String, Value>> {
    let text = String::from_utf8(decode(part)?).ok()?;
    if !scan::is_shallow(text.as_bytes()) {
        return None;
    }
    let object = serde_json::from_str(&text).ok()?;
    scan::doubled_key(&text).is_none().then_some(object)
}

/// The audiences that claims name: one, several, or none.
pub(crate) fn audiences(claims: &Map<String, Value>) -> Vec<&str> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A moment in a claim, in whole seconds. Some write fractions.
pub(crate) fn seconds(claims: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = claims.get(name)?;
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| *number >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number is not negative, and a cast that saturates is what is wanted"
        )]
        Some(number as u64)
    })
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
