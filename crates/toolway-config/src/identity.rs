//! The organisation's identity provider: where the user logs in once for every server that takes
//! cross-app access.
//!
//! Owns how `identityProvider` is written, and what is wrong with it. It comes from the user's or
//! the organisation's settings only: no server's entry, no repository and no metadata can change it
//! (SEC-45). A provider with a fault is not used, so that no login happens at an unintended place.
//! Does not own: logging in there (`toolway-auth`), or which servers use it (`policy`).

#[cfg(test)]
mod tests;

use serde_json::Value;
use toolway_types::{Origin, ReferenceKind, SecretReference};
use url::Url;

use crate::expansion::{TextPiece, pieces};
use crate::json::ValueLines;
use crate::settings_object::{ObjectReader, SettingsObject};
use crate::source::FileKind;

/// The keys of `identityProvider`.
pub(crate) const KEYS: [(&str, &str); 6] = [
    ("issuer", "The provider's issuer, byte for byte."),
    ("clientId", "The client registered there for Toolway."),
    (
        "clientSecret",
        "The secret of that client, as a reference: `${keychain:name}`, `${file:/path}`, or in your own settings `${cmd:line}`.",
    ),
    ("scopes", "What is asked for beside `openid`."),
    (
        "tokenEndpoint",
        "The provider's token endpoint, in place of its metadata.",
    ),
    (
        "callbackPort",
        "The port of the callback registered there; any when absent.",
    ),
];

/// The place of the client's secret, for messages.
const CLIENT_SECRET: &str = "identityProvider.clientSecret";

/// An identity provider, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentitySettings {
    /// Where it stands.
    pub origin: Origin,
    /// The provider's issuer, byte for byte as written.
    pub issuer: String,
    /// Who we are there.
    pub client_id: String,
    /// Where the secret of that client is.
    pub client_secret: Option<SecretReference>,
    /// What is asked for beside `openid`.
    pub scopes: Vec<String>,
    /// Its token endpoint, in place of its metadata.
    pub token_endpoint: Option<Url>,
    /// The port of the callback.
    pub callback_port: Option<u16>,
}

impl IdentitySettings {
    /// Whether they say the same, wherever they stand.
    pub fn is_alike(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.origin.clone_from(&self.origin);
        *self == other
    }
}

/// Reads `identityProvider`; nothing when it cannot be used, and then the findings say why.
pub(crate) fn read(
    reader: ObjectReader<'_>,
    kind: FileKind,
    value: &Value,
    lines: &ValueLines,
) -> Option<IdentitySettings> {
    let example = "{\"issuer\": \"https://login.example.com\", \"clientId\": \"toolway\"}";
    reader.whole(
        ("identityProvider", example),
        value,
        lines,
        |reader, object| {
            let mut reader = IdentityReader {
                reader,
                object,
                kind,
            };
            reader.settings()
        },
    )
}

struct IdentityReader<'r, 's> {
    reader: &'r mut ObjectReader<'s>,
    object: SettingsObject<'r>,
    kind: FileKind,
}

impl<'r> IdentityReader<'r, '_> {
    /// All of it is looked at, so that every fault is said at once.
    fn settings(&mut self) -> Option<IdentitySettings> {
        let object = self.object;
        self.reader.unknown(object, &KEYS.map(|(key, _)| key));
        let issuer = self.required("issuer");
        let issuer_url = issuer.and_then(|issuer| self.url("issuer", issuer));
        if issuer_url.is_some_and(|url| url.query().is_some()) {
            let message = "`identityProvider.issuer` must not have a `?` part".to_owned();
            let hint = "write e.g. `\"https://login.example.com\"`";
            self.reader.fault(object, "issuer", message, Some(hint));
        }
        let client_id = self.required("clientId");
        let client_secret = self.client_secret();
        let scopes = self.reader.scopes(object).unwrap_or_default();
        let endpoint = self.reader.text(object, "tokenEndpoint");
        let token_endpoint = endpoint.and_then(|text| self.url("tokenEndpoint", text));
        let callback_port = self.reader.port(object, "callbackPort");
        Some(IdentitySettings {
            origin: self.reader.source.origin(self.reader.line),
            issuer: issuer?.to_owned(),
            client_id: client_id?.to_owned(),
            client_secret,
            scopes,
            token_endpoint,
            callback_port,
        })
    }

    fn required(&mut self, key: &str) -> Option<&'r str> {
        if !self.object.map.contains_key(key) {
            let message = format!("`identityProvider` lacks `{key}`");
            self.reader.fault(self.object, key, message, None);
        }
        self.reader.text(self.object, key)
    }

    fn url(&mut self, key: &str, text: &str) -> Option<Url> {
        let example = "https://login.example.com";
        self.reader.url(self.object, key, text, example)
    }

    /// One reference and nothing else: a secret in a file is known to every reader of the file. An
    /// administrator's file runs no command as the user.
    fn client_secret(&mut self) -> Option<SecretReference> {
        let text = self.reader.text(self.object, "clientSecret")?;
        let parts: Vec<TextPiece<'_>> = pieces(text).collect();
        let [TextPiece::Reference { kind, target }] = parts.as_slice() else {
            let message = format!("`{CLIENT_SECRET}` must be a reference, not the secret itself");
            let hint = "keep it with `toolway vault set idp`, and write `\"${keychain:idp}\"`";
            self.reader
                .fault(self.object, "clientSecret", message, Some(hint));
            return None;
        };
        let reference = SecretReference {
            kind: *kind,
            target: (*target).to_owned(),
            place: CLIENT_SECRET.to_owned(),
            file: match self.reader.source.origin(0) {
                Origin::File { path, .. } => Some(path.to_path_buf()),
                _ => None,
            },
        };
        let fault = if reference.target.is_empty() {
            format!("has `{reference}`, which names nothing")
        } else if *kind == ReferenceKind::File && !target.starts_with('/') {
            format!("has `{reference}`, which is no absolute path")
        } else if *kind == ReferenceKind::Command && self.kind != FileKind::User {
            format!("may not use `{reference}`: only your own settings can name a command")
        } else {
            return Some(reference);
        };
        self.reader.fault(
            self.object,
            "clientSecret",
            format!("`{CLIENT_SECRET}` {fault}"),
            None,
        );
        None
    }
}
