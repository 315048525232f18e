//! Values that a JSON Schema accepts, made without a user.
//!
//! Owns the little that the suite's schemas need: defaults first, then the first of a choice,
//! then something of the right type. It is no generator for schemas in general; what it gets
//! wrong, the host's own validation refuses.

use serde_json::{Map, Value, json};

/// Which members of an object are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Those that must be there: what a careful caller sends.
    Required,
    /// All of them: what a user who fills in every field of a form sends.
    All,
}

/// An object that the schema accepts.
pub(crate) fn object(schema: &Value, fields: Fields) -> Map<String, Value> {
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    let Some(properties) = schema["properties"].as_object() else {
        return Map::new();
    };
    properties
        .iter()
        .filter(|(name, _)| fields == Fields::All || required(name))
        .map(|(name, schema)| (name.clone(), value(schema, fields)))
        .collect()
}

fn value(schema: &Value, fields: Fields) -> Value {
    let choices = ["enum", "oneOf", "anyOf"]
        .into_iter()
        .find_map(|key| schema[key].as_array()?.first());
    if let Some(fixed) = schema.get("default").or_else(|| schema.get("const")) {
        return fixed.clone();
    }
    if let Some(first) = choices {
        // A choice among titles is a list of `{"const": …, "title": …}`.
        return first
            .as_object()
            .map_or_else(|| first.clone(), |_| value(first, fields));
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(2)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(2.5)),
        Some("array") => json!([]),
        Some("object") => Value::Object(object(schema, fields)),
        Some("null") => Value::Null,
        _ => json!("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_required_members_are_made_unless_all_are_wanted() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "number" }, "b": { "type": "boolean" } },
            "required": ["a"]
        });
        assert_eq!(
            Value::Object(object(&schema, Fields::Required)),
            json!({ "a": 2.5 })
        );
        assert_eq!(
            Value::Object(object(&schema, Fields::All)),
            json!({ "a": 2.5, "b": true })
        );
    }

    #[test]
    fn defaults_go_before_choices_and_choices_before_types() {
        let made = |schema| value(&schema, Fields::All);
        assert_eq!(
            made(json!({ "enum": ["x", "y"], "default": "y" })),
            json!("y")
        );
        assert_eq!(
            made(json!({ "type": "string", "enum": ["x", "y"] })),
            json!("x")
        );
        let titled = json!({ "oneOf": [{ "const": "x", "title": "The first" }] });
        assert_eq!(made(titled), json!("x"));
        assert_eq!(made(json!({ "type": "integer", "minimum": 7 })), json!(7));
        assert_eq!(
            made(json!({ "type": "boolean", "default": false })),
            json!(false)
        );
    }
}
