//! The rules of every target, checked on what was exported, for schemas of any kind.

use super::*;

/// No export is larger, whatever comes in.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Exports a schema and checks it against its target's rules.
pub(super) fn check(target: ExportTarget, schema: &Value) {
    let (made, _) = input_schema(target, schema);
    let text = made.as_ref().map(Value::to_string).unwrap_or_default();
    assert!(text.len() < MAX_BYTES, "{target:?}: {} bytes", text.len());
    match (target, made) {
        (ExportTarget::Gemini, None) => {}
        (ExportTarget::Gemini, Some(made)) => {
            assert_eq!(made["type"], "OBJECT", "{made}");
            gemini(&made, 0);
        }
        (_, made) => {
            let made = made.unwrap();
            assert_eq!(made["type"], "object", "{made}");
            assert!(
                jsonschema::draft202012::meta::is_valid(&made),
                "{target:?}: {made}"
            );
            let refused: &[&str] = if target == ExportTarget::Anthropic {
                &["allOf", "anyOf", "oneOf"]
            } else {
                &["allOf", "anyOf", "oneOf", "enum", "const", "not"]
            };
            references_lead_somewhere(&made, &made);
            for keyword in refused {
                assert!(made.get(*keyword).is_none(), "{target:?}: {made}");
            }
            if target == ExportTarget::Anthropic {
                let properties = made.get("properties").and_then(Value::as_object);
                for key in properties.into_iter().flat_map(|map| map.keys()) {
                    assert!(is_anthropic_key(key), "{key}");
                }
            } else {
                assert!(made["properties"].is_object(), "{made}");
                arrays_have_items(&made);
            }
        }
    }
}

/// Written anew, and looking further than the exporter: into unknown keywords as well.
fn references_lead_somewhere(whole: &Value, schema: &Value) {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            for item in items {
                references_lead_somewhere(whole, item);
            }
            return;
        }
        _ => return,
    };
    if let Some(reference) = members.get("$ref") {
        let reference = reference.as_str().expect("a text");
        let pointer = reference.strip_prefix('#').expect("a local reference");
        let pointer = pointer.replace("%24", "$").replace("%20", " ");
        let found = whole.pointer(&pointer);
        assert!(found.is_some(), "`{reference}` in {whole}");
    }
    for keyword in ["$schema", "$id", "$anchor", "$dynamicRef"] {
        assert!(whole.get(keyword).is_none(), "{whole}");
    }
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("const" | "enum" | "default" | "examples" | "$ref", _) => {}
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(inner),
            ) => {
                for one in inner.values() {
                    references_lead_somewhere(whole, one);
                }
            }
            (_, value) => references_lead_somewhere(whole, value),
        }
    }
}

fn arrays_have_items(schema: &Value) {
    let takes_arrays = match &schema["type"] {
        Value::Array(words) => words.contains(&json!("array")),
        word => word == "array",
    };
    assert!(!takes_arrays || schema.get("items").is_some(), "{schema}");
    for keyword in ["items", "not", "additionalProperties"] {
        if let Some(inner) = schema.get(keyword) {
            arrays_have_items(inner);
        }
    }
    for keyword in ["properties", "$defs"] {
        if let Some(inner) = schema.get(keyword).and_then(Value::as_object) {
            inner.values().for_each(arrays_have_items);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(inner) = schema.get(keyword).and_then(Value::as_array) {
            inner.iter().for_each(arrays_have_items);
        }
    }
}

/// Gemini's `Schema`, by the rules in `gemini.rs`, written anew.
fn gemini(schema: &Value, depth: usize) {
    assert!(depth < 64, "too deep");
    let members = schema.as_object().expect("an object");
    if let Some(any) = members.get("anyOf") {
        assert_eq!(members.len(), 1, "{schema}");
        let any = any.as_array().expect("a list");
        assert!(any.len() > 1, "{schema}");
        for one in any {
            assert!(one.get("anyOf").is_none(), "{schema}");
            gemini(one, depth + 1);
        }
        return;
    }
    let kind = members["type"].as_str().expect("one word");
    let allowed: &[&str] = match kind {
        "STRING" => &["enum", "format", "pattern", "minLength", "maxLength"],
        "INTEGER" | "NUMBER" => &["format", "minimum", "maximum"],
        "BOOLEAN" => &[],
        "ARRAY" => &["items", "minItems", "maxItems"],
        "OBJECT" => &["properties", "required"],
        other => panic!("{other}"),
    };
    for key in members.keys() {
        let known = ["type", "description", "nullable"].contains(&key.as_str())
            || allowed.contains(&key.as_str());
        assert!(known, "`{key}` in {schema}");
    }
    if let Some(format) = members.get("format") {
        let known: &[&str] = match kind {
            "STRING" => &["enum", "date-time"],
            "INTEGER" => &["int32", "int64"],
            _ => &["float", "double"],
        };
        assert!(known.iter().any(|one| format == one), "{schema}");
    }
    if let Some(values) = members.get("enum") {
        let values = values.as_array().expect("a list");
        assert!(!values.is_empty());
        for value in values {
            assert!(
                value.as_str().is_some_and(|text| !text.is_empty()),
                "{schema}"
            );
        }
    }
    for count in ["minLength", "maxLength", "minItems", "maxItems"] {
        assert!(members.get(count).is_none_or(Value::is_u64), "{schema}");
    }
    for limit in ["minimum", "maximum"] {
        assert!(members.get(limit).is_none_or(Value::is_number), "{schema}");
    }
    if let Some(text) = members.get("description") {
        assert!(
            text.as_str().is_some_and(|text| !text.is_empty()),
            "{schema}"
        );
    }
    match kind {
        "ARRAY" => gemini(&members["items"], depth + 1),
        "OBJECT" => {
            let properties = members["properties"].as_object().expect("an object");
            assert!(!properties.is_empty(), "{schema}");
            for (name, inner) in properties {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let starts = name.starts_with(|c: char| plain(c) && !c.is_ascii_digit());
                assert!(
                    starts && name.len() <= 64 && name.chars().all(plain),
                    "{name}"
                );
                gemini(inner, depth + 1);
            }
            if let Some(required) = members.get("required") {
                let required = required.as_array().expect("a list");
                assert!(!required.is_empty());
                for name in required {
                    assert!(properties.contains_key(name.as_str().unwrap()), "{schema}");
                }
            }
        }
        _ => {}
    }
}

/// Values as keywords might have them, right or wrong.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        proptest::sample::select(vec![
            "string",
            "array",
            "object",
            "null",
            "any",
            "date-time",
            "int64",
            "#",
            "#/$defs/a",
            "#/properties/b",
            "#/properties/a/b",
            "#/anyOf/0",
            "#/allOf/0/properties/a",
            "#/a",
            "#/const",
            "#a",
            "#/%24defs/a",
            "#/%",
            "http://else.where/x",
            "",
            "é\u{200b}",
        ])
        .prop_map(Value::from),
    ]
}

fn keyword() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalItems",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "enum",
        "const",
        "default",
        "title",
        "description",
        "format",
        "pattern",
        "minimum",
        "exclusiveMinimum",
        "multipleOf",
        "minItems",
        "maxLength",
        "$ref",
        "$defs",
        "$id",
        "$anchor",
        "$schema",
        "additionalProperties",
        "nullable",
        "dependencies",
        "dependentRequired",
        "patternProperties",
        "if",
        "$recursiveRef",
        "uniqueItems",
    ])
    .prop_map(str::to_owned);
    prop_oneof![9 => known, 3 => "[ab]", 1 => "\\PC{0,3}"]
}

/// Anything that looks like a schema from afar.
fn schema() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 96, 6, |inner| {
        prop_oneof![
            4 => proptest::collection::vec((keyword(), inner.clone()), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => proptest::collection::vec(inner, 0..4).prop_map(Value::Array),
        ]
    })
}

/// A schema as servers mean it: keywords with values of the right kind.
fn sound() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "string", "enum": ["a", "", "b"]})),
        Just(json!({"type": ["integer", "null"], "exclusiveMinimum": 1})),
        Just(json!({"const": {"a": 1}})),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({"$ref": "#"})),
        "#/(any|one|all)Of/[01](/properties/(a|b|%20)){0,1}".prop_map(|at| json!({"$ref": at})),
        "#/properties/([ab]|%20)(/(items|anyOf/0)){0,1}".prop_map(|at| json!({"$ref": at})),
        Just(json!({"type": "null", "description": "Nothing."})),
        Just(json!({"type": "array"})),
    ];
    leaf.prop_recursive(6, 64, 4, |inner| {
        let list = proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            proptest::collection::btree_map("[ab$ -]{1,2}", inner.clone(), 0..4)
                .prop_map(|map| json!({"type": "object", "properties": map, "required": ["a"]})),
            inner
                .clone()
                .prop_map(|one| json!({"type": "array", "items": one})),
            (
                proptest::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]),
                list
            )
                .prop_map(|(keyword, list)| json!({keyword: list, "description": "d"})),
            (inner.clone(), inner).prop_map(|(one, other)| json!({
                "properties": {"b": one}, "anyOf": [{"required": ["b"]}, other],
                "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}}
            })),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_becomes_a_schema_its_target_takes(schema in schema()) {
        for target in ExportTarget::ALL {
            check(target, &schema);
        }
    }

    #[test]
    fn any_sound_schema_becomes_one_its_target_takes(schema in sound()) {
        for target in ExportTarget::ALL {
            check(target, &schema);
        }
    }

    /// Nothing is required of a model that the server does not require.
    #[test]
    fn what_the_server_takes_without_an_argument_can_be_said_without_it(
        schema in sound(),
        a in proptest::option::of(scalar()),
        b in proptest::option::of(scalar()),
    ) {
        let given = [("a", a), ("b", b)];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let arguments = Value::Object(given.collect());
        let takes = jsonschema::draft202012::new(&schema)
            .is_ok_and(|schema| schema.is_valid(&arguments));
        if takes {
            for target in ExportTarget::ALL {
                let made = parameters(target, &schema);
                let required = made.get("required").and_then(Value::as_array);
                for name in required.into_iter().flatten().filter_map(Value::as_str) {
                    prop_assert!(
                        arguments.get(name).is_some(),
                        "{:?}: {} became {}", target, schema, made
                    );
                }
            }
        }
    }
}
