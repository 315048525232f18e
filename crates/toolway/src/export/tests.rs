//! Exports: exact shapes for real schemas, and rules that hold for any.

use proptest::prelude::*;

use super::*;

mod references;
mod rules;

fn parameters(target: ExportTarget, schema: &Value) -> Value {
    input_schema(target, schema).0.unwrap_or_default()
}

fn weather() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where.", "minLength": 1},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "days": {"type": ["integer", "null"], "exclusiveMinimum": 0, "maximum": 14},
        },
        "required": ["city"],
        "additionalProperties": false,
    })
}

#[test]
fn every_target_has_its_exact_shape() {
    let declared = |target| declare(target, "mcp__s__weather", "Tells.", &weather()).0;
    // What is exported is JSON Schema 2020-12, whatever the server wrote it in.
    let mut kept = weather();
    kept.as_object_mut().unwrap().remove("$schema");
    assert_eq!(
        declared(ExportTarget::Anthropic),
        json!({"name": "mcp__s__weather", "description": "Tells.", "input_schema": kept})
    );
    assert_eq!(
        declared(ExportTarget::OpenAi),
        json!({"type": "function", "function":
            {"name": "mcp__s__weather", "description": "Tells.", "parameters": kept}})
    );
    assert_eq!(
        declared(ExportTarget::OpenAiResponses),
        json!({"type": "function", "name": "mcp__s__weather", "description": "Tells.",
            "parameters": kept, "strict": false})
    );
    assert_eq!(
        declared(ExportTarget::Gemini),
        json!({"name": "mcp__s__weather", "description": "Tells.", "parameters": {
            "type": "OBJECT",
            "required": ["city"],
            "properties": {
                "city": {"type": "STRING", "description": "Where.", "minLength": 1},
                "unit": {"type": "STRING", "format": "enum", "enum": ["c", "f"],
                    "description": "Default: \"c\""},
                "days": {"type": "INTEGER", "minimum": 0, "maximum": 14, "nullable": true},
            },
        }})
    );
    // A description that is not there is not sent.
    let (bare, _) = declare(ExportTarget::Anthropic, "t", "", &json!({}));
    assert_eq!(
        bare,
        json!({"name": "t", "input_schema": {"type": "object"}})
    );
}

#[test]
fn a_schema_that_a_target_takes_is_not_touched() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]},
            "b": {"allOf": [{"minimum": 1}], "x-vendor": [1, {"type": "array"}]},
        },
        "$defs": {"n": {"type": "integer", "const": 7}},
        "if": {"required": ["a"]}, "then": {"required": ["b"]},
        "$comment": "kept", "x-mcp": {"kept": true},
    });
    for target in [
        ExportTarget::Anthropic,
        ExportTarget::OpenAi,
        ExportTarget::OpenAiResponses,
    ] {
        assert_eq!(parameters(target, &schema), schema, "{target:?}");
    }
}

#[test]
fn alternatives_at_the_root_become_properties_that_none_but_all_require() {
    let schema = json!({
        "type": "object",
        "description": "Looks.",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "oneOf": [
            {"description": "By name.", "properties": {"name": {"type": "string"}, "how": {"const": 1}}, "required": ["how", "name"]},
            {"$ref": "#/$defs/by_number"},
        ],
        "allOf": [{"properties": {"page": {"type": "integer"}}, "required": ["page"]}],
        "$defs": {"by_number": {"properties": {"number": {"type": "integer"}, "how": {"const": 2}}, "required": ["how"]}},
    });
    let expected = json!({
        "type": "object",
        "description": "Looks.\nBy name.",
        "properties": {
            "id": {"type": "string"},
            "page": {"type": "integer"},
            "name": {"type": "string"},
            "how": {"anyOf": [{"const": 1}, {"const": 2}]},
            "number": {"type": "integer"},
        },
        "required": ["how", "id", "page"],
        "$defs": schema["$defs"],
    });
    assert_eq!(parameters(ExportTarget::Anthropic, &schema), expected);
    assert_eq!(parameters(ExportTarget::OpenAi, &schema), expected);
}

#[test]
fn openai_alone_loses_what_it_alone_refuses() {
    let schema = json!({"not": {"required": ["x"]}, "enum": [{}], "const": {},
        "properties": {"list": {"type": "array"}, "mixed": {"type": ["string", "array"]}}});
    assert_eq!(
        parameters(ExportTarget::OpenAi, &schema),
        json!({"type": "object", "properties": {
            "list": {"type": "array", "items": {}},
            "mixed": {"type": ["string", "array"], "items": {}}}})
    );
    let mut kept = schema;
    kept["type"] = json!("object");
    assert_eq!(parameters(ExportTarget::Anthropic, &kept), kept);
}

#[test]
fn older_drafts_and_mistakes_become_valid() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {
            "old": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "required": true},
            "tuple": {"type": "array", "items": [{"type": "string"}], "additionalItems": false},
            "any": {"type": "any", "description": "Anything."},
            "or_any": {"type": ["string", "any"]},
            "none": null,
        },
        "required": ["old", "old", 3],
    });
    assert_eq!(
        parameters(ExportTarget::Anthropic, &schema),
        json!({
            "type": "object",
            "properties": {
                "old": {"type": "number", "exclusiveMinimum": 0},
                "tuple": {"type": "array", "prefixItems": [{"type": "string"}], "items": false},
                "any": {"description": "Anything."},
                "or_any": {},
                "none": {},
            },
            "required": ["old"],
        })
    );
    let anything = json!([{"type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}]);
    let gemini = parameters(ExportTarget::Gemini, &schema);
    assert_eq!(gemini["properties"]["or_any"]["anyOf"], anything);
    assert_eq!(gemini["properties"]["none"]["anyOf"], anything);
    let any = gemini["properties"]["any"]["anyOf"].as_array().unwrap();
    assert_eq!(any.len(), 3, "{gemini}");
    assert_eq!(
        gemini["properties"]["old"],
        json!({"type": "NUMBER", "minimum": 0})
    );
}

#[test]
fn an_argument_whose_name_a_target_refuses_is_left_out_and_named() {
    let schema = json!({"type": "object", "required": ["filter[id]", "ok"], "properties":
        {"filter[id]": {"type": "string"}, "max-results": {"type": "integer"}, "ok": {"type": "boolean"}}});
    let (anthropic, left_out) = input_schema(ExportTarget::Anthropic, &schema);
    assert_eq!(left_out, ["filter[id]"]);
    assert_eq!(anthropic.unwrap()["required"], json!(["ok"]));
    let (gemini, left_out) = input_schema(ExportTarget::Gemini, &schema);
    assert_eq!(left_out, ["filter[id]", "max-results"]);
    assert_eq!(
        gemini.unwrap(),
        json!({"type": "OBJECT", "required": ["ok"], "properties": {"ok": {"type": "BOOLEAN"}}})
    );
    assert_eq!(parameters(ExportTarget::OpenAi, &schema), schema);
}

#[test]
fn gemini_gets_no_word_it_does_not_know_and_loses_no_description() {
    let schema = json!({
        "type": "object",
        "properties": {
            "where": {"$ref": "#/$defs/place", "description": "Start."},
            "map": {"type": "object", "description": "Labels.", "additionalProperties": {"type": "string"}},
            "level": {"type": "integer", "enum": [1, 2], "description": "How much."},
            "mode": {"oneOf": [{"const": "fast", "description": "Quick."}, {"const": "slow"}], "description": "Mode."},
            "maybe": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}], "default": null},
            "free": {"description": "Free."},
            "list": {"type": "array", "minItems": 1},
            "only": {"title": "Only", "type": "string", "const": "x"},
        },
        "$defs": {"place": {"type": "object", "description": "A place.", "properties":
            {"lat": {"type": "number"}, "next": {"type": "string", "format": "date-time"}}, "required": ["lat", "gone"]}},
    });
    assert_eq!(
        parameters(ExportTarget::Gemini, &schema)["properties"],
        json!({
            "where": {"type": "OBJECT", "description": "Start.\nA place.", "required": ["lat"], "properties":
                {"lat": {"type": "NUMBER"}, "next": {"type": "STRING", "format": "date-time"}}},
            "map": {"type": "OBJECT", "description": "Labels.", "properties":
                {"_unused": {"type": "STRING", "description": "Not used: the object takes any names."}}},
            "level": {"type": "INTEGER", "description": "How much.\nOne of: 1, 2"},
            "mode": {"anyOf": [
                {"type": "STRING", "format": "enum", "enum": ["fast"], "description": "Mode.\nQuick."},
                {"type": "STRING", "format": "enum", "enum": ["slow"]}]},
            "maybe": {"type": "STRING", "nullable": true},
            "free": {"anyOf": [{"type": "STRING", "description": "Free."}, {"type": "NUMBER"}, {"type": "BOOLEAN"}]},
            "list": {"type": "ARRAY", "minItems": 1, "items":
                {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}]}},
            "only": {"type": "STRING", "format": "enum", "enum": ["x"], "description": "Only"},
        })
    );
    // A function that takes nothing has no parameters.
    assert_eq!(
        input_schema(ExportTarget::Gemini, &json!({"type": "object"})).0,
        None
    );
}

#[test]
fn a_definition_that_holds_itself_is_shown_twice_and_then_any() {
    let schema = json!({"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node":
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}});
    let any = json!({"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}]});
    assert_eq!(
        parameters(ExportTarget::Gemini, &schema)["properties"]["tree"],
        json!({"type": "OBJECT", "properties": {"next":
            {"type": "OBJECT", "properties": {"next": any}}}})
    );
}

#[test]
fn references_that_multiply_or_never_end_are_bounded() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = format!("#/$defs/l{}", level + 1);
        definitions.insert(
            format!("l{level}"),
            json!({"type": "object", "description": "d".repeat(500),
                "properties": {"a": {"$ref": next}, "b": {"$ref": next}},
                "anyOf": [{"$ref": next}, {"$ref": next}]}),
        );
    }
    let doubling = json!({"$ref": "#/$defs/l0", "$defs": definitions});
    let forever =
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"properties": {"self": {"$ref": "#"}}}]});
    for schema in [doubling, forever] {
        for target in ExportTarget::ALL {
            rules::check(target, &schema);
        }
    }
}
