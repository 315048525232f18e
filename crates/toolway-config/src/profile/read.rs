//! Reads `profiles`, collecting what is wrong with each.
//!
//! Owns the keys' shapes and their messages. A key that is not known is an error here: it may have
//! been meant to narrow.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolway_types::{Diagnosis, Scope, ServerName, Severity, nearest};

use super::{FileProfiles, KEYS, NameForm, Profile, ProfileMode, ReadProfiles, ResultForm};
use crate::json::{ValueLines, kind_of};
use crate::keys::{listed, spelled_out};
use crate::permission::{Permissions, ToolPatterns};
use crate::settings_object::{ObjectReader, SettingsObject};

/// The longest name of a profile: it is a part of addresses.
const MAX_NAME: usize = 64;

/// Reads the value of `profiles`.
pub(crate) fn read(
    mut reader: ObjectReader<'_>,
    scope: Scope,
    value: &Value,
    lines: &ValueLines,
) -> FileProfiles {
    let Value::Object(map) = value else {
        let message = format!("`profiles` must be an object, not {}", kind_of(value));
        let fault = Diagnosis::error(message)
            .at(reader.source.origin(reader.line))
            .hint("write e.g. `\"profiles\": {\"work\": {\"servers\": [\"github\"]}}`");
        reader.diagnoses.push(fault.clone());
        return Err(fault);
    };
    let whole = SettingsObject {
        path: "profiles",
        map,
        lines: Some(lines),
    };
    let mut profiles = ReadProfiles::new();
    for (name, value) in map {
        let known = reader.diagnoses.len();
        let profile = ProfileReader::read(&mut reader, whole, name, value, scope);
        let is_error = |found: &&Diagnosis| found.severity == Severity::Error;
        let fault = reader.diagnoses[known..].iter().find(is_error);
        profiles.insert(
            name.clone(),
            match fault {
                Some(fault) => Err(fault.clone()),
                None => Ok(Arc::new(profile)),
            },
        );
    }
    Ok(profiles)
}

struct ProfileReader<'r, 's> {
    reader: &'r mut ObjectReader<'s>,
    object: SettingsObject<'r>,
    scope: Scope,
}

impl<'r, 's> ProfileReader<'r, 's> {
    /// Reads one profile. All of it is looked at, so that every fault is said at once.
    fn read(
        reader: &'r mut ObjectReader<'s>,
        whole: SettingsObject<'r>,
        name: &'r str,
        value: &'r Value,
        scope: Scope,
    ) -> Profile {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty()
            || name.len() > MAX_NAME
            || !name.chars().all(is_plain)
            || name.starts_with('.')
        {
            let message = format!("`{}` cannot name a profile", spelled_out(name));
            let hint = "use at most 64 of the letters, digits, `-`, `_` and `.`";
            reader.fault(whole, name, message, Some(hint));
        }
        let path = whole.called(name);
        let Value::Object(map) = value else {
            let message = format!("`{path}` must be an object, not {}", kind_of(value));
            let hint = "write e.g. `{\"servers\": [\"github\"], \"readOnly\": true}`";
            reader.fault(whole, name, message, Some(hint));
            return Profile::default();
        };
        let lines = whole.lines.and_then(|lines| lines.member(whole.map, name));
        let line = lines.map_or(reader.line, |lines| lines.line);
        let origin = reader.source.origin(line);
        let object = SettingsObject {
            path: &path,
            map,
            lines,
        };
        let mut read = ProfileReader {
            reader,
            object,
            scope,
        };
        read.unknown();
        Profile {
            origin,
            servers: read.servers(),
            tools: read.tools(),
            permissions: read.permissions(),
            mode: read.word("mode", ProfileMode::ALL, ProfileMode::as_str),
            accounts: read.accounts(),
            results: read.word("results", ResultForm::ALL, ResultForm::as_str),
            tool_search: read.switch("toolSearch"),
            names: read.word("names", NameForm::ALL, NameForm::as_str),
            read_only: read.switch("readOnly"),
        }
    }

    fn unknown(&mut self) {
        let object = self.object;
        let known = || KEYS.iter().map(|(key, _)| *key);
        let unknown = |key: &&String| known().all(|known| known != key.as_str());
        for key in object.map.keys().filter(unknown) {
            let message = format!("`{}` is not a key Toolway reads", object.called(key));
            let hint = match nearest(key, known()) {
                Some(meant) => format!("did you mean `{}`?", object.called(meant)),
                None => format!("a profile has {}", listed(known())),
            };
            self.reader.fault(object, key, message, Some(&hint));
        }
    }

    /// The texts of an array, each with its place; none when the key is absent.
    fn texts(&mut self, key: &str, example: &str) -> Option<Vec<(&'r str, u32)>> {
        let object = self.object;
        let value = object.map.get(key)?;
        let Value::Array(items) = value else {
            let called = object.called(key);
            let message = format!(
                "`{called}` must be an array of strings, not {}",
                kind_of(value)
            );
            let hint = format!("write e.g. `[\"{example}\"]`");
            self.reader.fault(object, key, message, Some(&hint));
            return Some(Vec::new());
        };
        let lines = object.lines.and_then(|lines| lines.member(object.map, key));
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let line = lines.map_or(self.reader.line, |lines| lines.line_at(index));
            match item {
                Value::String(text) => texts.push((text.as_str(), line)),
                other => {
                    let called = object.called(key);
                    let kind = kind_of(other);
                    let message = format!("`{called}[{index}]` must be a string, not {kind}");
                    self.fault_at(line, message, None);
                }
            }
        }
        Some(texts)
    }

    fn fault_at(&mut self, line: u32, message: String, hint: Option<&str>) {
        let mut diagnosis = Diagnosis::error(message).at(self.reader.source.origin(line));
        diagnosis.hint = hint.map(str::to_owned);
        self.reader.diagnoses.push(diagnosis);
    }

    fn servers(&mut self) -> Option<Vec<ServerName>> {
        let texts = self.texts("servers", "github")?;
        let mut servers = Vec::new();
        for (text, line) in texts {
            match ServerName::new(text) {
                Ok(name) => servers.push(name),
                Err(error) => {
                    let called = self.object.called("servers");
                    let message = format!("`{called}`: {}", spelled_out(&error.to_string()));
                    self.fault_at(line, message, None);
                }
            }
        }
        Some(servers)
    }

    fn tools(&mut self) -> Option<ToolPatterns> {
        let texts = self.texts("tools", "mcp__github__*")?;
        let mut patterns = ToolPatterns::default();
        for (text, line) in texts {
            let origin = self.reader.source.origin(line);
            if let Err(bad) = patterns.add(text, &origin) {
                let called = self.object.called("tools");
                let text = spelled_out(text);
                let message = format!("`{text}` in `{called}` cannot be read: {bad}");
                self.fault_at(line, message, Some(bad.hint));
            }
        }
        Some(patterns)
    }

    fn permissions(&mut self) -> Permissions {
        let object = self.object;
        let Some(value) = object.map.get("permissions") else {
            return Permissions::empty();
        };
        let (source, line) = (self.reader.source, self.reader.line);
        let lines = object
            .lines
            .and_then(|lines| lines.member(object.map, "permissions"));
        let place = |key: Option<&str>| {
            let line = match (lines, value, key) {
                (Some(lines), Value::Object(map), Some(key)) => lines.line_of(map, key),
                (Some(lines), ..) => lines.line,
                (None, ..) => line,
            };
            source.origin(line)
        };
        let path = object.called("permissions");
        let (read, found) = Permissions::parse_narrowing(value, &path, &place, self.scope);
        self.reader.diagnoses.extend(found);
        read
    }

    fn accounts(&mut self) -> BTreeMap<ServerName, String> {
        let (object, empty) = (self.object, serde_json::Map::new());
        let path = object.called("accounts");
        let accounts = self.reader.object(object, ("accounts", &path), &empty);
        let mut read = BTreeMap::new();
        for key in accounts.map.keys() {
            let server = match ServerName::new(key.as_str()) {
                Ok(server) => Some(server),
                Err(error) => {
                    let message = format!("`{path}`: {}", spelled_out(&error.to_string()));
                    self.reader.fault(accounts, key, message, None);
                    None
                }
            };
            let account = self.reader.text(accounts, key);
            if let (Some(server), Some(account)) = (server, account) {
                read.insert(server, account.to_owned());
            }
        }
        read
    }

    fn switch(&mut self, key: &str) -> bool {
        let object = self.object;
        match object.map.get(key) {
            None => false,
            Some(Value::Bool(on)) => *on,
            Some(other) => {
                let (called, kind) = (object.called(key), kind_of(other));
                let message = format!("`{called}` must be `true` or `false`, not {kind}");
                self.reader.fault(object, key, message, None);
                false
            }
        }
    }

    fn word<T: Copy + Default>(
        &mut self,
        key: &str,
        all: &[T],
        word_of: fn(T) -> &'static str,
    ) -> T {
        let object = self.object;
        let Some(value) = object.map.get(key) else {
            return T::default();
        };
        let word = value.as_str();
        let found = all.iter().find(|one| Some(word_of(**one)) == word);
        if let Some(found) = found {
            return *found;
        }
        let called = object.called(key);
        let message = match word {
            Some(word) => format!("`{called}` cannot be `{}`", spelled_out(word)),
            None => format!("`{called}` must be a string, not {}", kind_of(value)),
        };
        let words = || all.iter().map(|one| word_of(*one));
        let hint = match word.and_then(|word| nearest(word, words())) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of {}", listed(words())),
        };
        self.reader.fault(object, key, message, Some(&hint));
        T::default()
    }
}
