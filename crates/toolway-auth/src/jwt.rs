//! Signed JSON (RFC 7515, 7519): making it with a key of ours, and believing it by a key of theirs.
//!
//! Owns the compact form, the list of algorithms, reading private keys ([`key`]) and checking
//! signatures by a key set ([`keys`]). The arithmetic is `ring`'s.
//! Does not own: which claims a token must have; `assertion.rs`, `token/dpop.rs` and `idp.rs` do.
//!
//! There is no symmetric algorithm and no `none` here, so a token cannot choose one.

pub mod key;
pub mod keys;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

pub use key::{KeyError, SigningKey};
pub use keys::{KeySet, VerifyError};

/// The longest token that is looked into.
const MAX_TOKEN: usize = 64 * 1024;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
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

impl Algorithm {
    const ALL: [Algorithm; 7] = [
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::EdDsa,
    ];

    /// The word in a token's header.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of that name, when it is one we use.
    pub fn named(word: &str) -> Option<Self> {
        // RFC 9864 has a second word for the one curve of EdDSA that is used.
        let word = if word == "Ed25519" { "EdDSA" } else { word };
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The claims of a token, unverified: a hint about a token that somebody else judges, such as
/// when it will expire. `None` for everything that is no JWT.
pub fn peek(token: &str) -> Option<Map<String, Value>> {
    Parts::of(token)?.claims()
}

/// The header and the claims of a token, unverified.
pub(crate) fn peek_all(token: &str) -> Option<(Map<String, Value>, Map<String, Value>)> {
    let parts = Parts::of(token)?;
    let claims = parts.claims()?;
    Some((parts.header, claims))
}

/// A token, taken apart and not yet believed.
struct Parts<'a> {
    signed: &'a str,
    header: Map<String, Value>,
    payload: &'a str,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
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

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&decode(part)?).ok()
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
