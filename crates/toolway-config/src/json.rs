//! JSON with comments to values that remember their lines.
//!
//! Owns: what counts as JSON here (comments, trailing commas and a byte order mark yes; every
//! other looseness no), and the positions. Does not own: what any key means.

use std::collections::HashMap;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use toolway_types::Diagnosis;

use crate::source::TextSource;

pub(crate) mod syntax_tree;

use syntax_tree::{STRICT, lower_first};

/// Where a value stands: the line of its key (or of itself, in an array), and the same for what
/// it holds, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueLines {
    pub(crate) line: u32,
    pub(super) inside: Vec<ValueLines>,
}

impl ValueLines {
    /// Of a value on this line that holds others on these.
    pub(crate) fn new(line: u32, inside: Vec<ValueLines>) -> Self {
        Self { line, inside }
    }

    /// The line of a member of the object that stands here; its own when unknown.
    pub(crate) fn line_of(&self, object: &Map<String, Value>, key: &str) -> u32 {
        self.member(object, key)
            .map_or(self.line, |lines| lines.line)
    }

    /// The lines of a member of the object that stands here.
    pub(crate) fn member(&self, object: &Map<String, Value>, key: &str) -> Option<&ValueLines> {
        self.inside.get(object.keys().position(|name| name == key)?)
    }

    /// The line of an element of the array that stands here.
    pub(crate) fn line_at(&self, index: usize) -> u32 {
        self.inside.get(index).map_or(self.line, |lines| lines.line)
    }
}

/// Looking into an entry. Most have few members, and comparing those is faster than a hash.
pub(crate) trait EntryMembers {
    /// The member of this name.
    fn member(&self, key: &str) -> Option<&Value>;
}

impl EntryMembers for Map<String, Value> {
    fn member(&self, key: &str) -> Option<&Value> {
        const FEW: usize = 8;
        if self.len() > FEW {
            return self.get(key);
        }
        let found = self.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value)
    }
}

/// A member of an object, in the order of the file. A key may occur more than once.
#[derive(Debug)]
pub(crate) struct LocatedMember {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) lines: ValueLines,
    /// Keys that stand twice inside the value.
    pub(crate) doubled: Vec<DuplicateKey>,
}

/// A key that stands twice in one object.
#[derive(Debug)]
pub(crate) struct DuplicateKey {
    pub(crate) key: String,
    pub(crate) first: u32,
    pub(crate) second: u32,
}

/// The text's root object, two levels of it as members so that a duplicate server is seen.
#[derive(Debug)]
pub(crate) enum JsonRoot {
    /// Nothing but white space and comments.
    Empty,
    /// An object.
    Object(Vec<RootMember>),
}

/// A member of the root.
#[derive(Debug)]
pub(crate) struct RootMember {
    pub(crate) key: String,
    pub(crate) line: u32,
    pub(crate) content: RootContent,
}

/// What a root member holds: objects stay open, because a doubled key in one is a finding.
#[derive(Debug)]
pub(crate) enum RootContent {
    Object(Vec<LocatedMember>),
    Other(Value, ValueLines, Vec<DuplicateKey>),
}

impl RootMember {
    /// The value as a whole, with its lines and the keys doubled anywhere in it.
    pub(crate) fn whole(self) -> LocatedMember {
        let (value, lines, doubled) = match self.content {
            RootContent::Other(value, lines, doubled) => (value, lines, doubled),
            RootContent::Object(members) => {
                let mut builder = ObjectBuilder::sized(members.len());
                for member in members {
                    builder.doubled.extend(member.doubled);
                    builder.insert(member.key, member.value, member.lines);
                }
                let lines = ValueLines {
                    line: self.line,
                    inside: builder.lines,
                };
                (Value::Object(builder.map), lines, builder.doubled)
            }
        };
        LocatedMember {
            key: self.key,
            value,
            lines,
            doubled,
        }
    }
}

/// Parses a text. The error has its line and column.
pub(crate) fn parse(text: &str, source: &TextSource) -> Result<JsonRoot, Diagnosis> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| {
        let line = u32::try_from(error.line_display()).unwrap_or(u32::MAX);
        let column = u32::try_from(error.column_display()).unwrap_or(u32::MAX);
        let kind = error.kind().to_string();
        Diagnosis::error(format!("not valid JSON: {}", lower_first(&kind)))
            .at(source.origin(line))
            .column(column)
            .hint("mend the file at that place; nothing in it is read until then")
    })?;
    let starts = LineStarts::new(text);
    match parsed.value {
        None => Ok(JsonRoot::Empty),
        Some(ast::Value::Object(object)) => Ok(JsonRoot::Object(root_members(object, &starts))),
        Some(other) => Err(Diagnosis::error(format!(
            "the root must be an object, not {}",
            kind_of_ast(&other)
        ))
        .at(source.origin(starts.line(other.start())))
        .hint("write `{\"mcpServers\": {}}`")),
    }
}

fn root_members(object: ast::Object<'_>, starts: &LineStarts) -> Vec<RootMember> {
    object
        .properties
        .into_iter()
        .map(|property| {
            let line = starts.line(property.name.start());
            let content = match property.value {
                ast::Value::Object(inner) => RootContent::Object(
                    inner
                        .properties
                        .into_iter()
                        .map(|property| member(property, starts))
                        .collect(),
                ),
                other => {
                    let mut doubled = Vec::new();
                    let (value, lines) = convert(other, line, starts, &mut doubled);
                    RootContent::Other(value, lines, doubled)
                }
            };
            RootMember {
                key: property.name.into_string(),
                line,
                content,
            }
        })
        .collect()
}

fn member(property: ast::ObjectProp<'_>, starts: &LineStarts) -> LocatedMember {
    let line = starts.line(property.name.start());
    let mut doubled = Vec::new();
    let (value, lines) = convert(property.value, line, starts, &mut doubled);
    LocatedMember {
        key: property.name.into_string(),
        value,
        lines,
        doubled,
    }
}

struct ObjectBuilder {
    map: Map<String, Value>,
    lines: Vec<ValueLines>,
    doubled: Vec<DuplicateKey>,
    /// Where each key stands in `lines`; made when the first key is doubled, because a hostile
    /// file may double them all and a search for each would take hours.
    positions: Option<HashMap<String, usize>>,
}

impl ObjectBuilder {
    fn sized(members: usize) -> Self {
        Self {
            map: Map::with_capacity(members),
            lines: Vec::with_capacity(members),
            doubled: Vec::new(),
            positions: None,
        }
    }

    fn insert(&mut self, key: String, value: Value, lines: ValueLines) {
        match self.map.entry(key) {
            Entry::Vacant(free) => {
                if let Some(positions) = &mut self.positions {
                    positions.insert(free.key().clone(), self.lines.len());
                }
                free.insert(value);
                self.lines.push(lines);
            }
            Entry::Occupied(mut taken) => {
                let key = taken.key().clone();
                taken.insert(value);
                let positions = self
                    .positions
                    .get_or_insert_with(|| self.map.keys().cloned().zip(0..).collect());
                if let Some(index) = positions.get(&key).copied() {
                    let (first, second) = (self.lines[index].line, lines.line);
                    self.doubled.push(DuplicateKey { key, first, second });
                    self.lines[index] = lines;
                }
            }
        }
    }
}

fn convert(
    value: ast::Value<'_>,
    line: u32,
    starts: &LineStarts,
    doubled: &mut Vec<DuplicateKey>,
) -> (Value, ValueLines) {
    let mut inside = Vec::new();
    let value = match value {
        ast::Value::StringLit(text) => Value::String(text.value.into_owned()),
        ast::Value::BooleanLit(word) => Value::Bool(word.value),
        ast::Value::NullKeyword(_) => Value::Null,
        // A number outside the double's range stays text, so that it is found and named.
        ast::Value::NumberLit(number) => number
            .value
            .parse::<Number>()
            .map_or_else(|_| Value::String(number.value.to_owned()), Value::Number),
        ast::Value::Array(array) => {
            let mut values = Vec::with_capacity(array.elements.len());
            inside.reserve_exact(array.elements.len());
            for element in array.elements {
                let line = starts.line(element.start());
                let (value, lines) = convert(element, line, starts, doubled);
                values.push(value);
                inside.push(lines);
            }
            Value::Array(values)
        }
        ast::Value::Object(object) => {
            let mut builder = ObjectBuilder::sized(object.properties.len());
            for property in object.properties {
                let line = starts.line(property.name.start());
                let (value, lines) = convert(property.value, line, starts, doubled);
                builder.insert(property.name.into_string(), value, lines);
            }
            doubled.append(&mut builder.doubled);
            inside = builder.lines;
            Value::Object(builder.map)
        }
    };
    (value, ValueLines { line, inside })
}

/// The starts of a text's lines.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.0.partition_point(|end| *end < offset) + 1).unwrap_or(u32::MAX)
    }
}

fn kind_of_ast(value: &ast::Value<'_>) -> &'static str {
    match value {
        ast::Value::StringLit(_) => "a string",
        ast::Value::NumberLit(_) => "a number",
        ast::Value::BooleanLit(_) => "a boolean",
        ast::Value::Object(_) => "an object",
        ast::Value::Array(_) => "an array",
        ast::Value::NullKeyword(_) => "null",
    }
}

/// What a value is, in words for a message.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
