//! `${VAR}`, `${VAR:-default}` and references to secrets in the strings of an entry.
//!
//! Owns: finding and replacing variables, and which ones a project's file may read (SEC-40);
//! finding references (`${keychain:name}`, `${file:path}`, `${cmd:line}`), which are replaced by a
//! placeholder until a connection is made. Where references are allowed is in `spec.rs`.
//! Does not own: when this happens. Nothing of a project is expanded before approval. Any other
//! shell form (`$VAR`, `${var%pattern}`, `${VAR:?x}`) is text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolway_types::wildcard as pattern;
use toolway_types::{ReferenceKind, SecretReference};

use crate::Environment;

/// The directory in which Toolway runs, for entries that want to be started there.
pub(crate) const WORKSPACE: &str = "workspace";

/// Variables that say nothing secret; a project's file may always read them.
const HARMLESS: [&str; 12] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "SHELL",
    "LANG",
    "TERM",
    "TMPDIR",
    "PWD",
    "TOOLWAY_PROJECT_DIR",
    "CLAUDE_PROJECT_DIR",
    WORKSPACE,
];

/// The keys whose strings are expanded.
const EXPANDED: [&str; 10] = [
    "command",
    "args",
    "env",
    "cwd",
    "roots",
    "url",
    "headers",
    "headersHelper",
    "sessionTokenFile",
    "oauth",
];

/// A piece of a string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TextPiece<'a> {
    Text(&'a str),
    Variable {
        name: &'a str,
        default: Option<&'a str>,
    },
    Reference {
        kind: ReferenceKind,
        target: &'a str,
    },
}

/// Splits a string into text and variables.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = TextPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(found) = rest[from..].find("${") {
            let start = from + found;
            let special = &rest[start..];
            if let Some((found, length)) = variable(special).or_else(|| reference(special)) {
                if start > 0 {
                    let text = &rest[..start];
                    rest = &rest[start..];
                    return Some(TextPiece::Text(text));
                }
                rest = &rest[length..];
                return Some(found);
            }
            from = start + 2;
        }
        Some(TextPiece::Text(std::mem::take(&mut rest)))
    })
}

/// Reads a variable at the start of a string that begins with `${`.
fn variable(text: &str) -> Option<(TextPiece<'_>, usize)> {
    let close = text.find('}')?;
    let inside = &text[2..close];
    let (name, default) = inside
        .split_once(":-")
        .map_or((inside, None), |(name, default)| (name, Some(default)));
    let mut bytes = name.bytes();
    let starts = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if starts && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Some((TextPiece::Variable { name, default }, close + 1))
    } else {
        None
    }
}

/// Reads a reference at the start of a string that begins with `${`. A command may hold braces, as
/// long as they come in pairs.
fn reference(text: &str) -> Option<(TextPiece<'_>, usize)> {
    let (word, rest) = text[2..].split_once(':')?;
    let kind = ReferenceKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)?;
    let mut depth = 0_usize;
    let close = rest.find(|c| match c {
        '{' if kind == ReferenceKind::Command => {
            depth += 1;
            false
        }
        '}' if depth > 0 => {
            depth -= 1;
            false
        }
        c => c == '}',
    })?;
    let piece = TextPiece::Reference {
        kind,
        target: rest[..close].trim(),
    };
    Some((piece, 2 + word.len() + 1 + close + 1))
}

/// Whether a string holds a variable or a reference.
pub(crate) fn mentions_variable(text: &str) -> bool {
    text.contains("${") && pieces(text).any(|piece| !matches!(piece, TextPiece::Text(_)))
}

/// Whether a string is one variable without a default, or one name or path of a secret, and
/// nothing else. A command may itself hold what must not be shown.
pub(crate) fn is_variable(text: &str) -> bool {
    let mut found = pieces(text);
    let is_plain = match found.next() {
        Some(TextPiece::Variable { default, .. }) => default.is_none(),
        Some(TextPiece::Reference { kind, .. }) => kind != ReferenceKind::Command,
        _ => false,
    };
    is_plain && found.next().is_none()
}

/// The names of the variables a definition reads, in order and once each.
pub(crate) fn variables_of(definition: &Map<String, Value>) -> Vec<String> {
    names_of(definition, &|_, _| true)
}

/// Those of them whose values it gets as things are. A default stands for a variable without a
/// value, and then nothing of the environment is read.
pub(crate) fn read_now(
    definition: &Map<String, Value>,
    variables: &ServerVariables<'_>,
) -> Vec<String> {
    names_of(definition, &|name, default| {
        default.is_none()
            || variables
                .lookup(name)
                .is_some_and(|value| !value.is_empty())
    })
}

fn names_of(
    definition: &Map<String, Value>,
    counts: &dyn Fn(&str, Option<&str>) -> bool,
) -> Vec<String> {
    let mut names = Vec::new();
    for value in expanded(definition).map(|(_, value)| value) {
        collect(value, counts, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// The members whose strings are expanded.
fn expanded(definition: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let members = definition.iter();
    members.filter(|(key, _)| EXPANDED.contains(&key.as_str()))
}

fn collect<'a>(
    value: &'a Value,
    counts: &dyn Fn(&str, Option<&str>) -> bool,
    names: &mut Vec<&'a str>,
) {
    match value {
        Value::String(text) if text.contains("${") => {
            names.extend(pieces(text).filter_map(|piece| match piece {
                TextPiece::Variable { name, default } => counts(name, default).then_some(name),
                TextPiece::Text(_) | TextPiece::Reference { .. } => None,
            }));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, counts, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, counts, names)),
        _ => {}
    }
}

/// The secrets that a definition names, in order, as written. Also those in places where they are
/// not allowed: the user is to see all of them.
pub fn references_of(definition: &Map<String, Value>) -> Vec<SecretReference> {
    let mut found = Vec::new();
    for (key, value) in expanded(definition) {
        collect_references(value, key, &mut found);
    }
    found
}

fn collect_references(value: &Value, place: &str, found: &mut Vec<SecretReference>) {
    match value {
        Value::String(text) if text.contains("${") => {
            found.extend(pieces(text).filter_map(|piece| match piece {
                TextPiece::Reference { kind, target } => Some(SecretReference {
                    kind,
                    target: target.to_owned(),
                    place: place.to_owned(),
                    file: None,
                }),
                TextPiece::Text(_) | TextPiece::Variable { .. } => None,
            }));
        }
        Value::Array(items) => {
            for item in items {
                collect_references(item, place, found);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                collect_references(item, &format!("{place}.{name}"), found);
            }
        }
        _ => {}
    }
}

/// Where the values of variables come from for one server.
pub(crate) struct ServerVariables<'a> {
    pub(crate) environment: &'a Environment,
    /// The directory of the plugin that brought the server.
    pub(crate) plugin_root: Option<&'a str>,
}

impl ServerVariables<'_> {
    pub(crate) fn lookup(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            "TOOLWAY_PLUGIN_ROOT" | "CLAUDE_PLUGIN_ROOT" if self.plugin_root.is_some() => {
                self.plugin_root.map(Cow::Borrowed)
            }
            // A path that is not UTF-8 must not be mistaken for another one.
            "TOOLWAY_PROJECT_DIR" | "CLAUDE_PROJECT_DIR" => {
                self.environment.project_root().to_str().map(Cow::Borrowed)
            }
            WORKSPACE => self.environment.cwd().to_str().map(Cow::Borrowed),
            _ => self.environment.var(name).map(Cow::Borrowed),
        }
    }

    /// Replaces the variables of one string; those without a value are added to `missing`. For
    /// each reference stands what `refer` makes of it.
    pub(crate) fn expand(
        &self,
        text: &str,
        missing: &mut BTreeSet<String>,
        mut refer: impl FnMut(ReferenceKind, &str) -> String,
    ) -> String {
        if !text.contains("${") {
            return text.to_owned();
        }
        let mut expanded = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                TextPiece::Text(text) => expanded.push_str(text),
                TextPiece::Reference { kind, target } => expanded.push_str(&refer(kind, target)),
                TextPiece::Variable { name, default } => match (self.lookup(name), default) {
                    // As in a shell, `:-` also covers a variable that is set and empty.
                    (Some(value), Some(default)) if value.is_empty() => expanded.push_str(default),
                    (Some(value), _) => expanded.push_str(&value),
                    (None, Some(default)) => expanded.push_str(default),
                    (None, None) => {
                        missing.insert(name.to_owned());
                    }
                },
            }
        }
        expanded
    }
}

/// Whether a variable says nothing secret, so that every project's file may read it.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// The variables among `names` that a project's file may not read.
pub(crate) fn not_allowed<'a>(names: &'a [String], allowed: &[impl AsRef<str>]) -> Vec<&'a str> {
    names
        .iter()
        .map(String::as_str)
        .filter(|name| {
            !is_harmless(name)
                && !allowed
                    .iter()
                    .any(|pattern| pattern::matches(pattern.as_ref(), name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, vars: &[(&str, &str)]) -> Result<String, Vec<String>> {
        let vars = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::new(vars.collect(), "/".into());
        let variables = ServerVariables {
            environment: &environment,
            plugin_root: Some("/plugin"),
        };
        let mut missing = BTreeSet::new();
        let expanded = variables.expand(text, &mut missing, |kind, target| {
            format!("<{} {target}>", kind.as_str())
        });
        if missing.is_empty() {
            Ok(expanded)
        } else {
            Err(missing.into_iter().collect())
        }
    }

    #[test]
    fn variables_and_defaults_expand_once() {
        let vars = [("A", "1"), ("EMPTY", ""), ("NESTED", "${A}")];
        assert_eq!(expand("x${A}y${A}", &vars), Ok("x1y1".to_owned()));
        assert_eq!(expand("${EMPTY}", &vars), Ok(String::new()));
        assert_eq!(
            expand("${EMPTY:-d}${NOPE:-e:-f}", &vars),
            Ok("de:-f".to_owned())
        );
        assert_eq!(
            expand("${NESTED}", &vars),
            Ok("${A}".to_owned()),
            "a value is not a template"
        );
        assert_eq!(expand("${TOOLWAY_PROJECT_DIR}", &[]), Ok("/".to_owned()));
        assert_eq!(
            expand("${CLAUDE_PLUGIN_ROOT}/x", &[]),
            Ok("/plugin/x".to_owned())
        );
        assert_eq!(
            expand("${B} ${C:-} ${D}", &vars),
            Err(vec!["B".to_owned(), "D".to_owned()])
        );
    }

    #[test]
    fn references_are_found_and_not_looked_up() {
        let vars = [("A", "1"), ("file", "set")];
        for (text, expected) in [
            ("Bearer ${keychain:git hub}!", "Bearer <keychain git hub>!"),
            ("${file:~/a b}${A}", "<file ~/a b>1"),
            (
                "${cmd:pass show ${x}|head -1}.",
                "<cmd pass show ${x}|head -1>.",
            ),
            ("${keychain: }", "<keychain >"),
            // With a default it is a variable of that name.
            ("${file:-x}${cmd:-y}", "sety"),
            ("${op:x}${keychain}", "${op:x}"),
        ] {
            let vars = [vars.as_slice(), &[("keychain", "")]].concat();
            assert_eq!(expand(text, &vars), Ok(expected.to_owned()));
        }
        assert!(mentions_variable("x${file:/y}"));
        assert!(is_variable("${keychain:x}"));
        assert!(!is_variable("${cmd:echo x}"));
    }

    #[test]
    fn sec_52_every_secret_that_a_definition_names_is_found_with_its_place() {
        let definition = serde_json::json!({
            "headers": { "A": "${keychain:a}${file:~/b}" },
            "args": ["${cmd:pass show ${x}}", "${HOME}"],
            "other": "${keychain:ignored}",
        });
        let found = references_of(definition.as_object().unwrap());
        let found: Vec<_> = found
            .iter()
            .map(|found| {
                (
                    found.kind.as_str(),
                    found.target.as_str(),
                    found.place.as_str(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("keychain", "a", "headers.A"),
                ("file", "~/b", "headers.A"),
                ("cmd", "pass show ${x}", "args"),
            ]
        );
    }

    #[test]
    fn other_shell_forms_are_text() {
        for text in [
            "$A", "${A%x}", "${A:?x}", "${1}", "${}", "${A", "$${", "${A b}", "a$",
        ] {
            assert_eq!(expand(text, &[("A", "1")]), Ok(text.to_owned()));
        }
        assert_eq!(
            expand("${x%y}${A}", &[("A", "1")]),
            Ok("${x%y}1".to_owned())
        );
    }
}
