//! `docs/control.schema.json`, held against the code and against every message that these tests exchange.
//!
//! What Toolway writes must be described to the last member, but where a row says that it has more. What
//! it takes must be described too.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};
use toolway_gateway::control::{ASKED_OF_PROGRAM, METHODS, TOLD};

/// As it is published.
static PUBLISHED: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../../docs/control.schema.json")).unwrap()
});

/// The same, with nothing allowed that is not described.
static CLOSED: LazyLock<Value> = LazyLock::new(|| {
    let mut closed = PUBLISHED.clone();
    close(&mut closed);
    closed
});

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_open =
                members.contains_key("x-open") || members.contains_key("additionalProperties");
            if members.get("type").is_some() && members.contains_key("properties") && !is_open {
                members.insert("additionalProperties".to_owned(), false.into());
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn check(whole: &Value, place: &str, value: &Value) {
    let part = whole.pointer(place);
    let part = part.unwrap_or_else(|| panic!("nothing is said of `{place}`"));
    let schema = json!({ "$defs": whole["$defs"], "allOf": [part] });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(value)
        .map(|it| format!("{}: {it}", it.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{place}: {wrong:#?}\n{value:#}");
}

fn place(kind: &str, method: &str, part: &str) -> String {
    format!("/{kind}/{}/{part}", method.replace('/', "~1"))
}

/// Whether a message is one of those that are described.
fn is_ours(method: &str) -> bool {
    method.starts_with("toolway/")
}

/// A request of the program, and what it was answered.
pub(super) fn answered(method: &str, params: &Value, answer: &Value) {
    if !is_ours(method) {
        return;
    }
    if let Some(error) = answer.get("error") {
        // Some are refused before anybody knows what they ask.
        if error["data"].get("reason").is_some() {
            check(&CLOSED, "/$defs/error", error);
        }
        return;
    }
    check(&PUBLISHED, &place("requests", method, "params"), params);
    check(
        &CLOSED,
        &place("requests", method, "result"),
        &answer["result"],
    );
}

/// What the program is asked.
pub(super) fn asked(method: &str, params: &Value) {
    if is_ours(method) {
        check(&CLOSED, &place("asked", method, "params"), params);
    }
}

/// What it is told.
pub(super) fn told(method: &str, params: &Value) {
    if is_ours(method) {
        check(&CLOSED, &place("told", method, "params"), params);
    }
}

#[test]
fn the_schema_describes_the_methods_that_there_are_and_no_others() {
    let described = |kind: &str| -> BTreeSet<String> {
        PUBLISHED[kind]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let there = |methods: &[&str]| -> BTreeSet<String> {
        methods.iter().map(|method| (*method).to_owned()).collect()
    };
    assert_eq!(described("requests"), there(&METHODS));
    assert_eq!(described("asked"), there(&ASKED_OF_PROGRAM));
    assert_eq!(described("told"), there(&TOLD));
    assert_eq!(METHODS.len(), there(&METHODS).len());
    let page = include_str!("../../../../../docs/control.md");
    for method in METHODS.iter().chain(&ASKED_OF_PROGRAM).chain(&TOLD) {
        let short = method.rsplit('/').next().unwrap();
        assert!(
            page.contains(method) || page.contains(&format!("…/{short}`")),
            "docs/control.md says nothing of `{method}`"
        );
    }
}
