//! A secret that a definition names and does not hold.
//!
//! Owns the reference, the word that stands for its value until a connection is made, and putting
//! values in place of those words. Finding references is `toolway-config`'s work, finding their
//! values `toolway-auth`'s.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::{RemoteSpec, Secret, ServerSpec, TransportSpec};

/// Where the value of a reference comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReferenceKind {
    /// `${keychain:name}`: from the vault.
    Keychain,
    /// `${file:path}`: the text of a file.
    File,
    /// `${cmd:line}`: what a command prints.
    Command,
}

impl ReferenceKind {
    /// Every kind.
    pub const ALL: [ReferenceKind; 3] = [
        ReferenceKind::Keychain,
        ReferenceKind::File,
        ReferenceKind::Command,
    ];

    /// The word before the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            ReferenceKind::Keychain => "keychain",
            ReferenceKind::File => "file",
            ReferenceKind::Command => "cmd",
        }
    }
}

/// A secret that is looked up when a connection is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretReference {
    /// Where it comes from.
    pub kind: ReferenceKind,
    /// The name, the absolute path or the command line.
    pub target: String,
    /// The part of the definition that needs it, e.g. `headers.Authorization`.
    pub place: String,
}

impl SecretReference {
    /// The word that stands for the value. It is the same for the same reference, so that two
    /// readings of one file are equal, and has letters and digits only, so that it can stand
    /// anywhere.
    pub fn placeholder(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.kind.as_str());
        digest.update([0]);
        digest.update(&self.target);
        format!("toolwaysecret{}", hex::encode(&digest.finalize()[..16]))
    }
}

/// As it is written, but of a command only its first word: the others may be anything.
impl fmt::Display for SecretReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_str();
        match self.kind {
            ReferenceKind::Keychain | ReferenceKind::File => {
                write!(formatter, "${{{kind}:{}}}", self.target)
            }
            ReferenceKind::Command => {
                let mut words = self.target.split_whitespace();
                let first = words.next().unwrap_or_default();
                let rest = if words.next().is_some() { " …" } else { "" };
                write!(formatter, "${{{kind}:{first}{rest}}}")
            }
        }
    }
}

impl ServerSpec {
    /// The definition with the values of its references, in their order.
    #[must_use]
    pub fn with_secrets(&self, values: &[Secret]) -> ServerSpec {
        let places: Vec<(String, &str)> = self
            .references
            .iter()
            .zip(values)
            .map(|(reference, value)| (reference.placeholder(), value.expose()))
            .collect();
        let fill = |text: &Secret| {
            let mut text = text.expose().to_owned();
            for (word, value) in &places {
                text = text.replace(word, value);
            }
            Secret::new(text)
        };
        let mut filled = self.clone();
        filled.references.clear();
        match &mut filled.transport {
            TransportSpec::Stdio(stdio) => {
                for value in stdio.env.values_mut() {
                    *value = fill(value);
                }
            }
            TransportSpec::Http(remote)
            | TransportSpec::Sse(remote)
            | TransportSpec::Ws(remote)
            | TransportSpec::SseIde(remote)
            | TransportSpec::WsIde(remote)
            | TransportSpec::Connector(remote) => fill_remote(remote, fill),
            TransportSpec::Sdk => {}
        }
        filled
    }
}

/// In an address a value stands in the query only, where it cannot lead anywhere else.
fn fill_remote(remote: &mut RemoteSpec, fill: impl Fn(&Secret) -> Secret) {
    for (_, value) in &mut remote.headers {
        *value = fill(value);
    }
    let pairs: Vec<(String, Secret)> = remote
        .url
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), Secret::new(value)))
        .collect();
    let filled: Vec<Secret> = pairs.iter().map(|(_, value)| fill(value)).collect();
    if pairs.iter().zip(&filled).any(|((_, old), new)| old != new) {
        let mut query = remote.url.query_pairs_mut();
        query.clear();
        for ((name, _), value) in pairs.iter().zip(&filled) {
            query.append_pair(name, value.expose());
        }
    }
}
