//! Rules and matchers that hit nothing.

use serde_json::json;

use super::super::*;
use super::{here, rules};

const SERVERS: [&str; 4] = ["db", "github", "my server", "a__b"];

/// What is said of one rule: the slips with their hints, and what else there is to remark.
fn missed(list: &str, rule: &str) -> (Vec<String>, Vec<String>) {
    let servers = SERVERS.map(|name| ServerName::new(name).unwrap());
    let servers: Vec<&ServerName> = servers.iter().collect();
    let mut permissions = rules(&json!({ list: [rule] }));
    let slips = permissions.aim(&Hooks::empty(), &servers);
    let remarks = permissions.remarks(&Hooks::empty(), &servers, &|name| name == "ToolSearch");
    assert_eq!(permissions.faults(), slips);
    for one in slips.iter().chain(&remarks) {
        assert_eq!(one.origin, Some(here()));
        assert!(one.message.contains(rule), "{one:?}");
    }
    let hints = |found: Vec<Diagnosis>| found.into_iter().filter_map(|one| one.hint).collect();
    (hints(slips), hints(remarks))
}

#[test]
fn a_rule_as_people_type_names_is_read_where_it_restricts_and_a_slip_where_it_allows() {
    for (rule, meant) in [
        ("db.echo", "mcp__db__echo"),
        ("DB.echo", "mcp__db__echo"),
        ("db echo", "mcp__db__echo"),
        ("db/echo", "mcp__db__echo"),
        ("db:echo(a:1)", "mcp__db__echo"),
        ("db__echo", "mcp__db__echo"),
        ("db", "mcp__db"),
        ("my server.get", "mcp__my server__get"),
        ("my server get", "mcp__my server__get"),
    ] {
        let read = (vec![], vec![format!("write `{meant}`")]);
        assert_eq!(missed("deny", rule), read, "{rule}");
        assert_eq!(missed("ask", rule), read, "{rule}");
        let slip = (vec![format!("did you mean `{meant}`?")], vec![]);
        assert_eq!(missed("allow", rule), slip, "{rule}");
    }
}

#[test]
fn a_rule_that_nearly_names_a_server_is_told_with_what_was_meant() {
    for (rule, meant) in [
        ("githb.delete", "mcp__github__delete"),
        ("githb delete", "mcp__github__delete"),
        ("mcp_db__echo", "mcp__db__echo"),
        ("mcp_github", "mcp__github"),
        ("mcp__db:echo", "mcp__db__echo"),
        ("mcp__db.*", "mcp__db__*"),
        ("mcp__githb__*", "mcp__github__*"),
        ("mcp__githubb", "mcp__github"),
    ] {
        let hint = format!("did you mean `{meant}`?");
        assert_eq!(missed("deny", rule), (vec![hint], vec![]), "{rule}");
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
        "do_it",
        "delete_*",
    ] {
        assert_eq!(missed("deny", rule), (vec![], vec![]), "{rule}");
    }
    // It may be a tool's own name, or a server of another project.
    for rule in ["do.it", "mcp__elsewhere", "mcp__elsewhere__*", "mcp__x*"] {
        let (slips, remarks) = missed("deny", rule);
        assert_eq!((slips.len(), remarks.len()), (0, 1), "{rule}");
    }
}

#[test]
fn an_allow_rule_without_a_server_is_told_unless_a_tool_can_be_shown_so() {
    for (rule, told) in [
        ("create_issue", 1),
        ("do.it", 1),
        ("ToolSearch", 0),
        ("*", 0),
    ] {
        let (slips, remarks) = missed("allow", rule);
        assert_eq!((slips.len(), remarks.len()), (0, told), "{rule}");
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
    let slips = permissions.aim(&hooks, &[&db]);
    assert_eq!(slips.len(), 1, "{slips:?}");
    assert!(slips[0].message.contains("`mcp_db__echo`"), "{slips:?}");
    let remarks = permissions.remarks(&hooks, &[&db], &|_| true);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
}

#[test]
fn a_hook_around_questions_names_servers_and_is_told_where_there_is_none() {
    let group = |matcher: &str| json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": "x" }] });
    let names = [
        "db",
        "DB",
        "mcp__db",
        "my server",
        "my_server",
        "bd|db",
        "else",
        "*",
    ];
    let value = json!({ "Elicitation": names.map(group), "ElicitationResult": [group("dbb")] });
    let (hooks, found) = Hooks::parse(&value, &here(), Scope::User);
    assert_eq!(found, []);
    let servers = ["dbs", "db", "my server"].map(|name| ServerName::new(name).unwrap());
    let servers: Vec<&ServerName> = servers.iter().collect();
    let mut permissions = Permissions::empty();
    let slips = permissions.aim(&hooks, &servers);
    let hints: Vec<_> = slips.iter().filter_map(|one| one.hint.as_deref()).collect();
    assert_eq!(hints, ["did you mean `dbs`?"], "{slips:?}");
    let remarks = permissions.remarks(&hooks, &servers, &|_| true);
    let said: Vec<_> = remarks.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].contains("speaks of `else`"), "{said:?}");
    let hit = |matcher: &str, server: &str| {
        let value = json!({ "Elicitation": [group(matcher)] });
        let (hooks, _) = Hooks::parse(&value, &here(), Scope::User);
        let names = names_of_server(&ServerName::new(server).unwrap());
        !hooks
            .matching_any(HookEvent::Elicitation, &names)
            .is_empty()
    };
    for matcher in [
        "my server",
        "my_server",
        "mcp__my_server",
        "mcp__my server",
        "mcp__my_server__.*",
        "my.*",
    ] {
        assert!(hit(matcher, "my server"), "{matcher}");
    }
    assert!(!hit("my", "my server"));
}
