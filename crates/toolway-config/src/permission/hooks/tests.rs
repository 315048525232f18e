//! What of a `hooks` object is kept, and which hooks concern a tool.

use serde_json::json;
use toolway_types::{ServerName, Severity};

use super::*;

fn here() -> Origin {
    Origin::file("/home/ada/.config/toolway/settings.json", 9)
}

fn parse(value: &Value) -> (Hooks, Vec<Diagnosis>) {
    Hooks::parse(value, &here(), Scope::User)
}

fn with_matcher(matcher: &str) -> Hooks {
    let hook = json!({ "type": "command", "command": "guard" });
    let (hooks, found) = parse(&json!({ "PreToolUse": [{ "matcher": matcher, "hooks": [hook] }] }));
    assert_eq!(found, [], "{matcher}");
    hooks
}

fn concerns(matcher: &str, name: &str) -> bool {
    !with_matcher(matcher)
        .matching(HookEvent::PreToolUse, name)
        .is_empty()
}

#[test]
fn both_kinds_of_hook_are_read_in_order() {
    let (hooks, found) = parse(&json!({
        "PreToolUse": [{
            "matcher": "mcp__.*|Foo",
            "hooks": [
                { "type": "command", "command": "guard --strict", "timeout": 2.5 },
                { "type": "mcp_tool", "server": "audit", "tool": "check", "input": { "level": 2 } },
            ],
        }],
        "PostToolUse": [{ "hooks": [{ "type": "command", "command": "log", "args": ["-v"] }] }],
    }));
    assert_eq!(found, []);
    let before = hooks.matching(HookEvent::PreToolUse, "mcp__git__push");
    assert_eq!(before.len(), 2);
    assert_eq!(
        before[0].action,
        HookAction::Command {
            command: "guard --strict".into(),
            args: None
        }
    );
    assert_eq!(before[0].timeout, Duration::from_millis(2500));
    assert_eq!(before[1].title(), "audit.check");
    assert_eq!(before[1].timeout, DEFAULT_HOOK_TIMEOUT);
    assert_eq!(before[1].origin, here());
    assert_eq!(hooks.matching(HookEvent::PreToolUse, "Foo").len(), 2);
    assert_eq!(hooks.matching(HookEvent::PreToolUse, "Food").len(), 0);
    let after = hooks.matching(HookEvent::PostToolUse, "anything");
    assert_eq!(after[0].matcher(), "");
    assert_eq!(
        after[0].action,
        HookAction::Command {
            command: "log".into(),
            args: Some(vec!["-v".into()])
        }
    );
    assert!(
        hooks
            .matching(HookEvent::PostToolUseFailure, "anything")
            .is_empty()
    );
}

#[test]
fn a_matcher_is_all_exact_a_list_or_an_anchored_expression() {
    for all in ["", "*", " "] {
        assert!(concerns(all, "mcp__a__b"), "{all:?}");
    }
    assert!(concerns("mcp__a__b", "mcp__a__b"));
    assert!(!concerns("mcp__a__b", "mcp__a__bc"));
    assert!(concerns("Foo | mcp__a__b", "mcp__a__b"));
    assert!(!concerns("Foo|Bar", "Foo|Bar"));
    assert!(concerns("mcp__a__.*", "mcp__a__"));
    assert!(!concerns("a__.*", "mcp__a__b"));
    assert!(!concerns("mcp__a.?", "mcp__a__b"));
    assert!(concerns("mcp__(a|b)__.*", "mcp__b__\nx"));
    assert!(concerns(
        "mcp__my server__get(item)",
        "mcp__my server__get(item)"
    ));
}

#[test]
fn a_guard_finds_a_tool_under_any_of_its_spellings() {
    let key = ToolKey::new(ServerName::new("my server").unwrap(), "get.item");
    for matcher in [
        "mcp__my_server__get_item",
        "mcp__my server__get.item",
        "mcp__my_server__.*",
        "mcp__my server__get_item",
        "mcp__my_server__get.item",
        "my server.get.item",
        "my_server get_item",
        &key.exposed(),
        &key.exposed_apart(),
    ] {
        let hooks = with_matcher(matcher);
        assert_eq!(
            hooks.matching_tool(HookEvent::PreToolUse, &key).len(),
            1,
            "{matcher}"
        );
    }
    assert!(
        with_matcher("Foo")
            .matching_tool(HookEvent::PreToolUse, &key)
            .is_empty()
    );
}

#[test]
fn a_broken_hook_is_diagnosed_and_kept_as_broken() {
    let hook = |hook: Value| json!([{ "matcher": "Foo", "hooks": [hook] }]);
    for groups in [
        json!("guard"),
        json!(["guard"]),
        json!([{ "matcher": "Foo" }]),
        json!([{ "matcher": "(", "hooks": [] }]),
        json!([{ "matcher": "^(?!mcp__safe).*$", "hooks": [] }]),
        json!([{ "matcher": 3, "hooks": [] }]),
        hook(json!("guard")),
        hook(json!({ "command": "guard" })),
        hook(json!({ "type": "prompt", "prompt": "…" })),
        hook(json!({ "type": "command" })),
        hook(json!({ "type": "command", "command": " " })),
        hook(json!({ "type": "command", "command": ["guard"] })),
        hook(json!({ "type": "command", "command": "guard", "args": [1] })),
        hook(json!({ "type": "mcp_tool", "server": "audit" })),
        hook(json!({ "type": "mcp_tool", "server": "a", "tool": "b", "input": [] })),
    ] {
        let (hooks, found) = parse(&json!({ "PreToolUse": groups }));
        assert_eq!(found.len(), 1, "{groups}: {found:?}");
        assert_eq!(found[0].origin, Some(here()));
        assert!(found[0].hint.is_some());
        let kept = hooks.matching(HookEvent::PreToolUse, "Foo");
        assert!(
            matches!(&kept[..], [Hook { action: HookAction::Broken { reason }, .. }]
                if *reason == found[0].message),
            "{groups}: {kept:?}"
        );
    }
}

#[test]
fn an_odd_timeout_is_diagnosed_and_the_hook_still_runs() {
    for timeout in [json!(0), json!(-1), json!("10"), json!(1e300), json!(3601)] {
        let hook = json!({ "type": "command", "command": "guard", "timeout": timeout });
        let (hooks, found) = parse(&json!({ "PreToolUse": [{ "hooks": [hook] }] }));
        assert_eq!(found.len(), 1, "{timeout}");
        let kept = hooks.matching(HookEvent::PreToolUse, "x");
        assert_eq!(kept[0].timeout, DEFAULT_HOOK_TIMEOUT);
        assert_eq!(kept[0].title(), "guard");
    }
}

#[test]
fn a_matcher_is_also_read_as_rules_are() {
    for (matcher, name) in [
        ("mcp__db__*", "mcp__db__query"),
        ("mcp__db*", "mcp__db__query"),
        ("mcp__*__delete", "mcp__db__delete"),
        ("mcp__db", "mcp__db__query"),
        ("Foo|mcp__db", "mcp__db__query"),
        ("mcp__a__b", "mcp__a__b__c"),
        ("MCP__DB__Query", "mcp__db__query"),
        ("mcp__db__query", "mcp__db__QUERY"),
        ("MCP__db__.*", "mcp__DB__query"),
        ("mcp__my server__Get.item", "mcp__my server__get.item"),
        ("*__delete", "mcp__db__delete"),
        // As an expression, as ever.
        ("mcp__db_*", "mcp__db___"),
        ("fo*", "f"),
        ("mcp__[^A-Z]+", "mcp__db"),
    ] {
        assert!(concerns(matcher, name), "{matcher} {name}");
    }
    for (matcher, name) in [
        ("mcp__db", "mcp__dbx__query"),
        ("mcp__db__*", "mcp__other__query"),
        ("db", "mcp__db__query"),
        ("mcp__", "mcp__db__query"),
    ] {
        assert!(!concerns(matcher, name), "{matcher} {name}");
    }
}

fn broken_for(hooks: &Hooks, event: HookEvent, name: &str) -> usize {
    let concerned = hooks.matching(event, name);
    for hook in &concerned {
        assert!(matches!(hook.action, HookAction::Broken { .. }), "{hook:?}");
    }
    concerned.len()
}

#[test]
fn rel_30_hooks_of_an_event_in_a_wrong_spelling_are_kept_as_broken() {
    let groups = json!([{ "matcher": "Foo", "hooks": [{ "type": "command", "command": "x" }] }]);
    for name in [
        "PreToolUs",
        "preToolUse",
        "pre_tool_use",
        "pre-tool-use",
        "PRETOOLUSE",
    ] {
        let (hooks, found) = parse(&json!({ name: groups, "SessionStart": [] }));
        assert_eq!(
            broken_for(&hooks, HookEvent::PreToolUse, "Foo"),
            1,
            "{name}"
        );
        assert_eq!(
            broken_for(&hooks, HookEvent::PreToolUse, "Bar"),
            0,
            "{name}"
        );
        assert_eq!(found[0].hint.as_deref(), Some("did you mean `PreToolUse`?"));
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!(found[1].severity, Severity::Warning);
    }
    let (hooks, _) = parse(&json!({ "PreToolUs": "guard" }));
    assert_eq!(broken_for(&hooks, HookEvent::PreToolUse, "x"), 1);
    let empty = json!({ "PreToolUs": [] });
    assert!(parse(&empty).0.is_empty());
    let (hooks, _) = Hooks::parse(&empty, &here(), Scope::Managed);
    assert_eq!(broken_for(&hooks, HookEvent::PreToolUse, "x"), 1);
}

#[test]
fn rel_30_hooks_of_a_wrong_shape_fail_at_every_event() {
    for value in [json!([{ "hooks": [] }]), json!("guard"), json!(true)] {
        let (hooks, found) = parse(&value);
        assert_eq!(found.len(), 1, "{value}");
        for event in HookEvent::ALL {
            assert_eq!(broken_for(&hooks, event, "x"), 1, "{value} {event:?}");
        }
    }
    // Where nothing is written nothing is lost; in a policy it counts as unknown.
    for value in [json!([]), Value::Null] {
        let (hooks, found) = parse(&value);
        assert!(hooks.is_empty() && found.len() == 1, "{value}");
        let (hooks, _) = Hooks::parse(&value, &here(), Scope::Managed);
        assert_eq!(broken_for(&hooks, HookEvent::PreToolUse, "x"), 1, "{value}");
    }
}

#[test]
fn sec_03_the_repositorys_own_hooks_are_ignored_with_a_warning() {
    let value = json!({ "PreToolUse": [{ "hooks": [{ "type": "command", "command": "x" }] }] });
    for scope in [Scope::Project, Scope::Plugin, Scope::Connector] {
        let (hooks, found) = Hooks::parse(&value, &here(), scope);
        assert!(hooks.is_empty());
        assert_eq!(found[0].severity, Severity::Warning);
    }
    let (one, _) = parse(&value);
    let merged = Hooks::merged([one.clone(), Hooks::empty(), one]);
    assert_eq!(merged.iter().count(), 2);
}
