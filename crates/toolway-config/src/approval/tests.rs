//! What a digest is bound to.

use super::*;

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_digest_is_sha_256_of_the_canonical_json() {
    let definition = object(r#"{"command": "x", "args": ["é\"\n"], "env": {"B": "2", "A": "1"}}"#);
    let text = r#"{"definition":{"args":["é\"\n"],"command":"x","env":{"A":"1","B":"2"}},"path":"/p/.mcp.json","scope":"project"}"#;
    let expected = hex::encode(Sha256::digest(text.as_bytes()));
    assert_eq!(
        digest("/p/.mcp.json", Scope::Project, &definition),
        expected
    );
}

#[test]
fn path_scope_and_every_value_count_and_order_does_not() {
    let base = object(r#"{"command": "x", "args": ["a", "b"]}"#);
    let of = |definition: &Map<String, Value>| digest("/p", Scope::Project, definition);
    assert_eq!(
        of(&base),
        of(&object(r#"{"args": ["a", "b"], "command": "x"}"#))
    );
    assert_ne!(
        of(&base),
        of(&object(r#"{"args": ["b", "a"], "command": "x"}"#))
    );
    assert_ne!(
        of(&base),
        of(&object(r#"{"args": ["a b"], "command": "x"}"#))
    );
    assert_ne!(of(&base), digest("/q", Scope::Project, &base));
    assert_ne!(of(&base), digest("/p", Scope::Local, &base));
}

#[test]
fn which_login_is_used_is_no_part_of_what_was_approved_and_all_else_of_oauth_is() {
    let of = |oauth: &str| {
        let definition = format!(r#"{{"type": "http", "url": "https://a.example"{oauth}}}"#);
        digest("/p", Scope::Project, &object(&definition))
    };
    let none = of("");
    assert_eq!(none, of(r#", "oauth": {"account": "work"}"#));
    let with_client = of(r#", "oauth": {"clientId": "x"}"#);
    assert_eq!(
        with_client,
        of(r#", "oauth": {"account": "work", "clientId": "x"}"#)
    );
    assert_ne!(none, with_client);
    assert_ne!(with_client, of(r#", "oauth": {"clientId": "y"}"#));
    // Only the key of that place, and only a word.
    assert_ne!(none, of(r#", "account": "work""#));
    assert_ne!(none, of(r#", "oauth": {"account": {"clientId": "x"}}"#));
}
