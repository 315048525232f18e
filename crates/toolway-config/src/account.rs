//! The account: whose connectors there are, and how their provider is reached.
//!
//! Owns the provider's settings: where the user logs in, where the directory of connectors is, how
//! a connector's address is made of its id, and which headers every request carries. They come from
//! the user's or the organisation's settings only (SEC-03). Reading them is `read`, the directory
//! is [`directory`].
//! Does not own: the login and its tokens (`toolway-auth`), or sending requests (the host).

pub mod directory;
mod proxy;
mod read;

use sha2::{Digest, Sha256};
use toolway_types::{Origin, Secret};
use url::Url;

pub use self::directory::{Connector, ConnectorDirectory, DirectoryError};
pub use self::proxy::ProxyUrl;
pub(crate) use self::read::{KEYS, provider};

/// The name of the shape that is used where settings say nothing else.
pub const PRESET: &str = "standard";

/// An account's provider, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountProvider {
    /// Where it stands.
    pub origin: Origin,
    /// The authorization server's name, byte for byte as written.
    pub issuer: String,
    /// Where its metadata lies, when the standard places are wrong.
    pub metadata_url: Option<Url>,
    /// A client id registered beforehand.
    pub client_id: Option<String>,
    /// The scopes to ask for.
    pub scopes: Option<Vec<String>>,
    /// The fixed port of the login callback.
    pub callback_port: Option<u16>,
    /// Where the directory of connectors lies.
    pub directory_url: Url,
    /// How each connector is reached.
    pub proxy: ProxyUrl,
    /// The members of the directory.
    pub fields: DirectoryFields,
    /// What every request to directory and proxy carries besides the token.
    pub headers: Vec<(String, Secret)>,
    /// The header of the account's token.
    pub token_header: String,
    /// What stands before the token in it; nothing when empty.
    pub token_prefix: String,
}

/// The members of a directory document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryFields {
    /// The array of connectors; dots lead into objects.
    pub list: String,
    /// What identifies a connector at the proxy.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The server it stands for, by which duplicates are found.
    pub url: String,
}

impl AccountProvider {
    /// Whether it is the same, asked in the same way, wherever it stands.
    pub fn is_alike(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.origin.clone_from(&self.origin);
        *self == other
    }

    /// The provider by its host, for people.
    pub fn host(&self) -> &str {
        self.directory_url.host_str().unwrap_or_default()
    }

    /// What a kept directory and a kept login belong to: the same provider asked in the same way.
    pub fn digest(&self) -> String {
        let fields = &self.fields;
        let mut digest = Sha256::new();
        for part in [
            self.issuer.as_str(),
            self.directory_url.as_str(),
            &self.proxy.to_string(),
            &fields.list,
            &fields.id,
            &fields.name,
            &fields.url,
        ] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        hex::encode(digest.finalize())
    }
}

#[cfg(test)]
mod tests;
