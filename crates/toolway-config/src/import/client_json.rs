//! From a file to its entries.
//!
//! Owns reading, the place of each entry, and finding the table of servers in JSON. Knows nothing
//! of what an entry means. TOML and YAML are read where their one client is.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolway_types::{Diagnosis, Origin};

use super::ClientFile;
use crate::json::syntax_tree::{self, SyntaxNode};

/// One server as its client wrote it.
#[derive(Debug, Clone)]
pub(super) struct ClientEntry {
    pub(super) name: String,
    /// The keys on the way to it, its name last.
    pub(super) place: Vec<String>,
    pub(super) line: Option<u32>,
    pub(super) value: Value,
}

/// Where clients keep their table of servers. `mcp.servers` stands before `mcp`, which holds it.
const ROOTS: [&[&str]; 5] = [
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp"],
    &["context_servers"],
];

/// One of these makes an object an entry.
const MARKS: [&str; 4] = ["command", "url", "httpUrl", "serverUrl"];

/// A parsed JSON file.
pub(super) struct ClientJson<'a> {
    text: &'a str,
    root: Option<SyntaxNode>,
}

/// Reads a file as text.
pub(super) fn read(path: &Path) -> Result<String, Diagnosis> {
    let bytes = fs::read(path).map_err(|error| {
        Diagnosis::error(format!("cannot read `{}`: {error}", path.display()))
            .hint("give the path of a file that you can read")
    })?;
    let text = syntax_tree::decode(&bytes).map_err(|error| broken(path, &error))?;
    Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text).to_owned())
}

/// The diagnosis of a file that does not parse.
pub(super) fn broken(path: &Path, error: &syntax_tree::SyntaxError) -> Diagnosis {
    Diagnosis::error(format!("not valid: {}", error.message))
        .at(Origin::file(path, error.line))
        .column(error.column)
        .hint("mend the file at that place; nothing of it was imported")
}

impl<'a> ClientJson<'a> {
    /// Parses a text; an empty one has no entries.
    pub(super) fn parse(found: &ClientFile, text: &'a str) -> Result<Self, Diagnosis> {
        let root = syntax_tree::parse(text).map_err(|error| broken(&found.path, &error))?;
        Ok(Self { text, root })
    }

    /// The value at a path of keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<Value> {
        self.node(path).map(SyntaxNode::to_value)
    }

    fn node(&self, path: &[&str]) -> Option<&SyntaxNode> {
        let root = self.root.as_ref()?;
        path.iter()
            .try_fold(root, |node, key| Some(&node.member(key)?.value))
    }

    /// The members of the object at a path, as entries.
    pub(super) fn entries(&self, path: &[&str]) -> Vec<ClientEntry> {
        let Some(node) = self.node(path) else {
            return Vec::new();
        };
        let members = node.members();
        let lasts = members.iter().enumerate().filter(|(index, member)| {
            !members[index + 1..]
                .iter()
                .any(|later| later.name == member.name)
        });
        lasts
            .map(|(_, member)| ClientEntry {
                name: member.name.clone(),
                place: place(path, &member.name),
                line: Some(syntax_tree::line_at(self.text, member.start)),
                value: member.value.to_value(),
            })
            .collect()
    }

    /// The servers of the file: where the client keeps them, else where another client would,
    /// else the whole file when it is nothing but entries. Says so when it had to look elsewhere.
    pub(super) fn servers(&self, found: &mut ClientFile, own: &[&str]) -> Vec<ClientEntry> {
        if self.node(own).is_some() {
            return self.entries(own);
        }
        let whole = self.entries(&[]);
        let elsewhere = ROOTS.into_iter().find(|path| {
            let entries = self.entries(path);
            !entries.is_empty() && entries.iter().all(|entry| is_entry(&entry.value))
        });
        let (entries, place) = match elsewhere {
            Some(path) => (self.entries(path), format!("under `{}`", path.join("."))),
            None if !whole.is_empty() && whole.iter().all(|entry| is_entry(&entry.value)) => {
                (whole, "at the top level".to_owned())
            }
            None => return Vec::new(),
        };
        let message = format!(
            "the servers stand {place}; {} itself reads only `{}`",
            found.client.title(),
            own.join(".")
        );
        let line = entries.first().and_then(|entry| entry.line);
        found.say(line, Diagnosis::warning(message));
        entries
    }
}

fn place(path: &[&str], name: &str) -> Vec<String> {
    let keys = path.iter().copied().chain([name]);
    keys.map(str::to_owned).collect()
}

fn is_entry(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|entry| MARKS.iter().any(|mark| entry.contains_key(*mark)))
}
