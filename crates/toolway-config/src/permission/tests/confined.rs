//! Callers that have only some tools at all.

use toolway_types::ToolKey;

use super::*;

fn confined(
    rules: &Value,
    tools: Option<&[&str]>,
    read_only: bool,
    servers: &[&str],
) -> Permissions {
    let tools = tools.map(|patterns| {
        let mut all = ToolPatterns::default();
        for pattern in patterns {
            all.add(pattern, &here()).unwrap();
        }
        all
    });
    let to = Confinement {
        tools,
        without: ToolPatterns::default(),
        read_only,
        origin: here(),
    };
    let names: Vec<_> = servers
        .iter()
        .map(|name| ServerName::new(*name).unwrap())
        .collect();
    let names: Vec<_> = names.iter().collect();
    super::rules(rules).confined(to, &names)
}

fn reads(is_so: Option<bool>) -> ToolHints {
    ToolHints {
        read_only: is_so,
        ..ToolHints::default()
    }
}

#[test]
fn what_no_pattern_names_is_denied_whatever_a_rule_or_the_mode_allows() {
    let wide = json!({ "allow": ["*"], "defaultMode": "bypass" });
    let patterns = ["mcp__github__*", "mcp__time__now"];
    let rules = confined(&wide, Some(&patterns), false, &["github", "time"]);
    for (server, tool, is_there) in [
        ("github", "list", true),
        ("github", "ReadMcpResource", true),
        ("time", "now", true),
        ("time", "now2", false),
        ("time", "ReadMcpResource", false),
        ("other", "list", false),
        ("github2", "list", false),
        ("githu", "b__list", false),
    ] {
        let key = key(server, tool);
        assert_eq!(rules.boundaries().have(&key), is_there, "{server} {tool}");
        let decided = verdict(&rules, &key);
        let expected = if is_there { ('a', "*") } else { ('d', "tools") };
        assert_eq!((decided.0, decided.1.as_str()), expected, "{server} {tool}");
    }
    // The host's own are no tools of a server.
    assert!(rules.boundaries().have(CallSubject::builtin("ToolSearch")));
}

#[test]
fn what_a_pattern_names_is_still_judged_by_rules() {
    let narrow = json!({ "deny": ["mcp__a__x"], "ask": ["mcp__a__y"] });
    let rules = confined(&narrow, Some(&["mcp__a"]), false, &["a"]);
    assert_eq!(
        verdict(&rules, &key("a", "x")),
        ('d', "mcp__a__x".to_owned())
    );
    assert_eq!(
        verdict(&rules, &key("a", "y")),
        ('?', "mcp__a__y".to_owned())
    );
    assert_eq!(verdict(&rules, &key("a", "z")), ('?', String::new()));
}

#[test]
fn a_pattern_in_the_spelling_of_models_counts_where_it_can_mean_one_server() {
    let patterns: &[&str] = &["mcp__my_server__get_item"];
    let there = |servers: &[&str], key: &ToolKey| {
        let rules = confined(&json!({}), Some(patterns), false, servers);
        rules
            .boundaries()
            .have(CallSubject::tool(key).spelled_alone())
    };
    let item = key("my server", "get.item");
    assert!(there(&["my server"], &item));
    assert!(
        !there(&["my server", "my.server"], &item),
        "two could be meant"
    );
    let rules = confined(&json!({}), Some(patterns), false, &["my server"]);
    assert!(
        !rules.boundaries().have(&item),
        "another tool is spelled like it"
    );
}

#[test]
fn sec_34_read_only_takes_a_tools_word_only_to_keep_others_out() {
    let rules = confined(&json!({ "deny": ["mcp__a__x"] }), None, true, &["a"]);
    for (hint, is_there) in [(Some(true), true), (Some(false), false), (None, false)] {
        let key = key("a", "y");
        let subject = CallSubject::tool(&key).with_hints(reads(hint));
        assert_eq!(rules.boundaries().have(subject), is_there, "{hint:?}");
        let word = if is_there { '?' } else { 'd' };
        assert_eq!(verdict(&rules, subject).0, word, "{hint:?}");
    }
    let unknown = key("a", "y");
    assert!(
        !rules.boundaries().have(&unknown),
        "what nothing is known of may write"
    );
    // Its word permits nothing that a rule denies.
    let denied = key("a", "x");
    let subject = CallSubject::tool(&denied).with_hints(reads(Some(true)));
    assert_eq!(verdict(&rules, subject), ('d', "mcp__a__x".to_owned()));
}

#[test]
fn boundaries_of_two_views_both_hold() {
    let one = confined(&json!({}), Some(&["mcp__a", "mcp__b"]), false, &[]);
    let other = confined(&json!({}), Some(&["mcp__b", "mcp__c"]), false, &[]);
    let both = Permissions::merged([one, other.narrowing_only()]);
    let there = ["a", "b", "c"].map(|server| both.boundaries().have(&key(server, "x")));
    assert_eq!(there, [false, true, false]);
}

#[test]
fn a_pattern_says_nothing_of_arguments() {
    let mut patterns = ToolPatterns::default();
    for bad in [
        "mcp__a__b(x:1)",
        "mcp__a__*(@readOnly)",
        "",
        "mcp__",
        "mcp__a__",
    ] {
        assert!(patterns.add(bad, &here()).is_err(), "{bad}");
    }
    assert_eq!(patterns, ToolPatterns::default());
}
