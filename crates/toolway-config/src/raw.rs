//! Files as written: text to entries and settings, each with its line, every fault named.
//!
//! Owns: the shape of `.mcp.json`, settings, plugin and managed files. It never stops at a fault
//! inside a readable file, so one bad entry never hides the others.
//! Does not own: which file is read (`load`), what wins (`merge`), what may run (`policy`).
//! Nothing here expands a variable (SEC-01).

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, ServerName, Severity, TransportKind, nearest};
use url::Url;

pub(crate) mod entry;
pub(crate) mod settings;

use crate::json::{self, JsonRoot, LocatedMember, RootContent, RootMember, ValueLines};
use crate::keys;
use crate::redaction::KeysOnly;
use crate::source::{FileKind, TextSource};
pub(crate) use settings::FileSettings;

/// The most errors, and the most warnings, that are reported of one entry or one file's root: a
/// hostile file must not flood the screen or take long to check.
const ENOUGH: usize = 20;

/// One server as one file writes it.
#[derive(Clone)]
pub(crate) struct RawServer {
    pub(crate) name: ServerName,
    /// Whether the name stands as written; a name with hidden characters never competes with the
    /// clean one.
    pub(crate) name_stands: bool,
    pub(crate) origin: Origin,
    pub(crate) definition: Map<String, Value>,
    pub(crate) lines: ValueLines,
    pub(crate) kind: Option<TransportKind>,
    /// Its `url`, where no variable completes it.
    pub(crate) url: Option<Url>,
    pub(crate) diagnoses: Vec<Diagnosis>,
}

impl RawServer {
    /// The first error, when the entry cannot be used.
    pub(crate) fn fault(&self) -> Option<&Diagnosis> {
        self.diagnoses
            .iter()
            .find(|diagnosis| diagnosis.severity == Severity::Error)
    }
}

impl fmt::Debug for RawServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RawServer")
            .field("name", &self.name)
            .field("origin", &self.origin)
            .field("definition", &KeysOnly(&self.definition))
            .field("diagnoses", &self.diagnoses)
            .finish_non_exhaustive()
    }
}

/// What one file said.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawFile {
    /// Who it belongs to, if that is another user of this machine.
    pub(crate) stranger: Option<u32>,
    pub(crate) servers: Vec<RawServer>,
    pub(crate) settings: FileSettings,
    pub(crate) diagnoses: Vec<Diagnosis>,
}

/// Reads one text. An error means that nothing of it could be read.
pub(crate) fn read(text: &str, source: &TextSource, kind: FileKind) -> Result<RawFile, Diagnosis> {
    let mut file = RawFile::default();
    let members = match json::parse(text, source)? {
        JsonRoot::Empty if matches!(kind, FileKind::Managed | FileKind::Enterprise) => {
            return Err(Diagnosis::error("the file is empty").at(source.origin(1)));
        }
        JsonRoot::Empty => return Ok(file),
        JsonRoot::Object(members) => members,
    };
    if kind == FileKind::Plugin && !members.iter().any(|member| member.key == "mcpServers") {
        for member in members {
            file.add_server(source, member.whole());
        }
        file.note_doubled_servers();
        return Ok(file);
    }
    let has_servers = members.iter().any(|member| member.key == "mcpServers");
    // Anything else may be meant to name servers: then it excludes all that it does not name.
    let is_list = |member: &RootMember| keys::POLICY_LISTS.contains(&member.key.as_str());
    file.settings.lists_only = members.iter().any(is_list)
        && (members.iter()).all(|member| is_list(member) || member.key == "$schema");
    let mut seen: HashMap<String, u32> = HashMap::new();
    for member in members {
        if let Some(first) = seen.get(&member.key) {
            let diagnosis = Diagnosis::error(format!(
                "`{}` stands twice, on lines {first} and {}",
                keys::spelled_out(&member.key),
                member.line
            ));
            let diagnosis = diagnosis.at(source.origin(member.line));
            file.fault(kind, diagnosis.hint("make them one"));
        } else {
            seen.insert(member.key.clone(), member.line);
        }
        file.add_root(source, kind, member);
    }
    file.note_doubled_servers();
    if !has_servers && matches!(kind, FileKind::Project | FileKind::Flag) {
        file.missing_servers(source, kind, &seen);
    }
    Ok(file)
}

impl RawFile {
    /// Records a fault that leaves the meaning of the file open. In a policy file the key could be
    /// the one that denies.
    fn fault(&mut self, kind: FileKind, diagnosis: Diagnosis) {
        if matches!(kind, FileKind::Managed | FileKind::Enterprise) {
            self.settings.policy_fault.get_or_insert(diagnosis);
        } else {
            self.note(diagnosis);
        }
    }

    /// Records a finding about the file, up to a readable number.
    fn note(&mut self, diagnosis: Diagnosis) {
        let alike = |found: &&Diagnosis| found.severity == diagnosis.severity;
        if self.diagnoses.iter().filter(alike).count() < ENOUGH {
            self.diagnoses.push(diagnosis);
        }
    }

    fn add_root(&mut self, source: &TextSource, kind: FileKind, member: RootMember) {
        if member.key == "mcpServers" {
            self.add_servers(source, member);
        } else if kind == FileKind::PluginManifest {
            // A manifest has its own keys, which are the plugin system's business.
        } else if keys::FOREIGN_ROOTS.contains(&member.key.as_str()) {
            self.diagnoses.push(
                Diagnosis::error(format!(
                    "`{}` is another program's key; its servers are not loaded",
                    member.key
                ))
                .at(source.origin(member.line))
                .hint(format!(
                    "rename `{}` to `mcpServers`, or run `toolway import`",
                    member.key
                )),
            );
        } else if let Some(seen) = keys::visible(&member.key) {
            let diagnosis = Diagnosis::error(format!(
                "the key `{}` has hidden characters and is not read",
                keys::spelled_out(&member.key)
            ));
            let diagnosis = diagnosis.at(source.origin(member.line));
            self.fault(kind, diagnosis.hint(format!("write it as `{seen}`")));
        } else if keys::SETTINGS.contains(&member.key.as_str()) {
            let line = member.line;
            let LocatedMember {
                key,
                value,
                lines,
                doubled,
            } = member.whole();
            for double in doubled {
                let double_key = keys::spelled_out(&double.key);
                let message = format!("`{double_key}` stands twice inside `{key}`");
                let diagnosis = Diagnosis::error(message).at(source.origin(double.second));
                self.fault(kind, diagnosis);
            }
            self.settings
                .add(source, kind, &key, line, value, &lines, &mut self.diagnoses);
        } else if let Some(meant) = nearest(
            &member.key,
            keys::SETTINGS.into_iter().chain(["mcpServers"]),
        ) {
            let message = format!("`{}` is not a key Toolway reads", member.key);
            let diagnosis = Diagnosis::warning(message)
                .at(source.origin(member.line))
                .hint(format!("did you mean `{meant}`?"));
            if keys::POLICY_LISTS.contains(&meant) {
                self.fault(kind, diagnosis);
            } else {
                self.note(diagnosis);
            }
        }
    }

    fn add_servers(&mut self, source: &TextSource, member: RootMember) {
        let line = member.line;
        match member.content {
            RootContent::Object(members) => {
                for member in members {
                    self.add_server(source, member);
                }
            }
            RootContent::Other(value, ..) => self.diagnoses.push(
                Diagnosis::error(format!(
                    "`mcpServers` must be an object, not {}",
                    json::kind_of(&value)
                ))
                .at(source.origin(line))
                .hint("write `\"mcpServers\": {\"name\": {\"command\": \"…\"}}`"),
            ),
        }
    }

    fn add_server(&mut self, source: &TextSource, member: LocatedMember) {
        let LocatedMember {
            key,
            value,
            lines,
            doubled,
        } = member;
        let origin = source.origin(lines.line);
        let mut found = Vec::new();
        let (name, name_stands) = match ServerName::new(key.as_str()) {
            Ok(name) => (name, true),
            Err(error) => {
                let seen = keys::visible(&key).filter(|seen| !seen.is_empty());
                let mut diagnosis =
                    Diagnosis::error(keys::spelled_out(&error.to_string())).at(origin.clone());
                if let Some(seen) = &seen {
                    diagnosis = diagnosis.hint(format!("write it as `{seen}`"));
                }
                found.push(diagnosis);
                let Ok(name) = ServerName::new(seen.unwrap_or_else(|| "(unnamed)".to_owned()))
                else {
                    return;
                };
                (name, false)
            }
        };
        for double in doubled.into_iter().take(ENOUGH) {
            found.push(
                Diagnosis::error(format!(
                    "`{}` stands twice in this entry, on lines {} and {}",
                    keys::spelled_out(&double.key),
                    double.first,
                    double.second
                ))
                .at(source.origin(double.second))
                .hint("keep one of them"),
            );
        }
        let (definition, kind, url) = match value {
            Value::Object(definition) => {
                let checked = entry::check(name.as_str(), &definition, &lines, source);
                found.extend(checked.diagnoses);
                (definition, checked.kind, checked.url)
            }
            other => {
                found.push(
                    Diagnosis::error(format!(
                        "a server must be an object, not {}",
                        json::kind_of(&other)
                    ))
                    .at(origin.clone())
                    .hint("write `{\"command\": \"…\", \"args\": []}` or `{\"type\": \"http\", \"url\": \"https://…\"}`"),
                );
                (Map::new(), None, None)
            }
        };
        let diagnoses = found
            .into_iter()
            .map(|diagnosis| diagnosis.of(&name))
            .collect();
        self.servers.push(RawServer {
            name,
            name_stands,
            origin,
            definition,
            lines,
            kind,
            url,
            diagnoses,
        });
    }

    /// Reports names that occur twice. Done once at the end: comparing each entry would be
    /// quadratic.
    fn note_doubled_servers(&mut self) {
        let mut order: Vec<usize> = (0..self.servers.len()).collect();
        order.sort_by(|a, b| self.servers[*a].name.cmp(&self.servers[*b].name));
        for pair in order.windows(2) {
            let (first, second) = (&self.servers[pair[0]], &self.servers[pair[1]]);
            if first.name != second.name || !first.name_stands || !second.name_stands {
                continue;
            }
            let message = format!(
                "`{}` stands twice in this file; the one on line {} is not used",
                first.name,
                first.origin.line().unwrap_or_default()
            );
            let diagnosis = Diagnosis::warning(message)
                .of(&second.name)
                .at(second.origin.clone());
            self.servers[pair[1]].diagnoses.push(diagnosis);
        }
    }

    fn missing_servers(
        &mut self,
        source: &TextSource,
        kind: FileKind,
        seen: &HashMap<String, u32>,
    ) {
        let foreign = |key: &String| {
            keys::FOREIGN_ROOTS.contains(&key.as_str()) || keys::visible(key).is_some()
        };
        if seen.keys().any(foreign) {
            return; // That diagnosis already says what to do.
        }
        let message = match kind {
            FileKind::Flag => "there is no `mcpServers`, so it brings no server",
            _ => "there is no `mcpServers` in this file",
        };
        self.diagnoses.push(
            Diagnosis::warning(message)
                .at(source.origin(1))
                .hint("put the servers below `\"mcpServers\": {…}`"),
        );
    }
}

/// One server that stands in no file.
pub(crate) fn single(name: String, definition: Map<String, Value>, source: &TextSource) -> RawFile {
    let mut file = RawFile::default();
    let lines = ValueLines {
        line: 1,
        ..ValueLines::default()
    };
    let member = LocatedMember {
        key: name,
        value: Value::Object(definition),
        lines,
        doubled: Vec::new(),
    };
    file.add_server(source, member);
    file
}

/// One server of a file that holds more than servers; none where its name is no name at all.
pub(crate) fn one(member: LocatedMember, source: &TextSource) -> Option<RawServer> {
    let mut file = RawFile::default();
    file.add_server(source, member);
    file.servers.pop()
}

/// Checks a definition that stands in no file yet, such as one about to be written.
pub fn validate(name: &ServerName, definition: &Map<String, Value>) -> Vec<Diagnosis> {
    let checked = entry::check(
        name.as_str(),
        definition,
        &ValueLines::default(),
        &TextSource::Program,
    );
    checked
        .diagnoses
        .into_iter()
        .map(|diagnosis| diagnosis.of(name))
        .collect()
}

#[cfg(test)]
mod tests;
