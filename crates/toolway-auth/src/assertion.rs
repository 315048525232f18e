//! Client assertions: a client that proves itself by a key in place of a secret
//! (`private_key_jwt`, RFC 7523 section 2.2).
//!
//! Owns the claims of such an assertion. Reading keys and signing is `jwt.rs`'s; sending it with
//! a token request is `token.rs`'s.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use toolway_types::Secret;

use crate::jwt::{KeyError, SigningKey};
use crate::random::{self, NoRandom};

/// The `client_assertion_type` of such an assertion.
pub const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How long one is good for. It is used at once; the rest is for clocks that disagree.
const LIFETIME: u64 = 300;

/// An assertion could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssertionError {
    /// The key does not sign.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no randomness for its id.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// The key of a client, with the name under which the authorization server knows it.
#[derive(Debug)]
pub struct ClientKey {
    /// The private key.
    pub key: SigningKey,
    /// The `kid`, where the server has several keys of this client.
    pub id: Option<String>,
}

impl ClientKey {
    /// An assertion that this client is `client_id`, for one authorization server.
    ///
    /// The audience is the server's issuer, and nothing else: an assertion that names a token
    /// endpoint can be replayed by another server with that endpoint.
    pub fn assertion(
        &self,
        client_id: &str,
        issuer: &str,
        now: u64,
    ) -> Result<Secret, AssertionError> {
        let mut header = Map::new();
        header.insert("typ".to_owned(), json!("JWT"));
        if let Some(id) = &self.id {
            header.insert("kid".to_owned(), json!(id));
        }
        let claims: Map<String, Value> = [
            ("iss", json!(client_id)),
            ("sub", json!(client_id)),
            ("aud", json!(issuer)),
            ("jti", json!(random::word(16)?)),
            ("iat", json!(now)),
            ("exp", json!(now.saturating_add(LIFETIME))),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        Ok(self.key.sign(header, &claims)?)
    }
}
