//! Single values in Gemini's words: strings, numbers, alternatives, descriptions.
//!
//! Owns the pieces that need no look at other schemas. The rules stand in `gemini.rs`.

use serde_json::{Map, Value, json};
use toolway_types::text;

use super::{MAX_DESCRIPTION, MAX_QUOTED};
use crate::export::gemini::merged_schema::MergedSchema;

pub(super) fn string(said: &MergedSchema<'_>) -> Map<String, Value> {
    let mut string = word("STRING");
    if let Some(values) = said.values() {
        let mut fits: Vec<&str> = Vec::new();
        for value in values.iter().filter_map(|value| value.as_str()) {
            if !value.is_empty() && !fits.contains(&value) {
                fits.push(value);
            }
        }
        let empty = values.iter().any(|value| value.as_str() == Some(""));
        if !fits.is_empty() && !empty {
            string.insert("enum".to_owned(), json!(fits));
            string.insert("format".to_owned(), json!("enum"));
        }
        return string;
    }
    if said
        .keywords
        .get("format")
        .is_some_and(|format| *format == "date-time")
    {
        string.insert("format".to_owned(), json!("date-time"));
    }
    if let Some(pattern) = said.keywords.get("pattern").filter(|one| one.is_string()) {
        string.insert("pattern".to_owned(), (*pattern).clone());
    }
    counts(said, &["minLength", "maxLength"], &mut string);
    string
}

pub(super) fn number(said: &MergedSchema<'_>, kind: &str) -> Map<String, Value> {
    let (name, formats) = match kind {
        "integer" => ("INTEGER", ["int32", "int64"]),
        _ => ("NUMBER", ["float", "double"]),
    };
    let mut number = word(name);
    let format = said
        .keywords
        .get("format")
        .and_then(|format| format.as_str());
    if let Some(format) = format.filter(|format| formats.contains(format)) {
        number.insert("format".to_owned(), json!(format));
    }
    for (limit, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        // An excluded limit becomes an included one, which allows one value more.
        let value = [limit, exclusive]
            .iter()
            .find_map(|keyword| said.keywords.get(keyword).filter(|one| one.is_number()));
        if let Some(value) = value {
            number.insert(limit.to_owned(), (*value).clone());
        }
    }
    number
}

/// Copies whole numbers that are not negative.
pub(super) fn counts(said: &MergedSchema<'_>, keywords: &[&str], into: &mut Map<String, Value>) {
    for keyword in keywords {
        let count = said.keywords.get(keyword).and_then(|count| count.as_u64());
        if let Some(count) = count.filter(|count| i64::try_from(*count).is_ok()) {
            into.insert((*keyword).to_owned(), json!(count));
        }
    }
}

pub(super) fn default_of(said: &MergedSchema<'_>) -> Option<String> {
    let default = said.keywords.get("default").filter(|one| !one.is_null())?;
    Some(format!(
        "Default: {}",
        text::cut(&default.to_string(), MAX_QUOTED)
    ))
}

pub(super) fn word(kind: &str) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!(kind));
    schema
}

/// A value of which nothing is known; there is no word for it.
pub(super) fn anything() -> Map<String, Value> {
    union(
        ["STRING", "NUMBER", "BOOLEAN"].map(word).into(),
        String::new(),
        false,
    )
}

/// The alternatives of a schema: those it lists, or itself. Lists in lists are not taken.
pub(super) fn spread(mut schema: Map<String, Value>) -> Vec<Map<String, Value>> {
    match schema.remove("anyOf") {
        Some(Value::Array(inner)) => inner
            .into_iter()
            .filter_map(|one| match one {
                Value::Object(one) => Some(one),
                _ => None,
            })
            .collect(),
        _ => vec![schema],
    }
}

/// One of several schemas, with a description of the whole. There is at least one.
pub(super) fn union(
    made: Vec<Map<String, Value>>,
    words: String,
    nullable: bool,
) -> Map<String, Value> {
    let mut different: Vec<Map<String, Value>> = Vec::with_capacity(made.len());
    for one in made {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    if let Some(first) = different.first_mut() {
        describe(first, words);
        if nullable {
            first.insert("nullable".to_owned(), json!(true));
        }
    }
    if different.len() == 1 {
        different.remove(0)
    } else {
        let mut either = Map::new();
        either.insert("anyOf".to_owned(), json!(different));
        either
    }
}

/// Puts words before a schema's description.
pub(super) fn describe(schema: &mut Map<String, Value>, words: String) {
    if words.is_empty() {
        return;
    }
    let words = match schema.get("description").and_then(Value::as_str) {
        Some(known) if !known.is_empty() => format!("{words}\n{known}"),
        _ => words,
    };
    let words = text::cut(&words, MAX_DESCRIPTION);
    schema.insert("description".to_owned(), json!(words));
}
