//! Outlines: every kind, every bound, and nothing that panics.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn text(value: &Value) -> String {
    outline(&value.to_string()).unwrap().text
}

#[test]
fn every_kind_has_its_word() {
    for (value, wanted) in [
        (json!(null), "null"),
        (json!([1, "a", null]), "[number | string | null]"),
        (json!([]), "[]"),
        (json!({}), "{}"),
        (json!({"a b": true}), r#"{"a b": boolean}"#),
        (
            json!([{"id": 1}, {"id": "x", "n": 2.5}]),
            "[{id: number | string, n?: number}]",
        ),
        (json!([[1], ["a"], []]), "[[number | string]]"),
        (
            json!({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}),
            "{a: {b: {c: {d: {e: …}}}}}",
        ),
        (
            json!([1, {"a": 1}, [2], {"b": 1}]),
            "[number | {a?: number, b?: number} | [number]]",
        ),
    ] {
        assert_eq!(text(&value), wanted, "{value}");
    }
    assert_eq!(
        outline(r#"{"a": 1, "a": "x"}"#).unwrap().text,
        "{a: string}"
    );
}

#[test]
fn more_of_the_same_does_not_change_the_shape() {
    let kinds = r#"[1, "a", null, true]"#;
    let one = outline(&format!("[{kinds}]")).unwrap().text;
    assert_eq!(one, "[[number | string | null | boolean]]");
    assert_eq!(outline(&format!("[{kinds}, {kinds}]")).unwrap().text, one);
}

#[test]
fn the_last_of_two_equal_fields_counts_behind_the_widest_object_too() {
    let fields: Vec<String> = (0..14).map(|n| format!(r#""f{n}": []"#)).collect();
    let found = outline(&format!(r#"{{{}, "f0": [1, 2]}}"#, fields.join(", "))).unwrap();
    assert_eq!(found.longest, Some((".f0".to_owned(), 2)));
    assert!(
        found.text.starts_with("{f0: [number], f1: []"),
        "{}",
        found.text
    );
}

#[test]
fn what_is_not_json_has_none() {
    for other in ["", "{", "[1,]", "{} {}", "hello", "{\"a\": \"\\ud800\"}"] {
        assert_eq!(outline(other), None, "{other}");
    }
    assert_eq!(outline_lines("{\"a\": 1}\nno\n"), None);
    assert_eq!(outline_lines("{\"a\": 1}\n"), None);
    assert_eq!(outline_lines("1\n2\n"), None);
    let lines = outline_lines("{\"a\": 1}\n\n{\"b\": \"x\"}\n").unwrap();
    assert_eq!(lines.text, "{a?: number, b?: string}");
}

#[test]
fn width_and_length_are_bounded() {
    let wide: serde_json::Map<String, Value> =
        (0..500).map(|n| (format!("field_{n}"), json!(n))).collect();
    let found = text(&Value::Object(wide.clone()));
    assert!(found.ends_with("field_11: number, …}"), "{found}");
    // Wide at every level.
    let mut value = Value::Object(wide);
    for _ in 0..2 {
        value = (0..12)
            .map(|n| (format!("{n}{}", "k".repeat(200)), value.clone()))
            .collect();
    }
    let found = text(&value);
    let chars = found.chars().count();
    assert!((MAX_CHARS - 60..=MAX_CHARS).contains(&chars), "{chars}");
    assert!(found.ends_with('…'));
}

#[test]
fn the_longest_array_is_named_only_by_plain_names() {
    let way = |value: Value| outline(&value.to_string()).unwrap().longest;
    let some = |way: &str, len| Some((way.to_owned(), len));
    assert_eq!(
        way(json!({"a": [1], "b": {"c": [1, 2, 3]}})),
        some(".b.c", 3)
    );
    assert_eq!(way(json!([1, 2])), some(".", 2));
    assert_eq!(
        way(json!({"x'; rm -rf ~ #": [1, 2], "ok": [1]})),
        some(".ok", 1)
    );
    assert_eq!(way(json!({"$(id)": [1, 2]})), None);
}

#[test]
fn a_servers_names_are_cleaned() {
    let found = text(&json!({"a\u{202e}\u{1b}[31mb\n": 1}));
    assert!(!found.contains(['\u{202e}', '\u{1b}', '\n']), "{found:?}");
}

#[test]
fn deep_and_long_texts_are_read_in_linear_time() {
    let start = Instant::now();
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(outline(&deep).unwrap().text, "[[[[[…]]]]]");
    let many = format!("[{}1]", "{\"a\":[1,2,3]},".repeat(200_000));
    assert_eq!(outline(&many).unwrap().longest, Some((".".into(), 200_001)));
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

proptest! {
    #[test]
    fn any_text_has_an_outline_or_none(text in "[\\[\\]{}\",:0-9a-e.\\\\\n -]{0,60}|.{0,60}") {
        if let Some(found) = outline(&text) {
            prop_assert!(found.text.chars().count() <= MAX_CHARS);
            prop_assert!(serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }
        let _ = outline_lines(&text);
    }

    #[test]
    fn any_names_and_depths_stay_in_bounds(
        names in prop::collection::vec(".{0,80}", 1..16),
        depth in 0_usize..7,
    ) {
        let mut value = json!([]);
        for _ in 0..depth {
            value = names.iter().take(2).map(|name| (name.clone(), value.clone())).collect();
        }
        let value: Value = names.iter().map(|name| (name.clone(), value.clone())).collect();
        let found = outline(&value.to_string()).unwrap();
        prop_assert!(found.text.chars().count() <= MAX_CHARS);
        let acts = found.text.chars().any(char::is_control);
        prop_assert!(!acts);
        let way = found.longest.map(|(way, _)| way).unwrap_or_default();
        prop_assert!(way.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c)));
    }
}
