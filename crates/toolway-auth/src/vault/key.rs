//! What a secret is found by. None of it is secret.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretKind {
    /// The tokens of a login at a server.
    Login,
    /// A client that was registered at an authorization server.
    Client,
    /// A login at an identity provider.
    Identity,
    /// A login at a provider of connectors.
    Account,
    /// Something a user put there under a name, for `${keychain:name}`.
    Named,
}

impl SecretKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Client => "client",
            Self::Identity => "identity",
            Self::Account => "account",
            Self::Named => "named",
        }
    }
}

/// What a secret is found by. None of it is secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VaultKey {
    /// What it is.
    pub kind: SecretKind,
    /// The server's name.
    pub server: String,
    /// The digest of the server's definition: another definition under the same name is another
    /// server.
    pub definition: String,
    /// The authorization server that gave it.
    pub issuer: String,
    /// The resource it is for.
    pub resource: String,
    /// The user's word for the account, or the name of a named secret.
    pub account: String,
}

impl VaultKey {
    /// The key of something a user put there under a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            account: name.into(),
            ..Self::of(SecretKind::Named)
        }
    }

    /// A key of this kind that says nothing more yet.
    pub fn of(kind: SecretKind) -> Self {
        Self {
            kind,
            server: String::new(),
            definition: String::new(),
            issuer: String::new(),
            resource: String::new(),
            account: String::new(),
        }
    }

    /// What it is called where a name must be short, plain and the same forever.
    pub(crate) fn id(&self) -> String {
        let parts = [
            self.kind.as_str(),
            &self.server,
            &self.definition,
            &self.issuer,
            &self.resource,
            &self.account,
        ];
        let mut digest = Sha256::new();
        for part in parts {
            // With its length, so that no two keys run together.
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        hex::encode(&digest.finalize()[..16])
    }
}

impl fmt::Display for VaultKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SecretKind::Named => write!(formatter, "the secret `{}`", self.account),
            SecretKind::Login => write!(formatter, "the login of `{}`", self.server),
            SecretKind::Client => write!(formatter, "the client for `{}`", self.issuer),
            SecretKind::Identity => write!(formatter, "the identity of `{}`", self.issuer),
            SecretKind::Account => write!(formatter, "the account `{}`", self.account),
        }
    }
}
