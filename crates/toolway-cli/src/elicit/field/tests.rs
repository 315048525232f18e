//! What is expected of each kind of field, and what becomes of a line.

use serde_json::json;

use super::*;
use crate::screen::{Letters, Screen};

fn asked(field: &Field) -> String {
    let mut sheet = Screen::new(None, Letters::Any).sheet();
    field.question(&mut sheet);
    sheet.finish()
}

/// What the prompt offers, and the row above it.
fn offered(field: &Field) -> (String, String) {
    let mut sheet = Screen::new(None, Letters::Any).sheet();
    let offer = field.offer(&mut sheet);
    (offer, sheet.finish())
}

fn field(property: &Value) -> Field {
    Field::read("it", property, true)
}

fn read(property: &Value, line: &str) -> Result<Option<Value>, String> {
    field(property).read_line(line)
}

#[test]
fn each_kind_says_what_it_expects() {
    for (property, expected) in [
        (json!({ "type": "string" }), "text"),
        (
            json!({ "type": "string", "minLength": 3, "maxLength": 10, "pattern": "^[a-z]+$" }),
            "text, 3 to 10 characters, matching ^[a-z]+$",
        ),
        (
            json!({ "type": "string", "format": "email" }),
            "an e-mail address",
        ),
        (
            json!({ "type": "integer", "minimum": 1, "maximum": 100 }),
            "a whole number, 1 to 100",
        ),
        (
            json!({ "type": "number", "minimum": 0.5 }),
            "a number, at least 0.5",
        ),
        (json!({ "type": "boolean" }), "yes or no"),
        (json!({ "type": "object" }), "a value in JSON"),
    ] {
        assert_eq!(field(&property).expected(), expected);
    }
}

#[test]
fn a_line_becomes_a_value_of_the_fields_type() {
    for (property, line, value) in [
        (json!({ "type": "string" }), " hi there ", json!("hi there")),
        (json!({ "type": "string" }), "\"\"", json!("")),
        (json!({ "type": "integer" }), "-7", json!(-7)),
        (json!({ "type": "number" }), "2.5", json!(2.5)),
        (json!({ "type": "number" }), "3", json!(3)),
        (json!({ "type": "boolean" }), "Y", json!(true)),
        (json!({ "type": "boolean" }), "no", json!(false)),
        (
            json!({ "type": "string", "format": "date" }),
            "2028-02-29",
            json!("2028-02-29"),
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            "2026-01-31T12:00:00.5+02:00",
            json!("2026-01-31T12:00:00.5+02:00"),
        ),
        (json!({ "type": "object" }), "{\"a\":1}", json!({ "a": 1 })),
    ] {
        assert_eq!(read(&property, line), Ok(Some(value)), "{property}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    for (property, line, word) in [
        (json!({ "type": "string", "minLength": 3 }), "hi", "3"),
        (json!({ "type": "string", "pattern": "^a" }), "b", "^a"),
        (
            json!({ "type": "string", "format": "email" }),
            "me",
            "e-mail",
        ),
        (
            json!({ "type": "string", "format": "uri" }),
            "x y",
            "address",
        ),
        (
            json!({ "type": "string", "format": "date" }),
            "2026-02-29",
            "date",
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            "2026-01-31T25:00:00Z",
            "time",
        ),
        (json!({ "type": "integer", "maximum": 9 }), "10", "9"),
        (json!({ "type": "integer" }), "1.5", "whole number"),
        (json!({ "type": "number" }), "NaN", "number"),
        (json!({ "type": "boolean" }), "maybe", "yes"),
        (
            json!({ "type": "string", "enum": ["a", "b"] }),
            "c",
            "choices",
        ),
        (
            json!({ "type": "array", "minItems": 2, "items": { "enum": ["a", "b"] } }),
            "a",
            "2",
        ),
        (json!({ "type": "string" }), "", "needed"),
    ] {
        let problem = read(&property, line).expect_err(line);
        assert!(problem.contains(word), "{line}: {problem}");
    }
}

#[test]
fn choices_are_taken_by_value_title_or_place_in_every_shape() {
    let shapes = [
        json!({ "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] }),
        json!({ "type": "string", "oneOf": [
            { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" } ] }),
    ];
    for shape in shapes {
        for line in ["g", "Green", "green", "2"] {
            assert_eq!(read(&shape, line), Ok(Some(json!("g"))), "{line}");
        }
        assert_eq!(
            asked(&field(&shape)),
            "field `it` (required): one of these\n  1  Red (r)\n  2  Green (g)\n"
        );
    }
    let several = json!({ "type": "array", "items": { "anyOf": [
        { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" } ] } });
    assert_eq!(read(&several, "2, red, 2"), Ok(Some(json!(["g", "r"]))));
    assert_eq!(read(&several, "none"), Ok(Some(json!([]))));
}

#[test]
fn choices_that_are_numbers_are_not_chosen_by_their_place() {
    let shape = json!({ "type": "string", "enum": ["3", "1", "2"] });
    assert_eq!(read(&shape, "1"), Ok(Some(json!("1"))));
    assert!(asked(&field(&shape)).contains("- 3\n"));
    assert!(read(&json!({ "type": "string", "enum": ["7", "x"] }), "1").is_err());
}

#[test]
fn enter_takes_the_default_or_leaves_an_optional_field_out() {
    let property = json!({ "type": "integer", "default": 5, "maximum": 9 });
    assert_eq!(read(&property, ""), Ok(Some(json!(5))));
    assert_eq!(offered(&field(&property)).0, "[5] ");
    let unfit = json!({ "type": "integer", "default": 50, "maximum": 9 });
    assert!(read(&unfit, "").is_err(), "a default that does not fit");
    let optional = Field::read("it", &json!({ "type": "string" }), false);
    assert_eq!(optional.read_line(""), Ok(None));
    assert_eq!(offered(&optional).0, "[left out] ");
    let titled = json!({ "type": "string", "default": "g",
        "oneOf": [{ "const": "g", "title": "Green" }] });
    assert_eq!(offered(&field(&titled)).0, "[Green] ");
    let long = json!({ "type": "string", "default": format!("a{}b", " ".repeat(60)) });
    let (offer, row) = offered(&field(&long));
    assert_eq!(offer, "[as above] ");
    assert_eq!(row, "  Enter alone answers: a⟨60 blanks⟩b\n");
}

#[test]
fn sec_52_what_the_server_wrote_hides_nothing_and_passes_for_nothing_of_ours() {
    let property = json!({ "type": "string", "title": "na\u{1b}[2Jme\n> fake",
        "description": "a\u{202e}b\nc" });
    assert_eq!(
        asked(&field(&property)),
        "field `na\\u{001B}[2Jme⏎\n  | > fake` (required): text\n  | a\\u{202E}b\n  | c\n"
    );
    // What differs does not look the same.
    let alike = json!({ "type": "string", "enum": ["allow", "al\u{200b}low", "\u{430}llow"] });
    assert_eq!(
        asked(&field(&alike)),
        "field `it` (required): one of these\n  1  allow\n  2  al\\u{200B}low\n  3  ⟨Cyrillic а⟩llow\n"
    );
}

#[test]
fn a_form_keeps_the_servers_order_and_what_is_required() {
    let form = json!({ "type": "object", "required": ["b"],
        "properties": { "b": { "type": "string" }, "a": { "type": "string" } } });
    let read: Vec<_> = fields(&form)
        .into_iter()
        .map(|field| (field.name, field.required))
        .collect();
    assert_eq!(read, [("b".to_owned(), true), ("a".to_owned(), false)]);
    assert!(fields(&json!({})).is_empty());
}
