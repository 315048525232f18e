//! Rules and matchers that hit nothing.

use serde_json::json;

use super::super::*;
use super::{here, rules};

const SERVERS: [&str; 4] = ["db", "github", "my server", "a__b"];

/// What is said of one deny rule: the slips with their hints, and the servers that are not there.
fn missed(rule: &str) -> (Vec<String>, usize) {
    let servers = SERVERS.map(|name| ServerName::new(name).unwrap());
    let servers: Vec<&ServerName> = servers.iter().collect();
    let mut permissions = rules(&json!({ "deny": [rule] }));
    let absent = permissions.absent(&Hooks::empty(), &servers);
    let slips = permissions.slips(&Hooks::empty(), &servers);
    assert_eq!(permissions.faults(), slips);
    for one in slips.iter().chain(&absent) {
        assert_eq!(one.origin, Some(here()));
        assert!(one.message.contains(rule), "{one:?}");
    }
    let hints = slips.into_iter().filter_map(|one| one.hint).collect();
    (hints, absent.len())
}

#[test]
fn a_rule_that_nearly_names_a_server_is_told_with_what_was_meant() {
    for (rule, meant) in [
        ("db.echo", "mcp__db__echo"),
        ("DB.echo", "mcp__db__echo"),
        ("db:echo(a:1)", "mcp__db__echo"),
        ("db__echo", "mcp__db__echo"),
        ("db", "mcp__db"),
        ("mcp_db__echo", "mcp__db__echo"),
        ("mcp_github", "mcp__github"),
        ("mcp__db:echo", "mcp__db__echo"),
        ("mcp__db.*", "mcp__db__*"),
        ("mcp__githb__*", "mcp__github__*"),
        ("mcp__githubb", "mcp__github"),
        ("my server.get", "mcp__my server__get"),
    ] {
        let hint = format!("did you mean `{meant}`?");
        assert_eq!(missed(rule), (vec![hint], 0), "{rule}");
    }
}

#[test]
fn a_rule_that_names_a_server_or_a_tool_is_not_told() {
    for rule in [
        "*",
        "mcp__*",
        "mcp__db",
        "mcp__DB__*",
        "mcp__db__echo(a:1)",
        "mcp__d*",
        "mcp__*__delete",
        "mcp__my_server__get",
        "mcp__my server",
        "mcp__a__b",
        "mcp__a__b__c",
        "ToolSearch",
        "do.it",
        "delete_*",
    ] {
        assert_eq!(missed(rule), (vec![], 0), "{rule}");
    }
    for rule in ["mcp__elsewhere", "mcp__elsewhere__*", "mcp__x*"] {
        assert_eq!(missed(rule), (vec![], 1), "{rule}");
    }
}

#[test]
fn matchers_are_looked_at_too_where_they_are_names() {
    let group = |matcher: &str| json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": "x" }] });
    let value = json!({ "PreToolUse": [
        group("mcp__db__*|mcp_db__echo"), group("mcp__elsewhere"), group("mcp__els.*"), group(""),
    ]});
    let (hooks, found) = Hooks::parse(&value, &here(), Scope::User);
    assert_eq!(found, []);
    let db = ServerName::new("db").unwrap();
    let mut permissions = Permissions::empty();
    let slips = permissions.slips(&hooks, &[&db]);
    assert_eq!(slips.len(), 1, "{slips:?}");
    assert!(slips[0].message.contains("`mcp_db__echo`"), "{slips:?}");
    let absent = permissions.absent(&hooks, &[&db]);
    assert_eq!(absent.len(), 1, "{absent:?}");
}
