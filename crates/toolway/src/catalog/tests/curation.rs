//! What a server's entry changes: which tools are offered, under which name, with which words.

use super::*;

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.tools().map(|tool| tool.name.as_str()).collect()
}

fn key(tool: &str) -> ToolTarget {
    ToolTarget::Key(ToolKey::new(server("s"), tool))
}

#[test]
fn only_what_is_included_and_not_excluded_is_offered_and_can_be_called() {
    let items = ["get_a", "get_b", "set_a", "drop"].map(named);
    let catalog = catalog([
        curated(
            r#"{"command": "x", "includeTools": ["get_*", "drop"],
            "excludeTools": ["get_b"]}"#,
            offer("s", &items),
        ),
        offer("other", &[named("get_b")]),
    ]);
    assert_eq!(
        names(&catalog),
        ["mcp__other__get_b", "mcp__s__drop", "mcp__s__get_a"]
    );
    let left: Vec<&str> = catalog
        .left_out()
        .map(|tool| tool.key.tool.as_str())
        .collect();
    assert_eq!(left, ["get_b", "set_a"]);
    for target in [
        key("get_b"),
        ToolTarget::Exposed("mcp__s__get_b".to_owned()),
    ] {
        let error = catalog.find(&target).unwrap_err();
        let CallError::Failed(key, CallFault::LeftOut { .. }) = &error else {
            panic!("{error}");
        };
        assert_eq!(key.server.as_str(), "s");
        assert_eq!(
            error.to_string(),
            "`get_b` of server `s` is not offered: `excludeTools` has `get_b` (--mcp-config:3)"
        );
    }
    assert!(matches!(
        catalog.find(&key("nothing")),
        Err(CallError::Unknown { .. })
    ));
}

#[test]
fn a_pattern_that_matches_nothing_is_a_warning_with_file_and_line() {
    let entry = r#"{"command": "x",
  "includeTools": ["get_*",
    "gte_*"]}"#;
    let with = |items: &[Value]| warnings(&catalog([curated(entry, offer("s", items))]));
    let warnings = with(&[named("get_a")]);
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].message,
        "`gte_*` in `includeTools` matches none of its tools (--mcp-config:4)"
    );
    // Of a server that shows no tools at all nothing can be said.
    assert_eq!(with(&[]), []);
}

#[test]
fn an_alias_is_only_a_name_and_the_identity_stays() {
    let items = ["list_all_issues_of_a_repository", "b", "a"].map(named);
    let entry = r#"{"command": "x", "alias":
        {"list_all_issues_of_a_repository": "issues", "a": "b", "b": "a"}}"#;
    let catalog = catalog([curated(entry, offer("s", &items))]);
    assert_eq!(warnings(&catalog), []);
    let exposed = |name: &str| {
        let target = ToolTarget::Exposed(name.to_owned());
        catalog.find(&target).unwrap().key.tool.clone()
    };
    assert_eq!(exposed("mcp__s__issues"), "list_all_issues_of_a_repository");
    // The names are swapped, so each leads to the other tool.
    assert_eq!(
        (exposed("mcp__s__a"), exposed("mcp__s__b")),
        ("b".into(), "a".into())
    );
    // By server and own name, a tool is what its server calls so.
    let by_key = catalog.find(&key("a")).unwrap();
    assert_eq!(
        (by_key.name.as_str(), by_key.key.tool.as_str()),
        ("mcp__s__b", "a")
    );
    assert_eq!(by_key.received().name, "a");
}

#[test]
fn an_alias_is_found_by_server_and_alias() {
    let items = ["get_a", "get.dot", "other"].map(named);
    let entry = r#"{"command": "x", "alias": {"get_a": "first", "get.dot": "dot"}}"#;
    let catalog = catalog([curated(entry, offer("s", &items))]);
    let own = |target: &ToolTarget| catalog.find(target).unwrap().key.tool.clone();
    for alias in ["first", "get_a"] {
        assert_eq!(own(&key(alias)), "get_a");
    }
    for alias in ["dot", "get.dot", "get_dot"] {
        assert_eq!(own(&key(alias)), "get.dot", "{alias}");
    }
    let selected = catalog.search("select:FIRST,get_a,other", 5).tools;
    let selected: Vec<&str> = selected.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(selected, ["mcp__s__first", "mcp__s__other"]);
    let Err(CallError::Unknown { suggestions, .. }) = catalog.find(&key("frist")) else {
        panic!("there is no such tool");
    };
    assert_eq!(suggestions, ["mcp__s__first"]);
}

#[test]
fn sec_31_an_alias_steals_no_name() {
    // Swapped: each is still what its server calls so.
    let items = ["a", "b"].map(named);
    let entry = r#"{"command": "x", "alias": {"a": "b", "b": "a"}}"#;
    let swapped = catalog([curated(entry, offer("s", &items))]);
    for own in ["a", "b"] {
        assert_eq!(swapped.find(&key(own)).unwrap().key.tool, own);
    }
    // A tool that is kept out is not replaced by the one that is shown under its name.
    let entry = r#"{"command": "x", "excludeTools": ["b"], "alias": {"a": "b"}}"#;
    let excluded = catalog([curated(entry, offer("s", &items))]);
    assert!(matches!(
        excluded.find(&key("b")),
        Err(CallError::Failed(_, CallFault::LeftOut { .. }))
    ));
    let shown = ToolTarget::Exposed("mcp__s__b".to_owned());
    assert_eq!(excluded.find(&shown).unwrap().key.tool, "a");
    // What only looks like another tool's name is the alias, as the shown name is.
    let items = ["get.it", "other"].map(named);
    let entry = r#"{"command": "x", "alias": {"other": "get_it"}}"#;
    let alike = catalog([curated(entry, offer("s", &items))]);
    assert_eq!(alike.find(&key("get_it")).unwrap().key.tool, "other");
    assert_eq!(alike.find(&key("get.it")).unwrap().key.tool, "get.it");
    // A server's name that fits two of them is as unclear as ever.
    let entry = r#"{"command": "x", "alias": {"other": "short"}}"#;
    let servers = ["x y", "x.y"].map(|name| curated(entry, offer(name, &[named("other")])));
    let twice = catalog(servers);
    let short = |name: &str| ToolTarget::Key(ToolKey::new(server(name), "short"));
    assert!(matches!(
        twice.find(&short("x_y")),
        Err(CallError::Ambiguous { .. })
    ));
    assert_eq!(
        twice.find(&short("x.y")).unwrap().key.server.as_str(),
        "x.y"
    );
    // Of another server it says nothing.
    let entry = r#"{"command": "x", "alias": {"other": "free"}}"#;
    let apart = catalog([
        curated(entry, offer("s", &[named("other")])),
        offer("t", &[named("free"), named("fine")]),
    ]);
    let free = ToolTarget::Key(ToolKey::new(server("t"), "free"));
    assert_eq!(apart.find(&free).unwrap().key.server.as_str(), "t");
    let selected = apart.search("select:free", 5).tools;
    assert_eq!(selected.len(), 2);
}

#[test]
fn sec_31_an_alias_that_is_another_tools_name_hides_both_and_tells() {
    let items = ["long_name", "short"].map(named);
    let entry = r#"{"command": "x", "alias": {"long_name": "short"}}"#;
    let catalog = catalog([
        curated(entry, offer("s", &items)),
        offer("other", &[named("short")]),
    ]);
    assert_eq!(names(&catalog), ["mcp__other__short"]);
    assert_eq!(catalog.warnings().count(), 2);
    assert!(
        catalog
            .warnings()
            .next()
            .unwrap()
            .message
            .contains("its name `mcp__s__short` is also that of"),
        "{:?}",
        warnings(&catalog)
    );
}

#[test]
fn a_description_of_ones_own_replaces_the_servers_and_is_cleaned_like_it() {
    let long = "y".repeat(3_000);
    let entry = format!(
        r#"{{"command": "x", "tools": {{"t": {{"description": "Mine.\u200b"}},
        "u": {{"description": "{long}"}}}}}}"#
    );
    let described = |name: &str| json!({"name": name, "description": "Theirs.", "inputSchema": {}});
    let items = ["t", "u", "v"].map(described);
    let catalog = catalog([curated(&entry, offer("s", &items))]);
    let description = |tool: &str| catalog.find(&key(tool)).unwrap().description.clone();
    assert_eq!(description("t"), "Mine.");
    assert_eq!(description("u").chars().count(), 2_048);
    assert!(description("u").ends_with("… [truncated]"));
    assert_eq!(description("v"), "Theirs.");
}

#[test]
fn who_asks_for_a_few_tools_of_a_large_server_gets_them_although_it_lists_too_many() {
    let items: Vec<Value> = (0..1_000).map(|i| named(&format!("t{i:04}"))).collect();
    let entry = r#"{"command": "x", "includeTools": ["t099*"]}"#;
    let catalog = catalog([curated(entry, offer("s", &items))]);
    assert_eq!(catalog.tools().count(), 10);
    assert_eq!(warnings(&catalog), []);
    assert_eq!(catalog.left_out().count(), crate::catalog::tools::MAX_TOOLS);
}

#[test]
fn without_prefix_a_tool_has_its_own_name_unless_another_has_it_too() {
    let bare = |name: &str, items: &[Value]| ServerOffer {
        bare_names: true,
        ..offer(name, items)
    };
    let catalog = catalog([
        bare(
            "sdk",
            &["greet", "shared", "mcp__git__push", "7up", "a.b"].map(named),
        ),
        bare("sdk2", &[named("shared")]),
        offer("git", &["push", "greet"].map(named)),
    ]);
    assert_eq!(
        names(&catalog)
            .into_iter()
            .filter(|name| !name.contains("7up") && !name.starts_with("a_b"))
            .collect::<Vec<_>>(),
        [
            "mcp__git__greet",
            "mcp__git__push",
            "greet",
            "mcp__sdk__mcp__git__push",
            "mcp__sdk__shared",
            "mcp__sdk2__shared",
        ]
    );
    // Each of the five characters long or odd is still a name that every provider takes.
    for tool in catalog.tools() {
        let found = catalog
            .find(&ToolTarget::Exposed(tool.name.clone()))
            .unwrap();
        assert_eq!(found.key, tool.key);
        assert!(
            tool.name
                .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        );
        assert!(tool.name.len() <= 64);
    }
    assert_eq!(catalog.warnings().count(), 2, "{:?}", warnings(&catalog));
}
