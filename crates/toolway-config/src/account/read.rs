//! `account` in a settings file: its keys, and what is wrong with them.
//!
//! Owns how a provider is written, and the one preset: what is left out is as the shape
//! `standard` has it. An account with a fault is no account, so that a token never goes to a place
//! that was not meant.

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, Secret, nearest};
use url::Url;

use super::{AccountProvider, DirectoryFields, PRESET, ProxyUrl, safe_url};
use crate::http_syntax::{header_value, is_header_name};
use crate::json::{ValueLines, kind_of};
use crate::keys;
use crate::source::TextSource;

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
    source: &TextSource,
    line: u32,
    value: &Value,
    lines: &ValueLines,
    diagnoses: &mut Vec<Diagnosis>,
) -> Option<AccountProvider> {
    let known = diagnoses.len();
    let mut reader = AccountReader {
        source,
        line,
        diagnoses,
    };
    let provider = reader.provider(value, lines);
    let is_faulty = diagnoses[known..]
        .iter()
        .any(|found| found.severity == toolway_types::Severity::Error);
    provider.filter(|_| !is_faulty)
}

/// An object and where it stands.
#[derive(Clone, Copy)]
struct AccountObject<'a> {
    /// How its keys are called in messages, e.g. `account.connectors`.
    path: &'a str,
    map: &'a Map<String, Value>,
    lines: Option<&'a ValueLines>,
}

impl AccountObject<'_> {
    fn called(&self, key: &str) -> String {
        format!("{}.{}", self.path, keys::spelled_out(key))
    }
}

struct AccountReader<'a> {
    source: &'a TextSource,
    line: u32,
    diagnoses: &'a mut Vec<Diagnosis>,
}

impl AccountReader<'_> {
    fn provider(&mut self, value: &Value, lines: &ValueLines) -> Option<AccountProvider> {
        let Value::Object(map) = value else {
            let message = format!("`account` must be an object, not {}", kind_of(value));
            let diagnosis = Diagnosis::error(message).at(self.source.origin(self.line));
            let hint = "write e.g. `\"account\": {\"url\": \"https://connect.example.com\"}`";
            self.diagnoses.push(diagnosis.hint(hint));
            return None;
        };
        let account = AccountObject {
            path: "account",
            map,
            lines: Some(lines),
        };
        self.unknown(account, &KEYS.map(|(key, _)| key));
        if let Some(word) = self.text(account, "provider")
            && word != PRESET
        {
            let message = format!("unknown provider `{}`", keys::spelled_out(word));
            let hint = format!(
                "write `{PRESET}` or leave it out, and describe the provider by the other keys"
            );
            self.fault(account, "provider", message, Some(hint));
        }
        let empty = Map::new();
        let connectors = AccountObject {
            path: "account.connectors",
            ..self.object(account, "connectors", &empty)
        };
        self.unknown(connectors, &CONNECTORS);
        let base = self.base(account);
        let below = |path: &str| base.as_ref().map(|base| format!("{base}{path}"));
        let issuer = match self.text(account, "issuer") {
            Some(issuer) => {
                self.url(account, "issuer", issuer);
                Some(issuer.to_owned())
            }
            None => base.clone(),
        };
        let directory_url = match self.text(connectors, "directoryUrl") {
            Some(text) => self.url(connectors, "directoryUrl", text),
            None => below(DIRECTORY).and_then(|url| Url::parse(&url).ok()),
        };
        let proxy = match self.text(connectors, "proxyUrl") {
            Some(text) => match ProxyUrl::parse(text) {
                Ok(proxy) => Some(proxy),
                Err(why) => {
                    let message = format!("`{}` {why}", connectors.called("proxyUrl"));
                    let hint = "write e.g. `\"https://proxy.example.com/{id}/mcp\"`".to_owned();
                    self.fault(connectors, "proxyUrl", message, Some(hint));
                    None
                }
            },
            None => below(PROXY).and_then(|url| ProxyUrl::parse(&url).ok()),
        };
        self.complete(account, connectors);
        let metadata_url = self
            .text(account, "metadataUrl")
            .and_then(|text| self.url(account, "metadataUrl", text));
        // All of it is looked at, so that every fault is said at once.
        let client_id = self.text(account, "clientId").map(str::to_owned);
        let scopes = self.scopes(account);
        let callback_port = self.port(account);
        let fields = self.fields(connectors);
        let headers = self.headers(connectors);
        let token_header = self.token_header(connectors);
        let token_prefix = self.token_prefix(connectors);
        Some(AccountProvider {
            origin: self.source.origin(self.line),
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
    fn complete(&mut self, account: AccountObject<'_>, connectors: AccountObject<'_>) {
        if account.map.contains_key("url") {
            return;
        }
        let missing: Vec<String> = [
            (account, "issuer"),
            (connectors, "directoryUrl"),
            (connectors, "proxyUrl"),
        ]
        .into_iter()
        .filter(|(part, key)| !part.map.contains_key(*key))
        .map(|(part, key)| format!("`{}`", part.called(key)))
        .collect();
        if !missing.is_empty() {
            let message = format!("`account` lacks {}", missing.join(", "));
            let hint = "give `account.url`, below which a provider of the shape `standard` has \
                        them, or each of them"
                .to_owned();
            self.fault(account, "", message, Some(hint));
        }
    }

    /// The start of the addresses, without a slash at its end.
    fn base(&mut self, account: AccountObject<'_>) -> Option<String> {
        let text = self.text(account, "url")?;
        let url = self.url(account, "url", text)?;
        if url.query().is_some() {
            let message = "`account.url` must not have a `?` part".to_owned();
            self.fault(account, "url", message, None);
            return None;
        }
        Some(text.trim_end_matches('/').to_owned())
    }

    fn fields(&mut self, connectors: AccountObject<'_>) -> DirectoryFields {
        let empty = Map::new();
        let fields = AccountObject {
            path: "account.connectors.fields",
            ..self.object(connectors, "fields", &empty)
        };
        self.unknown(fields, &FIELDS);
        let mut field = |key: &str, usual: &str| {
            let text = self.text(fields, key).unwrap_or(usual);
            text.to_owned()
        };
        DirectoryFields {
            list: field("list", "connectors"),
            id: field("id", "id"),
            name: field("name", "name"),
            url: field("url", "url"),
        }
    }

    fn headers(&mut self, connectors: AccountObject<'_>) -> Vec<(String, Secret)> {
        if !connectors.map.contains_key("headers") {
            let (name, value) = CLIENT_HEADER;
            return vec![(name.to_owned(), Secret::new(value))];
        }
        let empty = Map::new();
        let headers = AccountObject {
            path: "account.connectors.headers",
            ..self.object(connectors, "headers", &empty)
        };
        let mut found = Vec::new();
        for name in headers.map.keys() {
            let Some(value) = self.text(headers, name) else {
                continue;
            };
            if let Err(why) = header_value(value) {
                let message = format!("`{}` {why}", headers.called(name));
                self.fault(headers, name, message, None);
            } else if self.header_name(headers, name, name) {
                found.push((name.clone(), Secret::new(value)));
            }
        }
        found
    }

    fn token_header(&mut self, connectors: AccountObject<'_>) -> String {
        const USUAL: &str = "Authorization";
        match self.text(connectors, "tokenHeader") {
            Some(name) if self.header_name(connectors, "tokenHeader", name) => name.to_owned(),
            _ => USUAL.to_owned(),
        }
    }

    fn token_prefix(&mut self, connectors: AccountObject<'_>) -> String {
        const USUAL: &str = "Bearer";
        match connectors.map.get("tokenPrefix") {
            Some(Value::String(prefix)) if header_value(prefix).is_ok() => prefix.trim().to_owned(),
            None => USUAL.to_owned(),
            Some(other) => {
                let message = match other {
                    Value::String(_) => "`account.connectors.tokenPrefix` has a control character",
                    _ => "`account.connectors.tokenPrefix` must be a string",
                };
                self.fault(connectors, "tokenPrefix", message.to_owned(), None);
                USUAL.to_owned()
            }
        }
    }

    fn header_name(&mut self, part: AccountObject<'_>, key: &str, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let shown = keys::spelled_out(name);
        let message = if !is_header_name(name) {
            format!("`{shown}` is not a valid header name")
        } else if RESERVED.contains(&lower.as_str()) || lower.starts_with("mcp-") {
            format!("the header `{shown}` belongs to the protocol")
        } else {
            return true;
        };
        self.fault(part, key, message, None);
        false
    }

    fn scopes(&mut self, account: AccountObject<'_>) -> Option<Vec<String>> {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        match account.map.get("scopes")? {
            Value::String(text) => Some(words(text)),
            Value::Array(items) if items.iter().all(Value::is_string) => Some(
                items
                    .iter()
                    .filter_map(Value::as_str)
                    .flat_map(str::split_whitespace)
                    .map(str::to_owned)
                    .collect(),
            ),
            other => {
                let message = format!(
                    "`account.scopes` must be a string or an array of strings, not {}",
                    kind_of(other)
                );
                self.fault(account, "scopes", message, None);
                None
            }
        }
    }

    fn port(&mut self, account: AccountObject<'_>) -> Option<u16> {
        let value = account.map.get("callbackPort")?;
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port != 0);
        if port.is_none() {
            let message = "`account.callbackPort` must be a port number from 1 to 65535";
            self.fault(account, "callbackPort", message.to_owned(), None);
        }
        port
    }

    fn url(&mut self, part: AccountObject<'_>, key: &str, text: &str) -> Option<Url> {
        match safe_url(text) {
            Ok(url) => Some(url),
            Err(why) => {
                let hint = "write e.g. `\"https://connect.example.com\"`".to_owned();
                let message = format!("`{}` {why}", part.called(key));
                self.fault(part, key, message, Some(hint));
                None
            }
        }
    }

    fn text<'v>(&mut self, part: AccountObject<'v>, key: &str) -> Option<&'v str> {
        let value = part.map.get(key)?;
        match value {
            Value::String(text) if !text.trim().is_empty() => Some(text.trim()),
            Value::String(_) => {
                let message = format!("`{}` must not be empty", part.called(key));
                self.fault(part, key, message, None);
                None
            }
            other => {
                let message = format!(
                    "`{}` must be a string, not {}",
                    part.called(key),
                    kind_of(other)
                );
                self.fault(part, key, message, None);
                None
            }
        }
    }

    fn object<'v>(
        &mut self,
        part: AccountObject<'v>,
        key: &str,
        empty: &'v Map<String, Value>,
    ) -> AccountObject<'v> {
        let lines = part.lines.and_then(|lines| lines.member(part.map, key));
        let map = match part.map.get(key) {
            Some(Value::Object(map)) => map,
            Some(other) => {
                let message = format!(
                    "`{}` must be an object, not {}",
                    part.called(key),
                    kind_of(other)
                );
                self.fault(part, key, message, None);
                empty
            }
            None => empty,
        };
        AccountObject { map, lines, ..part }
    }

    fn unknown(&mut self, part: AccountObject<'_>, known: &[&str]) {
        for key in part.map.keys().filter(|key| !known.contains(&key.as_str())) {
            let message = format!("`{}` is not a key Toolway reads", part.called(key));
            let mut diagnosis = Diagnosis::warning(message).at(self.place(part, key));
            if let Some(meant) = nearest(key, known.iter().copied()) {
                diagnosis = diagnosis.hint(format!("did you mean `{}`?", part.called(meant)));
            }
            self.diagnoses.push(diagnosis);
        }
    }

    fn fault(&mut self, part: AccountObject<'_>, key: &str, message: String, hint: Option<String>) {
        let mut diagnosis = Diagnosis::error(message).at(self.place(part, key));
        diagnosis.hint = hint;
        self.diagnoses.push(diagnosis);
    }

    fn place(&self, part: AccountObject<'_>, key: &str) -> Origin {
        let line = part
            .lines
            .map_or(self.line, |lines| lines.line_of(part.map, key));
        self.source.origin(line)
    }
}
