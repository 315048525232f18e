//! What is understood of schemas, and where following them ends.

use serde_json::json;

use super::*;

fn names(schema: &Value, argument: &str) -> Vec<&'static str> {
    Schema::new(schema).argument(argument).names()
}

#[test]
fn kinds_are_gathered_through_references_and_alternatives() {
    let schema = json!({
        "properties": {
            "plain": {"type": "number"},
            "several": {"type": ["integer", "string", "null"]},
            "any": {"anyOf": [{"type": "boolean"}, {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/a~1b"}]}]},
            "all": {"allOf": [{"type": ["number", "string"]}, {"type": "integer"}]},
            "beside": {"type": ["string", "null"], "$ref": "#/$defs/a~1b"},
            "escaped": {"$ref": "#/%24defs/a~1b"},
            "open": {"anyOf": [{"type": "string"}, {}]},
            "nothing": {"type": "null"},
            "dangling": {"$ref": "#/$defs/gone"},
            "elsewhere": {"$ref": "https://example.com/x"},
            "odd": {"type": "any"},
            "anything": true,
        },
        "additionalProperties": {"type": "string"},
        "$defs": {"a/b": {"type": "string"}},
    });
    for (argument, expected) in [
        ("plain", &["number"][..]),
        ("several", &["string", "integer"]),
        ("any", &["string", "boolean"]),
        ("all", &["integer"]),
        ("beside", &["string"]),
        ("escaped", &["string"]),
        ("open", &[]),
        ("nothing", &["null"]),
        ("dangling", &[]),
        ("elsewhere", &[]),
        ("odd", &[]),
        ("anything", &[]),
        ("unnamed", &["string"]),
    ] {
        assert_eq!(names(&schema, argument), expected, "{argument}");
    }
    let list = json!({"properties": {"l": {"items": {"$ref": "#/x"}, "type": "array"}},
        "x": {"type": "integer"}});
    let list = Schema::new(&list);
    assert_eq!(list.items(&list.argument("l")).names(), ["integer"]);
}

#[test]
fn a_circle_and_a_thicket_come_to_an_end() {
    let circle = json!({
        "$ref": "#",
        "properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}},
        "required": ["a"],
    });
    assert_eq!(names(&circle, "a"), [""; 0]);
    let all = Schema::new(&circle).arguments();
    assert_eq!(
        (all.known, all.needed),
        (vec!["a".into(), "b".into()], vec!["a".into()])
    );

    let back = json!([{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]);
    let thicket = json!({
        "anyOf": back, "oneOf": back, "allOf": back,
        "properties": {"a": {"anyOf": [{"type": "integer"}, {"$ref": "#/properties/a"}]}},
    });
    let schema = Schema::new(&thicket);
    assert_eq!(schema.argument("a").names(), ["integer"]);
    assert!(
        schema.steps.get() <= 20 * MAX_STEPS,
        "{}",
        schema.steps.get()
    );
    assert_eq!(schema.arguments().known, ["a"]);
}

#[test]
fn what_is_needed_is_gathered_and_choices_are_kept_apart() {
    let of = |schema: &Value| {
        let all = Schema::new(schema).arguments();
        (all.known.join(" "), all.needed.join(" "), all.choices)
    };
    let group = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let schema = json!({
        "properties": {"a": {}, "b": {}, "c": {}},
        "anyOf": [{"required": ["a", "c"]}, {"required": ["b", "c"]}],
    });
    let choices = vec![vec![group(&["a"]), group(&["b"])]];
    assert_eq!(of(&schema), ("a b c".into(), "c".into(), choices));
    // Whoever may leave it is not made to choose.
    let schema = json!({
        "oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}],
    });
    assert_eq!(of(&schema), ("a b".into(), String::new(), Vec::new()));
    let schema = json!({"allOf": [{"required": ["x"]}, {"properties": {"y": {}}}]});
    assert_eq!(of(&schema), ("y x".into(), "x".into(), Vec::new()));
}
