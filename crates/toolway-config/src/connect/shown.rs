//! How a change of a client's file is shown: as a difference, without the secrets in it.
//!
//! Owns which texts of the file are hidden: those that speak of secrets anywhere in it, and all
//! values of variables and headers, whatever their client calls these.

use std::path::Path;

use serde_json::{Map, Value};
use toolway_types::secret::parts::{MARK, of_bearers, of_known_tokens, without};
use toolway_types::text::unified;

use crate::edit::structured_text::{StructuredText, TextFormat};
use crate::redaction::without_secrets;

/// Lines around each change.
const CONTEXT: usize = 2;

/// The keys below which every value may be a secret.
const HOLDERS: [&str; 6] = [
    "env",
    "envs",
    "environment",
    "headers",
    "http_headers",
    "env_http_headers",
];

/// A shorter text is only hidden in quotes: it may stand for anything elsewhere.
const SHORT: usize = 4;

/// What differs between two texts, line by line.
pub(super) fn difference(format: TextFormat, before: &str, after: &str) -> String {
    let mut hidden: Vec<(String, String)> = Vec::new();
    for text in [before, after] {
        if let Ok(document) = StructuredText::parse(format, Path::new(""), text)
            && let Value::Object(members) = document.value()
        {
            collect(
                &Value::Object(members.clone()),
                &Value::Object(redacted(&members)),
                &mut hidden,
            );
        }
    }
    // A longer text may hold a shorter one.
    hidden.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
    hidden.dedup();
    let shown = unified(("", before), ("", after), CONTEXT);
    let lines = shown.lines().skip(2).map(|line| masked(line, &hidden));
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// A document without its secrets, at every depth.
fn redacted(members: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = without_secrets(members);
    for (key, value) in members {
        let inner = match value {
            Value::Object(inner) if HOLDERS.contains(&key.as_str()) => {
                let inner = inner.iter().map(|(key, value)| (key.clone(), hide(value)));
                Value::Object(inner.collect())
            }
            Value::Object(inner) => Value::Object(redacted(inner)),
            _ => continue,
        };
        shown.insert(key.clone(), inner);
    }
    shown
}

fn hide(value: &Value) -> Value {
    match value {
        Value::String(text) if !is_reference(text) => Value::from(MARK),
        other => other.clone(),
    }
}

/// Whether a text only says where a secret is, in the words of any client.
fn is_reference(text: &str) -> bool {
    let schemes = ["Bearer ", "Basic "];
    let bare = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    let bare = bare.unwrap_or(text);
    let name = bare.strip_prefix('$').unwrap_or(bare);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
    {
        // Behind this stands a value of its own.
        Some(inner) => !inner.contains(":-") && !inner.contains(['{', '}']),
        None => name.len() < bare.len() && name.chars().all(is_name),
    }
}

/// Every text that is shown in another way, with that way.
fn collect(value: &Value, shown: &Value, hidden: &mut Vec<(String, String)>) {
    match (value, shown) {
        (Value::String(text), Value::String(shown)) if text != shown && !text.is_empty() => {
            hidden.push((text.clone(), shown.clone()));
        }
        (Value::Object(members), Value::Object(shown)) => {
            for (key, value) in members {
                if let Some(shown) = shown.get(key) {
                    collect(value, shown, hidden);
                }
            }
        }
        (Value::Array(items), Value::Array(shown)) => {
            for (item, shown) in items.iter().zip(shown) {
                collect(item, shown, hidden);
            }
        }
        // Hidden as a whole.
        (Value::Object(members), _) => {
            for value in members.values() {
                collect(value, &Value::from(MARK), hidden);
            }
        }
        (Value::Array(items), _) => {
            for item in items {
                collect(item, &Value::from(MARK), hidden);
            }
        }
        _ => {}
    }
}

fn masked(line: &str, hidden: &[(String, String)]) -> String {
    let mut line = line.to_owned();
    // First, as long as nothing of it is hidden.
    for parts in [of_bearers, of_known_tokens] {
        let found = parts(&line);
        line = without(&line, found, is_reference);
    }
    for (secret, shown) in hidden {
        let spelled = Value::from(secret.as_str()).to_string();
        line = line.replace(&spelled, &Value::from(shown.as_str()).to_string());
        line = line.replace(&format!("'{secret}'"), &format!("'{shown}'"));
        // It may go on over several lines.
        for part in secret
            .lines()
            .map(str::trim)
            .filter(|part| part.len() >= SHORT)
        {
            let shown = if part == secret { shown.as_str() } else { MARK };
            line = line.replace(part, shown);
        }
    }
    line
}
