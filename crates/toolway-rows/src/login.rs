//! Who is logged in where: at servers, at the provider of connectors, at an identity provider.
//!
//! No secret is ever in it.

use serde::{Deserialize, Serialize};

use crate::Word;

/// A login to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginRow {
    /// The user's word for the account.
    pub account: String,
    /// The authorization server.
    pub issuer: String,
    /// What was granted, as far as is known.
    pub scopes: Vec<String>,
    /// Until when its token is good, in UTC.
    pub expires_at: Option<String>,
    /// Whether it renews itself.
    pub renews: bool,
    /// How it came about.
    pub how: Word,
    /// Where it lies.
    pub kept_in: Word,
    /// Whether the server of that name uses it.
    pub in_use: bool,
    /// The server; absent where the login stands in the server's own row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl LoginRow {
    /// Whether it is of no more use, at a time that is spelled as `expires_at` is.
    pub fn is_over(&self, now: &str) -> bool {
        // The order of times is the order of letters.
        !self.renews && self.expires_at.as_deref().is_some_and(|end| end <= now)
    }
}

/// All logins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginListing {
    /// Those that can be read.
    pub logins: Vec<LoginRow>,
    /// What is wrong with the others.
    pub unreadable: Vec<String>,
}

/// The login at a provider of connectors. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountRow {
    /// The provider's host.
    pub provider: String,
    /// Its authorization server.
    pub issuer: String,
    /// Where it is configured.
    pub source: String,
    /// Whether somebody is logged in.
    pub logged_in: bool,
    /// Since when, in UTC.
    pub logged_in_at: Option<String>,
    /// Until when, in UTC.
    pub expires_at: Option<String>,
    /// Whether it renews itself.
    pub renews: bool,
    /// What was granted.
    pub scopes: Vec<String>,
    /// Where the login lies, or would.
    pub storage: Word,
    /// What is known of its connectors.
    pub connectors: ConnectorsRow,
}

/// What is known of an account's connectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectorsRow {
    /// Where they are switched off.
    pub switched_off: Option<String>,
    /// How many are known.
    pub known: usize,
    /// Since when, in UTC.
    pub fetched_at: Option<String>,
}

/// The login at an identity provider. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityRow {
    /// The provider.
    pub issuer: String,
    /// Who Toolway is to it.
    pub client_id: String,
    /// Where it is configured.
    pub source: String,
    /// Whether somebody is logged in.
    pub logged_in: bool,
    /// Who.
    pub subject: Option<String>,
    /// Until when, in UTC.
    pub expires_at: Option<String>,
    /// Whether it renews itself.
    pub renews: bool,
    /// Where the login lies, or would.
    pub storage: Word,
    /// The servers that it serves.
    pub servers: Vec<ServedRow>,
}

/// A server with cross-app access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedRow {
    /// Its name.
    pub name: String,
    /// The policy that leaves no other way.
    pub required_by: Option<String>,
}
