//! Translating one entry from a client's format to ours.
//!
//! Owns the shared part of every reader: keys are taken out of the entry one by one, and what is
//! left at the end is reported. What a key means is the client's file.

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, ServerName, TransportKind};

use super::client_json::{ClientEntry, ClientJson};
use super::variables::{TranslatedText, VariableSyntax};
use super::{ClientFile, ImportedServer};

/// The order in which our files have the keys.
const ORDER: [&str; 12] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "headersHelper",
    "oauth",
    "timeout",
    "includeTools",
    "excludeTools",
];

/// The shortest time limit our entries take, in milliseconds.
const LEAST_TIMEOUT: f64 = 1_000.0;

/// An entry in translation.
pub(super) struct EntryDraft {
    rest: Map<String, Value>,
    definition: Map<String, Value>,
    syntax: VariableSyntax,
    enabled: bool,
    dropped: Vec<String>,
    notes: Vec<String>,
}

/// Translates a file that has nothing but `mcpServers` to look at.
pub(super) fn plain(
    found: &mut ClientFile,
    text: &str,
    syntax: VariableSyntax,
    translate: fn(&mut EntryDraft),
) -> Result<(), Diagnosis> {
    let entries = ClientJson::parse(found, text)?.servers(found, &["mcpServers"]);
    each(found, entries, syntax, translate);
    Ok(())
}

/// Translates every entry of a file and puts the results into `found`.
pub(super) fn each(
    found: &mut ClientFile,
    entries: Vec<ClientEntry>,
    syntax: VariableSyntax,
    mut translate: impl FnMut(&mut EntryDraft),
) {
    for entry in entries {
        match one(&entry, syntax, &mut translate) {
            Ok(imported) => found.servers.push(imported),
            Err(diagnosis) => found.say(entry.line, diagnosis),
        }
    }
}

fn one(
    entry: &ClientEntry,
    syntax: VariableSyntax,
    translate: &mut impl FnMut(&mut EntryDraft),
) -> Result<ImportedServer, Diagnosis> {
    let name = ServerName::new(entry.name.as_str())
        .map_err(|error| Diagnosis::error(error.to_string()))?;
    let Some(rest) = entry.value.as_object().cloned() else {
        return Err(Diagnosis::error(format!("`{name}` is not an object")).of(&name));
    };
    let mut draft = EntryDraft {
        rest,
        definition: Map::new(),
        syntax,
        enabled: true,
        dropped: Vec::new(),
        notes: Vec::new(),
    };
    translate(&mut draft);
    draft.finish(entry, &name)
}

impl EntryDraft {
    /// Takes a key out of the entry.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.rest.shift_remove(key).filter(|value| !value.is_null())
    }

    /// Takes a key that holds a string, as it is.
    pub(super) fn take_text(&mut self, key: &str) -> Option<String> {
        let value = self.take(key)?;
        if !value.is_string() {
            self.dropped.push(format!("`{key}` is not a string."));
        }
        value.as_str().map(str::to_owned)
    }

    /// A list under a key, which stays in the entry.
    pub(super) fn peek_list(&self, key: &str) -> Option<&Vec<Value>> {
        self.rest.get(key).and_then(Value::as_array)
    }

    /// Puts something into the entry, to be carried over as if it had been written so.
    pub(super) fn restore(&mut self, key: &str, value: Value) {
        self.rest.insert(key.to_owned(), value);
    }

    /// Whether the entry still has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.rest.contains_key(key)
    }

    /// Puts something into the result.
    pub(super) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.definition.insert(key.to_owned(), value.into());
    }

    /// Whether the result has a key.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.definition.contains_key(key)
    }

    /// Says what could not be carried over.
    pub(super) fn drop(&mut self, sentence: impl Into<String>) {
        self.dropped.push(sentence.into());
    }

    /// Says what was guessed or put differently.
    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Takes keys that say nothing about the connection.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        for key in keys {
            self.rest.shift_remove(*key);
        }
    }

    /// Takes a key that has no counterpart and says why it stays behind.
    pub(super) fn leave(&mut self, key: &str, why: &str) {
        if self.take(key).is_some() {
            self.dropped.push(format!("`{key}` was left out: {why}."));
        }
    }

    /// A string, variables put into our words.
    pub(super) fn expand(&mut self, text: &str) -> String {
        let TranslatedText {
            text,
            notes,
            dropped,
        } = self.syntax.translate(text);
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.dropped.extend(dropped);
        text
    }

    /// Carries a string over.
    pub(super) fn text(&mut self, from: &str, to: &str) {
        if let Some(text) = self.take_text(from) {
            let text = self.expand(&text);
            self.put(to, text);
        }
    }

    /// Carries a list of strings over; numbers and switches become strings.
    pub(super) fn list(&mut self, from: &str, to: &str) {
        let Some(value) = self.take(from) else { return };
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|items| items.iter().map(scalar).collect());
        match texts {
            Some(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| self.expand(text)).collect();
                self.put(to, texts);
            }
            None => self.drop(format!("`{from}` is not a list of strings.")),
        }
    }

    /// Carries a table of strings over, joining what is there already.
    pub(super) fn table(&mut self, from: &str, to: &str) {
        let Some(value) = self.take(from) else { return };
        let Some(table) = value.as_object() else {
            self.drop(format!("`{from}` is not a table of strings."));
            return;
        };
        for (key, value) in table {
            match scalar(value) {
                Some(text) => {
                    let text = self.expand(&text);
                    self.join(to, key, text);
                }
                None if value.is_null() => self.drop(format!(
                    "`{from}.{key}` takes a variable away; a server here starts with a clean environment anyway."
                )),
                None => self.drop(format!("`{from}.{key}` is not a string.")),
            }
        }
    }

    /// Adds one member to a table of the result.
    pub(super) fn join(&mut self, table: &str, key: &str, value: String) {
        let slot = self
            .definition
            .entry(table)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(members) = slot.as_object_mut() {
            members.insert(key.to_owned(), Value::String(value));
        }
    }

    /// Carries names of environment variables over as a table that passes them on.
    pub(super) fn passed_variables(&mut self, from: &str) {
        let Some(value) = self.take(from) else { return };
        for item in value.as_array().into_iter().flatten() {
            // Either the name, or a table that holds it.
            match item
                .as_str()
                .or_else(|| item.get("name").and_then(Value::as_str))
            {
                Some(name) => self.join("env", name, format!("${{{name}}}")),
                None => self.drop(format!("`{from}` holds something that is not a name.")),
            }
        }
    }

    /// Carries a time limit over, given how many milliseconds its unit has.
    pub(super) fn timeout(&mut self, from: &str, unit: f64) {
        let Some(value) = self.take(from) else { return };
        match value.as_f64().map(|number| (number * unit).round()) {
            Some(limit) if (LEAST_TIMEOUT..=f64::from(u32::MAX)).contains(&limit) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "rounded, and within u32 by the guard"
                )]
                self.put("timeout", limit as u32);
            }
            Some(_) => self.drop(format!(
                "`{from}` of {value} is outside what `timeout` takes (from 1,000 ms)."
            )),
            None => self.drop(format!("`{from}` is not a number.")),
        }
    }

    /// Takes the two ways to switch a server off.
    pub(super) fn switches(&mut self) {
        if let Some(value) = self.take("disabled") {
            self.enabled &= value != Value::Bool(true);
        }
        if let Some(value) = self.take("enabled") {
            self.enabled &= value != Value::Bool(false);
        }
    }

    /// Switches the server off.
    pub(super) fn disable(&mut self) {
        self.enabled = false;
    }

    /// Carries over `command`, `args`, `env` and `cwd`, which most clients write alike.
    pub(super) fn process(&mut self) {
        self.text("command", "command");
        self.list("args", "args");
        self.table("env", "env");
        self.text("cwd", "cwd");
    }

    /// Carries over a URL under some key, with `headers`.
    pub(super) fn remote(&mut self, url: &str) {
        self.text(url, "url");
        self.table("headers", "headers");
    }

    /// Carries the transport's name over, in all its spellings.
    pub(super) fn transport(&mut self, from: &str) {
        let Some(word) = self.take_text(from) else {
            return;
        };
        match TransportKind::of_foreign_word(&word) {
            Some(TransportKind::Stdio) => {}
            Some(kind) => self.put("type", kind.as_str()),
            None => self.drop(format!("the transport `{word}` is not known.")),
        }
    }

    /// Carries an OAuth table over: the client's id and the scopes, under the keys it has there.
    pub(super) fn oauth(&mut self, from: &str, client_id: &str, scopes: &str) {
        let Some(value) = self.take(from) else { return };
        let Some(table) = value.as_object() else {
            self.drop(format!(
                "`{from}` was left out: logins are found out by themselves."
            ));
            return;
        };
        let mut oauth = Map::new();
        for (key, value) in table {
            if key == client_id {
                if let Some(text) = value.as_str() {
                    oauth.insert("clientId".to_owned(), self.expand(text).into());
                }
            } else if key == scopes {
                oauth.insert("scopes".to_owned(), value.clone());
            } else if key.to_ascii_lowercase().replace('_', "").contains("secret") {
                self.drop(format!(
                    "`{from}.{key}` was left out: client secrets do not belong in this file."
                ));
            } else if key != "enabled" {
                self.drop(format!("`{from}.{key}` has no counterpart."));
            }
        }
        if !oauth.is_empty() {
            self.put("oauth", oauth);
        }
    }

    fn finish(
        mut self,
        entry: &ClientEntry,
        name: &ServerName,
    ) -> Result<ImportedServer, Diagnosis> {
        self.switches();
        let unknown: Vec<String> = self.rest.keys().cloned().collect();
        for key in unknown {
            self.drop(format!("`{key}` has no counterpart."));
        }
        let url = self
            .definition
            .get("url")
            .and_then(Value::as_str)
            .map(str::to_owned);
        match (self.is_set("command"), url) {
            (true, None) => {
                self.definition.shift_remove("type");
            }
            (true, Some(_)) => {
                for key in ["type", "url", "headers", "oauth"] {
                    self.definition.shift_remove(key);
                }
                self.dropped
                    .push("its URL was left out: the entry has a command as well.".to_owned());
            }
            (false, Some(url)) => self.check_url(&url, name)?,
            (false, None) => {
                let message = format!("`{name}` has neither a command nor a URL");
                return Err(Diagnosis::error(message).of(name));
            }
        }
        let mut definition = Map::new();
        for key in ORDER {
            if let Some(value) = self.definition.shift_remove(key) {
                definition.insert(key.to_owned(), value);
            }
        }
        definition.append(&mut self.definition);
        Ok(ImportedServer {
            name: entry.name.clone(),
            place: entry.place.clone(),
            line: entry.line,
            definition,
            enabled: self.enabled,
            dropped: self.dropped,
            notes: self.notes,
        })
    }

    fn check_url(&mut self, url: &str, name: &ServerName) -> Result<(), Diagnosis> {
        if let Some((scheme @ ("unix" | "pipe"), _)) = url.split_once("://") {
            return Err(Diagnosis::warning(format!(
                "cannot be taken over: Toolway does not connect to `{scheme}://`"
            ))
            .of(name));
        }
        if !self.is_set("type") {
            let kind = TransportKind::of_address(url).as_str();
            self.put("type", kind);
            self.notes.push(format!(
                "no transport was named; `{kind}` was taken from the URL."
            ));
        }
        Ok(())
    }
}

/// A scalar as a string.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    }
}
