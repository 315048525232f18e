//! Which names and schemas a built-in tool can have, and what is shown of an address.

use serde_json::json;

use super::*;

fn made(name: &str, schema: Value) -> Result<Builtin, BuiltinError> {
    Builtin::new(name, "does it", schema, async |_| {
        BuiltinAnswer::text("done")
    })
}

#[test]
fn only_names_that_models_can_call_and_nobody_else_has_are_taken() {
    assert_eq!(made("my-tool_2", json!({})).unwrap().name(), "my-tool_2");
    for name in ["", "my tool", "mein_tööl", "a\u{200b}b", &"x".repeat(65)] {
        let refused = made(name, json!({})).unwrap_err();
        assert!(matches!(refused, BuiltinError::Name(_)), "{name}");
        assert!(!refused.to_string().contains('\u{200b}'));
    }
    for name in [
        "mcp__a__b",
        "ToolSearch",
        "ListMcpResources",
        "ReadMcpResource",
    ] {
        let refused = made(name, json!({})).unwrap_err();
        assert_eq!(refused, BuiltinError::Reserved(name.to_owned()));
    }
    let refused = made("x", json!([])).unwrap_err();
    assert_eq!(refused, BuiltinError::Schema("x".to_owned()));
}

#[test]
fn an_address_is_shown_without_what_may_be_secret() {
    for (url, shown) in [
        ("https://example.com/mcp", "https://example.com/mcp"),
        (
            "https://example.com/mcp?key=1#x",
            "https://example.com/mcp?…",
        ),
        (
            "https://me:pass@example.com/a@b",
            "https://…@example.com/a@b",
        ),
        ("https://${HOST}/${KEY}", "https://${HOST}/${KEY}"),
    ] {
        assert_eq!(address(url), shown);
    }
}
