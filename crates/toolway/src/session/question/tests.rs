//! Which questions are put, and what is sent back.

use super::*;

fn form(properties: &Value, required: &[&str]) -> Box<RawValue> {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    to_raw_value(&schema).expect("JSON")
}

fn accept(content: &Value, schema: &RawValue) -> Value {
    let answer = ElicitationAnswer::Accept(content.as_object().cloned());
    serde_json::from_str(elicited(answer, Some(schema)).0.get()).expect("JSON")
}

#[test]
fn absent_fields_get_the_defaults_of_the_form() {
    let schema = form(
        &json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "verified": { "type": "boolean", "default": true },
            "status": { "type": "string", "enum": ["active", "idle"], "default": "active" },
            "note": { "type": "string" },
        }),
        &["name"],
    );
    assert_eq!(
        accept(&json!({ "age": 7 }), &schema),
        json!({ "action": "accept", "content": {
            "name": "John Doe", "age": 7, "score": 95.5, "verified": true, "status": "active",
        }})
    );
}

#[test]
fn an_answer_that_does_not_fit_the_form_is_not_sent() {
    let schema = form(
        &json!({ "age": { "type": "integer", "minimum": 18 } }),
        &["age"],
    );
    assert_eq!(accept(&json!({ "age": 20 }), &schema)["action"], "accept");
    for wrong in [json!({ "age": 3 }), json!({ "age": "20" }), json!({})] {
        assert_eq!(
            accept(&wrong, &schema),
            json!({ "action": "cancel" }),
            "{wrong}"
        );
    }
}

#[test]
fn a_form_that_cannot_be_checked_is_left_to_the_server() {
    let schema = raw(r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}"#);
    assert_eq!(
        accept(&json!({ "a": 1 }), &schema)["content"],
        json!({ "a": 1 })
    );
}

#[test]
fn no_and_never_mind_carry_no_content() {
    for (answer, wanted) in [
        (ElicitationAnswer::Decline, r#"{"action":"decline"}"#),
        (ElicitationAnswer::Cancel, r#"{"action":"cancel"}"#),
    ] {
        assert_eq!(elicited(answer.clone(), None).0.get(), wanted);
        assert_eq!(elicited(answer, Some(&raw("{}"))).0.get(), wanted);
    }
    let consent = ElicitationAnswer::Accept(None);
    assert_eq!(elicited(consent, None).0.get(), r#"{"action":"accept"}"#);
}

#[test]
fn only_urls_that_a_person_can_judge_reach_one() {
    let visited = |url: &str| Url::parse(url).is_ok_and(|url| may_be_opened(&url));
    for url in [
        "https://example.com/pay?x=1",
        "http://localhost:9/x",
        "http://127.0.0.1/",
        "http://127.9.9.9:8080/",
        "http://[::1]:3000/",
    ] {
        assert!(visited(url), "{url}");
    }
    for url in [
        "http://example.com/",
        "http://localhost.example.com/",
        "http://10.0.0.1/",
        "https://bank.example@evil.example/",
        "https://user:word@example.com/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "ftp://example.com/",
        "not a url",
        "",
    ] {
        assert!(!visited(url), "{url}");
    }
}
