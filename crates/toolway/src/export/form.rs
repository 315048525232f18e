//! Whether a schema is JSON Schema 2020-12 at all, and what to do when it is not.
//!
//! Owns which values fit the shape of their keyword. Servers write older drafts and
//! plain mistakes; a provider refuses a whole request for one. What can be said in 2020-12 is
//! translated, what means nothing there is taken out. A valid schema is left as it is.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use toolway_schema::{KeywordShape, TYPES, rewrite, shape};

/// The schema itself where it is valid, else what of it is.
pub(super) fn repaired(schema: &Value) -> Cow<'_, Value> {
    if schema.is_object() && jsonschema::draft202012::meta::is_valid(schema) {
        Cow::Borrowed(schema)
    } else {
        Cow::Owned(repair(schema))
    }
}

/// What of a schema is valid. The parser bounds the depth of a schema, so the recursion is bounded.
pub(super) fn repair(schema: &Value) -> Value {
    let members = match schema {
        Value::Bool(_) => return schema.clone(),
        Value::Object(members) => translated(members),
        _ => return json!({}),
    };
    let kept = members.into_iter().filter_map(|(keyword, value)| {
        let value = match shape(&keyword) {
            Some(shape) => fit(shape, value)?,
            None => value,
        };
        Some((keyword, value))
    });
    Value::Object(kept.collect())
}

/// What older drafts said, said as 2020-12 says it.
fn translated(members: &Map<String, Value>) -> Map<String, Value> {
    let mut members = members.clone();
    if let Some(Value::Array(_)) = members.get("items") {
        let tuple = members.remove("items").unwrap_or_default();
        members.entry("prefixItems").or_insert(tuple);
        if let Some(rest) = members.remove("additionalItems") {
            members.insert("items".to_owned(), rest);
        }
    }
    members.remove("additionalItems");
    for (exclusive, plain) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if members.get(exclusive) == Some(&Value::Bool(true))
            && let Some(limit) = members.remove(plain)
        {
            members.insert(exclusive.to_owned(), limit);
        }
    }
    let anchor = members.get("$id").and_then(Value::as_str);
    if let Some(anchor) = anchor.and_then(|id| id.strip_prefix('#')) {
        let anchor = json!(anchor);
        members.entry("$anchor").or_insert(anchor);
    }
    members
}

fn fit(shape: KeywordShape, value: Value) -> Option<Value> {
    match (shape, value) {
        (
            KeywordShape::Schema | KeywordShape::Items,
            value @ (Value::Bool(_) | Value::Object(_)),
        ) => Some(repair(&value)),
        (KeywordShape::SchemaMap, Value::Object(members)) => {
            let members = members.into_iter().map(|(name, one)| (name, repair(&one)));
            Some(Value::Object(members.collect()))
        }
        (KeywordShape::SchemaList, Value::Array(items)) if !items.is_empty() => {
            Some(Value::Array(items.iter().map(repair).collect()))
        }
        (KeywordShape::Value, value)
        | (KeywordShape::Text, value @ Value::String(_))
        | (KeywordShape::Number, value @ Value::Number(_))
        | (KeywordShape::Flag, value @ Value::Bool(_))
        | (KeywordShape::List, value @ Value::Array(_)) => Some(value),
        (KeywordShape::Factor, Value::Number(number))
            if number.as_f64().is_some_and(|f| f > 0.0) =>
        {
            Some(Value::Number(number))
        }
        (KeywordShape::Count, Value::Number(number)) if number.is_u64() => {
            Some(Value::Number(number))
        }
        (KeywordShape::Names, value) => names(&value),
        (KeywordShape::NamesMap, Value::Object(members)) => {
            let members = members
                .into_iter()
                .filter_map(|(name, one)| Some((name, names(&one)?)));
            Some(Value::Object(members.collect()))
        }
        (KeywordShape::Dependencies, Value::Object(members)) => {
            let members = members.into_iter().filter_map(|(name, one)| match one {
                Value::Array(_) => Some((name, names(&one)?)),
                one => Some((name, repair(&one))),
            });
            Some(Value::Object(members.collect()))
        }
        (KeywordShape::Type, Value::String(word)) if TYPES.contains(&word.as_str()) => {
            Some(Value::String(word))
        }
        (KeywordShape::Type, Value::Array(words)) => {
            let mut known: Vec<Value> = Vec::new();
            for word in words {
                // Whatever an unknown word stands for may be passed too.
                if !word.as_str().is_some_and(|word| TYPES.contains(&word)) {
                    return None;
                }
                if !known.contains(&word) {
                    known.push(word);
                }
            }
            (!known.is_empty()).then_some(Value::Array(known))
        }
        (KeywordShape::Anchor, Value::String(text)) => {
            let mut bytes = text.bytes();
            let fits = bytes
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            fits.then_some(Value::String(text))
        }
        (KeywordShape::Identifier, Value::String(text)) => {
            let fits = !text.trim_end_matches('#').contains('#') && !text.ends_with("##");
            fits.then_some(Value::String(text))
        }
        _ => None,
    }
}

fn names(value: &Value) -> Option<Value> {
    let mut names: Vec<&Value> = Vec::new();
    for name in value.as_array()? {
        if name.is_string() && !names.contains(&name) {
            names.push(name);
        }
    }
    Some(json!(names))
}

/// Whether JSON Schema 2020-12 says nothing about what stands under such a keyword.
pub(super) fn is_unknown(keyword: &str) -> bool {
    shape(keyword).is_none_or(|shape| shape == KeywordShape::Older)
}

/// Gives every array without `items` ones that take anything.
pub(super) fn give_items(schema: &mut Value) {
    rewrite(schema, &[], &mut |members, _| {
        let is_array = |word: &Value| word == "array";
        let takes_arrays = match members.get("type") {
            Some(Value::Array(words)) => words.iter().any(is_array),
            Some(word) => is_array(word),
            None => false,
        };
        if takes_arrays && !members.contains_key("items") {
            members.insert("items".to_owned(), json!({}));
        }
    });
}
