//! Filters: what they give, what is wrong with them and where, and that none gets out of hand.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn select(filter: &str, value: &Value) -> Result<Vec<Value>, String> {
    let projection: Projection = filter
        .parse()
        .map_err(|fault: ProjectionError| fault.to_string())?;
    projection.apply(value).map_err(|fault| fault.to_string())
}

#[test]
fn every_operation_gives_what_jq_gives() {
    let value = json!({
        "items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}, {"id": 3}],
        "odd name": {"größe": 7},
        "text": "grün und blau",
        "none": null,
    });
    for (filter, wanted) in [
        (".", vec![value.clone()]),
        (".items[].id", vec![json!(1), json!(2), json!(3)]),
        (".items | .[] | .id", vec![json!(1), json!(2), json!(3)]),
        (r#"."odd name".größe"#, vec![json!(7)]),
        (r#".["odd name"]["größe"]"#, vec![json!(7)]),
        (r#"."odd\u0020name".größe"#, vec![json!(7)]),
        (".items[0].id, .items[-1].id", vec![json!(1), json!(3)]),
        (".items[9]", vec![Value::Null]),
        (".items[-9].id", vec![Value::Null]),
        (".items[1:].[].id", vec![json!(2), json!(3)]),
        (".items[:-2][].id", vec![json!(1)]),
        (".items[2:1]", vec![json!([])]),
        (".text[5:8]", vec![json!("und")]),
        (".absent.deeper[0]", vec![Value::Null]),
        (".items[].tags[]?", vec![json!("a"), json!("b")]),
        (".text[]?", vec![]),
        ("[.items[] | .id]", vec![json!([1, 2, 3])]),
        (
            ".items[0] | {id, first: .tags[0]}",
            vec![json!({"id": 1, "first": "a"})],
        ),
        (
            ".items[0] | {id, tag: .tags[]}",
            vec![json!({"id": 1, "tag": "a"}), json!({"id": 1, "tag": "b"})],
        ),
        (
            r#"{"odd name", n: .items | .[0].id}"#,
            vec![json!({"odd name": {"größe": 7}, "n": 1})],
        ),
        (
            "(.items, .none) | .[0]?",
            vec![json!({"id": 1, "tags": ["a", "b"]}), Value::Null],
        ),
        ("{}", vec![json!({})]),
    ] {
        assert_eq!(select(filter, &value), Ok(wanted), "{filter}");
    }
}

#[test]
fn a_fault_is_told_with_its_column() {
    for (filter, wanted) in [
        ("", "column 1: a filter is missing, e.g. `.items[].id`"),
        ("items", "column 1: a field begins with a dot: `.items`"),
        (".items[", "column 8: `]` is missing after `[`"),
        (".items[1", "column 9: `]` is missing after what `[` began"),
        (
            ".items[x]",
            "column 8: a number, `from:to`, a name in quotes or `]` expected after `[`, not `x`",
        ),
        (".items[:]", "column 9: a number is missing, e.g. `[2:5]`"),
        (".a.", "column 4: the name of a field is missing"),
        (".a | ", "column 6: a filter is missing, e.g. `.items[].id`"),
        (
            ".a | length",
            "column 6: a field begins with a dot: `.length`",
        ),
        (".a)", "column 3: `)` does not belong here"),
        (
            "..",
            "column 2: `..` is not known here: name the way instead",
        ),
        ("$ENV", "column 1: variables are not known here"),
        (".ä.\"b", "column 4: the quote is never closed"),
        (".\"\\x\"", "column 2: the name in quotes is no JSON text"),
        ("{a", "column 3: `}` is missing after what `{` began"),
        ("{1}", "column 2: the name of a field expected, not `1`"),
        (
            ".[99999999999999999999]",
            "column 3: `99999999999999999999` is no number that counts elements",
        ),
        (".[-]", "column 3: `-` is no number that counts elements"),
    ] {
        let fault = filter.parse::<Projection>().unwrap_err();
        assert_eq!(fault.to_string(), wanted, "{filter}");
    }
}

#[test]
fn a_filter_that_does_not_fit_is_told_with_its_column() {
    let value = json!({"items": [{"id": 1}], "n": 5});
    for (filter, wanted) in [
        (
            ".items.id",
            "column 7: an array has no field `id`; for that of every element write `[].id`",
        ),
        (".n.id", "column 3: a number has no field `id`"),
        (".n[0]", "column 3: a number has no elements"),
        (
            ".n[]",
            "column 3: `[]` wants an array or an object, not a number",
        ),
        (".n[1:2]", "column 3: a number cannot be sliced"),
        (
            ".items[] | .id | .deep",
            "column 18: a number has no field `deep`",
        ),
    ] {
        assert_eq!(select(filter, &value), Err(wanted.to_owned()), "{filter}");
    }
}

#[test]
fn no_filter_multiplies_without_end() {
    let value = json!({"a": [1, 2, 3], "text": "x".repeat(100_000)});
    let start = Instant::now();
    for step in [
        ".,.",
        "[.,.]",
        "{a: ., b: .}",
        ".[]?,.",
        "{x: (.,.)}",
        "[.,.]?",
    ] {
        let filter = vec![step; 60].join(" | ");
        let error = select(&filter, &value).unwrap_err();
        assert!(
            error.ends_with("gives far more than the value holds"),
            "{step}: {error}"
        );
    }
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn filters_are_bounded_in_length_and_nesting() {
    for filter in [
        "(".repeat(4_000),
        "[".repeat(MAX_DEPTH + 1),
        "{a:".repeat(MAX_DEPTH + 1),
        format!(".{}", "a".repeat(MAX_LENGTH)),
        ".a".repeat(1_000),
        ".[0]".repeat(1_000),
        format!(".{}", "?".repeat(4_000)),
        ".|".repeat(1_000) + ".",
    ] {
        assert!(filter.parse::<Projection>().is_err());
    }
    let deep = format!("{}.{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(select(&deep, &json!(1)).is_ok());
}

#[test]
fn texts_are_lines_as_they_are_and_the_rest_is_json() {
    let values = [json!("a b"), json!(1), json!({"k": [null]}), json!("")];
    assert_eq!(lines(&values), "a b\n1\n{\"k\":[null]}\n\n");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_a_fault_inside_it(filter in "[.\\[\\]{}()|,:?\"ab0-9 \\\\-]{0,40}|.{0,20}") {
        if let Err(fault) = filter.parse::<Projection>() {
            prop_assert!((1..=filter.chars().count() + 2).contains(&fault.column), "{fault}");
        }
    }

    #[test]
    fn a_filter_that_was_understood_ends_with_bounded_work(
        filter in "[.\\[\\]{}()|,:?ab0-3]{0,30}",
        value in any_value(),
    ) {
        if let Ok(projection) = filter.parse::<Projection>() {
            let given = projection.apply(&value);
            prop_assert_eq!(&given, &projection.apply(&value));
            for one in given.iter().flatten() {
                prop_assert!(serde_json::to_string(one).is_ok());
            }
        }
    }
}
