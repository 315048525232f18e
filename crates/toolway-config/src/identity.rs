//! The organisation's identity provider: where the user logs in once for every server that takes
//! cross-app access.
//!
//! Owns how `identityProvider` is written, and what is wrong with it. It comes from the user's or
//! the organisation's settings only: no server's entry, no repository and no metadata can change it
//! (SEC-45). A provider with a fault is not used, so that no login happens at an unintended place.
//! Does not own: logging in there (`toolway-auth`), or which servers use it (`policy`).

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, ReferenceKind, SecretReference, Severity, nearest};
use url::Url;

use crate::account::safe_url;
use crate::expansion::{TextPiece, pieces};
use crate::json::{ValueLines, kind_of};
use crate::keys;
use crate::source::{FileKind, TextSource};

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
        let origin = self.origin.clone();
        *self
            == Self {
                origin,
                ..other.clone()
            }
    }
}

/// Reads `identityProvider`; nothing when it cannot be used, and then the findings say why.
pub(crate) fn read(
    source: &TextSource,
    kind: FileKind,
    line: u32,
    value: &Value,
    lines: &ValueLines,
    diagnoses: &mut Vec<Diagnosis>,
) -> Option<IdentitySettings> {
    let known = diagnoses.len();
    let Value::Object(map) = value else {
        let message = format!(
            "`identityProvider` must be an object, not {}",
            kind_of(value)
        );
        let hint = "write e.g. `\"identityProvider\": {\"issuer\": \"https://login.example.com\", \
                    \"clientId\": \"toolway\"}`";
        let fault = Diagnosis::error(message).at(source.origin(line));
        diagnoses.push(fault.hint(hint));
        return None;
    };
    let mut reader = IdentityReader {
        source,
        kind,
        map,
        lines,
        diagnoses,
    };
    let settings = reader.settings(line);
    let is_faulty = diagnoses[known..]
        .iter()
        .any(|found| found.severity == Severity::Error);
    settings.filter(|_| !is_faulty)
}

struct IdentityReader<'a> {
    source: &'a TextSource,
    kind: FileKind,
    map: &'a Map<String, Value>,
    lines: &'a ValueLines,
    diagnoses: &'a mut Vec<Diagnosis>,
}

impl IdentityReader<'_> {
    /// All of it is looked at, so that every fault is said at once.
    fn settings(&mut self, line: u32) -> Option<IdentitySettings> {
        self.unknown();
        let issuer = self.required("issuer");
        if let Some(issuer) = &issuer {
            self.url("issuer", issuer);
        }
        let client_id = self.required("clientId");
        let client_secret = self.client_secret();
        let scopes = self.scopes();
        let endpoint = self.text("tokenEndpoint");
        let token_endpoint = endpoint.and_then(|text| self.url("tokenEndpoint", &text));
        let callback_port = self.port();
        Some(IdentitySettings {
            origin: self.source.origin(line),
            issuer: issuer?,
            client_id: client_id?,
            client_secret,
            scopes,
            token_endpoint,
            callback_port,
        })
    }

    fn required(&mut self, key: &str) -> Option<String> {
        if !self.map.contains_key(key) {
            let message = format!("`identityProvider` lacks `{key}`");
            self.fault(key, message, None);
        }
        self.text(key)
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.map.get(key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Value::String(_) => {
                let message = format!("`identityProvider.{key}` must not be empty");
                self.fault(key, message, None);
                None
            }
            other => {
                self.wrong(key, "a string", other);
                None
            }
        }
    }

    fn url(&mut self, key: &str, text: &str) -> Option<Url> {
        let fault = match safe_url(text) {
            Ok(url) if key == "issuer" && url.query().is_some() => {
                "must not have a `?` part".to_owned()
            }
            Ok(url) => return Some(url),
            Err(why) => why,
        };
        let message = format!("`identityProvider.{key}` {fault}");
        let hint = "write e.g. `\"https://login.example.com\"`";
        self.fault(key, message, Some(hint));
        None
    }

    /// One reference and nothing else: a secret in a file is known to every reader of the file. An
    /// administrator's file runs no command as the user.
    fn client_secret(&mut self) -> Option<SecretReference> {
        let text = self.text("clientSecret")?;
        let parts: Vec<TextPiece<'_>> = pieces(&text).collect();
        let [TextPiece::Reference { kind, target }] = parts.as_slice() else {
            let message = format!("`{CLIENT_SECRET}` must be a reference, not the secret itself");
            let hint = "keep it with `toolway vault set idp`, and write `\"${keychain:idp}\"`";
            self.fault("clientSecret", message, Some(hint));
            return None;
        };
        let reference = SecretReference {
            kind: *kind,
            target: (*target).to_owned(),
            place: CLIENT_SECRET.to_owned(),
            file: match self.source.origin(0) {
                Origin::File { path, .. } => Some(path),
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
        self.fault("clientSecret", format!("`{CLIENT_SECRET}` {fault}"), None);
        None
    }

    fn scopes(&mut self) -> Vec<String> {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        match self.map.get("scopes") {
            None => Vec::new(),
            Some(Value::String(text)) => words(text),
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => items
                .iter()
                .filter_map(Value::as_str)
                .flat_map(|text| -> Vec<String> { words(text) })
                .collect(),
            Some(other) => {
                self.wrong("scopes", "a string or an array of strings", other);
                Vec::new()
            }
        }
    }

    fn port(&mut self) -> Option<u16> {
        let value = self.map.get("callbackPort")?;
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port != 0);
        if port.is_none() {
            let message = "`identityProvider.callbackPort` must be a port number from 1 to 65535";
            self.fault("callbackPort", message.to_owned(), None);
        }
        port
    }

    fn unknown(&mut self) {
        let known = KEYS.map(|(key, _)| key);
        for key in self.map.keys().filter(|key| !known.contains(&key.as_str())) {
            let shown = keys::spelled_out(key);
            let message = format!("`identityProvider.{shown}` is not a key Toolway reads");
            let mut diagnosis = Diagnosis::warning(message).at(self.place(key));
            if let Some(meant) = nearest(key, known) {
                diagnosis = diagnosis.hint(format!("did you mean `identityProvider.{meant}`?"));
            }
            self.diagnoses.push(diagnosis);
        }
    }

    fn wrong(&mut self, key: &str, expected: &str, found: &Value) {
        let message = format!(
            "`identityProvider.{key}` must be {expected}, not {}",
            kind_of(found)
        );
        self.fault(key, message, None);
    }

    fn fault(&mut self, key: &str, message: String, hint: Option<&str>) {
        let mut diagnosis = Diagnosis::error(message).at(self.place(key));
        diagnosis.hint = hint.map(str::to_owned);
        self.diagnoses.push(diagnosis);
    }

    fn place(&self, key: &str) -> Origin {
        self.source.origin(self.lines.line_of(self.map, key))
    }
}
