//! Rule matching against a naive reference, and the promises that hold for all rules.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolway_types::{Scope, ToolKey, name, text};

use super::super::*;
use super::{here, key};

/// Matches by trying every length for every `*`.
fn naive(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
        Some((c, rest)) => name.first() == Some(c) && naive(rest, &name[1..]),
    }
}

fn naive_text(pattern: &str, name: &str) -> bool {
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    naive(&chars(pattern), &chars(name))
}

/// Deny as the documentation says it: any spelling, any case, either reading of the border.
fn naive_deny(rule: &str, tool: &ToolKey) -> bool {
    let lower = |text: &str| text::fold(text);
    let visible = |text: &str| text::clean_line(text).into_owned();
    let forms = |given: &str| {
        [
            given.to_owned(),
            visible(given),
            name::normalize(given),
            name::normalize(&visible(given)),
        ]
    };
    let server = tool.server.as_str();
    let mut servers = forms(server).to_vec();
    servers.push(name::normalize_connector(server));
    let mut names = vec![tool.exposed(), tool.exposed_apart()];
    for tool in forms(&tool.tool) {
        for server in &servers {
            names.push(format!("mcp__{server}__{tool}"));
            for between in [".", " ", "/", ":", "__"] {
                names.push(format!("{server}{between}{tool}"));
            }
        }
        names.push(tool);
    }
    let rule = lower(rule);
    let of_server = rule.strip_prefix("mcp__").unwrap_or(&rule);
    names.iter().any(|name| naive_text(&rule, &lower(name)))
        || servers
            .iter()
            .any(|server| naive_text(of_server, &lower(server)))
}

/// Allow as the documentation says it: one identity.
fn naive_allow(rule: &str, tool: &ToolKey) -> bool {
    if rule.chars().all(|c| c == '*') {
        return true;
    }
    let Some(rest) = rule.strip_prefix("mcp__") else {
        return false;
    };
    let given = |server_rule: &str, tool_rule: &str| {
        naive_text(server_rule, tool.server.as_str())
            && naive_text(tool_rule, &tool.tool)
            && (!tool_rule.contains('*') || !tool.tool.contains(text::is_hidden))
    };
    match rest.split_once("__") {
        // The exposed name of a long server name is cut before the border.
        None => naive_text(rest, tool.server.as_str()) || tool.exposed_apart() == rule,
        Some((server, own)) => {
            let looks_exposed =
                rule.len() <= name::MAX_EXPOSED_LEN && name::normalize(rule) == rule;
            if looks_exposed {
                tool.exposed_apart() == rule
            } else {
                given(server, own)
            }
        }
    }
}

/// Names over a tiny alphabet, so that borders, cases and replaced characters meet often.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[aA_.]{1,5}",
        1 => "[a_]{1,3}(__)?[a.]{1,3}",
        1 => "[ab]{60,70}",
        1 => "a[\u{200b}\u{e9}]{0,2}a",
    ]
}

fn tool_key() -> impl Strategy<Value = ToolKey> {
    let server = part().prop_filter("a server name", |name| {
        toolway_types::ServerName::new(name.as_str()).is_ok()
    });
    (server, part()).prop_map(|(server, tool)| key(&server, &tool))
}

/// Rules that are well formed but otherwise anything.
fn rule_text() -> impl Strategy<Value = String> {
    prop_oneof![
        (part(), part()).prop_map(|(server, tool)| format!("mcp__{server}__{tool}")),
        part().prop_map(|server| format!("mcp__{server}")),
        "mcp__[aA_.*]{1,4}__[aA_.*]{1,4}",
        "mcp__[aA_*]{1,6}",
        "[aA_.*]{1,4}",
        tool_key().prop_map(|tool| tool.exposed()),
        tool_key().prop_map(|tool| tool.exposed_apart()),
        tool_key().prop_map(|tool| format!("mcp__{}__{}", tool.server, tool.tool)),
    ]
    .prop_filter("a readable rule", |rule| {
        Permissions::parse(&json!({ "allow": [rule] }), &here(), Scope::User)
            .1
            .is_empty()
    })
}

/// A list entry of any kind, readable or not.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => rule_text().prop_map(Value::from),
        2 => (rule_text(), "[a:*@ &()]{0,8}")
            .prop_map(|(rule, inside)| Value::from(format!("{rule}({inside})"))),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(json!(null)),
    ]
}

fn settings() -> impl Strategy<Value = (Value, Scope)> {
    let list = || prop::collection::vec(anything(), 0..4);
    let mode = prop::sample::select(vec!["default", "auto", "bypass", "other"]);
    let scope = prop::sample::select(Scope::ALL.to_vec());
    (list(), list(), list(), mode, scope).prop_map(|(allow, ask, deny, mode, scope)| {
        (
            json!({ "allow": allow, "ask": ask, "deny": deny, "defaultMode": mode }),
            scope,
        )
    })
}

fn is_deny(decision: &PermissionDecision) -> bool {
    matches!(decision, PermissionDecision::Deny { .. })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_wildcard_matches_as_the_naive_matcher_does(
        pattern in "[ab*\u{e9}]{0,8}", name in "[ab\u{e9}]{0,10}",
    ) {
        prop_assert_eq!(glob::Glob::new(&pattern).matches(&name), naive_text(&pattern, &name));
    }

    #[test]
    fn deny_agrees_with_the_naive_reference(rule in rule_text(), tool in tool_key()) {
        let (permissions, _) =
            Permissions::parse(&json!({ "deny": [rule] }), &here(), Scope::User);
        prop_assert_eq!(is_deny(&permissions.decide(&tool)), naive_deny(&rule, &tool));
    }

    #[test]
    fn allow_agrees_with_the_naive_reference(rule in rule_text(), tool in tool_key()) {
        let (permissions, _) =
            Permissions::parse(&json!({ "allow": [rule] }), &here(), Scope::User);
        let allowed = matches!(permissions.decide(&tool), PermissionDecision::Allow { .. });
        prop_assert_eq!(allowed, naive_allow(&rule, &tool));
    }

    /// Knowing a tool only by the name that models see overlooks no rule that denies it.
    #[test]
    fn sec_31_what_denies_a_tool_denies_it_by_its_exposed_name(
        rule in rule_text(), tool in tool_key(),
    ) {
        let (permissions, _) =
            Permissions::parse(&json!({ "deny": [rule] }), &here(), Scope::User);
        for exposed in [tool.exposed(), tool.exposed_apart()] {
            let start = format!("mcp__{}__", tool.server.normalized());
            let Some(own) = exposed.strip_prefix(&start) else {
                continue;
            };
            let guessed = key(tool.server.as_str(), own);
            let subject = CallSubject::tool(&guessed).shown_as(&exposed).unsure_of(UnsureName::Tool);
            if is_deny(&permissions.decide(&tool)) {
                prop_assert!(is_deny(&permissions.decide(subject)), "{} {}", rule, exposed);
            }
        }
    }

    /// Spellings that were made before decide as those made for the call, and not once the tool
    /// is shown under another name.
    #[test]
    fn kept_spellings_change_no_decision(
        settings in settings(), tool in tool_key(), shown in part(), as_other in part(),
    ) {
        let (value, scope) = settings;
        let (permissions, _) = Permissions::parse(&value, &here(), scope);
        let expected = permissions.decide(CallSubject::tool(&tool).shown_as(&shown));
        let kept = ToolSpellings::of_tool(&tool, &shown);
        prop_assert_eq!(&permissions.decide(kept.subject()), &expected);
        let kept = ToolSpellings::of_tool(&tool, &as_other);
        prop_assert_eq!(permissions.decide(kept.subject().shown_as(&shown)), expected);
    }

    /// Which rules speak of a tool is remembered with its spellings; other rules are not judged by
    /// that, however they came.
    #[test]
    fn kept_spellings_outlive_a_change_of_the_rules(
        before in settings(), after in settings(), tool in tool_key(), shown in part(),
    ) {
        let kept = ToolSpellings::of_tool(&tool, &shown);
        let subject = CallSubject::tool(&tool).shown_as(&shown);
        let read = |(value, scope): &(Value, Scope)| {
            Permissions::parse(value, &here(), *scope).0
        };
        let (before, after) = (read(&before), read(&after));
        let merged = Permissions::merged([before.clone(), after.clone()]);
        let narrowed = merged.clone().narrowing_only();
        for permissions in [&before, &after, &merged, &narrowed, &before, &after] {
            let expected = permissions.decide(subject);
            prop_assert_eq!(permissions.decide(kept.subject()), expected);
        }
    }

    #[test]
    fn an_allow_without_wildcard_names_at_most_one_tool(
        server in part(), own in part(), one in tool_key(), other in tool_key(),
    ) {
        let allow = |tool: &ToolKey| {
            let rule = format!("mcp__{server}__{own}");
            let (permissions, _) =
                Permissions::parse(&json!({ "allow": [rule] }), &here(), Scope::User);
            matches!(permissions.decide(tool), PermissionDecision::Allow { .. })
        };
        prop_assert!(one == other || !allow(&one) || !allow(&other));
    }

    #[test]
    fn what_a_rule_allows_it_would_also_deny(rule in rule_text(), tool in tool_key()) {
        let decide = |list: &str| {
            Permissions::parse(&json!({ list: [rule] }), &here(), Scope::User).0.decide(&tool)
        };
        if matches!(decide("allow"), PermissionDecision::Allow { .. }) {
            prop_assert!(is_deny(&decide("deny")));
        }
    }

    #[test]
    fn adding_layers_never_removes_a_deny(
        first in settings(), second in settings(), tool in tool_key(),
    ) {
        let read = |(value, scope): &(Value, Scope)| Permissions::parse(value, &here(), *scope).0;
        let (first, second) = (read(&first), read(&second));
        let before = is_deny(&first.decide(&tool));
        let denied_by_either = before || is_deny(&second.decide(&tool));
        for layers in [[first.clone(), second.clone()], [second, first]] {
            let merged = Permissions::merged(layers);
            prop_assert_eq!(is_deny(&merged.decide(&tool)), denied_by_either);
        }
    }

    #[test]
    fn adding_a_deny_never_widens(
        settings in settings(), rule in anything(), tool in tool_key(),
    ) {
        let (mut value, scope) = settings;
        let before = Permissions::parse(&value, &here(), scope).0.decide(&tool);
        value["deny"].as_array_mut().unwrap().push(rule);
        let after = Permissions::parse(&value, &here(), scope).0.decide(&tool);
        let strictness = |decision: &PermissionDecision| match decision {
            PermissionDecision::Allow { .. } => 0,
            PermissionDecision::Ask { .. } => 1,
            PermissionDecision::Deny { .. } => 2,
            PermissionDecision::Unreadable { .. } => 3,
        };
        prop_assert!(strictness(&after) >= strictness(&before));
    }
}
