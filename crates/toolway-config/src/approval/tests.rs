//! What a digest is bound to.

use sha2::{Digest as _, Sha256};

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
