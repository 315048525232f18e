//! Rules in another spelling than the server's own (SEC-31): the one that restricts means all it
//! could mean, the one that allows counts while it can mean one thing only.

use serde_json::json;

use super::super::*;
use super::{denies, here, key, rules, verdict};

/// Whether an allow rule lets a tool run that nothing else is spelled like, where these servers
/// are configured.
fn allows(rule: &str, servers: &[&str], of: &str, tool: &str) -> bool {
    let tool = key(of, tool);
    decided(rule, servers, CallSubject::tool(&tool).spelled_alone())
}

fn decided(rule: &str, servers: &[&str], subject: CallSubject<'_>) -> bool {
    let servers: Vec<ServerName> = (servers.iter())
        .map(|name| ServerName::new(*name).unwrap())
        .collect();
    let mut permissions = rules(&json!({ "allow": [rule] }));
    permissions.aim(&Hooks::empty(), &servers.iter().collect::<Vec<_>>());
    let allowed = verdict(&permissions, subject).0 == 'a';
    if allowed {
        // What a rule allows it would also deny.
        let denying = rules(&json!({ "deny": [rule] }));
        assert_eq!(verdict(&denying, subject).0, 'd', "{rule}");
    }
    allowed
}

#[test]
fn sec_31_an_allow_rule_in_either_spelling_counts_while_it_can_mean_one_thing() {
    let (server, tool) = ("My Server!", "do thing");
    for rule in [
        "mcp__My Server!__do thing",
        "mcp__My_Server___do_thing",
        "mcp__My Server!__do_thing",
        "mcp__My_Server___do thing",
        "mcp__My_Server___do_*",
        "mcp__My_Server_",
        "mcp__My_Server___*",
    ] {
        assert!(allows(rule, &[server, "other"], server, tool), "{rule}");
        assert!(!allows(rule, &[server], "other", tool), "{rule}");
    }
    for rule in [
        "mcp__plugin_p_s__t",
        "mcp__plugin_p_s",
        "mcp__plugin_p_s__*",
    ] {
        assert!(allows(rule, &["plugin:p:s"], "plugin:p:s", "t"), "{rule}");
        // Another server could be meant, whether or not it is connected.
        let two = ["plugin:p:s", "plugin.p.s"];
        assert!(!allows(rule, &two, "plugin:p:s", "t"), "{rule}");
        let exact = ["plugin:p:s", "plugin_p_s"];
        assert!(!allows(rule, &exact, "plugin:p:s", "t"), "{rule}");
        assert!(allows(rule, &exact, "plugin_p_s", "t"), "{rule}");
        // Who is not configured is not meant.
        assert!(!allows(rule, &["other"], "plugin:p:s", "t"), "{rule}");
    }
    // Where the border is unclear.
    assert!(allows("mcp__a__b__c", &["a__b"], "a__b", "c"));
    assert!(!allows("mcp__a__b__c", &["a__b", "a"], "a__b", "c"));
    assert!(allows("mcp__a__b__c", &["a__b", "a"], "a", "b__c"));
    assert!(!allows("mcp__a__b", &["a__b"], "a__b", "c"));
}

#[test]
fn sec_31_an_allow_rule_in_the_plain_spelling_counts_for_no_tool_that_shares_it() {
    let servers = ["s"];
    let lossy = key("s", "get.item");
    let rule = "mcp__s__get_item";
    assert!(decided(
        rule,
        &servers,
        CallSubject::tool(&lossy).spelled_alone()
    ));
    assert!(!decided(rule, &servers, CallSubject::tool(&lossy)));
    assert!(!decided(
        "mcp__s__get_*",
        &servers,
        CallSubject::tool(&lossy)
    ));
    assert!(decided(
        "mcp__s__get.item",
        &servers,
        CallSubject::tool(&lossy)
    ));
    assert!(decided("mcp__s__*", &servers, CallSubject::tool(&lossy)));
    // The one that is spelled so without loss is the one that is named.
    let lossless = key("s", "get_item");
    assert!(decided(rule, &servers, CallSubject::tool(&lossless)));
    // A wildcard does not reach names that hide something.
    let hidden = key("s", "get\u{202e}item");
    assert!(!decided(
        "mcp__s__get_*",
        &servers,
        CallSubject::tool(&hidden).spelled_alone()
    ));
}

#[test]
fn a_rule_that_restricts_is_understood_as_people_type_names() {
    for rule in [
        "github.delete_repo",
        "github delete_repo",
        "github/delete_repo",
        "github:delete_repo",
        "GitHub.Delete_Repo",
        "github.delete_*",
        "github delete_repo(name:*)",
        "github__delete_repo",
        "github.*",
        "github",
        "delete_repo",
    ] {
        let (denying, found) = Permissions::parse(&json!({ "deny": [rule] }), &here(), Scope::User);
        assert_eq!(found, [], "{rule}");
        let arguments = json!({ "name": "x" });
        let tool = key("github", "delete_repo");
        let subject = CallSubject::tool(&tool).with_arguments(arguments.as_object().unwrap());
        assert_eq!(verdict(&denying, subject).0, 'd', "{rule}");
        assert_eq!(verdict(&denying, &key("gitlab", "status")).0, '?', "{rule}");
        let asking = rules(&json!({ "ask": [rule], "allow": ["*"] }));
        assert_eq!(verdict(&asking, subject).0, '?', "{rule}");
        // An allow rule takes names as they are.
        let allowing = rules(&json!({ "allow": [rule] }));
        assert_eq!(verdict(&allowing, subject).0, '?', "{rule}");
    }
    assert!(denies("my server.get.item", "my server", "get.item"));
    assert!(denies("my_server get_item", "my server", "get.item"));
    assert!(!denies("github.delete_repo", "github", "create_repo"));
}

#[test]
fn an_allow_rule_that_could_mean_two_servers_is_told() {
    let servers = ["my server", "my_server", "my.server", "x y", "x.y"];
    let servers = servers.map(|name| ServerName::new(name).unwrap());
    let servers: Vec<&ServerName> = servers.iter().collect();
    let written = ["mcp__my_server__get", "mcp__x_y", "mcp__my server__get"];
    let mut permissions = rules(&json!({ "allow": written }));
    assert_eq!(permissions.aim(&Hooks::empty(), &servers), []);
    let remarks = permissions.remarks(&Hooks::empty(), &servers, &|_| true);
    let said: Vec<_> = remarks.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "the rule `mcp__my_server__get` in `permissions.allow` can mean servers `my server` \
             and `my.server` and `my_server`; it counts for `my_server` alone",
            "the rule `mcp__x_y` in `permissions.allow` can mean servers `x y` and `x.y`; it \
             allows nothing",
        ]
    );
}

/// Whether a deny rule counts for a tool of which only this name is known.
fn could_deny(rule: &str, server: &str, tool: &str, unsure: UnsureName) -> bool {
    let tool = key(server, tool);
    let shown = tool.spelled();
    let subject = CallSubject::tool(&tool).shown_as(&shown).unsure_of(unsure);
    verdict(&rules(&json!({ "deny": [rule] })), subject).0 == 'd'
}

#[test]
fn sec_31_a_rule_that_restricts_counts_for_whatever_a_spelling_can_stand_for() {
    for (rule, tool) in [
        ("mcp__s__do thing", "do_thing"),
        ("mcp__s__Do Thing", "do_thing"),
        ("mcp__s__do * now", "do_this_now"),
        ("s.do thing", "do_thing"),
        ("do thing", "do_thing"),
        // One letter and its mark are two characters.
        ("mcp__s__caf\u{e9}", "cafe_"),
        ("mcp__s__caf\u{e9}", "caf_"),
        // Its lower case is two characters.
        ("mcp__s__\u{130}x", "_x"),
        // A digest stands for the end.
        ("mcp__s__do thing", "do_thing_0123456789"),
    ] {
        assert!(
            could_deny(rule, "s", tool, UnsureName::Tool),
            "{rule} {tool}"
        );
    }
    for (rule, tool) in [
        ("mcp__s__do thing", "do-thing"),
        ("mcp__s__do thing", "do_things"),
        ("mcp__s__do thing", "do_thin"),
        ("mcp__s__do things", "do_thing_0123456789"),
        ("mcp__t__do thing", "do_thing"),
        ("mcp__s!__do thing", "do_thing"),
    ] {
        assert!(
            !could_deny(rule, "s", tool, UnsureName::Tool),
            "{rule} {tool}"
        );
    }
    // One that cannot be read may be a name.
    let broken = json!({ "deny": ["mcp__s__a b(c"] });
    let (denying, _) = Permissions::parse(&broken, &here(), Scope::User);
    let tool = key("s", "a_b_c");
    let subject = CallSubject::tool(&tool).unsure_of(UnsureName::Tool);
    assert_eq!(verdict(&denying, subject).0, 'd');
    // A server's name is known, or it is a spelling as well.
    assert!(could_deny(
        "mcp__s!__do thing",
        "s_",
        "do_thing",
        UnsureName::Both
    ));
    assert!(could_deny("mcp__s!", "s_", "do_thing", UnsureName::Both));
    // Then the border may be elsewhere.
    assert!(could_deny("mcp__s!__do", "s", "_do", UnsureName::Both));
    assert!(could_deny("mcp__s!", "s", "_do", UnsureName::Both));
    assert!(!could_deny(
        "mcp__s!__do thing",
        "s_",
        "do_thing",
        UnsureName::Tool
    ));
    assert!(!could_deny("mcp__s!", "s_", "do_thing", UnsureName::Tool));
    // What a digest took the place of may go on.
    let cut = format!("{}_0123456789", "x".repeat(64 - 11 - "mcp__s__".len()));
    let whole = format!("mcp__s__{} and more", "x".repeat(60));
    assert!(could_deny(&whole, "s", &cut, UnsureName::Tool));
    assert!(!could_deny("mcp__s__y*", "s", &cut, UnsureName::Tool));
}
