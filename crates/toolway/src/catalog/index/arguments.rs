//! What the index reads of a tool's input schema: the names of arguments, and what they are for.
//!
//! Owns that nothing else of a schema is kept while it is read: an index over thousands of tools
//! reads thousands of schemas, and most of each is types and limits.

use std::borrow::Cow;

use serde_json::value::RawValue;
use toolway_wire::scan;

use super::MAX_WORDS;

/// How deep arguments are looked at.
const DEPTH: usize = 3;

/// The arguments of one tool, those inside others included.
#[derive(Debug, Default)]
pub(super) struct IndexedArguments<'a> {
    pub(super) names: Vec<Cow<'a, str>>,
    pub(super) purposes: Vec<Cow<'a, str>>,
}

impl<'a> IndexedArguments<'a> {
    /// Of a schema.
    pub(super) fn of(schema: &'a RawValue) -> Self {
        let mut arguments = Self::default();
        arguments.take(schema.get(), DEPTH);
        arguments
    }

    /// Takes the arguments of a schema, so many levels deep, and gives its description.
    fn take(&mut self, schema: &'a str, depth: usize) -> Option<Cow<'a, str>> {
        let (mut description, mut properties, mut items) = (None, "", "");
        for (key, value) in scan::members(schema) {
            match scan::text(key).as_deref() {
                Some("description") => description = scan::text(value),
                Some("properties") => properties = value,
                Some("items") => items = value,
                _ => {}
            }
        }
        if depth == 0 || self.names.len() > MAX_WORDS {
            return description;
        }
        for (name, property) in scan::members(properties) {
            self.names.extend(scan::text(name));
            let place = self.purposes.len();
            if let Some(purpose) = self.take(property, depth - 1) {
                // Before those of what is inside.
                self.purposes.insert(place, purpose);
            }
        }
        if !items.is_empty() {
            self.take(items, depth);
        }
        description
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(schema: &Value) -> (String, String) {
        let raw = serde_json::value::to_raw_value(schema).unwrap();
        let IndexedArguments { names, purposes } = IndexedArguments::of(&raw);
        (names.join(" "), purposes.join(" | "))
    }

    #[test]
    fn arguments_are_found_inside_others_down_to_a_depth() {
        let schema = json!({
            "description": "not of an argument",
            "properties": {
                "a": {
                    "type": "object",
                    "properties": {
                        "b": { "properties": { "c": {
                            "description": "the \"third\"",
                            "properties": { "too_deep": { "description": "unseen" } },
                        } } },
                    },
                    "description": "the first",
                },
                "d": { "items": { "items": { "properties": { "e": { "description": "one" } } } } },
            },
            "required": ["a"],
        });
        let (names, purposes) = read(&schema);
        assert_eq!(names, "a b c d e");
        assert_eq!(purposes, "the first | the \"third\" | one");
    }

    #[test]
    fn what_is_not_as_it_should_be_is_passed_over() {
        let schema = json!({
            "properties": {
                "a": true, "b": 7, "c": null, "d": "text", "e": [1, { "description": "no" }],
                "f": { "description": ["no"], "properties": "none", "items": 1.5 },
                "g": { "description": { "x": "no" }, "properties": [1], "items": [{}] },
                "h\"": { "description": "yes" },
            },
        });
        assert_eq!(read(&schema), ("a b c d e f g h\"".into(), "yes".into()));
        for schema in [json!(true), json!("properties"), json!([1]), json!({})] {
            assert_eq!(read(&schema), (String::new(), String::new()), "{schema}");
        }
    }
}
