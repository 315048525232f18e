//! Patterns that servers write: which are run, and what is said of the others.

use super::*;

fn with_pattern(pattern: &str) -> Value {
    json!({"properties": {"s": {"pattern": pattern}, "b": {"type": "integer"}}, "required": ["b"]})
}

#[test]
fn patterns_with_unicode_classes_are_run() {
    for (pattern, fits, not) in [
        (r"^\p{L}+$", "Жук", "a1"),
        (r"^\P{L}+$", "12", "a"),
        (r"^[\p{L}\p{N}_-]{1,64}$", "Жук_7", "a b"),
        (r"^[\p{L}\p{N}_-]{1,256}$", "Жук_7", "a b"),
        (r"^\x{41}{2}$", "AA", "A"),
        (r"^[\u0041-\u0043]{2}$", "AC", "AD"),
        (r"^\d\p{Lu}$", "1Ж", "1ж"),
    ] {
        let schema = with_pattern(pattern);
        assert_eq!(
            warning(&schema, &json!({"s": fits, "b": 1})),
            None,
            "{pattern}"
        );
        assert_eq!(
            problems(&schema, &json!({"s": not, "b": 1}))[0].0,
            "/s",
            "{pattern}"
        );
        assert_eq!(
            problems(&schema, &json!({"s": fits, "b": "x"}))[0].0,
            "/b",
            "{pattern}"
        );
    }
}

#[test]
fn a_pattern_that_is_not_run_is_told_with_the_reason_and_the_rest_is_checked() {
    for (pattern, reason) in [
        (r"^(?=.*\d)\w+$", "looks around or refers back"),
        (r"^(a)\1$", "looks around or refers back"),
        (r"^[\p{L}]{1,5000}$", "is too large"),
        (r"^(a{1000}){1000}$", "is too large"),
        ("(", "is no pattern"),
    ] {
        let schema = with_pattern(pattern);
        let told = warning(&schema, &json!({"s": "!", "b": 1})).unwrap();
        assert!(
            told.contains("`/properties/s/pattern` was not checked: "),
            "{told}"
        );
        assert!(told.contains(reason), "{told}");
        assert_eq!(
            problems(&schema, &json!({"s": "!", "b": "x"}))[0].0,
            "/b",
            "{pattern}"
        );
    }
}

#[test]
fn sec_30_many_large_patterns_share_their_memory() {
    let properties: Map<String, Value> = (0..200)
        .map(|index| {
            let pattern = format!(r"^[\p{{L}}]{{1,{}}}$", 60 + index);
            (format!("p{index}"), json!({ "pattern": pattern }))
        })
        .collect();
    let told = warning(&json!({ "properties": properties }), &json!({"p0": 1})).unwrap();
    assert!(told.contains("is too large"), "{told}");
}

#[test]
fn sec_35_what_is_told_of_a_schema_is_clean() {
    let hidden = "\u{202e}\u{200b}";
    for schema in [
        json!({"properties": {"a": {"enum": [format!("x{hidden}y"), "plain"]}}}),
        json!({"properties": {"a": {"pattern": format!("^[^{hidden}]{{0}}q$")}}}),
        json!({"properties": {"a": {"anyOf": [{"enum": [format!("x{hidden}"), "z"]}, {"type": "null"}]}}}),
    ] {
        let told = match SchemaChecker::compile(&serde_json::value::to_raw_value(&schema).unwrap())
            .check(&json!({"a": format!("w{hidden}")}), ValueSize::default())
        {
            SchemaVerdict::Violates(problems) => format!("{problems:?}"),
            _ => panic!("{schema} took it"),
        };
        assert!(!told.contains("202e") && !told.contains("200b"), "{told}");
    }
    // Of what cannot be used as well.
    for schema in [
        json!({"properties": {"a": {"type": format!("any{hidden}")}}}),
        json!({"properties": {"a": {"pattern": format!("({hidden}")}}}),
        json!({"properties": {"a": {"patternProperties": {format!("({hidden}"): true}}}}),
    ] {
        let checker = SchemaChecker::compile(&serde_json::value::to_raw_value(&schema).unwrap());
        let told = format!("{:?}", checker.gap().unwrap());
        assert!(!told.contains("202e") && !told.contains("200b"), "{told}");
    }
}

#[test]
fn a_pattern_of_a_property_with_the_name_of_a_keyword_is_told_with_the_reason() {
    for name in ["default", "const", "examples"] {
        let schema = json!({"properties": {name: {"pattern": r"^(?=.*\d)\w+$"}}});
        let told = warning(&schema, &json!({})).unwrap();
        assert!(told.contains("looks around or refers back"), "{told}");
    }
}
