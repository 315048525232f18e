//! Proof of possession (RFC 9449): a key, and a proof of having it for every request.
//!
//! Owns the key, the proofs, and the nonces that servers ask for, which are kept per origin: what
//! one server gave is of no use at another. The same proofs go with token requests and with
//! requests to the MCP server.
//! Does not own: sending them.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolway_types::Secret;
use url::Url;

use crate::clock::unix_now;
use crate::jwt::{KeyError, SigningKey};
use crate::random::{self, NoRandom};

/// The header of a proof.
pub const DPOP: HeaderName = HeaderName::from_static("dpop");
/// The header in which a server hands out a nonce.
pub const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The error by which a server asks for its nonce.
pub const USE_NONCE: &str = "use_dpop_nonce";

/// How many origins' nonces are kept.
const MAX_ORIGINS: usize = 64;
/// The longest nonce that is kept.
const MAX_NONCE: usize = 1024;

/// A proof could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The key does not sign.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no randomness for its id.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// A key that tokens are bound to. It belongs to one login, and is kept with it.
#[derive(Clone)]
pub struct DpopKey(Arc<DpopKeyInner>);

struct DpopKeyInner {
    key: SigningKey,
    /// PKCS #8, in base64url, for the vault.
    kept: Secret,
    nonces: Mutex<HashMap<String, String>>,
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DpopKey")
    }
}

/// Two are equal when they are the same key.
impl PartialEq for DpopKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.kept == other.0.kept
    }
}

impl Eq for DpopKey {}

impl DpopKey {
    /// A new key.
    pub fn generate() -> Result<Self, ProofError> {
        let (key, pkcs8) = SigningKey::generate()?;
        Ok(Self::of(key, Secret::new(URL_SAFE_NO_PAD.encode(pkcs8))))
    }

    /// The key that [`DpopKey::kept`] gave.
    pub fn restore(kept: &Secret) -> Result<Self, ProofError> {
        let pkcs8 = URL_SAFE_NO_PAD
            .decode(kept.expose())
            .map_err(|_| KeyError::NoKey)?;
        Ok(Self::of(SigningKey::from_pkcs8(&pkcs8)?, kept.clone()))
    }

    fn of(key: SigningKey, kept: Secret) -> Self {
        Self(Arc::new(DpopKeyInner {
            key,
            kept,
            nonces: Mutex::default(),
        }))
    }

    /// The private key, for the vault.
    pub fn kept(&self) -> &Secret {
        &self.0.kept
    }

    /// The thumbprint of the public key (RFC 7638): `dpop_jkt` in an authorization request.
    pub fn thumbprint(&self) -> String {
        let jwk = Value::Object(self.0.key.public_jwk());
        URL_SAFE_NO_PAD.encode(Sha256::digest(jwk.to_string()))
    }

    /// A proof for one request. With an access token it is bound to that token, as a request to an
    /// MCP server must be. Without a nonce, the one that the URL's origin gave last is taken.
    pub fn proof(
        &self,
        method: &str,
        url: &Url,
        access_token: Option<&Secret>,
        nonce: Option<&str>,
    ) -> Result<String, ProofError> {
        self.proof_at(method, url, access_token, nonce, unix_now())
    }

    fn proof_at(
        &self,
        method: &str,
        url: &Url,
        access_token: Option<&Secret>,
        nonce: Option<&str>,
        now: u64,
    ) -> Result<String, ProofError> {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let mut claims = Map::new();
        let mut claim = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        claim("jti", json!(random::word(16)?));
        claim("htm", json!(method));
        claim("htu", json!(target.as_str()));
        claim("iat", json!(now));
        if let Some(token) = access_token {
            claim(
                "ath",
                json!(URL_SAFE_NO_PAD.encode(Sha256::digest(token.expose()))),
            );
        }
        let known = self.nonces().get(&origin(url)).cloned();
        if let Some(nonce) = nonce.or(known.as_deref()) {
            claim("nonce", json!(nonce));
        }
        let mut header = Map::new();
        header.insert("typ".to_owned(), json!("dpop+jwt"));
        header.insert("jwk".to_owned(), Value::Object(self.0.key.public_jwk()));
        let proof = self.0.key.sign(header, &claims)?;
        // A proof is good for this one request only: it goes into its header.
        Ok(proof.expose().to_owned())
    }

    /// Keeps the nonce of an answer, and says whether there was a new one: a request that was
    /// refused for want of it is worth sending again only then.
    pub fn learn(&self, url: &Url, headers: &HeaderMap) -> bool {
        let nonce = headers
            .get(&DPOP_NONCE)
            .and_then(|value| value.to_str().ok())
            .filter(|nonce| !nonce.is_empty() && nonce.len() <= MAX_NONCE);
        let Some(nonce) = nonce else {
            return false;
        };
        let origin = origin(url);
        let mut nonces = self.nonces();
        if nonces.len() >= MAX_ORIGINS && !nonces.contains_key(&origin) {
            nonces.clear();
        }
        nonces.insert(origin, nonce.to_owned()).as_deref() != Some(nonce)
    }

    fn nonces(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the private key: into the vault only.
impl Serialize for DpopKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::secret::serialize(&self.0.kept, serializer)
    }
}

impl<'de> Deserialize<'de> for DpopKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kept = crate::secret::deserialize(deserializer)?;
        // The error names no part of the key.
        Self::restore(&kept).map_err(de::Error::custom)
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
