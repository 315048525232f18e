//! The digest that a decision is bound to.
//!
//! Owns the canonical form of a definition.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolway_types::Scope;

/// The digest of an approval: the real file, the scope and the whole definition as written. The
/// account is part of the definition: a repository must not choose, after the approval, which
/// account is used at a server.
pub(crate) fn digest(file: &str, scope: Scope, definition: &Map<String, Value>) -> String {
    digest_of(file, scope.as_str(), definition)
}

pub(super) fn digest_of(path: &str, kind: &str, content: &Map<String, Value>) -> String {
    // Canonical JSON: members in the order of their keys, nothing between them.
    let mut text = String::with_capacity(256);
    text.push_str("{\"definition\":");
    canonical_object(content, &mut text);
    let _ = write!(
        text,
        ",\"path\":{},\"scope\":{}}}",
        Value::from(path),
        Value::from(kind)
    );
    // Not `hex::encode`, which goes character by character: there is one digest per server.
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        for half in [byte >> 4, byte & 15] {
            digits.push(char::from(b"0123456789abcdef"[usize::from(half)]));
        }
    }
    digits
}

fn canonical_object(object: &Map<String, Value>, text: &mut String) {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        quoted(key, text);
        text.push(':');
        canonical(value, text);
    }
    text.push('}');
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => canonical_object(object, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        Value::String(string) => quoted(string, text),
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

fn quoted(string: &str, text: &mut String) {
    // Almost every string is plain, and then it is its own JSON.
    if string
        .bytes()
        .all(|byte| (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\')
    {
        text.push('"');
        text.push_str(string);
        text.push('"');
    } else {
        text.push_str(&serde_json::to_string(string).unwrap_or_default());
    }
}
