//! What the rules decide, case by case and by property.

use serde_json::{Value, json};
use toolway_types::{Origin, Scope, ServerName, Severity, ToolKey};

use super::*;

mod aim;
mod confined;
mod predicates;
mod properties;
mod spelled;
mod written;

fn here() -> Origin {
    Origin::file("/home/ada/.config/toolway/settings.json", 3)
}

fn key(server: &str, tool: &str) -> ToolKey {
    ToolKey::new(ServerName::new(server).unwrap(), tool)
}

fn rules(value: &Value) -> Permissions {
    let (permissions, found) = Permissions::parse(value, &here(), Scope::User);
    assert_eq!(found, [], "{value}");
    permissions
}

/// The word of a decision, and the rule behind it.
fn verdict<'a>(permissions: &Permissions, subject: impl Into<CallSubject<'a>>) -> (char, String) {
    match permissions.decide(subject) {
        PermissionDecision::Deny { rule } => ('d', rule.rule.clone()),
        PermissionDecision::Unreadable { .. } => ('u', String::new()),
        PermissionDecision::Ask { rule } => {
            ('?', rule.map(|rule| rule.rule.clone()).unwrap_or_default())
        }
        PermissionDecision::Allow { rule } => {
            ('a', rule.map(|rule| rule.rule.clone()).unwrap_or_default())
        }
    }
}

fn denies(rule: &str, server: &str, tool: &str) -> bool {
    verdict(&rules(&json!({ "deny": [rule] })), &key(server, tool)).0 == 'd'
}

fn allows(rule: &str, server: &str, tool: &str) -> bool {
    verdict(&rules(&json!({ "allow": [rule] })), &key(server, tool)).0 == 'a'
}

fn errors(value: &Value, scope: Scope) -> (Permissions, Vec<String>) {
    let (permissions, found) = Permissions::parse(value, &here(), scope);
    for diagnosis in &found {
        assert_eq!(diagnosis.origin, Some(here()));
        assert!(diagnosis.hint.is_some(), "{diagnosis:?}");
    }
    (
        permissions,
        found.into_iter().map(|one| one.message).collect(),
    )
}

#[test]
fn deny_beats_ask_beats_allow_beats_the_mode() {
    let permissions = rules(&json!({
        "allow": ["mcp__git"],
        "ask": ["mcp__git__push*"],
        "deny": ["mcp__git__push_force"],
        "defaultMode": "bypass",
    }));
    let said = |tool| verdict(&permissions, &key("git", tool));
    assert_eq!(said("push_force"), ('d', "mcp__git__push_force".into()));
    assert_eq!(said("push"), ('?', "mcp__git__push*".into()));
    assert_eq!(said("status"), ('a', "mcp__git".into()));
    assert_eq!(
        verdict(&permissions, &key("db", "query")),
        ('a', String::new())
    );
}

#[test]
fn without_a_rule_the_mode_decides() {
    for (mode, expected) in [
        ("default", '?'),
        ("auto", '?'),
        ("bypass", 'a'),
        ("bypassPermissions", 'a'),
    ] {
        let permissions = rules(&json!({ "defaultMode": mode }));
        assert_eq!(
            verdict(&permissions, &key("a", "b")),
            (expected, String::new()),
            "{mode}"
        );
    }
    assert_eq!(verdict(&Permissions::empty(), &key("a", "b")).0, '?');
}

#[test]
fn every_form_of_rule_denies_what_it_names() {
    for rule in [
        "mcp__git",
        "mcp__git__*",
        "mcp__git__push",
        "mcp__*",
        "*",
        "mcp__g*__p*",
        "push",
        "git",
    ] {
        assert!(denies(rule, "git", "push"), "{rule}");
    }
    for rule in [
        "mcp__gi",
        "mcp__git__pus",
        "mcp__github",
        "gi",
        "mcp__git__pull",
        "mcp__g*__x*",
    ] {
        assert!(!denies(rule, "git", "push"), "{rule}");
    }
}

#[test]
fn every_form_of_rule_allows_what_it_names() {
    for rule in [
        "mcp__git",
        "mcp__git__*",
        "mcp__git__push",
        "mcp__*",
        "*",
        "mcp__g*__p*",
    ] {
        assert!(allows(rule, "git", "push"), "{rule}");
    }
    for rule in [
        "push",
        "p*",
        "mcp__GIT__push",
        "mcp__git__Push",
        "mcp__gi",
        "git",
        "*__push",
    ] {
        assert!(!allows(rule, "git", "push"), "{rule}");
    }
}

#[test]
fn sec_31_deny_matches_every_spelling_of_a_tool() {
    let tool = key("my server", "Get.Item");
    for rule in [
        "mcp__my server__Get.Item",
        "mcp__my_server__Get_Item",
        "mcp__my server__Get_Item",
        "mcp__MY_SERVER__get_item",
        "mcp__my_server",
        "mcp__my server",
        "Get.Item",
        &tool.exposed(),
        &tool.exposed_apart(),
        &tool.exposed_apart().to_uppercase(),
    ] {
        assert!(denies(rule, "my server", "Get.Item"), "{rule}");
        let asking = rules(&json!({ "ask": [rule], "allow": ["*"] }));
        assert_eq!(verdict(&asking, &tool).0, '?', "{rule}");
    }
    // A composed letter and its parts, a hidden character, a connector's folded name.
    assert!(denies("mcp__caf\u{e9}__x", "cafe\u{301}", "x"));
    assert!(denies("mcp__fs__delete", "fs", "de\u{200b}lete"));
    assert!(denies("mcp__Drive_beta__x", "Drive (beta)", "x"));
}

#[test]
fn sec_31_allow_matches_one_identity_only() {
    let tool = key("my server", "get.item");
    for rule in [
        "mcp__my server__get.item",
        "mcp__my server",
        "mcp__my server__*",
        &tool.exposed_apart(),
    ] {
        assert!(allows(rule, "my server", "get.item"), "{rule}");
    }
    // The normalised spelling also belongs to `my.server`, so it permits neither while it is
    // not known which of them are configured.
    for server in ["my server", "my.server"] {
        assert!(!allows("mcp__my_server__get_item", server, "get.item"));
        assert!(!allows("mcp__my_server", server, "get.item"));
    }
    assert!(allows("mcp__my_server__get_item", "my_server", "get_item"));
    // A server cannot take a name that was allowed as another tool's exposed name.
    let exposed = tool.exposed_apart();
    let copy = exposed.strip_prefix("mcp__my_server__").unwrap();
    assert!(!allows(&exposed, "my_server", copy));
    // A wildcard does not reach names that hide something.
    assert!(!allows("mcp__fs__read*", "fs", "read\u{202e}x"));
}

#[test]
fn sec_31_an_unclear_border_denies_both_readings_and_allows_one() {
    for (server, tool) in [("a", "b__c"), ("a__b", "c")] {
        assert!(denies("mcp__a__b__c", server, tool));
        assert!(denies("mcp__a__b__*", server, tool));
        let one = key(server, tool).exposed_apart() == "mcp__a__b__c";
        assert_eq!(allows("mcp__a__b__c", server, tool), one);
    }
    assert!(allows("mcp__a__b__c", "a", "b__c"));
    assert!(!allows("mcp__a__b__*", "a__b", "c"));
    assert!(denies("mcp__a__b", "a__b", "anything"));
    assert!(!denies("mcp__a__b", "a", "b__c"));
    // `acme_` + `status` against `acme` + `_status`.
    assert!(denies("mcp__acme___status", "acme_", "status"));
    assert!(denies("mcp__acme___status", "acme", "_status"));
    assert!(!allows("mcp__acme___status", "acme_", "status"));
    assert!(allows("mcp__acme___status", "acme", "_status"));
}

#[test]
fn a_bare_name_is_one_of_the_hosts_own_tools_or_what_the_catalogue_shows() {
    let permissions =
        rules(&json!({ "allow": ["ToolSearch", "greet"], "deny": ["ReadMcpResource"] }));
    assert_eq!(
        verdict(&permissions, CallSubject::builtin("ToolSearch")).0,
        'a'
    );
    assert_eq!(
        verdict(&permissions, CallSubject::builtin("ReadMcpResource")).0,
        'd'
    );
    assert_eq!(
        verdict(&permissions, CallSubject::builtin("ListMcpResources")).0,
        '?'
    );
    let tool = key("sdk", "greet");
    assert_eq!(verdict(&permissions, &tool).0, '?');
    assert_eq!(
        verdict(&permissions, CallSubject::tool(&tool).shown_as("greet")).0,
        'a'
    );
    let alias = rules(&json!({ "deny": ["hello"] }));
    assert_eq!(
        verdict(&alias, CallSubject::tool(&tool).shown_as("Hello")).0,
        'd'
    );
}

#[test]
fn a_broken_restricting_rule_holds_for_all_it_could_mean() {
    for rule in [
        "mcp__fs__delete(",
        "mcp__fs__delete(path)",
        "mcp__fs__delete(@dangerous)",
        "mcp__fs__delete()",
        "mcp__fs__delete(:x)",
        "mcp__fs__delete)",
        "mcp__fs__del\u{200b}ete",
        "mcp__fs__",
    ] {
        let (denying, said) = errors(&json!({ "deny": [rule] }), Scope::User);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("denies everything"), "{said:?}");
        assert_eq!(verdict(&denying, &key("fs", "delete")).0, 'd', "{rule}");
        assert_eq!(verdict(&denying, &key("git", "status")).0, '?', "{rule}");
        let (asking, _) = errors(&json!({ "ask": [rule], "allow": ["*"] }), Scope::User);
        assert_eq!(verdict(&asking, &key("fs", "delete")).0, '?', "{rule}");
        let (allowing, said) = errors(&json!({ "allow": [rule] }), Scope::User);
        assert!(said[0].contains("no effect"), "{said:?}");
        assert_eq!(verdict(&allowing, &key("fs", "delete")).0, '?', "{rule}");
    }
    // Parentheses that were part of the tool's own name.
    let (denying, _) = errors(&json!({ "deny": ["mcp__fs__get(x)"] }), Scope::User);
    assert_eq!(verdict(&denying, &key("fs", "get(x)")).0, 'd');
}

#[test]
fn sec_14_a_rule_without_a_readable_name_is_diagnosed_and_denies_all() {
    for entry in [
        json!(""),
        json!("mcp__"),
        json!("mcp____x"),
        json!(7),
        json!({}),
        json!("*(x)"),
    ] {
        let value = json!({ "deny": [entry], "allow": ["*"] });
        for scope in [Scope::User, Scope::Managed] {
            let (read, said) = errors(&value, scope);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains("denies everything of every server"));
            assert_eq!(verdict(&read, &key("git", "status")).0, 'd', "{entry}");
        }
        let value = json!({ "ask": [entry], "allow": ["*"] });
        let (asking, _) = errors(&value, Scope::User);
        assert_eq!(verdict(&asking, &key("git", "status")).0, '?', "{entry}");
        let (allowing, said) = errors(&json!({ "allow": [entry] }), Scope::User);
        assert!(said[0].contains("no effect"), "{said:?}");
        assert_eq!(verdict(&allowing, &key("git", "status")).0, '?', "{entry}");
    }
    for scope in [Scope::User, Scope::Managed] {
        let (read, said) = errors(&json!({ "deny": { "mcp__git": true } }), scope);
        assert_eq!(said.len(), 1);
        assert_eq!(verdict(&read, &key("git", "status")).0, 'd');
    }
    // Nothing stands here, so nothing is forbidden; but an organisation meant something.
    for (scope, word) in [(Scope::User, '?'), (Scope::Managed, 'd')] {
        let (read, _) = errors(&json!({ "deny": null }), scope);
        assert_eq!(verdict(&read, &key("git", "status")).0, word);
    }
}

#[test]
fn wrong_types_and_near_misses_are_diagnosed_with_a_hint() {
    let (permissions, said) = errors(
        &json!({ "deny": "mcp__fs", "denied": [], "allow": 3, "defaultMode": "yolo", "theme": 1 }),
        Scope::User,
    );
    assert_eq!(said.len(), 5, "{said:#?}");
    assert_eq!(verdict(&permissions, &key("fs", "read")).0, 'd');
    assert_eq!(permissions.mode(), PermissionMode::Default);
    let (_, found) = Permissions::parse(&json!({ "alow": [] }), &here(), Scope::User);
    assert_eq!(found[0].hint.as_deref(), Some("did you mean `allow`?"));
    assert_eq!(found[0].severity, Severity::Error);
    assert_eq!(
        errors(&json!([]), Scope::User).1,
        ["`permissions` must be an object, not an array"]
    );
}

#[test]
fn sec_14_a_policy_that_cannot_be_understood_refuses_every_call() {
    for value in [
        json!([]),
        json!("deny"),
        Value::Null,
        json!({ "disableBypas": true }),
        json!({ "dney": [] }),
        json!({ "Deny": ["mcp__fs"] }),
        json!({ "alow": [] }),
    ] {
        let (managed, said) = errors(&value, Scope::Managed);
        assert_eq!(said.len(), 1, "{value}");
        assert_eq!(
            managed.decide_tool(&key("git", "status")),
            PermissionDecision::Unreadable { origin: here() },
            "{value}"
        );
        // A person's own is said at every call.
        let (user, said) = errors(&value, Scope::User);
        assert_ne!(verdict(&user, &key("git", "status")).0, 'u', "{value}");
        let faults: Vec<_> = user.faults().iter().map(|one| &one.message).collect();
        assert_eq!(faults, said.iter().collect::<Vec<_>>(), "{value}");
    }
    // Keys of other hosts do no harm.
    let (managed, _) = errors(&json!({ "additionalDirectories": [] }), Scope::Managed);
    assert_eq!(verdict(&managed, &key("git", "status")).0, '?');
    assert_eq!(managed.faults(), []);
}

#[test]
fn a_key_that_is_nearly_one_that_restricts_restricts() {
    let (user, _) = errors(&json!({ "denny": ["mcp__fs"] }), Scope::User);
    assert_eq!(verdict(&user, &key("fs", "read")).0, 'd');
    assert_eq!(verdict(&user, &key("git", "status")).0, '?');
    let (user, _) = errors(
        &json!({ "disableBypas": true, "defaultMode": "bypass" }),
        Scope::User,
    );
    assert_eq!(user.mode(), PermissionMode::Default);
    let (user, _) = errors(&json!({ "alow": ["mcp__fs"] }), Scope::User);
    assert_eq!(verdict(&user, &key("fs", "read")).0, '?');
}

#[test]
fn sec_03_the_repositorys_own_permissions_are_ignored_with_a_warning() {
    let value = json!({ "allow": ["*"], "defaultMode": "bypass" });
    for scope in [Scope::Project, Scope::Plugin, Scope::Connector] {
        let (permissions, found) = Permissions::parse(&value, &here(), scope);
        assert!(permissions.is_empty());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning);
    }
    let local = rules(&json!({ "allow": ["*"], "deny": ["mcp__fs"], "defaultMode": "bypass" }));
    let local = local.narrowing_only();
    assert_eq!(verdict(&local, &key("fs", "x")).0, 'd');
    assert_eq!(verdict(&local, &key("git", "x")).0, '?');
}

#[test]
fn layers_add_up_and_the_highest_scope_sets_the_mode() {
    let layer = |scope, value: Value| Permissions::parse(&value, &here(), scope).0;
    let user = layer(
        Scope::User,
        json!({ "deny": ["mcp__fs"], "defaultMode": "bypass" }),
    );
    let managed = layer(
        Scope::Managed,
        json!({ "allow": ["mcp__fs"], "deny": ["mcp__f*"], "defaultMode": "auto" }),
    );
    for layers in [[user.clone(), managed.clone()], [managed, user.clone()]] {
        let merged = Permissions::merged(layers);
        assert_eq!(verdict(&merged, &key("fs", "x")), ('d', "mcp__f*".into()));
        assert_eq!(merged.mode(), PermissionMode::Auto);
    }
    for ban in [
        json!({ "disableBypass": true }),
        json!({ "disableBypassPermissionsMode": "disable" }),
        json!({ "disableBypass": "yes" }),
    ] {
        let merged = Permissions::merged([user.clone(), layer(Scope::Managed, ban)]);
        assert_eq!(merged.mode(), PermissionMode::Default);
        assert_eq!(merged.bypass_forbidden_by(), Some(&here()));
        assert_eq!(verdict(&merged, &key("git", "x")).0, '?');
    }
    let free = Permissions::merged([
        user,
        layer(Scope::Managed, json!({ "disableBypass": false })),
    ]);
    assert_eq!(free.mode(), PermissionMode::Bypass);
}

#[test]
fn sec_35_a_diagnosis_shows_no_hidden_character_of_the_file() {
    let bad = "\u{1b}[2Jx\u{202e}";
    let value = json!({ "deny": [format!("mcp__{bad}(")], "defaultMode": bad, bad: 1 });
    let (_, found) = Permissions::parse(&value, &here(), Scope::Local);
    assert_eq!(found.len(), 3);
    for said in found
        .iter()
        .flat_map(|one| [Some(&one.message), one.hint.as_ref()])
        .flatten()
    {
        assert!(!said.contains(toolway_types::text::is_hidden), "{said:?}");
    }
}

#[test]
fn sec_31_deny_is_as_wide_as_allow_in_every_alphabet() {
    // The capital sigma has two small letters, and which one depends on what follows.
    for (rule, server, tool) in [
        ("mcp__\u{391}\u{3a3}*__t", "\u{391}\u{3a3}\u{391}", "t"),
        ("mcp__s__\u{391}\u{3a3}*", "s", "\u{391}\u{3a3}\u{391}"),
        // A mark behind a wildcard has nothing to join; in the name it has.
        ("mcp__*\u{301}__t", "e\u{301}", "t"),
        ("mcp__s__*\u{301}", "s", "e\u{301}"),
    ] {
        assert!(allows(rule, server, tool), "{rule}");
        assert!(denies(rule, server, tool), "{rule}");
    }
    assert!(denies("mcp__\u{3b1}\u{3c3}*", "\u{391}\u{3a3}", "t"));
    assert!(denies("mcp__\u{3b1}\u{3c2}", "\u{391}\u{3a3}", "t"));
}

#[test]
fn sec_31_every_exposed_name_is_a_rule_for_its_tool() {
    let long = "s".repeat(48);
    for (server, tool) in [
        // Nothing of these names is left in the exposed one.
        ("\u{65e5}\u{672c}", "search"),
        ("_", "search"),
        // The border is cut off.
        (long.as_str(), "search"),
        ("git", ""),
    ] {
        let rule = key(server, tool).exposed_apart();
        assert!(allows(&rule, server, tool), "{rule}");
        assert!(denies(&rule, server, tool), "{rule}");
        assert!(!allows(&rule, server, "other"), "{rule}");
        assert!(!denies(&rule, server, "other"), "{rule}");
    }
}
