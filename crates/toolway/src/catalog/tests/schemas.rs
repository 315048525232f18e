//! Schemas whose values cannot be shown as they are: what is shown can be sent, and nothing else is
//! checked than what the server sent.

use super::*;
use crate::json_schema::{SchemaVerdict, ValueSize};

const HEART: &str = "\u{2764}\u{fe0f}";
const FAMILY: &str = "\u{1F468}\u{200d}\u{1F469}";

fn one(schema: &Value) -> Arc<Catalog> {
    let tool = json!({"name": "t", "inputSchema": schema});
    catalog([offer("s", &[tool])])
}

fn shown(catalog: &Catalog) -> Value {
    serde_json::from_str(catalog.tools().next().unwrap().input_schema.get()).unwrap()
}

fn takes(catalog: &Catalog, arguments: &Value) -> bool {
    let checker = catalog.tools().next().unwrap().checker();
    match checker.check(arguments, ValueSize::of_value(arguments)) {
        SchemaVerdict::Fits => true,
        SchemaVerdict::Violates(_) => false,
        SchemaVerdict::Unchecked(why) => panic!("{why}"),
    }
}

#[test]
fn arguments_are_checked_against_the_schema_as_received() {
    let catalog = one(&json!({"type": "object", "properties": {
        "r": {"enum": [HEART, "\u{1F44D}", FAMILY]},
        "p": {"pattern": "^[^\u{200b}-\u{200f}]*$"},
    }}));
    assert_eq!(
        shown(&catalog),
        json!({"type": "object", "properties": {"r": {"enum": ["\u{1F44D}"]}, "p": {}}})
    );
    for (arguments, fits) in [
        (json!({"r": HEART}), true),
        (json!({"r": FAMILY}), true),
        (json!({"r": "\u{2764}"}), false),
        (json!({"p": "a-b"}), true),
        (json!({"p": "a\u{200b}b"}), false),
    ] {
        assert_eq!(takes(&catalog, &arguments), fits, "{arguments}");
    }
    let [warning] = &warnings(&catalog)[..] else {
        panic!("{:?}", warnings(&catalog));
    };
    assert_eq!(
        warning.message,
        "tool `t` is shown without 2 entries of `/properties/r/enum`, `/properties/p/pattern` of \
         its input schema: as sent, they hold characters that are not shown; arguments are still \
         checked against them"
    );
}

#[test]
fn a_tool_that_takes_only_what_cannot_be_shown_is_left_out() {
    for (part, place) in [
        (json!({"enum": [HEART, FAMILY]}), "/properties/r/enum"),
        (json!({"const": "Cafe\u{301}"}), "/properties/r/const"),
        (json!({"const": {"k": [HEART]}}), "/properties/r/const"),
        (
            json!({"anyOf": [{"const": HEART}]}),
            "/properties/r/anyOf/0/const",
        ),
    ] {
        let catalog = one(&json!({"properties": {"r": part}}));
        assert!(catalog.tools().next().is_none(), "{part}");
        let message = &catalog.warnings().next().unwrap().message;
        assert!(
            message.starts_with(&format!(
                "tool `t` is skipped: its input schema takes at `{place}` only values"
            )),
            "{message}"
        );
    }
}

#[test]
fn only_keywords_of_a_schema_are_kept_from_being_rewritten() {
    let dirty = "a\u{200b}b";
    // Properties that are called like keywords, and what is only said.
    let catalog = one(&json!({
        "properties": {
            "enum": {"title": dirty}, "const": {"description": dirty}, "pattern": {"default": dirty},
            "e": {"examples": [dirty], "default": {"enum": [dirty], "const": dirty}},
        },
    }));
    assert_eq!(warnings(&catalog), []);
    assert_eq!(
        shown(&catalog),
        json!({
            "properties": {
                "enum": {"title": "ab"}, "const": {"description": "ab"}, "pattern": {"default": "ab"},
                "e": {"examples": ["ab"], "default": {"enum": ["ab"], "const": "ab"}},
            },
        })
    );
    // Alternatives go one by one; what is shown turned round goes whole.
    let catalog = one(&json!({
        "properties": {
            "r": {"oneOf": [{"const": HEART, "title": "love"}, {"const": "ok"}]},
            "n": {"not": {"pattern": dirty}, "if": {"enum": [HEART, "x"]}, "then": {"minLength": 2}},
        },
        "patternProperties": {dirty: {}, "^x-": {"pattern": dirty}},
    }));
    assert_eq!(
        shown(&catalog),
        json!({
            "properties": {"r": {"oneOf": [{"const": "ok"}]}, "n": {"then": {"minLength": 2}}},
            "patternProperties": {"^x-": {}},
        })
    );
    let message = &catalog.warnings().next().unwrap().message;
    assert!(
        message.contains(
            "without `/properties/r/oneOf/0/const`, `/properties/n/not`, `/properties/n/if`, \
             one entry of `/patternProperties` and 1 more of its input schema"
        ),
        "{message}"
    );
    assert!(takes(&catalog, &json!({"r": HEART})));
    assert!(!takes(&catalog, &json!({"n": dirty})));
}

#[test]
fn names_keep_their_spelling_and_are_seen_whole() {
    let decomposed = "Cafe\u{301}";
    let schema = json!({"properties": {decomposed: {"$ref": format!("#/$defs/{decomposed}")}},
        "required": [decomposed], "$defs": {decomposed: {}}});
    let catalog = one(&schema);
    assert_eq!(shown(&catalog), schema);
    let hidden = one(&json!({"required": ["a\u{200b}"]}));
    assert!(hidden.tools().next().is_none());
}

#[test]
fn structured_content_is_checked_against_the_schema_as_received() {
    let tool = json!({"name": "t", "inputSchema": {}, "outputSchema": {"properties": {
        "c": {"const": HEART}, "e": {"enum": [HEART, "x"]}}}});
    let catalog = catalog([offer("s", &[tool])]);
    let tool = catalog.tools().next().unwrap();
    let shown: Value = serde_json::from_str(tool.output_schema.as_ref().unwrap().get()).unwrap();
    // Nothing is promised that may be otherwise.
    assert_eq!(shown, json!({"properties": {"c": {}, "e": {}}}));
    assert!(
        catalog
            .warnings()
            .next()
            .unwrap()
            .message
            .contains("`/properties/c/const`, `/properties/e/enum`")
    );
    let checker = tool.output_checker().unwrap();
    let check = |value: Value| checker.check(&value, ValueSize::of_value(&value));
    assert!(matches!(
        check(json!({"c": HEART, "e": HEART})),
        SchemaVerdict::Fits
    ));
    assert!(matches!(
        check(json!({"c": "\u{2764}"})),
        SchemaVerdict::Violates(_)
    ));
}
