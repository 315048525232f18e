//! Reading an agent file: front matter to servers, tools and rules, every fault with its line.
//!
//! Owns the keys and their shapes. A fault in one entry leaves the others; what can only take away
//! takes away more where it cannot be read. Keys of other programs are left alone.

use std::collections::BTreeSet;

use serde_json::Value;
use toolway_types::{Diagnosis, ServerName, nearest};

use super::Agent;
use super::front_matter::{self, FrontMembers, Located, Node};
use super::place::AgentPlace;
use crate::Environment;
use crate::json::{DuplicateKey, LocatedMember};
use crate::keys::spelled_out;
use crate::permission::ToolPatterns;
use crate::raw;
use crate::source::TextSource;

/// The keys that are read.
pub(super) const KEYS: [&str; 6] = [
    "name",
    "description",
    "mcpServers",
    "tools",
    "disallowedTools",
    REQUIRED,
];

/// The servers without which the agent does not start.
const REQUIRED: &str = "requiredMcpServers";

/// How names of servers' tools begin, for all programs that have agents of this shape.
const PREFIX: &str = "mcp__";

/// Reads the file. An error means that nothing of it could be read.
pub(super) fn read(environment: &Environment, place: AgentPlace) -> Result<Agent, Diagnosis> {
    let text = place.read(environment)?;
    let source = TextSource::file(&place.path);
    let members = front_matter::read(&text, &source)?;
    let stem = place.path.file_stem().unwrap_or_default();
    let mut reader = AgentReader {
        agent: Agent {
            name: stem.to_string_lossy().into_owned(),
            description: None,
            origin: source.origin(1),
            servers: None,
            named_at: Vec::new(),
            tools: None,
            disallowed: ToolPatterns::default(),
            required: Vec::new(),
            diagnoses: Vec::new(),
            author: place.author,
            own: Vec::new(),
            place,
        },
        source,
    };
    reader.members(members);
    Ok(reader.agent)
}

struct AgentReader {
    agent: Agent,
    source: TextSource,
}

impl AgentReader {
    fn members(&mut self, members: FrontMembers) {
        let mut required = None;
        for (key, value) in members {
            match key.as_str() {
                "name" => {
                    if let Some(name) = self.text(&key, &value) {
                        self.agent.name = name;
                    }
                }
                "description" => self.agent.description = self.text(&key, &value),
                "mcpServers" => self.servers(value),
                "tools" => self.tools(&value),
                "disallowedTools" => self.disallowed(&value),
                REQUIRED => required = Some(value),
                other => self.unknown(other, value.line),
            }
        }
        // It speaks of the others, wherever it stands.
        if let Some(value) = required {
            self.required(&value);
        }
    }

    fn note(&mut self, diagnosis: Diagnosis) {
        self.agent.diagnoses.push(diagnosis);
    }

    fn fault(&mut self, line: u32, message: impl Into<String>, hint: impl Into<String>) {
        let origin = self.source.origin(line);
        self.note(Diagnosis::error(message).at(origin).hint(hint));
    }

    /// Only what is nearly a key of ours: other programs have keys of their own.
    fn unknown(&mut self, key: &str, line: u32) {
        let Some(meant) = nearest(key, KEYS).filter(|meant| meant.len() > 5) else {
            return;
        };
        let message = format!("`{}` is not a key Toolway reads", spelled_out(key));
        let diagnosis = Diagnosis::warning(message).at(self.source.origin(line));
        self.note(diagnosis.hint(format!("did you mean `{meant}`?")));
    }

    fn text(&mut self, key: &str, value: &Located) -> Option<String> {
        match &value.node {
            Node::Scalar(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
            Node::Scalar(Value::Null) => None,
            _ => {
                let message = format!("`{key}` must be a text, not {}", value.kind());
                self.fault(value.line, message, format!("write `{key}: …`"));
                None
            }
        }
    }

    fn servers(&mut self, value: Located) {
        let shape = "write a list: `- name` for a server that is configured, `- name: {command: …}` for \
                     one of the agent's own";
        let line = value.line;
        let items = match value.node {
            Node::List(items) => items,
            Node::Scalar(Value::Null) => Vec::new(),
            _ => {
                let message = format!("`mcpServers` must be a list, not {}", value.kind());
                self.fault(line, message, shape);
                Vec::new()
            }
        };
        let mut seen = BTreeSet::new();
        let mut named = Vec::new();
        for item in items {
            let (line, kind) = (item.line, item.kind());
            match item.node {
                Node::Scalar(Value::String(text)) => match ServerName::new(text.as_str()) {
                    Ok(name) if seen.insert(name.clone()) => {
                        named.push(name);
                        self.agent.named_at.push(self.source.origin(line));
                    }
                    Ok(name) => self.twice(&name, line),
                    Err(error) => {
                        let message = spelled_out(&error.to_string());
                        self.fault(line, message, "write the name of a configured server");
                    }
                },
                Node::Mapping(members) if members.len() == 1 => {
                    for (name, definition) in members {
                        self.inline(name, definition, &mut seen);
                    }
                }
                Node::Mapping(members) => {
                    let found = members.len();
                    let message = format!("an entry of `mcpServers` has {found} names");
                    let hint = "write each server as an entry of its own, and its definition deeper \
                                than its name";
                    self.fault(line, message, hint);
                }
                _ => {
                    let message = format!(
                        "an entry of `mcpServers` must be a name or a definition, not {kind}"
                    );
                    self.fault(line, message, shape);
                }
            }
        }
        self.agent.servers = Some(named);
    }

    fn twice(&mut self, name: &ServerName, line: u32) {
        let message = format!("`{name}` stands twice in `mcpServers`; the first counts");
        self.fault(line, message, "keep one of them");
    }

    fn inline(&mut self, name: String, definition: Located, seen: &mut BTreeSet<ServerName>) {
        let line = definition.line;
        let (value, lines) = definition.into_value();
        let member = LocatedMember {
            key: name,
            value,
            lines,
            // The parser refuses them.
            doubled: Vec::<DuplicateKey>::new(),
        };
        let Some(server) = raw::one(member, &self.source) else {
            return;
        };
        if !seen.insert(server.name.clone()) {
            self.twice(&server.name.clone(), line);
            return;
        }
        self.agent.own.push(server);
    }

    /// The texts of a list, or of one text with commas between them, each with its line.
    fn texts(&mut self, key: &str, value: &Located) -> Option<Vec<(String, u32)>> {
        match &value.node {
            Node::Scalar(Value::Null) => Some(Vec::new()),
            Node::Scalar(Value::String(text)) => {
                let texts = between_commas(text).into_iter();
                Some(texts.map(|text| (text, value.line)).collect())
            }
            Node::List(items) => {
                let mut texts = Vec::new();
                for item in items {
                    if let Node::Scalar(Value::String(text)) = &item.node {
                        texts.push((text.trim().to_owned(), item.line));
                    } else {
                        let message =
                            format!("an entry of `{key}` must be a text, not {}", item.kind());
                        self.fault(item.line, message, "write it in quotes");
                        if key == "disallowedTools" {
                            texts.push(("*".to_owned(), item.line));
                        }
                    }
                }
                Some(texts)
            }
            _ => {
                let message = format!("`{key}` must be a list or a text, not {}", value.kind());
                let hint = format!("write e.g. `{key}: [\"mcp__github__*\"]`");
                self.fault(value.line, message, hint);
                None
            }
        }
    }

    fn tools(&mut self, value: &Located) {
        // What cannot be read lets nothing in.
        let texts = self.texts("tools", value).unwrap_or_default();
        let mut patterns = ToolPatterns::default();
        for (text, line) in texts {
            if !is_about_servers(&text) {
                continue;
            }
            let origin = self.source.origin(line);
            if let Err(bad) = patterns.add(&text, &origin) {
                let text = spelled_out(&text);
                self.fault(
                    line,
                    format!("`{text}` in `tools` cannot be read: {bad}"),
                    bad.hint,
                );
            }
        }
        self.agent.tools = Some(patterns);
    }

    fn disallowed(&mut self, value: &Located) {
        let all = || vec![("*".to_owned(), value.line)];
        let texts = self.texts("disallowedTools", value).unwrap_or_else(all);
        for (text, line) in texts {
            if !is_about_servers(&text) {
                continue;
            }
            let origin = self.source.origin(line);
            if let Err(bad) = self.agent.disallowed.add_widely(&text, &origin) {
                let text = spelled_out(&text);
                let message = format!(
                    "`{text}` in `disallowedTools` cannot be read: {bad}; it takes away all that it \
                     could mean"
                );
                self.fault(line, message, bad.hint);
            }
        }
    }

    fn required(&mut self, value: &Located) {
        let texts = self.texts(REQUIRED, value).unwrap_or_default();
        for (text, line) in texts {
            let known = |name: &ServerName| {
                let named = self.agent.servers.as_ref();
                let own = self.agent.own.iter().any(|own| own.name == *name);
                own || named.is_none_or(|named| named.contains(name))
            };
            match ServerName::new(text.as_str()) {
                Ok(name) if known(&name) => {
                    if !self.agent.required.contains(&name) {
                        self.agent.required.push(name);
                    }
                }
                Ok(name) => {
                    let message =
                        format!("`{REQUIRED}` names `{name}`, which is not among `mcpServers`");
                    self.fault(line, message, format!("add `- {name}` to `mcpServers`"));
                    // It does not start without what it says it needs.
                    self.agent.required.push(name);
                }
                Err(error) => {
                    let message = format!("`{REQUIRED}`: {}", spelled_out(&error.to_string()));
                    self.fault(line, message, "write the name of one of `mcpServers`");
                }
            }
        }
    }
}

/// Whether a word can speak of servers' tools; all others are tools of the program that the agent
/// was written for.
fn is_about_servers(text: &str) -> bool {
    let start = text.get(..4).unwrap_or_default();
    start.eq_ignore_ascii_case("mcp_") || text.chars().all(|c| c == '*')
}

/// The parts of a text between commas; those inside parentheses part nothing.
fn between_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    let parts = parts.into_iter().map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// What a pattern would have to begin with, for a message.
pub(super) fn is_nearly_a_tool(pattern: &str) -> bool {
    !pattern.starts_with(PREFIX) && pattern.chars().any(|c| c != '*')
}
