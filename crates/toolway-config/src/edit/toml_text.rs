//! A TOML text whose tables of tables can be changed without disturbing what stands around them.
//!
//! Owns get, set and remove of one entry in one table at the top (`[mcp_servers.name]`). A change
//! cuts or puts in whole statements; all other bytes stay. Whatever the text looks like, the result
//! is parsed again and must be the old document with that one entry changed, else it is refused.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::EditError;
use super::layout::newline_of;
use super::spelled::{self, EntryPath};
use crate::json::syntax_tree::{self, SyntaxError};

/// How a table has to be written.
const WANTED: &str = "a table for each entry, `[table.entry]`";

/// The content of one TOML file, open for change.
#[derive(Debug)]
pub(crate) struct TomlText {
    path: PathBuf,
    text: String,
    /// What the text says, read once for each change.
    value: Value,
}

/// A line, or several that belong together: a header, a key with its value, or neither.
#[derive(Debug)]
struct Statement {
    range: Range<usize>,
    kind: StatementKind,
}

#[derive(Debug, PartialEq, Eq)]
enum StatementKind {
    /// An empty line.
    Blank,
    Comment,
    /// The keys of a table's header.
    Header(Vec<String>),
    /// All keys on the way to a value, those of its table first.
    Pair(Vec<String>),
}

impl TomlText {
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, EditError> {
        let value = value_of(text).map_err(|error| EditError::invalid(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            value,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Puts an entry into its table, where one of the same name stood or behind its neighbours.
    pub(crate) fn set(&mut self, entry: EntryPath<'_>, value: &Value) -> Result<(), EditError> {
        let intended = entry
            .set(self.value.clone(), value)
            .ok_or_else(|| self.refusal(entry))?;
        let (mut text, cut) = without(&self.text, entry);
        let block = rendered(entry, value, newline_of(&self.text));
        let at = cut.unwrap_or_else(|| end_of_table(&text, entry.table));
        put_block(&mut text, at, &block);
        self.take(text, entry, &intended)
    }

    /// Takes an entry away. Says whether it was there.
    pub(crate) fn remove(&mut self, entry: EntryPath<'_>) -> Result<bool, EditError> {
        let Some(intended) = entry.remove(self.value.clone()) else {
            return Ok(false);
        };
        let (text, _) = without(&self.text, entry);
        self.take(text, entry, &intended)?;
        Ok(true)
    }

    /// The line (from 1) of an entry.
    pub(crate) fn line_of(&self, entry: EntryPath<'_>) -> Option<u32> {
        let statements = statements(&self.text);
        let own = statements.iter().find(|it| it.belongs_to(entry))?;
        Some(syntax_tree::line_at(&self.text, own.range.start))
    }

    fn take(
        &mut self,
        text: String,
        entry: EntryPath<'_>,
        intended: &Value,
    ) -> Result<(), EditError> {
        match value_of(&text) {
            Ok(value) if entry.is_same(&value, intended) => {
                self.text = text;
                self.value = value;
                Ok(())
            }
            _ => Err(self.refusal(entry)),
        }
    }

    fn refusal(&self, entry: EntryPath<'_>) -> EditError {
        let statements = statements(&self.text);
        let own = statements.iter().find(|it| it.is_of_table(entry.table));
        let line = own.map(|it| syntax_tree::line_at(&self.text, it.range.start));
        spelled::refusal(&self.path, &self.value, entry, line, WANTED)
    }
}

impl Statement {
    fn is_of_table(&self, table: &str) -> bool {
        match &self.kind {
            StatementKind::Header(keys) | StatementKind::Pair(keys) => {
                keys.first().is_some_and(|first| first == table)
            }
            StatementKind::Blank | StatementKind::Comment => false,
        }
    }

    fn belongs_to(&self, entry: EntryPath<'_>) -> bool {
        match &self.kind {
            StatementKind::Header(keys) | StatementKind::Pair(keys) => {
                matches!(keys.as_slice(), [table, name, ..] if table == entry.table && name == entry.name)
            }
            StatementKind::Blank | StatementKind::Comment => false,
        }
    }
}

fn value_of(text: &str) -> Result<Value, SyntaxError> {
    toml::from_str(text).map_err(|error| syntax_error(text, &error))
}

/// Why a text is not TOML, and where.
pub(crate) fn syntax_error(text: &str, error: &toml::de::Error) -> SyntaxError {
    let offset = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    SyntaxError {
        line: syntax_tree::line_at(text, offset),
        column: u32::try_from(line.chars().count() + 1).unwrap_or(u32::MAX),
        message: error.message().lines().collect::<Vec<_>>().join("; "),
    }
}

/// The text without an entry, and where its first statement stood.
fn without(text: &str, entry: EntryPath<'_>) -> (String, Option<usize>) {
    let statements = statements(text);
    let mut kept = String::with_capacity(text.len());
    let mut first = None;
    let mut at = 0;
    while at < statements.len() {
        let statement = &statements[at];
        if !statement.belongs_to(entry) {
            kept.push_str(&text[statement.range.clone()]);
            at += 1;
            continue;
        }
        first.get_or_insert(kept.len());
        let is_header = |it: &Statement| matches!(it.kind, StatementKind::Header(_));
        let is_pair = |it: &Statement| matches!(it.kind, StatementKind::Pair(_));
        let mut end = at + 1;
        if is_header(statement) {
            // What stands between its keys goes with them; what follows the last one stays.
            let rest = statements[end..].iter();
            let body = rest.take_while(|it| !is_header(it)).count();
            let pairs = statements[end..end + body].iter().rposition(is_pair);
            end += pairs.map_or(0, |last| last + 1);
        }
        // Of the empty lines around it one side is enough.
        let is_blank = |it: &Statement| it.kind == StatementKind::Blank;
        let ends_blank = kept.is_empty() || ends_with_blank_line(&kept);
        while ends_blank && statements.get(end).is_some_and(is_blank) {
            end += 1;
        }
        at = end;
    }
    if first == Some(kept.len()) {
        // It was the last thing in the file.
        let content = kept.trim_end_matches(['\n', '\r', ' ', '\t']).len();
        let line_end = kept[content..]
            .find('\n')
            .map_or(kept.len(), |it| content + it + 1);
        kept.truncate(if content == 0 { 0 } else { line_end });
        first = Some(kept.len());
    }
    (kept, first)
}

fn ends_with_blank_line(text: &str) -> bool {
    let mut lines = text.split('\n').rev();
    lines.next().is_some_and(str::is_empty) && lines.next().is_some_and(|it| it.trim().is_empty())
}

/// Behind the last statement of a table's entries, or at the end of the text.
fn end_of_table(text: &str, table: &str) -> usize {
    let statements = statements(text);
    // Keys at the top of the file cannot stand below a header, so these do not count.
    let headers = statements
        .iter()
        .position(|it| matches!(it.kind, StatementKind::Header(_)));
    let below = headers.map_or(&[][..], |first| &statements[first..]);
    let last = below.iter().rev().find(|it| it.is_of_table(table));
    last.map_or(text.len(), |it| it.range.end)
}

/// Puts a table between what stands before and behind a place, with an empty line on both sides.
fn put_block(text: &mut String, at: usize, block: &str) {
    let newline = newline_of(block);
    let (before, behind) = text.split_at(at);
    let mut put = String::new();
    if !before.is_empty() && !before.ends_with('\n') {
        put.push_str(newline);
    }
    if !before.is_empty() && !ends_with_blank_line(before) {
        put.push_str(newline);
    }
    put.push_str(block);
    let next = behind.split('\n').next().unwrap_or_default();
    if !next.trim().is_empty() {
        put.push_str(newline);
    }
    text.insert_str(at, &put);
}

fn rendered(entry: EntryPath<'_>, value: &Value, newline: &str) -> String {
    let empty = Map::new();
    let members = value.as_object().unwrap_or(&empty);
    let mut block = format!("[{}.{}]{newline}", key(entry.table), key(entry.name));
    for (name, value) in members {
        let _ = write!(block, "{} = {}{newline}", key(name), inline(value));
    }
    block
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        basic_string(name)
    }
}

/// A JSON string is a TOML string, but for one character that JSON does not escape.
fn basic_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7F}', "\\u007F")
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => basic_string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// Cuts a text that is TOML into its statements.
fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut table: Vec<String> = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = end_of_statement(text, start);
        let own = &text[start..end];
        let kind = match own.trim_start().chars().next() {
            None => StatementKind::Blank,
            Some('#') => StatementKind::Comment,
            Some('[') => {
                table = keys_of(own);
                StatementKind::Header(table.clone())
            }
            Some(_) => StatementKind::Pair(table.iter().cloned().chain(keys_of(own)).collect()),
        };
        found.push(Statement {
            range: start..end,
            kind,
        });
        start = end;
    }
    found
}

/// The keys that a statement names one below the other, until one holds several or none.
fn keys_of(statement: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut value: Value = toml::from_str(statement).unwrap_or_default();
    while let Value::Object(members) = value {
        let mut members = members.into_iter();
        let (Some((name, inner)), None) = (members.next(), members.next()) else {
            break;
        };
        keys.push(name);
        value = inner;
    }
    keys
}

/// Where the statement that starts at a line's beginning ends, its line break included.
fn end_of_statement(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' if depth == 0 => return at + 1,
            b'#' => {
                let rest = &text[at..];
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            quote @ (b'"' | b'\'') => {
                at = end_of_string(bytes, at, quote);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Behind the string that starts with this quote.
fn end_of_string(bytes: &[u8], start: usize, quote: u8) -> usize {
    let is_long = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if is_long { 3 } else { 1 };
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote == b'"' {
            at += 2;
        } else if bytes[at] != quote {
            at += 1;
        } else if !is_long {
            return at + 1;
        } else if bytes[at..].starts_with(&[quote; 3]) {
            // A long string may end with up to two quotes of its own.
            let quotes = bytes[at..]
                .iter()
                .take_while(|byte| **byte == quote)
                .count();
            return at + quotes.min(5);
        } else {
            at += 1;
        }
    }
    bytes.len()
}
