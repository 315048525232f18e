//! One part of a schema that cannot be used: the rest still is, and nothing more is refused.

use proptest::prelude::*;
use serde_json::value::to_raw_value;

use super::*;
use crate::json_schema::{compile, repair as surgery};

/// A schema with an integer `b` beside the unusable property `a`.
fn beside(a: &Value) -> Value {
    json!({"type": "object", "properties": {"a": a, "b": {"type": "integer"}}})
}

#[test]
fn the_rest_of_a_schema_with_an_unusable_part_is_checked() {
    for (part, place) in [
        (json!({"pattern": "^(?!x)"}), "/properties/a/pattern"),
        (json!({"type": "any"}), "/properties/a/type"),
        (
            json!({"type": "object", "required": true}),
            "/properties/a/required",
        ),
        (
            json!({"$ref": "http://h.example/s.json"}),
            "/properties/a/$ref",
        ),
        (json!({"$ref": "#/$defs/absent"}), "/properties/a/$ref"),
        (json!("string"), "/properties/a"),
        (json!({"items": [{}]}), "/properties/a/items"),
        (
            json!({"items": {"type": "any"}}),
            "/properties/a/items/type",
        ),
        (json!({"not": {"type": "any"}}), "/properties/a/not"),
        (
            json!({"if": {"pattern": "("}, "then": false}),
            "/properties/a/if",
        ),
        (
            json!({"patternProperties": {"(": {}}, "additionalProperties": false}),
            "/properties/a/patternProperties/(",
        ),
    ] {
        let schema = beside(&part);
        let told = warning(&schema, &json!({"a": {"z": 1}, "b": 1})).unwrap();
        assert!(
            told.starts_with(&format!(
                "the arguments of `t` were checked in part only: `{place}` was not checked: "
            )),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1);
        assert_eq!(
            problems(&schema, &json!({"a": {"z": 1}, "b": "x"})),
            [(
                "/b".to_owned(),
                "value is not of type \"integer\"".to_owned()
            )],
            "{part}"
        );
    }
    // What is beside the unusable keyword is checked too.
    let schema = beside(&json!({"type": "string", "required": true}));
    assert_eq!(problems(&schema, &json!({"a": 1}))[0].0, "/a");
}

#[test]
fn limits_as_draft_04_wrote_them_are_checked() {
    let schema = beside(
        &json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
    );
    for (value, fits) in [(0, false), (1, false), (2, true), (9, true), (10, false)] {
        let arguments = json!({ "a": value });
        if fits {
            assert_eq!(warning(&schema, &arguments), None);
        } else {
            assert_eq!(problems(&schema, &arguments)[0].0, "/a", "{value}");
        }
    }
}

#[test]
fn every_draft_is_repaired_in_its_own_terms() {
    let deep = |dialect: &str| {
        json!({"$schema": dialect, "properties": {
            "a": {"items": {"properties": {"x": {"type": "any"}, "y": {"type": "string"}}}}}})
    };
    for dialect in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
        // Not known: read as 2020-12.
        "http://json-schema.org/draft-03/schema#",
        "https://example.com/mine",
    ] {
        let told = warning(&deep(dialect), &json!({"a": [{"x": 1}]})).unwrap();
        assert!(
            told.contains("`/properties/a/items/properties/x/type`"),
            "{told}"
        );
        assert_eq!(
            problems(&deep(dialect), &json!({"a": [{"y": 1}]}))[0].0,
            "/a/0/y"
        );
    }
    // Up to draft-07 nothing beside a `$ref` counts, and nothing does when it is gone.
    let alone = json!({"$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "http://h.example/s.json", "type": "string"}}});
    assert!(warning(&alone, &json!({"a": 1})).is_some());
    let alone = json!({"$schema": "http://json-schema.org/draft-03/schema#",
        "properties": {"a": {"$ref": "#/definitions/d", "type": "string"}}, "definitions": {"d": {}}});
    assert!(warning(&alone, &json!({"a": 1})).is_some());
}

#[test]
fn a_schema_of_draft_03_is_checked_however_many_properties_it_has() {
    let properties: Map<String, Value> = (0..50)
        .map(|index| {
            (
                format!("p{index}"),
                json!({"type": "string", "required": true}),
            )
        })
        .collect();
    let schema = json!({ "properties": properties });
    let told = warning(&schema, &json!({"p1": "x"})).unwrap();
    assert!(told.ends_with("; 46 more parts were not"), "{told}");
    assert_eq!(problems(&schema, &json!({"p49": 1}))[0].0, "/p49");
}

#[test]
fn a_value_with_the_words_of_references_takes_nothing_out() {
    let schema = json!({
        "properties": {
            "a": {"type": "integer"},
            "b": {"default": {"$id": "x"}, "enum": [{"$ref": "#/nowhere"}, {"$id": "x"}]},
        },
        "examples": [{"b": {"$ref": "elsewhere"}}],
    });
    assert_eq!(warning(&schema, &json!({"a": 1})), None);
    assert_eq!(problems(&schema, &json!({"a": "1"}))[0].0, "/a");
    assert_eq!(problems(&schema, &json!({"b": 1}))[0].0, "/b");
}

#[test]
fn repairs_are_bounded() {
    let broken = |count: usize| {
        let properties: Map<String, Value> = (0..count)
            .map(|index| {
                (
                    format!("p{index}"),
                    json!({"type": "string", "minLength": "x"}),
                )
            })
            .collect();
        json!({ "properties": properties })
    };
    assert_eq!(problems(&broken(16), &json!({"p1": 1}))[0].0, "/p1");
    let told = warning(&broken(17), &json!({"p1": 1})).unwrap();
    assert!(
        told.contains("were not checked: its schema cannot be used: `/properties/p0/minLength`"),
        "{told}"
    );
}

#[test]
fn what_a_definition_loses_does_not_turn_into_a_refusal() {
    let bad = json!({"pattern": "(?=x)"});
    for using in [
        json!({"not": {"$ref": "#/$defs/d"}}),
        json!({"oneOf": [{"$ref": "#/$defs/d"}, {"type": "string"}]}),
        json!({"if": {"$ref": "#/$defs/d"}, "then": false}),
        json!({"contains": {"$ref": "#/$defs/d"}, "maxContains": 0}),
        json!({"allOf": [{"$ref": "#/$defs/e"}], "unevaluatedProperties": false}),
        json!({"contains": {"$ref": "#/$defs/d"}, "unevaluatedItems": false}),
    ] {
        let schema = json!({"properties": {"a": using}, "$defs": {
            "d": bad, "e": {"$ref": "http://h.example/e"}}});
        for value in [json!("text"), json!(["text"]), json!({"p": 1})] {
            assert!(
                warning(&schema, &json!({ "a": value })).is_some(),
                "{schema}"
            );
        }
    }
}

/// A schema in which every keyword that turns, counts or refers can occur.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!(false)),
        prop_oneof![
            Just("string"),
            Just("integer"),
            Just("object"),
            Just("array")
        ]
        .prop_map(|kind| json!({ "type": kind })),
        Just(json!({"pattern": "^a"})),
        Just(json!({"minimum": 2})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": 1})),
        Just(json!({"required": ["a"]})),
        Just(json!({"minItems": 1})),
        Just(json!({"$ref": "#/$defs/d"})),
        Just(json!({"$ref": "#/$defs/e"})),
    ];
    let word = || {
        prop_oneof![
            Just("not"),
            Just("if"),
            Just("then"),
            Just("else"),
            Just("contains"),
            Just("items"),
            Just("additionalProperties"),
            Just("unevaluatedProperties"),
            Just("unevaluatedItems"),
            Just("propertyNames"),
        ]
    };
    let list = || {
        prop_oneof![
            Just("allOf"),
            Just("anyOf"),
            Just("oneOf"),
            Just("prefixItems")
        ]
    };
    let map = || {
        prop_oneof![
            Just("properties"),
            Just("patternProperties"),
            Just("dependentSchemas")
        ]
    };
    leaf.prop_recursive(4, 24, 4, move |inner| {
        (
            inner.clone(),
            prop::collection::vec((word(), inner.clone()), 0..3),
            prop::collection::vec((list(), prop::collection::vec(inner.clone(), 1..3)), 0..2),
            prop::collection::vec((map(), inner, prop_oneof![Just("a"), Just("b")]), 0..2),
            prop::option::of(0..3_u8),
        )
            .prop_map(|(base, words, lists, maps, most)| {
                let mut members = base.as_object().cloned().unwrap_or_default();
                for (key, part) in words {
                    members.insert(key.to_owned(), part);
                }
                for (key, parts) in lists {
                    members.insert(key.to_owned(), json!(parts));
                }
                for (key, part, name) in maps {
                    members.insert(key.to_owned(), json!({ name: part }));
                }
                if let Some(most) = most {
                    members.insert("maxContains".to_owned(), json!(most));
                }
                Value::Object(members)
            })
    })
}

fn whole() -> impl Strategy<Value = Value> {
    (schema(), schema(), schema()).prop_map(|(root, d, e)| {
        let mut root = root.as_object().cloned().unwrap_or_default();
        root.insert("$defs".to_owned(), json!({"d": d, "e": e}));
        Value::Object(root)
    })
}

fn instance() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!("a")),
        Just(json!("b")),
        (0..4).prop_map(|number| json!(number)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| json!(items)),
            prop::collection::vec((prop_oneof![Just("a"), Just("b"), Just("c")], inner), 0..3)
                .prop_map(|members| members
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect()),
        ]
    })
}

/// Every place of a schema, as a pointer.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    let mut deeper = |step: &str, member: &Value| {
        let there = format!("{here}/{step}");
        places(member, &there, found);
        found.push(there);
    };
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, item)| deeper(&index.to_string(), item)),
        Value::Object(members) => members.iter().for_each(|(key, member)| deeper(key, member)),
        _ => {}
    }
}

fn compiled(schema: &Value) -> Option<compile::Compiled> {
    compile::compile(&to_raw_value(schema).unwrap()).ok()
}

proptest! {
    /// Takes any part out of a schema that can be used: what it took, it still takes.
    #[test]
    fn a_repaired_schema_refuses_nothing_that_the_whole_one_takes(
        schema in whole(),
        at in any::<prop::sample::Index>(),
        values in prop::collection::vec(instance(), 12),
    ) {
        let Some(before) = compiled(&schema).filter(|compiled| compiled.gap.is_none()) else {
            return Ok(());
        };
        prop_assert!(surgery::leads_to_schemas(&schema));
        let mut all = Vec::new();
        places(&schema, "", &mut all);
        let place = at.get(&all);
        let mut less = schema.clone();
        surgery::take_out(&mut less, &surgery::SchemaPath::parse(place)).unwrap();
        let Some(after) = compiled(&less) else {
            return Ok(());
        };
        for value in &values {
            if before.validator.is_valid(value) {
                prop_assert!(
                    after.validator.is_valid(value),
                    "{schema} took {value}; without {place} it is {less}"
                );
            }
        }
    }

    /// Puts something unusable into any object of a usable schema: what it took, it still takes.
    #[test]
    fn an_unusable_keyword_refuses_nothing(
        schema in whole(),
        at in any::<prop::sample::Index>(),
        bad in prop_oneof![
            Just(("pattern", json!("(?=x)"))),
            Just(("type", json!("any"))),
            Just(("required", json!(true))),
            Just(("format", json!(7))),
        ],
        values in prop::collection::vec(instance(), 12),
    ) {
        let Some(before) = compiled(&schema).filter(|compiled| compiled.gap.is_none()) else {
            return Ok(());
        };
        let mut all = vec![String::new()];
        places(&schema, "", &mut all);
        all.retain(|place| schema.pointer(place).is_some_and(Value::is_object));
        let mut worse = schema.clone();
        let (keyword, value) = bad;
        if let Some(Value::Object(members)) = worse.pointer_mut(at.get::<String>(&all))
            && !members.contains_key(keyword)
        {
            members.insert(keyword.to_owned(), value);
        }
        let Some(after) = compiled(&worse) else {
            return Ok(());
        };
        for value in &values {
            if before.validator.is_valid(value) {
                prop_assert!(after.validator.is_valid(value), "{schema} took {value}; not so {worse}");
            }
        }
    }
}
