//! Reading an object of a settings file, such as `account` or `identityProvider`.
//!
//! Owns the checks that these objects share, and their messages. An object with an error is not
//! used at all, so that nothing is sent to an unintended place.

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, Severity, nearest};
use url::Url;

use crate::http_syntax::confidential_url;
use crate::json::{ValueLines, kind_of};
use crate::keys;
use crate::source::TextSource;

/// An object and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct SettingsObject<'a> {
    /// How its keys are called in messages, e.g. `account.connectors`.
    pub(crate) path: &'a str,
    pub(crate) map: &'a Map<String, Value>,
    pub(crate) lines: Option<&'a ValueLines>,
}

impl SettingsObject<'_> {
    pub(crate) fn called(&self, key: &str) -> String {
        format!("{}.{}", self.path, keys::spelled_out(key))
    }
}

/// Reads an object and collects what is wrong with it.
pub(crate) struct ObjectReader<'a> {
    pub(crate) source: &'a TextSource,
    pub(crate) line: u32,
    pub(crate) diagnoses: &'a mut Vec<Diagnosis>,
}

impl ObjectReader<'_> {
    /// Reads the object under a top-level key; nothing when it is none, or has an error.
    pub(crate) fn whole<T>(
        mut self,
        (key, example): (&str, &str),
        value: &Value,
        lines: &ValueLines,
        read: impl FnOnce(&mut Self, SettingsObject<'_>) -> Option<T>,
    ) -> Option<T> {
        let Value::Object(map) = value else {
            let message = format!("`{key}` must be an object, not {}", kind_of(value));
            let diagnosis = Diagnosis::error(message).at(self.source.origin(self.line));
            let hint = format!("write e.g. `\"{key}\": {example}`");
            self.diagnoses.push(diagnosis.hint(hint));
            return None;
        };
        let known = self.diagnoses.len();
        let object = SettingsObject {
            path: key,
            map,
            lines: Some(lines),
        };
        let settings = read(&mut self, object);
        let is_error = |found: &Diagnosis| found.severity == Severity::Error;
        settings.filter(|_| !self.diagnoses[known..].iter().any(is_error))
    }

    pub(crate) fn text<'v>(&mut self, object: SettingsObject<'v>, key: &str) -> Option<&'v str> {
        match object.map.get(key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.trim()),
            Value::String(_) => {
                let message = format!("`{}` must not be empty", object.called(key));
                self.fault(object, key, message, None);
                None
            }
            other => {
                self.wrong(object, key, "a string", other);
                None
            }
        }
    }

    /// An address that a token may be sent to.
    pub(crate) fn url(
        &mut self,
        object: SettingsObject<'_>,
        key: &str,
        text: &str,
        example: &str,
    ) -> Option<Url> {
        let url = confidential_url(text);
        if let Err(why) = &url {
            let message = format!("`{}` {why}", object.called(key));
            let hint = format!("write e.g. `\"{example}\"`");
            self.fault(object, key, message, Some(&hint));
        }
        url.ok()
    }

    pub(crate) fn scopes(&mut self, object: SettingsObject<'_>) -> Option<Vec<String>> {
        let texts: Vec<&str> = match object.map.get("scopes")? {
            Value::String(text) => vec![text],
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).collect()
            }
            other => {
                self.wrong(object, "scopes", "a string or an array of strings", other);
                return None;
            }
        };
        let words = texts.into_iter().flat_map(str::split_whitespace);
        Some(words.map(str::to_owned).collect())
    }

    pub(crate) fn port(&mut self, object: SettingsObject<'_>, key: &str) -> Option<u16> {
        let value = object.map.get(key)?;
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port != 0);
        if port.is_none() {
            let name = object.called(key);
            let message = format!("`{name}` must be a port number from 1 to 65535");
            self.fault(object, key, message, None);
        }
        port
    }

    /// An object inside of this one, called `path`; `empty` when it is absent.
    pub(crate) fn object<'v>(
        &mut self,
        object: SettingsObject<'v>,
        (key, path): (&str, &'v str),
        empty: &'v Map<String, Value>,
    ) -> SettingsObject<'v> {
        let lines = object.lines.and_then(|lines| lines.member(object.map, key));
        let map = match object.map.get(key) {
            Some(Value::Object(map)) => map,
            Some(other) => {
                self.wrong(object, key, "an object", other);
                empty
            }
            None => empty,
        };
        SettingsObject { path, map, lines }
    }

    /// Warns about keys that are not known.
    pub(crate) fn unknown(&mut self, object: SettingsObject<'_>, known: &[&str]) {
        let unknown = |key: &&String| !known.contains(&key.as_str());
        for key in object.map.keys().filter(unknown) {
            let message = format!("`{}` is not a key Toolway reads", object.called(key));
            let mut diagnosis = Diagnosis::warning(message).at(self.place(object, key));
            if let Some(meant) = nearest(key, known.iter().copied()) {
                diagnosis = diagnosis.hint(format!("did you mean `{}`?", object.called(meant)));
            }
            self.diagnoses.push(diagnosis);
        }
    }

    pub(crate) fn fault(
        &mut self,
        object: SettingsObject<'_>,
        key: &str,
        message: String,
        hint: Option<&str>,
    ) {
        let mut diagnosis = Diagnosis::error(message).at(self.place(object, key));
        diagnosis.hint = hint.map(str::to_owned);
        self.diagnoses.push(diagnosis);
    }

    fn wrong(&mut self, object: SettingsObject<'_>, key: &str, expected: &str, found: &Value) {
        let (name, found) = (object.called(key), kind_of(found));
        let message = format!("`{name}` must be {expected}, not {found}");
        self.fault(object, key, message, None);
    }

    fn place(&self, object: SettingsObject<'_>, key: &str) -> Origin {
        let line = object
            .lines
            .map_or(self.line, |lines| lines.line_of(object.map, key));
        self.source.origin(line)
    }
}
