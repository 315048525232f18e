//! Tokens: what an authorization server gave, until when it is good, and asking for it.
//!
//! Owns [`Tokens`] and when they are due for renewal. Asking is in [`request`], saying who asks in
//! [`client`], reading the server's answer in [`answer`], proving the possession of a key in
//! [`dpop`].
//! Does not own: keeping tokens (the vault) or deciding when to refresh across processes
//! (`refresh.rs`).

pub mod answer;
pub mod client;
pub mod dpop;
pub mod request;
#[cfg(test)]
pub(crate) mod tests;

use serde::{Deserialize, Serialize};
use toolway_types::Secret;

pub use client::{ClientAuth, OauthClient};
pub use dpop::DpopKey;
pub use request::{TokenError, TokenExchange, TokenGrant, TokenRequest};

/// A token is renewed this long before it expires: on the way to the server time passes, and the
/// server's clock is another one (REL-16).
pub const SKEW: u64 = 60;

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// By having it (RFC 6750).
    #[default]
    Bearer,
    /// With a proof that one has the key it is bound to (RFC 9449).
    Dpop,
}

impl TokenKind {
    /// The scheme of the `Authorization` header.
    pub fn scheme(self) -> &'static str {
        match self {
            TokenKind::Bearer => "Bearer",
            TokenKind::Dpop => "DPoP",
        }
    }
}

/// What a token endpoint gave. Serialises with its secrets: into the vault only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The access token.
    #[serde(with = "crate::secret")]
    pub access: Secret,
    /// How it is presented.
    #[serde(default)]
    pub kind: TokenKind,
    /// What gets the next one.
    #[serde(default, with = "crate::secret::option")]
    pub refresh: Option<Secret>,
    /// Who logged in, from an identity provider.
    #[serde(default, with = "crate::secret::option")]
    pub id_token: Option<Secret>,
    /// Until when the access token is good, in seconds since 1970 by this machine's clock; `None`
    /// when unknown; then only a refusal will tell.
    #[serde(default)]
    pub expires_at: Option<u64>,
    /// When it came, by the same clock.
    pub received_at: u64,
    /// What it is good for, as far as is known.
    #[serde(default)]
    pub scopes: Vec<String>,
}

impl Tokens {
    /// Whether the access token should be renewed before it is used.
    ///
    /// The margin is [`SKEW`], but never more than a quarter of the token's life: one that lives
    /// for two seconds would otherwise be renewed for every request. A clock that is behind the
    /// token's arrival was set back: what it says about the expiry means nothing.
    pub fn is_due(&self, now: u64) -> bool {
        let Some(expires_at) = self.expires_at else {
            return false;
        };
        let life = expires_at.saturating_sub(self.received_at);
        let margin = SKEW.min(life / 4);
        now.saturating_add(margin) >= expires_at || now.saturating_add(SKEW) < self.received_at
    }

    /// These tokens as the successors of others: a server that does not rotate sends no new
    /// refresh token, and the old one stays good.
    #[must_use]
    pub fn succeeding(mut self, old: &Tokens) -> Self {
        self.refresh = self.refresh.or_else(|| old.refresh.clone());
        self.id_token = self.id_token.or_else(|| old.id_token.clone());
        self
    }
}
