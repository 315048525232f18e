//! How a value is spelt in a file: indentation, line breaks, commas.
//!
//! Owns rendering new values in the style of the text around them, and finding that style. Does
//! not own where a value goes.

use serde_json::Value;

/// An array of plain values longer than this gets a line per value.
const ARRAY_WIDTH: usize = 80;

/// The style of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonStyle {
    /// One step of indentation.
    pub(super) unit: String,
    /// The line break.
    pub(super) newline: &'static str,
}

impl JsonStyle {
    /// Finds the style of a text; `first` is where the first member of its top level stands.
    pub(super) fn of(text: &str, first: Option<usize>) -> Self {
        let newline = newline_of(text);
        let unit = first
            .filter(|at| text[..*at].contains('\n'))
            .and_then(|at| own_line_indent(text, at))
            .filter(|indent| !indent.is_empty())
            .unwrap_or("  ")
            .to_owned();
        Self { unit, newline }
    }

    /// Spells a value whose line starts with `indent`.
    pub(super) fn render(&self, value: &Value, indent: &str) -> String {
        if let Some(line) = one_line(value) {
            return line;
        }
        let inner = format!("{indent}{}", self.unit);
        let (open, close, items): (char, char, Vec<String>) = match value {
            Value::Object(map) => (
                '{',
                '}',
                map.iter()
                    .map(|(key, value)| self.render_member(key, value, &inner))
                    .collect(),
            ),
            Value::Array(items) => (
                '[',
                ']',
                items.iter().map(|item| self.render(item, &inner)).collect(),
            ),
            scalar => return scalar.to_string(),
        };
        let newline = self.newline;
        let body = items.join(&format!(",{newline}{inner}"));
        format!("{open}{newline}{inner}{body}{newline}{indent}{close}")
    }

    /// Spells a key and its value.
    pub(super) fn render_member(&self, key: &str, value: &Value, indent: &str) -> String {
        format!("{}: {}", Value::from(key), self.render(value, indent))
    }
}

/// The line break that a text uses.
pub(super) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The spelling in one line, for values that look well so.
pub(super) fn one_line(value: &Value) -> Option<String> {
    match value {
        Value::Object(map) => map.is_empty().then(|| "{}".to_owned()),
        Value::Array(items) => {
            let parts: Option<Vec<String>> = items
                .iter()
                .map(|item| match item {
                    Value::Array(inner) if !inner.is_empty() => None,
                    item => one_line(item),
                })
                .collect();
            let line = format!("[{}]", parts?.join(", "));
            (line.chars().count() <= ARRAY_WIDTH).then_some(line)
        }
        scalar => Some(scalar.to_string()),
    }
}

/// The indentation of the line in which an offset stands.
pub(super) fn line_indent(text: &str, offset: usize) -> &str {
    let line = &text[line_start(text, offset)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The indentation before an offset, when nothing else stands before it in its line.
pub(super) fn own_line_indent(text: &str, offset: usize) -> Option<&str> {
    let before = &text[line_start(text, offset)..offset];
    before
        .chars()
        .all(|c| c == ' ' || c == '\t')
        .then_some(before)
}

/// Where the line of an offset starts.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |at| at + 1)
}

/// Where the comma after a value stands, looking past white space and comments up to `limit`.
pub(super) fn comma_after(text: &str, from: usize, limit: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < limit {
        match bytes[at] {
            b',' => return Some(at),
            b'/' => at = comment_end(text, at),
            _ => at += 1,
        }
    }
    None
}

/// Where a comment that starts at `at` ends (a line comment: before its line break).
fn comment_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let length = if let Some(inner) = rest.strip_prefix("/*") {
        inner.find("*/").map(|end| end + 4)
    } else {
        rest.find(['\n', '\r'])
    };
    at + length.unwrap_or(rest.len())
}
