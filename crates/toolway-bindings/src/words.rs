//! Comments and literals made of what servers say.
//!
//! Owns that nothing in them ends them, is taken for an instruction, or is not seen.

use std::fmt::Write as _;

use serde_json::Value;
use toolway_types::text::{clean, cut, is_hidden};

/// The most that is said of a tool, and of one of its members.
const TOOL: usize = 4_000;
const MEMBER: usize = 600;

/// What is said of a tool, as lines.
pub(crate) fn of_tool(text: &str) -> Vec<String> {
    lines(text, TOOL)
}

/// What is said of a member, as lines.
pub(crate) fn of_member(text: &str) -> Vec<String> {
    lines(text, MEMBER)
}

fn lines(text: &str, most: usize) -> Vec<String> {
    let text = clean(text);
    let text = cut(text.trim(), most);
    let lines = text.lines().map(|line| line.replace('\t', " "));
    // What is indented is code to some readers of comments.
    let mut lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    lines.dedup_by(|one, two| one.is_empty() && two.is_empty());
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// A line inside `/** … */`: it ends nothing, and is no tag.
pub(crate) fn in_block_comment(line: &str) -> String {
    let line = line.replace("*/", "*\\/").replace("/*", "/\\*");
    let line = line.replace("{@", "{\\@");
    match line.strip_prefix('@') {
        Some(rest) => format!("\\@{rest}"),
        None => line,
    }
}

/// A line behind `///`: it is text, and nothing that is run, fetched or shown as a page.
pub(crate) fn in_rust_comment(line: &str) -> String {
    let line = line.replace("```", "'''").replace("~~~", "---");
    let mut shown = String::with_capacity(line.len());
    for letter in line.chars() {
        if matches!(letter, '<' | '>' | '[' | ']' | '\\') {
            shown.push('\\');
        }
        shown.push(letter);
    }
    shown
}

/// A line inside `"""…"""`.
pub(crate) fn in_docstring(line: &str) -> String {
    line.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A string of TypeScript, which is one of JSON too.
pub(crate) fn typescript(text: &str) -> String {
    quoted(text, |shown, letter| {
        let mut units = [0; 2];
        for unit in letter.encode_utf16(&mut units) {
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

/// A string of Python.
pub(crate) fn python(text: &str) -> String {
    quoted(text, |shown, letter| {
        let _ = write!(shown, "\\U{:08x}", u32::from(letter));
    })
}

/// A string of Rust.
pub(crate) fn rust(text: &str) -> String {
    quoted(text, |shown, letter| {
        let _ = write!(shown, "\\u{{{:x}}}", u32::from(letter));
    })
}

fn quoted(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push('"');
    for letter in text.chars() {
        match letter {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            hidden if is_hidden(hidden) => escape(&mut shown, hidden),
            seen => shown.push(seen),
        }
    }
    shown.push('"');
    shown
}

/// What else is said of a member: its format and its default, in words.
pub(crate) fn remarks(schema: &Value) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(format) = toolway_schema::text(schema, "format") {
        said.extend(of_member(&format!("Format: {format}.")));
    }
    if let Some(default) = schema.get("default") {
        said.extend(of_member(&format!("Default: {default}.")));
    }
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        said.push("The server calls it deprecated.".to_owned());
    }
    said
}
