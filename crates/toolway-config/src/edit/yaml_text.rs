//! A YAML text whose entries can be changed without disturbing what stands around them.
//!
//! Owns get, set and remove of one entry in one mapping at the top (`extensions:`), where that is
//! written as lines with indentation. A change cuts or puts in whole lines; all other bytes stay.
//! Whatever the text looks like, the result is parsed again and must be the old document with that
//! one entry changed, else it is refused.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::EditError;
use super::layout::newline_of;
use super::spelled::{self, EntryPath};
use crate::json::syntax_tree::{self, SyntaxError};

/// Words that YAML, in one of its versions, takes for something else than a string.
const WORDS: [&str; 11] = [
    "true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf",
];

/// How a mapping has to be written.
const WANTED: &str = "lines of its own for each entry, and no references between them";

/// The indentation of entries in a mapping that has none yet.
const INDENT: usize = 2;

/// The content of one YAML file, open for change.
#[derive(Debug)]
pub(crate) struct YamlText {
    path: PathBuf,
    text: String,
    /// What the text says, read once for each change.
    value: Value,
}

/// One line, without its break.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    start: usize,
    text: &'a str,
}

/// The lines of a mapping at the top.
#[derive(Debug)]
struct Block {
    /// The place of its key among all lines.
    head: usize,
    /// The places of the lines below it.
    lines: Range<usize>,
    indent: usize,
}

impl YamlText {
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

    /// Puts an entry into its mapping, where one of the same name stood or behind its neighbours.
    pub(crate) fn set(&mut self, entry: EntryPath<'_>, value: &Value) -> Result<(), EditError> {
        let refused = || self.refusal(entry);
        let intended = entry.set(self.value.clone(), value).ok_or_else(refused)?;
        let newline = newline_of(&self.text);
        let mut text = self.text.clone();
        let lines = lines(&self.text);
        let block = block(&lines, entry.table);
        let indent = block.as_ref().map_or(INDENT, |block| block.indent);
        let mut rendered = String::new();
        render_member(&mut rendered, entry.name, value, indent, newline);
        if let Some(block) = &block {
            let is_own = |at: &usize| is_of_entries(lines[*at], block.indent);
            let last = block.lines.clone().rev().find(is_own);
            let behind = end(&self.text, &lines, last.unwrap_or(block.head));
            let own = entry_lines(&lines, block, entry.name);
            let cut = own.map_or(behind..behind, |own| bytes(&self.text, &lines, own));
            if !self.text[..cut.start].ends_with('\n') {
                rendered.insert_str(0, newline);
            }
            text.replace_range(cut, &rendered);
            open_head(&mut text, lines[block.head]);
        } else {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push_str(newline);
            }
            let _ = write!(text, "{}:{newline}{rendered}", scalar(entry.table));
        }
        self.take(text, entry, &intended)
    }

    /// Takes an entry away. Says whether it was there.
    pub(crate) fn remove(&mut self, entry: EntryPath<'_>) -> Result<bool, EditError> {
        let Some(intended) = entry.remove(self.value.clone()) else {
            return Ok(false);
        };
        let refused = || self.refusal(entry);
        let lines = lines(&self.text);
        let block = block(&lines, entry.table).ok_or_else(refused)?;
        let own = entry_lines(&lines, &block, entry.name).ok_or_else(refused)?;
        let mut text = self.text.clone();
        let others = block
            .lines
            .clone()
            .any(|at| !own.contains(&at) && is_content(lines[at]));
        text.replace_range(bytes(&self.text, &lines, own), "");
        if !others {
            let key_end = lines[block.head].start + key_length(lines[block.head].text);
            text.insert_str(key_end, " {}");
        }
        self.take(text, entry, &intended)?;
        Ok(true)
    }

    /// The line (from 1) of an entry.
    pub(crate) fn line_of(&self, entry: EntryPath<'_>) -> Option<u32> {
        let lines = lines(&self.text);
        let block = block(&lines, entry.table)?;
        let own = entry_lines(&lines, &block, entry.name)?;
        Some(syntax_tree::line_at(&self.text, lines[own.start].start))
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
        let lines = lines(&self.text);
        let own = block(&lines, entry.table).map(|block| lines[block.head].start);
        let line = own.map(|start| syntax_tree::line_at(&self.text, start));
        spelled::refusal(&self.path, &self.value, entry, line, WANTED)
    }
}

/// Takes `{}` or a word for nothing away behind the key of a mapping that has entries now.
fn open_head(text: &mut String, head: Line<'_>) {
    let from = key_length(head.text);
    let rest = head.text[from..].trim_start();
    let nothing = ["{}", "null", "~"]
        .into_iter()
        .find(|word| rest.starts_with(word));
    if let Some(word) = nothing {
        let blanks = head.text[from..].len() - rest.len();
        let start = head.start + from;
        text.replace_range(start..start + blanks + word.len(), "");
    }
}

/// The document; an empty text holds nothing.
pub(crate) fn value_of(text: &str) -> Result<Value, SyntaxError> {
    let is_nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_nothing) {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| syntax_error(&error))
}

/// Why a text is not YAML, in words for people.
pub(crate) fn syntax_error(error: &serde_saphyr::Error) -> SyntaxError {
    let location = error.location();
    let narrow = |number: Option<u64>| {
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.unwrap_or(1).max(1)
    };
    let error = error.without_snippet();
    let message = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let first = message.lines().next().unwrap_or_default();
    SyntaxError {
        line: narrow(location.map(|at| at.line())),
        column: narrow(location.map(|at| at.column())),
        message: first
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let own = Line {
            start,
            text: line.trim_end_matches(['\n', '\r']),
        };
        start += line.len();
        own
    });
    lines.collect()
}

/// Where a line ends, its break included.
fn end(text: &str, lines: &[Line<'_>], at: usize) -> usize {
    lines.get(at + 1).map_or(text.len(), |next| next.start)
}

fn bytes(text: &str, lines: &[Line<'_>], places: Range<usize>) -> Range<usize> {
    let last = places.end.saturating_sub(1);
    lines[places.start].start..end(text, lines, last)
}

fn indent(line: Line<'_>) -> usize {
    line.text.len() - line.text.trim_start_matches(' ').len()
}

/// Whether a line is neither empty nor a comment.
fn is_content(line: Line<'_>) -> bool {
    let text = line.text.trim_start();
    !text.is_empty() && !text.starts_with('#')
}

/// Whether a line belongs to an entry: what looks like a comment may be a line of its text, if it
/// is indented deeper than the names of entries.
fn is_of_entries(line: Line<'_>, names: usize) -> bool {
    is_content(line) || indent(line) > names && !line.text.trim().is_empty()
}

/// The lines of a mapping at the top, if they are there.
fn block(lines: &[Line<'_>], table: &str) -> Option<Block> {
    let is_head = |line: &Line<'_>| indent(*line) == 0 && key(line.text) == Some(table);
    let head = lines.iter().position(is_head)?;
    let below = lines[head + 1..].iter();
    let ends = |line: &&Line<'_>| indent(**line) == 0 && is_content(**line);
    let length = below
        .clone()
        .position(|line| ends(&line))
        .unwrap_or(below.len());
    let own = head + 1..head + 1 + length;
    let first = lines[own.clone()].iter().find(|line| is_content(**line));
    Some(Block {
        head,
        lines: own,
        indent: first.map_or(INDENT, |line| indent(*line)),
    })
}

/// The places of an entry's lines. What is not indented deeper than its key, and no content,
/// belongs to what follows.
fn entry_lines(lines: &[Line<'_>], block: &Block, name: &str) -> Option<Range<usize>> {
    let is_own = |at: &usize| {
        indent(lines[*at]) == block.indent
            && is_content(lines[*at])
            && key(lines[*at].text) == Some(name)
    };
    let start = block.lines.clone().find(is_own)?;
    let mut end = start + 1;
    let below = block.lines.clone().skip_while(|at| *at <= start);
    for (at, line) in below.map(|at| (at, lines[at])) {
        if indent(line) <= block.indent && is_content(line) {
            break;
        }
        if is_of_entries(line, block.indent) {
            end = at + 1;
        }
    }
    Some(start..end)
}

/// The key that a line begins with.
fn key(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(' ');
    let length = key_length(line);
    let key = line[..length].strip_suffix(':')?.trim_end();
    let unquoted = |quote: char| key.strip_prefix(quote)?.strip_suffix(quote);
    Some(unquoted('"').or_else(|| unquoted('\'')).unwrap_or(key))
}

/// How many bytes of a line its key takes, with the blanks before it and its colon.
fn key_length(line: &str) -> usize {
    let start = line.len() - line.trim_start_matches(' ').len();
    let quoted = line[start..].starts_with(['"', '\'']);
    let from = if quoted {
        let quote = &line[start..=start];
        line[start + 1..]
            .find(quote)
            .map_or(line.len(), |at| start + 2 + at)
    } else {
        start
    };
    let mut colons = line[from..].match_indices(':').map(|(at, _)| from + at);
    let colon = colons.find(|at| {
        let behind = line[at + 1..].chars().next();
        behind.is_none_or(|c| c == ' ' || c == '\t')
    });
    colon.map_or(line.len(), |at| at + 1)
}

fn render_member(text: &mut String, name: &str, value: &Value, indent: usize, newline: &str) {
    let blanks = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let _ = write!(text, "{blanks}{}:{newline}", scalar(name));
            for (name, value) in members {
                render_member(text, name, value, indent + INDENT, newline);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let _ = write!(text, "{blanks}{}:{newline}", scalar(name));
            for item in items {
                let _ = write!(text, "{blanks}- {}{newline}", inline(item));
            }
        }
        value => {
            let _ = write!(text, "{blanks}{}: {}{newline}", scalar(name), inline(value));
        }
    }
}

/// A value on one line: JSON, which is YAML, but for strings that need no quotes.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    if starts_well && text.chars().all(is_plain) && !is_word {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}
