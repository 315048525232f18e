//! `account` in a settings file: its keys, and what is wrong with them.
//!
//! Owns how a provider is written, and the one preset: what is left out is as the shape
//! `standard` has it. An account with a fault is no account, so that a token never goes to a place
//! that was not meant.

use serde_json::{Map, Value};
use toolway_types::Secret;
use url::Url;

use super::{AccountProvider, DirectoryFields, PRESET, ProxyUrl};
use crate::http_syntax::{header_value, is_header_name};
use crate::json::ValueLines;
use crate::keys::{self, listed};
use crate::settings_object::{ObjectReader, SettingsObject};

/// The keys of `account`.
pub(crate) const KEYS: [(&str, &str); 8] = [
    (
        "provider",
        "The provider's shape; `standard` is the one that is built in.",
    ),
    (
        "url",
        "The start of the provider's addresses, where they are as the shape has them.",
    ),
    ("issuer", "The authorization server; `url` when absent."),
    (
        "metadataUrl",
        "Where the authorization server's metadata lies.",
    ),
    ("clientId", "A client id registered beforehand."),
    ("scopes", "The scopes to ask for."),
    ("callbackPort", "The fixed port of the login callback."),
    (
        "connectors",
        "Where the directory of connectors lies, what its members are called, and how each connector is reached.",
    ),
];

/// The keys of `account.connectors`.
const CONNECTORS: [&str; 6] = [
    "directoryUrl",
    "proxyUrl",
    "fields",
    "headers",
    "tokenHeader",
    "tokenPrefix",
];

/// The keys of `account.connectors.fields`.
const FIELDS: [&str; 4] = ["list", "id", "name", "url"];

/// What the shape `standard` says: below `url`, and in the directory.
const DIRECTORY: &str = "/directory";
const PROXY: &str = "/proxy/{id}/mcp";
const CLIENT_HEADER: (&str, &str) = ("X-Account-Client", "toolway");

/// Headers that are not the provider's to be set: those of HTTP and of the protocol.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Reads `account`; nothing when it cannot be used, and then the findings say why.
pub(crate) fn provider(
    reader: ObjectReader<'_>,
    value: &Value,
    lines: &ValueLines,
) -> Option<AccountProvider> {
    let shape = ("account", "{\"url\": \"https://connect.example.com\"}");
    reader.whole(shape, value, lines, |reader, account| {
        AccountReader(reader).provider(account)
    })
}

struct AccountReader<'r, 's>(&'r mut ObjectReader<'s>);

impl AccountReader<'_, '_> {
    fn provider(&mut self, account: SettingsObject<'_>) -> Option<AccountProvider> {
        self.0.unknown(account, &KEYS.map(|(key, _)| key));
        if let Some(word) = self.0.text(account, "provider")
            && word != PRESET
        {
            let message = format!("unknown provider `{}`", keys::spelled_out(word));
            let hint = format!(
                "write `{PRESET}` or leave it out, and describe the provider by the other keys"
            );
            self.0.fault(account, "provider", message, Some(&hint));
        }
        let empty = Map::new();
        let key = ("connectors", "account.connectors");
        let connectors = self.0.object(account, key, &empty);
        self.0.unknown(connectors, &CONNECTORS);
        let base = self.base(account);
        let below = |path: &str| base.as_ref().map(|base| format!("{base}{path}"));
        let issuer = match self.0.text(account, "issuer") {
            Some(issuer) => {
                self.url(account, "issuer", issuer);
                Some(issuer.to_owned())
            }
            None => base.clone(),
        };
        let directory_url = match self.0.text(connectors, "directoryUrl") {
            Some(text) => self.url(connectors, "directoryUrl", text),
            None => below(DIRECTORY).and_then(|url| Url::parse(&url).ok()),
        };
        let proxy = match self.0.text(connectors, "proxyUrl") {
            Some(text) => match ProxyUrl::parse(text) {
                Ok(proxy) => Some(proxy),
                Err(why) => {
                    let message = format!("`{}` {why}", connectors.called("proxyUrl"));
                    let hint = "write e.g. `\"https://proxy.example.com/{id}/mcp\"`";
                    self.0.fault(connectors, "proxyUrl", message, Some(hint));
                    None
                }
            },
            None => below(PROXY).and_then(|url| ProxyUrl::parse(&url).ok()),
        };
        self.complete(account, connectors);
        let metadata_url = self
            .0
            .text(account, "metadataUrl")
            .and_then(|text| self.url(account, "metadataUrl", text));
        // All of it is looked at, so that every fault is said at once.
        let client_id = self.0.text(account, "clientId").map(str::to_owned);
        let scopes = self.0.scopes(account);
        let callback_port = self.0.port(account, "callbackPort");
        let fields = self.fields(connectors);
        let headers = self.headers(connectors);
        let token_header = self.token_header(connectors);
        let token_prefix = self.token_prefix(connectors);
        Some(AccountProvider {
            origin: self.0.source.origin(self.0.line),
            issuer: issuer?,
            metadata_url,
            client_id,
            scopes,
            callback_port,
            directory_url: directory_url?,
            proxy: proxy?,
            fields,
            headers,
            token_header,
            token_prefix,
        })
    }

    /// Reports the addresses that are missing.
    fn complete(&mut self, account: SettingsObject<'_>, connectors: SettingsObject<'_>) {
        if account.map.contains_key("url") {
            return;
        }
        let missing: Vec<_> = [
            (account, "issuer"),
            (connectors, "directoryUrl"),
            (connectors, "proxyUrl"),
        ]
        .into_iter()
        .filter(|(object, key)| !object.map.contains_key(*key))
        .map(|(object, key)| object.called(key))
        .collect();
        if !missing.is_empty() {
            let message = format!("`account` lacks {}", listed(missing));
            let hint = "give `account.url`, below which a provider of the shape `standard` has \
                        them, or each of them";
            self.0.fault(account, "", message, Some(hint));
        }
    }

    /// The start of the addresses, without a slash at its end.
    fn base(&mut self, account: SettingsObject<'_>) -> Option<String> {
        let text = self.0.text(account, "url")?;
        let url = self.url(account, "url", text)?;
        if url.query().is_some() {
            let message = "`account.url` must not have a `?` part".to_owned();
            self.0.fault(account, "url", message, None);
            return None;
        }
        Some(text.trim_end_matches('/').to_owned())
    }

    fn fields(&mut self, connectors: SettingsObject<'_>) -> DirectoryFields {
        let empty = Map::new();
        let key = ("fields", "account.connectors.fields");
        let fields = self.0.object(connectors, key, &empty);
        self.0.unknown(fields, &FIELDS);
        let mut field = |key: &str, usual: &str| {
            let text = self.0.text(fields, key).unwrap_or(usual);
            text.to_owned()
        };
        DirectoryFields {
            list: field("list", "connectors"),
            id: field("id", "id"),
            name: field("name", "name"),
            url: field("url", "url"),
        }
    }

    fn headers(&mut self, connectors: SettingsObject<'_>) -> Vec<(String, Secret)> {
        if !connectors.map.contains_key("headers") {
            let (name, value) = CLIENT_HEADER;
            return vec![(name.to_owned(), Secret::new(value))];
        }
        let empty = Map::new();
        let key = ("headers", "account.connectors.headers");
        let headers = self.0.object(connectors, key, &empty);
        let mut found = Vec::new();
        for name in headers.map.keys() {
            let Some(value) = self.0.text(headers, name) else {
                continue;
            };
            if let Err(why) = header_value(value) {
                let message = format!("`{}` {why}", headers.called(name));
                self.0.fault(headers, name, message, None);
            } else if self.header_name(headers, name, name) {
                found.push((name.clone(), Secret::new(value)));
            }
        }
        found
    }

    fn token_header(&mut self, connectors: SettingsObject<'_>) -> String {
        const USUAL: &str = "Authorization";
        match self.0.text(connectors, "tokenHeader") {
            Some(name) if self.header_name(connectors, "tokenHeader", name) => name.to_owned(),
            _ => USUAL.to_owned(),
        }
    }

    fn token_prefix(&mut self, connectors: SettingsObject<'_>) -> String {
        const USUAL: &str = "Bearer";
        match connectors.map.get("tokenPrefix") {
            Some(Value::String(prefix)) if header_value(prefix).is_ok() => prefix.trim().to_owned(),
            None => USUAL.to_owned(),
            Some(other) => {
                let message = match other {
                    Value::String(_) => "`account.connectors.tokenPrefix` has a control character",
                    _ => "`account.connectors.tokenPrefix` must be a string",
                };
                self.0
                    .fault(connectors, "tokenPrefix", message.to_owned(), None);
                USUAL.to_owned()
            }
        }
    }

    fn header_name(&mut self, object: SettingsObject<'_>, key: &str, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let shown = keys::spelled_out(name);
        let message = if !is_header_name(name) {
            format!("`{shown}` is not a valid header name")
        } else if RESERVED.contains(&lower.as_str()) || lower.starts_with("mcp-") {
            format!("the header `{shown}` belongs to the protocol")
        } else {
            return true;
        };
        self.0.fault(object, key, message, None);
        false
    }

    fn url(&mut self, object: SettingsObject<'_>, key: &str, text: &str) -> Option<Url> {
        let example = "https://connect.example.com";
        self.0.url(object, key, text, example)
    }
}
