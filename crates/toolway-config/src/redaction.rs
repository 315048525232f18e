//! Entries as they are shown: without the secrets that may be written in them.
//!
//! Owns what is shown of an entry where no decision about it is asked, and what `Debug` shows of
//! one: its keys only. Which parts of a text are secrets is `toolway_types::secret::parts`. Where
//! the user decides whether another author's entry may run (`toolway approve`), this is not used:
//! what is hidden could be code.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};
use toolway_types::secret::parts::{
    MARK, Words, of_addresses, of_assignments, of_bearers, of_known_tokens, of_line, of_settings,
    speaks_of_a_secret, without,
};

use crate::expansion;
use crate::keys::entry_keys;

/// Replaces a secret that has changed.
const CHANGED: &str = "[redacted, changed]";

/// A definition without its secrets: the values of `env` and `headers`, those that arguments and
/// members of objects speak of, and those of addresses. A name of a variable stays: it is no
/// secret, and it is what one looks for.
pub fn without_secrets(definition: &Map<String, Value>) -> Map<String, Value> {
    let shown = definition.iter().map(|(key, value)| {
        let shown = match (key.as_str(), value) {
            ("env" | "headers", Value::Object(members)) => {
                let members = members.iter();
                let hidden = members.map(|(name, value)| (name.clone(), hidden(value)));
                Value::Object(hidden.collect())
            }
            ("args", Value::Array(words)) if words.iter().all(Value::is_string) => {
                let command = definition.get("command").and_then(Value::as_str);
                let words = words.iter().filter_map(Value::as_str);
                let words = std::iter::once(command.unwrap_or_default()).chain(words);
                Value::from(words_without_secrets(words).split_off(1))
            }
            ("args" | "oauth", _) => member(key, value),
            // Their members are named after tools, not after what they hold.
            _ if entry_keys().any(|known| known == key) => texts(value),
            _ => member(key, value),
        };
        (key.clone(), shown)
    });
    shown.collect()
}

/// An address without its password and the values of its query.
pub fn address_without_secrets(address: &str) -> String {
    without(address, of_addresses(address), names_only_variables)
}

/// The words of a command, its program first, without what they say of secrets.
pub fn words_without_secrets<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut read = Words::default();
    let shown = words.into_iter().map(|word| {
        let shown = without(word, read.read(word), names_only_variables);
        text(&shown)
    });
    shown.collect()
}

fn member(key: &str, value: &Value) -> Value {
    match value {
        Value::String(_) if speaks_of_a_secret(key) => hidden(value),
        Value::String(word) => Value::from(text(word)),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words = items.iter().filter_map(Value::as_str);
            Value::from(words_without_secrets(words))
        }
        Value::Array(items) => items.iter().map(|item| member(key, item)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let shown = members.map(|(name, value)| (name.clone(), member(name, value)));
            Value::Object(shown.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A value with nothing hidden but what its texts say themselves.
fn texts(value: &Value) -> Value {
    match value {
        Value::String(word) => Value::from(text(word)),
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let shown = members.map(|(name, value)| (name.clone(), texts(value)));
            Value::Object(shown.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A value that is a secret as a whole, unless it only says where one is.
fn hidden(value: &Value) -> Value {
    match value {
        Value::String(word) if names_only_variables(word) => value.clone(),
        Value::Null | Value::Bool(_) => value.clone(),
        _ => Value::from(MARK),
    }
}

/// Any other text, which may be a line of a command: what stands in it by name, by place or by its
/// beginning.
fn text(text: &str) -> String {
    let mut shown = Cow::Borrowed(text);
    for parts in [
        of_addresses,
        of_line,
        of_bearers,
        of_assignments,
        of_settings,
        of_known_tokens,
    ] {
        let found = parts(&shown);
        shown = Cow::Owned(without(&shown, found, names_only_variables));
    }
    shown.into_owned()
}

/// Whether a value is nothing but a `${NAME}`, perhaps behind an auth scheme's name.
fn names_only_variables(value: &str) -> bool {
    let schemes = ["Bearer ", "Basic "];
    let bare = schemes.iter().find_map(|scheme| value.strip_prefix(scheme));
    expansion::is_variable(bare.unwrap_or(value))
}

/// Two definitions without their secrets, to be compared: of a secret that differs, the later one
/// says so.
pub(crate) fn to_compare(old: &Value, new: &Map<String, Value>) -> (Value, Value) {
    let empty = Map::new();
    let old = old.as_object().unwrap_or(&empty);
    let (was, is) = (without_secrets(old), without_secrets(new));
    let mut is = Value::Object(is);
    tell_changes(
        (&Value::Object(old.clone()), &Value::Object(was.clone())),
        &Value::Object(new.clone()),
        &mut is,
    );
    (Value::Object(was), is)
}

/// Marks what looks the same and is not.
fn tell_changes((old, was): (&Value, &Value), new: &Value, is: &mut Value) {
    match (new, is) {
        (Value::Object(new), Value::Object(is)) => {
            for (key, is) in is {
                if let (Some(old), Some(was), Some(new)) =
                    (old.get(key), was.get(key), new.get(key))
                {
                    tell_changes((old, was), new, is);
                }
            }
        }
        (Value::Array(new), Value::Array(is)) => {
            // An argument may have moved.
            let (Some(old), Some(was)) = (old.as_array(), was.as_array()) else {
                return;
            };
            for (new, is) in new.iter().zip(is) {
                if was.contains(is) && !old.contains(new) {
                    tell_change(is);
                }
            }
        }
        (new, is) if was == is && old != new => tell_change(is),
        _ => {}
    }
}

fn tell_change(value: &mut Value) {
    if let Value::String(text) = value {
        *text = text.replace(MARK, CHANGED);
    }
}

/// The keys of an entry, and none of its values.
pub(crate) struct KeysOnly<'a>(pub(crate) &'a Map<String, Value>);

impl fmt::Debug for KeysOnly<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}
