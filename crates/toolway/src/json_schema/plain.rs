//! Schemas that mean the same in draft-07 as in 2020-12.
//!
//! The library holds each schema against the schema of its dialect, which it compiles first. That
//! of 2020-12 takes three times as long as that of draft-07, and longer than to start the program;
//! most tools use a dozen keywords in which the two do not differ. Formats are checked in draft-07
//! unless one says otherwise; which patterns can be used differs, so they are not plain.

use jsonschema::Draft;
use serde_json::Value;

/// How deep a schema is looked at.
const MAX_DEPTH: usize = 16;

/// Whether a schema can be read as draft-07 as well, with formats that are not checked.
pub(super) fn is_plain(schema: &Value) -> bool {
    Draft::default().detect(schema) == Draft::Draft202012 && is_plain_at(schema, 0)
}

/// What does not have the form that its keyword wants is not plain: draft-07 does not know `$defs`
/// and takes whatever stands there.
fn is_plain_at(schema: &Value, depth: usize) -> bool {
    let Value::Object(members) = schema else {
        return schema.is_boolean();
    };
    // Draft-07 takes no notice of what stands beside a reference.
    let refers = members.contains_key("$ref");
    depth < MAX_DEPTH
        && members.iter().all(|(keyword, value)| match &**keyword {
            "$schema" => depth == 0,
            "default" => true,
            "$ref" | "title" | "description" => value.is_string(),
            "examples" => value.is_array(),
            "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
            _ if refers => false,
            "const" => true,
            "format" => value.is_string(),
            "uniqueItems" => value.is_boolean(),
            "enum" => value.is_array(),
            "type" | "required" => value.is_string() || is_texts(value),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                value.is_number()
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => value.is_u64(),
            "items" | "additionalProperties" | "not" => is_plain_at(value, depth + 1),
            "anyOf" | "oneOf" | "allOf" => value
                .as_array()
                .is_some_and(|all| all.iter().all(|one| is_plain_at(one, depth + 1))),
            "properties" | "$defs" | "definitions" => value
                .as_object()
                .is_some_and(|all| all.values().all(|one| is_plain_at(one, depth + 1))),
            _ => false,
        })
}

fn is_texts(value: &Value) -> bool {
    let items = value.as_array();
    items.is_some_and(|items| items.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use jsonschema::Validator;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn what_the_usual_generators_write_is_plain() {
        for schema in [
            json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "a file" },
                    "lines": { "type": "array", "items": { "type": "number" }, "minItems": 1 },
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
            json!({
                "$defs": { "Unit": { "enum": ["a", "b"], "title": "Unit", "type": "string" } },
                "properties": {
                    "unit": { "$ref": "#/$defs/Unit", "default": "a" },
                    "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                },
                "title": "Arguments",
                "type": "object",
            }),
        ] {
            assert!(is_plain(&schema), "{schema}");
        }
    }

    #[test]
    fn what_the_dialects_read_in_two_ways_is_not() {
        for schema in [
            json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
            json!({ "properties": { "a": { "$schema": "http://json-schema.org/draft-07/schema#" } } }),
            json!({ "items": [{ "type": "string" }] }),
            json!({ "prefixItems": [{ "type": "string" }] }),
            json!({ "$ref": "#/$defs/a", "maxLength": 3 }),
            json!({ "$id": "https://example.com/a" }),
            json!({ "pattern": "^a" }),
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "properties": { "a": { "unevaluatedProperties": false } } }),
            json!({ "$defs": { "const": { "title": null } } }),
            json!({ "$defs": { "a": { "minLength": -1 } } }),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
    }

    const KEYWORDS: [&str; 23] = [
        "const",
        "default",
        "title",
        "format",
        "uniqueItems",
        "minimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxItems",
        "enum",
        "type",
        "required",
        "items",
        "additionalProperties",
        "not",
        "anyOf",
        "allOf",
        "oneOf",
        "properties",
        "$defs",
        "definitions",
        "$ref",
    ];

    fn any_value() -> impl Strategy<Value = Value> {
        let words = [
            "string",
            "object",
            "array",
            "integer",
            "email",
            "a",
            "#/$defs/a",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1_i64..4).prop_map(Value::from),
            Just(json!(1.0)),
            prop::sample::select(words.to_vec()).prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from);
            let keys = [&KEYWORDS[..], &["a", "b"]].concat();
            let members = prop::collection::vec((prop::sample::select(keys), inner), 0..4)
                .prop_map(|members| {
                    let members = members.into_iter();
                    let members = members.map(|(key, value)| (key.to_owned(), value));
                    Value::Object(members.collect::<Map<_, _>>())
                });
            prop_oneof![list, members]
        })
    }

    /// Whether it can be used, and what it says of a value.
    fn told(validator: Option<&Validator>, value: &Value) -> Option<Vec<String>> {
        let errors = validator?.iter_errors(value);
        Some(errors.map(|error| error.to_string()).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn a_plain_schema_means_the_same_in_both_dialects(
            schema in any_value(),
            value in any_value(),
        ) {
            if is_plain(&schema) {
                let new = jsonschema::options().offline().build(&schema).ok();
                let old = jsonschema::options()
                    .offline()
                    .with_draft(Draft::Draft7)
                    .should_validate_formats(false)
                    .build(&schema)
                    .ok();
                prop_assert_eq!(told(new.as_ref(), &value), told(old.as_ref(), &value));
            }
        }
    }
}
