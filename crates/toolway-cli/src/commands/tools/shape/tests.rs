//! What is read of schemas, and how it is spelled.

use serde_json::json;

use super::*;

fn spelled(schema: &Value) -> String {
    Shape::read(schema).spelled(3)
}

#[test]
fn types_are_spelled_through_references_and_alternatives() {
    for (schema, expected) in [
        (json!({"type": "string"}), "string"),
        (json!({}), "any"),
        (json!(true), "any"),
        (json!({"type": ["integer", "null"]}), "integer | null"),
        (json!({"enum": ["a", 2, null]}), r#""a" | 2 | null"#),
        (json!({"type": "string", "const": "x"}), r#""x""#),
        (json!({"type": "array"}), "any[]"),
        (
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
            "(string | number)[]",
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}),
            "[number, string]",
        ),
        (json!({"type": "object"}), "object"),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "{[name]: integer}",
        ),
        (
            json!({"properties": {"a": {"type": "string"}, "b c": {"default": 1}}, "required": ["a"]}),
            r#"{a: string, "b c"?: any = 1}"#,
        ),
        (
            json!({
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "card"}}, "required": ["kind"]},
                    {"$ref": "#/$defs/cash"},
                ],
                "$defs": {"cash": {"type": "object", "properties": {"kind": {"const": "cash"}, "sum": {"type": "number"}}, "required": ["kind"]}},
            }),
            r#"{kind: "card"} | {kind: "cash", sum?: number}"#,
        ),
        (
            json!({
                "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "integer"}}, "required": ["a"]}],
                "$defs": {"base": {"type": "object", "properties": {"a": {"type": "string"}}}},
            }),
            "{a: string, b?: integer}",
        ),
        (
            json!({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            "{a: any, b?: any} | {a?: any, b: any}",
        ),
        (
            json!({
                "$ref": "#/$defs/node",
                "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
            }),
            "{next?: node}",
        ),
        (json!({"$ref": "#/$defs/gone"}), "any"),
        (
            json!({"type": "string", "$ref": "https://example.com/x"}),
            "string",
        ),
    ] {
        assert_eq!(spelled(&schema), expected, "{schema}");
    }
}

#[test]
fn sec_51_a_schema_of_any_shape_costs_a_bounded_amount() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    let circle = json!({
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": vec![json!({"$ref": "#/$defs/b"}); 50]}, "b": {"anyOf": vec![json!({"$ref": "#/$defs/a"}); 50]}},
    });
    let wide: Map<String, Value> = (0..5_000)
        .map(|number| {
            (
                format!("k{number}"),
                json!({"anyOf": [{"type": "string"}, {"type": "object", "properties": {"y": {}}}]}),
            )
        })
        .collect();
    let wide = json!({"type": "object", "properties": wide});
    let squares = json!({"allOf": vec![json!({"anyOf": (0..200).map(|n| json!({"const": n})).collect::<Vec<_>>()}); 50]});
    for schema in [deep, circle, wide, squares] {
        let shown = spelled(&schema);
        assert!(shown.chars().count() < 500, "{shown}");
    }
}

#[test]
fn sec_52_names_and_values_of_a_server_stay_on_their_line() {
    let schema = json!({
        "properties": {
            "a\nPermission: allowed": {"enum": ["\u{202e}x\ny"]},
            "\u{441}ity": {"pattern": "\u{1b}[2J"},
        },
    });
    let shown = spelled(&schema);
    assert!(!shown.contains(['\n', '\u{1b}', '\u{202e}']), "{shown}");
    assert!(shown.contains("⟨Cyrillic с⟩ity"), "{shown}");
}

#[test]
fn limits_are_told_in_words() {
    let limits = |schema: Value| Shape::read(&schema).limits().join(", ");
    assert_eq!(limits(json!({"minimum": 1, "maximum": 10})), "1 to 10");
    assert_eq!(
        limits(json!({"minLength": 1, "pattern": "^[a-z]+$", "format": "slug"})),
        "format `slug`, at least 1 character, matching `^[a-z]+$`"
    );
    assert_eq!(
        limits(json!({"minItems": 2, "maxItems": 2})),
        "exactly 2 items"
    );
    assert_eq!(limits(json!({"minimum": "x", "pattern": 3})), "");
}
