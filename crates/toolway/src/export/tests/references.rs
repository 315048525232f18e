//! References: every one that is exported leads somewhere in the same export.

use super::*;

const PLAIN: [ExportTarget; 3] = [
    ExportTarget::Anthropic,
    ExportTarget::OpenAi,
    ExportTarget::OpenAiResponses,
];

#[test]
fn a_reference_into_an_alternative_that_is_gone_leads_to_what_it_said() {
    let home = json!({"type": "object", "properties": {"street": {"type": "string"}}});
    let schema = json!({"anyOf": [
        {"properties": {"kind": {"const": "p"}, "home": home}, "required": ["kind", "home"]},
        {"properties": {"kind": {"const": "c"}, "office": {"$ref": "#/anyOf/0/properties/home"}},
            "required": ["kind", "office"]},
    ]});
    for target in PLAIN {
        assert_eq!(
            parameters(target, &schema),
            json!({
                "type": "object",
                "properties": {
                    "kind": {"anyOf": [{"const": "p"}, {"const": "c"}]},
                    "home": home,
                    "office": {"$ref": "#/$defs/home"},
                },
                "required": ["kind"],
                "$defs": {"home": home},
            }),
            "{target:?}"
        );
    }
}

#[test]
fn a_reference_to_a_property_that_was_changed_or_left_out_keeps_its_meaning() {
    // Two words on `a`: the property says both, those who refer to the first one get that.
    let schema = json!({
        "properties": {
            "a": {"type": "string"},
            "b": {"$ref": "#/properties/a"},
            "c d": {"type": "array", "items": {"$ref": "#/properties/c%20d"}},
            "e": {"$ref": "#/properties/c%20d/items"},
            "f": {"$ref": "#/properties/b"},
        },
        "allOf": [{"properties": {"a": {"minLength": 2}}}],
        "$defs": {"a": {"type": "null"}},
    });
    let made = parameters(ExportTarget::Anthropic, &schema);
    assert_eq!(
        made,
        json!({
            "type": "object",
            "properties": {
                "a": {"allOf": [{"type": "string"}, {"minLength": 2}]},
                "b": {"$ref": "#/$defs/a_2"},
                "e": {"$ref": "#/$defs/items"},
                "f": {"$ref": "#/properties/b"},
            },
            "$defs": {
                "a": {"type": "null"},
                "a_2": {"type": "string"},
                "items": {"$ref": "#/$defs/c_d"},
                "c_d": {"type": "array", "items": {"$ref": "#/$defs/c_d"}},
            },
        })
    );
}

#[test]
fn a_reference_that_leads_nowhere_is_any_value_and_keeps_what_stands_beside_it() {
    let schema = json!({"type": "object", "properties": {
        "gone": {"$ref": "#/definitions/Missing", "description": "Kept."},
        "far": {"$ref": "https://else.where/x.json"},
        "odd": {"$ref": "#/required"},
        "loop": {"$ref": "#/$defs/one"},
        "named": {"$ref": "#nobody"},
        "data": {"const": {"$ref": "#/nowhere"}, "x-note": [{"$ref": "#/nowhere"}]},
    }, "required": ["loop"], "$defs": {
        "one": {"$ref": "#/$defs/two", "title": "Round."}, "two": {"$ref": "#/$defs/one"},
    }});
    for target in PLAIN {
        assert_eq!(
            parameters(target, &schema),
            json!({"type": "object", "properties": {
                "gone": {"description": "Kept."}, "far": {}, "odd": {},
                "loop": {"$ref": "#/$defs/one"}, "named": {},
                "data": {"const": {"$ref": "#/nowhere"}, "x-note": [{}]},
            }, "required": ["loop"], "$defs": {
                "one": {"$ref": "#/$defs/two", "title": "Round."}, "two": {},
            }}),
            "{target:?}"
        );
    }
}

#[test]
fn anchors_identifiers_and_places_that_are_no_schemas_become_plain_pointers() {
    let schema = json!({
        "$id": "https://s.example/in",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "by_anchor": {"$ref": "#spot"},
            "old_anchor": {"$ref": "#old"},
            "moving": {"$dynamicRef": "#spot"},
            "whole": {"$ref": "https://s.example/in#/$defs/spot"},
            "other": {"$ref": "https://s.example/other"},
            "parts": {"$ref": "#/components/schemas/part"},
        },
        "$defs": {
            "spot": {"$anchor": "spot", "type": "integer"},
            "old": {"$id": "#old", "type": "null"},
            // A schema of its own: its pointers begin there.
            "other": {"$id": "https://s.example/other", "$ref": "#/$defs/in ner",
                "$defs": {"in ner": {"type": "boolean"}}},
        },
        "components": {"schemas": {"part": {"type": "any", "items": {"$ref": "#/components/schemas/part"}}}},
    });
    for target in PLAIN {
        assert_eq!(
            parameters(target, &schema),
            json!({
                "type": "object",
                "properties": {
                    "by_anchor": {"$ref": "#/$defs/spot"},
                    "old_anchor": {"$ref": "#/$defs/old"},
                    "moving": {"$ref": "#/$defs/spot"},
                    "whole": {"$ref": "#/$defs/spot"},
                    "other": {"$ref": "#/$defs/other"},
                    "parts": {"$ref": "#/$defs/part"},
                },
                "$defs": {
                    "spot": {"type": "integer"},
                    "old": {"type": "null"},
                    "other": {"$ref": "#/$defs/other/$defs/in%20ner",
                        "$defs": {"in ner": {"type": "boolean"}}},
                    "part": {"items": {"$ref": "#/$defs/part"}},
                },
                "components": schema["components"],
            }),
            "{target:?}"
        );
    }
    assert_eq!(
        parameters(ExportTarget::Gemini, &schema)["properties"]["other"],
        json!({"type": "BOOLEAN"})
    );
}

#[test]
fn references_at_the_root_are_followed_however_they_are_written() {
    let schema = json!({"$ref": "#input", "$defs": {"input": {
        "$anchor": "input", "properties": {"id": {"type": "string"}}, "required": ["id"]}}});
    for target in ExportTarget::ALL {
        let made = parameters(target, &schema);
        assert_eq!(made["required"], json!(["id"]), "{target:?}: {made}");
    }
}

#[test]
fn copies_of_what_is_referred_to_are_bounded() {
    // Each level is referred to by itself, and would be copied with all below it.
    let mut inner = json!({"description": "d".repeat(20_000)});
    let mut properties = serde_json::Map::new();
    let mut pointer = "#/anyOf/0/properties/deep".to_owned();
    for level in 0..100 {
        inner = json!({"properties": {"a": inner}});
        properties.insert(format!("p{level}"), json!({"$ref": pointer.clone()}));
        pointer.push_str("/properties/a");
    }
    properties.insert("deep".to_owned(), inner);
    let schema = json!({"anyOf": [{"properties": properties}]});
    for target in PLAIN {
        rules::check(target, &schema);
        let bytes = parameters(target, &schema).to_string().len();
        assert!(bytes < 700_000, "{bytes}");
    }
}
