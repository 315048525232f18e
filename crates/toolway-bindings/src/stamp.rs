//! What a module was made from, as the module itself says: a head for people, a foot for `--check`.
//!
//! Owns both, and what changed in words. Digests are of the meaning: the order of members is none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolway_types::text::spelled_out;

use crate::tools::{Language, ToolDefinition, VERSION};
use crate::words;

/// Begins the head of every file.
const MADE: &str = "Made by `toolway generate";
/// Begins a line of the foot.
const TOOL: &str = "toolway tool ";
/// Begins the line with the digest of the whole.
const FROM: &str = "From: ";

/// What a module says it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleStamp {
    /// The server.
    pub server: String,
    /// The version of Toolway, where it is a file's.
    pub version: String,
    /// The digest of all tools.
    pub digest: String,
    /// Each tool by its name.
    pub tools: BTreeMap<String, ToolStamp>,
}

/// One tool, as digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStamp {
    /// Of what it takes.
    pub takes: String,
    /// Of what it gives.
    pub gives: String,
    /// Of what is said of it.
    pub said: String,
}

/// What is other than a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleChange {
    /// A tool that the file does not know.
    New(String),
    /// A tool that the server does not have.
    Gone(String),
    /// It takes other arguments.
    Takes(String),
    /// It gives something else.
    Gives(String),
    /// Something else is said of it.
    Said(String),
}

impl ModuleChange {
    /// In words.
    pub fn words(&self) -> String {
        let (name, what) = match self {
            Self::New(name) => (name, "is new"),
            Self::Gone(name) => (name, "is gone"),
            Self::Takes(name) => (name, "takes other arguments"),
            Self::Gives(name) => (name, "gives another result"),
            Self::Said(name) => (name, "is described in other words"),
        };
        format!("`{}` {what}", spelled_out(name))
    }
}

impl ModuleStamp {
    /// Of what a server offers.
    pub(crate) fn of(server: &str, tools: &[&ToolDefinition]) -> Self {
        let tools: BTreeMap<String, ToolStamp> = tools
            .iter()
            .map(|tool| {
                let stamp = ToolStamp {
                    takes: digest(&sorted(&tool.input).to_string()),
                    gives: match &tool.output {
                        Some(output) => digest(&sorted(output).to_string()),
                        None => "-".to_owned(),
                    },
                    said: digest(&tool.description),
                };
                (tool.name.clone(), stamp)
            })
            .collect();
        let mut whole = Sha256::new();
        whole.update(Value::from(server).to_string());
        for (name, tool) in &tools {
            whole.update(line(name, tool));
        }
        Self {
            server: server.to_owned(),
            version: VERSION.to_owned(),
            digest: hex::encode(whole.finalize()),
            tools,
        }
    }

    /// Of a module that was written before; nothing where it is none of ours.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(bare);
        let made = lines.next()?.strip_prefix(MADE)?;
        let version = made.split("Toolway ").nth(1)?;
        let version = version.split([';', ' ']).next()?;
        let from = lines.find_map(|line| line.strip_prefix(FROM).map(str::to_owned))?;
        let (server, digest) = from.rsplit_once(", sha256 ")?;
        let server = serde_json::from_str(server.strip_prefix("server ")?).ok()?;
        let tools = lines.filter_map(|line| read_line(line.strip_prefix(TOOL)?));
        Some(Self {
            server,
            version: version.to_owned(),
            digest: digest.to_owned(),
            tools: tools.collect(),
        })
    }

    /// Whether a file was made here, so that it may be replaced.
    pub fn is_ours(text: &str) -> bool {
        text.lines()
            .next()
            .is_some_and(|line| bare(line).starts_with(MADE))
    }

    /// What is other now.
    pub fn changes_to(&self, now: &Self) -> Vec<ModuleChange> {
        let mut changes = Vec::new();
        for (name, tool) in &now.tools {
            let Some(before) = self.tools.get(name) else {
                changes.push(ModuleChange::New(name.clone()));
                continue;
            };
            if before.takes != tool.takes {
                changes.push(ModuleChange::Takes(name.clone()));
            }
            if before.gives != tool.gives {
                changes.push(ModuleChange::Gives(name.clone()));
            }
            if before.said != tool.said {
                changes.push(ModuleChange::Said(name.clone()));
            }
        }
        let gone = self
            .tools
            .keys()
            .filter(|name| !now.tools.contains_key(*name));
        changes.extend(gone.map(|name| ModuleChange::Gone(name.clone())));
        changes
    }

    pub(crate) fn head(&self, language: Language) -> String {
        let comment = language.comment();
        let server = words::typescript(&self.server);
        format!(
            "{comment} {MADE} {}` of Toolway {VERSION}; changes by hand are lost.\n\
             {comment} {FROM}server {server}, sha256 {}\n\n",
            language.word(),
            self.digest
        )
    }

    pub(crate) fn foot(&self, language: Language) -> String {
        let comment = language.comment();
        let mut foot = format!("\n{comment} What `toolway generate --check` compares:\n");
        for (name, tool) in &self.tools {
            let _ = write!(foot, "{comment} {}", line(name, tool));
        }
        foot
    }
}

/// The head of an index.
pub(crate) fn index_head(language: Language) -> String {
    format!(
        "{} {MADE} {}` of Toolway {VERSION}; changes by hand are lost.\n\n",
        language.comment(),
        language.word()
    )
}

fn bare(line: &str) -> &str {
    line.trim_start_matches(['/', '#']).trim_start()
}

fn line(name: &str, tool: &ToolStamp) -> String {
    format!(
        "{TOOL}{} {} {} {}\n",
        words::typescript(name),
        tool.takes,
        tool.gives,
        tool.said
    )
}

fn read_line(line: &str) -> Option<(String, ToolStamp)> {
    let mut parts = line.rsplitn(4, ' ');
    let [said, gives, takes] = [parts.next()?, parts.next()?, parts.next()?].map(str::to_owned);
    let name = serde_json::from_str(parts.next()?).ok()?;
    Some((name, ToolStamp { takes, gives, said }))
}

fn digest(text: &str) -> String {
    let mut digest = hex::encode(Sha256::digest(text.as_bytes()));
    digest.truncate(16);
    digest
}

/// The same value with the members of objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> = members
                .iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect();
            let members = members
                .into_iter()
                .map(|(name, value)| (name.clone(), value));
            Value::Object(members.collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        plain => plain.clone(),
    }
}
