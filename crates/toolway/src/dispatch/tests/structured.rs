//! Structured content against the output schema: told, never in the way of the answer.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::scene::Scene;
use super::typed;

/// The warnings of a call whose tool promises this and gives that; the answer is whole either way.
async fn warnings(schema: &Value, content: Value) -> Vec<String> {
    let answer = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": content});
    let scene = Scene::answering(answer.clone()).promising(schema.clone());
    let outcome = scene.call("promise", typed()).await.unwrap();
    assert_eq!(outcome.raw.get(), answer.to_string());
    assert!(!outcome.is_error);
    outcome.warnings
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_place_and_expectation_and_the_answer_stays() {
    let schema = json!({
        "type": "object",
        "properties": {
            "celsius": {"type": "number"},
            "days": {"type": "array", "items": {"type": "object", "required": ["date"]}},
            "wind": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["celsius"],
    });
    let fits = json!({"celsius": 21.5, "days": [{"date": "x"}], "wind": null});
    assert_eq!(warnings(&schema, fits).await, Vec::<String>::new());
    let wrong = json!({"celsius": "warm", "days": [{"date": "x"}, {}], "wind": "much"});
    assert_eq!(
        warnings(&schema, wrong).await,
        [
            "the structured content of `promise` does not fit its output schema: \
             `/celsius`: value is not of type \"number\"; \
             `/days/1`: `date` is missing; \
             `/wind`: fits no alternative: value is not of type \"integer\", \
             or value is not of type \"null\""
        ]
    );
    assert_eq!(
        warnings(&schema, json!({})).await,
        [
            "the structured content of `promise` does not fit its output schema: \
          `/`: `celsius` is missing"
        ]
    );
    let many = json!({"additionalProperties": {"type": "string"}});
    let content: Map<String, Value> = (0..50).map(|n| (format!("k{n}"), json!(n))).collect();
    let told = warnings(&many, Value::Object(content)).await;
    assert!(told[0].ends_with("; and more"), "{told:?}");
    assert!(told[0].len() < 1_000, "{told:?}");
}

#[tokio::test]
async fn a_promise_without_content_is_told_unless_the_tool_failed() {
    let schema = json!({"type": "object"});
    let bare = json!({"content": []});
    let scene = Scene::answering(bare).promising(schema.clone());
    let outcome = scene.call("promise", typed()).await.unwrap();
    assert_eq!(
        outcome.warnings,
        ["`promise` promises structured content by its output schema, and sent none"]
    );
    let failed = json!({"content": [], "isError": true});
    let scene = Scene::answering(failed).promising(schema);
    let outcome = scene.call("promise", typed()).await.unwrap();
    assert_eq!(outcome.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn the_dialect_of_an_output_schema_decides() {
    let tuple = |dialect: &str| {
        json!({"$schema": dialect, "properties":
            {"pair": {"items": [{"type": "string"}, {"type": "integer"}]}}})
    };
    let wrong = json!({"pair": ["a", "b"]});
    for old in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        let told = warnings(&tuple(old), wrong.clone()).await;
        assert!(
            told[0].contains("`/pair/1`: value is not of type"),
            "{told:?}"
        );
    }
    let prefix = json!({"$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}]}}});
    let told = warnings(&prefix, wrong).await;
    assert!(
        told[0].contains("`/pair/1`: value is not of type"),
        "{told:?}"
    );
}

#[tokio::test]
async fn sec_36_an_output_schema_is_never_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", listener.local_addr().unwrap());
    for schema in [
        json!({"$ref": url}),
        json!({"properties": {"a": {"$ref": url}}}),
        json!({"$id": url, "properties": {"a": {"$ref": "other.json"}}}),
        json!({"$schema": url}),
    ] {
        let told = warnings(&schema, json!({"a": 1})).await;
        assert!(told[0].contains("was checked in part only: `/"), "{told:?}");
    }
    let error = listener.accept().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

/// A server writes both sides: schema and content are made for each other.
#[tokio::test]
async fn sec_30_no_schema_and_content_together_can_hang_a_call() {
    let begun = Instant::now();
    let keys: Map<String, Value> = (0..30_000).map(|n| (format!("{n:x}"), json!(1))).collect();
    let patterns: Map<String, Value> = (0..900)
        .map(|n| (format!("(a|b|c|{n})*z$"), json!(true)))
        .collect();
    let choices: Vec<String> = (0..1_900).map(|n| format!("choice-{n}")).collect();
    let names: Vec<String> = (0..1_900).map(|n| format!("n{n}")).collect();
    let long = "a".repeat(1_000_000);
    let twice = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
    let deep = (0..50).fold(json!([]), |inner, _| json!([inner]));
    for (schema, content) in [
        (json!({"patternProperties": patterns}), Value::Object(keys)),
        (
            json!({"items": {"enum": choices}}),
            json!(vec!["choice-9999"; 60_000]),
        ),
        (
            json!({"items": {"required": names}}),
            json!(vec![json!({}); 60_000]),
        ),
        (json!({"pattern": "^(.?.?.?.?.?){200}b$"}), json!(long)),
        (json!({"pattern": "(.*a.{60}b){20}c"}), json!(long)),
        (
            json!({"uniqueItems": true}),
            json!((0..100_000).collect::<Vec<u32>>()),
        ),
        (twice, deep),
    ] {
        let one = Instant::now();
        warnings(&schema, content).await;
        let taken = one.elapsed();
        let schema = schema.to_string();
        assert!(
            taken.as_secs() < 10,
            "{taken:?}: {}",
            &schema[..80.min(schema.len())]
        );
    }
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}
