//! What is pinned of a tool, a prompt, templates and instructions, and how two definitions differ.
//!
//! Owns the digest over what a server says of each, as it sent it (of a tool: name, title,
//! description, schemas and annotations), and the text in which a person sees a difference.
//! Members of objects are put in order first: a server that lists them in another order every time
//! has changed nothing.

use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};
use toolway_types::text::spelled_out;
use toolway_wire::view;

/// How much of a definition is kept to show differences.
const MAX_TEXT: usize = 16 * 1024;

/// Lines are broken here, so that a change at the end of a long one is seen.
const WIDTH: usize = 100;

/// The most lines of a difference.
const MAX_LINES: usize = 60;

/// A definition, digested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(super) digest: String,
    pub(super) text: String,
}

impl Definition {
    /// Of a tool as its server sent it: what cleaning takes away can be the very change.
    pub(crate) fn of(tool: &view::Tool) -> Self {
        let parts = [
            ("title", tool.title.as_deref().map(Value::from)),
            ("description", tool.description.as_deref().map(Value::from)),
            ("input schema", Some(read(&tool.input_schema))),
            ("output schema", tool.output_schema.as_deref().map(read)),
            ("annotations", tool.annotations.raw.as_deref().map(read)),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        Self::made(&tool.name, parts)
    }

    /// Of a prompt as its server sent it.
    pub(crate) fn of_prompt(prompt: &view::Prompt) -> Self {
        let arguments = prompt.arguments.iter().map(|argument| {
            serde_json::json!({
                "name": argument.name,
                "title": argument.title,
                "description": argument.description,
                "required": argument.required,
            })
        });
        let part = |what: &str| format!("prompt `{}`, {what}", prompt.name);
        let texts = [
            ("title", &prompt.title),
            ("description", &prompt.description),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((part(name), Value::from(text.as_deref()?))));
        let parts = texts.chain([(part("arguments"), Value::Array(arguments.collect()))]);
        Self::made(&prompt.name, parts)
    }

    /// Of all templates of a server, in their order.
    pub(crate) fn of_templates<'a>(
        templates: impl Iterator<Item = &'a view::ResourceTemplate>,
    ) -> Self {
        let parts = templates.flat_map(|template| {
            let part = |what: &str| format!("template `{}`, {what}", template.uri_template);
            let texts = [
                ("name", Some(template.name.as_str())),
                ("title", template.title.as_deref()),
                ("description", template.description.as_deref()),
                ("media type", template.mime_type.as_deref()),
            ];
            texts.map(|(name, text)| text.map(|text| (part(name), Value::from(text))))
        });
        Self::made("", parts.flatten())
    }

    /// Of what a server says to models about itself.
    pub(crate) fn of_instructions(said: &str) -> Self {
        Self::made("", [("instructions", Value::from(said))].into_iter())
    }

    /// Of named parts, in their order.
    fn made<N: AsRef<str>>(whose: &str, parts: impl Iterator<Item = (N, Value)>) -> Self {
        let mut digest = Sha256::new_with_prefix(Value::from(whose).to_string());
        let mut text = String::new();
        for (name, value) in parts {
            // A name may hold a server's words, and must not pass for another part.
            let name = spelled_out(name.as_ref());
            digest.update(format!("\n{name}\n{value}"));
            show(&mut text, &name, &value);
        }
        Self {
            digest: hex::encode(digest.finalize()),
            text,
        }
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

fn read(raw: &RawValue) -> Value {
    ordered(serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::from(raw.get())))
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let members = members.into_iter().map(|(name, value)| {
                let mut value = ordered(value);
                if let ("required", Value::Array(names)) = (name.as_str(), &mut value)
                    && names.iter().all(Value::is_string)
                {
                    // A set.
                    names.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
                }
                (name, value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(ordered).collect()),
        scalar => scalar,
    }
}

/// Adds a part to the text: its name, and below it what it says, in lines that fit a terminal.
fn show(text: &mut String, name: &str, value: &Value) {
    let shown = match value {
        Value::String(words) => words.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    for line in shown.lines() {
        for piece in broken(&spelled_out(line)) {
            if text.len() + name.len() + piece.len() + 3 > MAX_TEXT {
                return;
            }
            text.push_str(name);
            text.push_str(": ");
            text.push_str(&piece);
            text.push('\n');
        }
    }
}

/// A line in pieces, broken at spaces where there are any.
fn broken(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut width = 0;
    for word in line.split_inclusive(' ') {
        if width > 0 && width + word.chars().count() > WIDTH {
            pieces.push(String::new());
            width = 0;
        }
        for character in word.chars() {
            if width == WIDTH {
                pieces.push(String::new());
                width = 0;
            }
            if let Some(last) = pieces.last_mut() {
                last.push(character);
            }
            width += 1;
        }
    }
    pieces
}

/// How a tool's definition differs from the one that was permitted: lines for a person, safe to
/// print. `- ` was there, `+ ` is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// At most sixty, and a line that counts what is left out. Where nothing could be compared:
    /// why not, and how to mend it.
    pub lines: Vec<String>,
    /// Whether the two could be compared. If not, it may have changed.
    pub compared: bool,
}

impl Difference {
    pub(super) fn between(old: &str, new: &str) -> Self {
        let diff = TextDiff::from_lines(old, new);
        let mut lines = Vec::new();
        let mut more = 0;
        for change in diff.iter_all_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => continue,
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            if lines.len() == MAX_LINES {
                more += 1;
            } else {
                lines.push(format!("{sign} {}", change.value().trim_end()));
            }
        }
        if more > 0 {
            lines.push(format!("… and {more} more lines"));
        }
        if lines.is_empty() {
            lines.push("it differs in a part too long to be kept".to_owned());
        }
        Self {
            lines,
            compared: true,
        }
    }

    /// Of a tool of which only the digest was kept.
    pub(super) fn untold() -> Self {
        Self {
            lines: vec![
                "how it was defined then was not kept: there was no room for it".to_owned(),
            ],
            compared: true,
        }
    }

    /// Of a tool whose permitted definition nobody knows: why, and how to mend it.
    pub(super) fn unknown(lines: Vec<String>) -> Self {
        Self {
            lines,
            compared: false,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines.join("\n"))
    }
}
