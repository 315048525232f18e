//! Rules that a person's "always" and `toolway permissions` write into a settings file.

use toolway_config::{
    EditError, Edited, Environment, PermissionDecision, PermissionList, PinPolicy, remove_rule,
    write_rule,
};
use toolway_types::{Scope, ServerName, ToolKey};

use crate::Stage;

fn tool(name: &str) -> ToolKey {
    ToolKey::new(ServerName::new("s").unwrap(), name)
}

fn allow(
    environment: &Environment,
    scope: Scope,
    rule: &str,
) -> Result<Edited<Vec<PermissionList>>, EditError> {
    write_rule(environment, scope, PermissionList::Allow, rule)
}

#[test]
fn a_rule_stands_in_one_list_and_is_taken_out_of_all() {
    let stage = Stage::new();
    let path = stage.user(
        r#"{"permissions": {"allow": ["mcp__s__a", "x"], "ask": ["mcp__s__a"], "pins": "ask"}}"#,
    );
    let environment = stage.environment();
    let moved = write_rule(&environment, Scope::User, PermissionList::Deny, "mcp__s__a").unwrap();
    assert_eq!(moved.value, [PermissionList::Ask, PermissionList::Allow]);
    let decided = stage.plan().permissions.decide_tool(&tool("a"));
    assert!(
        matches!(decided, PermissionDecision::Deny { .. }),
        "{decided:?}"
    );
    let removed = remove_rule(&environment, Scope::User, "mcp__s__a").unwrap();
    assert_eq!(removed.value, [PermissionList::Deny]);
    let again = remove_rule(&environment, Scope::User, "mcp__s__a").unwrap();
    assert!(again.value.is_empty() && !again.changed);
    let text = std::fs::read_to_string(path).unwrap();
    let left: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({ "allow": ["x"], "ask": [], "pins": "ask", "deny": [] });
    assert_eq!(left["permissions"], expected);
}

#[test]
fn a_rule_is_added_once_and_comments_stay() {
    let stage = Stage::new();
    let path = stage.user(
        "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\n      \"mcp__s__a\", // safe\n    ],\n  },\n}\n",
    );
    let environment = stage.environment();
    assert!(
        allow(&environment, Scope::User, "mcp__s__b")
            .unwrap()
            .changed
    );
    assert!(
        !allow(&environment, Scope::User, "mcp__s__b")
            .unwrap()
            .changed
    );
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.contains("// mine") && text.contains("// safe"),
        "{text}"
    );
    for name in ["a", "b"] {
        let decided = stage.plan().permissions.decide_tool(&tool(name));
        assert!(
            matches!(decided, PermissionDecision::Allow { rule: Some(_) }),
            "{name}"
        );
    }
}

#[test]
fn a_local_rule_counts_at_once_for_it_was_the_person_who_wrote_it() {
    let stage = Stage::new();
    allow(&stage.environment(), Scope::Local, "mcp__s__b").unwrap();
    let decided = stage.plan().permissions.decide_tool(&tool("b"));
    assert!(
        matches!(decided, PermissionDecision::Allow { rule: Some(_) }),
        "{decided:?}"
    );
}

#[test]
fn what_is_no_list_is_left_as_it_is() {
    let stage = Stage::new();
    stage.user(r#"{"permissions": {"allow": "mcp__s__a"}}"#);
    let refused = allow(&stage.environment(), Scope::User, "mcp__s__b");
    assert!(matches!(refused, Err(EditError::Refused(_))), "{refused:?}");
}

#[test]
fn sec_33_a_repository_cannot_switch_pins_off() {
    let stage = Stage::new();
    stage.local(r#"{"permissions": {"pins": "off"}}"#);
    assert_eq!(stage.plan().permissions.pins(), PinPolicy::Ask);
    stage.managed(r#"{"permissions": {"pins": "warn"}}"#);
    stage.user(r#"{"permissions": {"pins": "off"}}"#);
    assert_eq!(stage.plan().permissions.pins(), PinPolicy::Warn);
}
