//! Finding tools: exact names, loose names, collisions, near misses.

use super::*;

fn exposed(name: &str) -> ToolTarget {
    ToolTarget::Exposed(name.to_owned())
}

fn key(server_name: &str, tool: &str) -> ToolTarget {
    ToolTarget::Key(ToolKey::new(server(server_name), tool))
}

fn found(catalog: &Catalog, target: &ToolTarget) -> (String, String) {
    let tool = catalog.find(target).unwrap();
    (tool.key.server.to_string(), tool.key.tool.clone())
}

fn pair(server: &str, tool: &str) -> (String, String) {
    (server.to_owned(), tool.to_owned())
}

#[test]
fn a_tool_is_found_by_every_name_it_has() {
    let catalog = catalog([offer("my server", &[named("get.item"), named("plain")])]);
    let wanted = pair("my server", "get.item");
    let name = catalog
        .find(&key("my server", "get.item"))
        .unwrap()
        .name
        .clone();
    assert_ne!(name, "mcp__my_server__get_item");
    for target in [
        exposed(&name),
        exposed("mcp__my_server__get_item"),
        key("my server", "get.item"),
        key("my_server", "get_item"),
        key("my_server", "get.item"),
        key("my server", "get_item"),
    ] {
        assert_eq!(found(&catalog, &target), wanted, "{target}");
    }
}

#[test]
fn an_unknown_tool_brings_the_nearest_name() {
    let catalog = catalog([
        offer("git", &[named("commit"), named("status")]),
        offer("files", &[named("read_file")]),
    ]);
    let suggestion = |target: &ToolTarget| match catalog.find(target).unwrap_err() {
        CallError::Unknown { suggestion, .. } => suggestion,
        other => panic!("{other}"),
    };
    assert_eq!(
        suggestion(&key("git", "comit")).as_deref(),
        Some("mcp__git__commit")
    );
    assert_eq!(
        suggestion(&exposed("mcp__git__stauts")).as_deref(),
        Some("mcp__git__status")
    );
    assert_eq!(
        suggestion(&key("fils", "read_file")).as_deref(),
        Some("mcp__files__read_file")
    );
    assert_eq!(suggestion(&key("git", "launch_rocket")), None);
    let message = catalog.find(&key("git", "comit")).unwrap_err().to_string();
    assert_eq!(
        message,
        "no tool `git.comit`; did you mean `mcp__git__commit`?"
    );
}

#[test]
fn sec_31_names_that_flatten_alike_stay_apart() {
    let catalog = catalog([
        offer("a", &[named("b__c"), named("evil__foo")]),
        offer("a__b", &[named("c")]),
        offer("a__evil", &[named("foo")]),
        offer("acme", &[named("_status")]),
        offer("acme_", &[named("status")]),
        offer("s", &[named("foo.bar"), named("foo_bar"), named("foo bar")]),
    ]);
    assert_eq!(catalog.tools.len(), 9);
    assert_eq!(catalog.warnings, []);
    for tool in &catalog.tools {
        assert_eq!(catalog.find(&exposed(&tool.name)).unwrap().key, tool.key);
        assert_eq!(
            catalog
                .find(&ToolTarget::Key(tool.key.clone()))
                .unwrap()
                .key,
            tool.key
        );
    }
    // A border is never moved: `a` has no tool `b__c` under the name of server `a__b`.
    assert_eq!(found(&catalog, &key("a__b", "c")), pair("a__b", "c"));
    assert!(matches!(
        catalog.find(&key("a__b__c", "x")),
        Err(CallError::Unknown { .. })
    ));
}

#[test]
fn sec_31_a_loose_name_that_fits_two_tools_is_refused() {
    let catalog = catalog([
        offer("s", &[named("foo.bar"), named("foo bar")]),
        offer("x y", &[named("t")]),
        offer("x.y", &[named("t")]),
    ]);
    let Err(CallError::Ambiguous { candidates, .. }) = catalog.find(&exposed("mcp__s__foo_bar"))
    else {
        panic!("must be ambiguous");
    };
    assert_eq!(candidates.len(), 2);
    for name in candidates {
        assert_eq!(
            catalog.find(&exposed(&name)).unwrap().key.server.as_str(),
            "s"
        );
    }
    assert!(matches!(
        catalog.find(&key("s", "foo_bar")),
        Err(CallError::Ambiguous { .. })
    ));
    assert!(matches!(
        catalog.find(&key("x_y", "t")),
        Err(CallError::Ambiguous { .. })
    ));
    assert_eq!(found(&catalog, &key("x.y", "t")), pair("x.y", "t"));
}

#[test]
fn sec_31_tools_whose_exposed_names_collide_are_both_hidden_and_told() {
    // Two names with one shortened digest, found by search as an attacker would.
    let (one, other) = ("丈丗丳", "久乥乳");
    let name = ToolKey::new(server("s"), one).exposed();
    assert_eq!(name, ToolKey::new(server("s"), other).exposed());

    let catalog = catalog([offer("s", &[named(one), named(other), named("honest")])]);
    assert_eq!(keys(&catalog), [pair("s", "honest")]);
    assert!(matches!(
        catalog.find(&exposed(&name)),
        Err(CallError::Unknown { .. })
    ));
    assert!(matches!(
        catalog.find(&key("s", one)),
        Err(CallError::Unknown { .. })
    ));
    assert_eq!(catalog.warnings.len(), 2);
    for warning in &catalog.warnings {
        assert!(
            warning.message.contains(one) && warning.message.contains(other),
            "{warning:?}"
        );
        assert!(warning.message.contains(&name));
    }
}

proptest! {
    #[test]
    fn every_tool_is_found_by_its_exposed_name_and_by_its_key(
        pairs in proptest::collection::hash_set(("[a-b_. é-]{1,4}", "[a-b_. é-]{1,4}"), 1..24)
    ) {
        let offers: Vec<ServerOffer> = pairs
            .iter()
            .filter(|(name, _)| ServerName::new(name.as_str()).is_ok())
            .map(|(name, tool)| offer(name, &[named(tool)]))
            .collect();
        let count = offers.len();
        let catalog = catalog(offers);
        prop_assert_eq!(catalog.tools.len(), count);
        for tool in &catalog.tools {
            prop_assert_eq!(&catalog.find(&exposed(&tool.name)).unwrap().key, &tool.key);
            let by_key = ToolTarget::Key(tool.key.clone());
            prop_assert_eq!(&catalog.find(&by_key).unwrap().key, &tool.key);
            // A loose name never leads to a tool that it does not spell.
            match catalog.find(&exposed(&tool.key.spelled())) {
                Ok(found) => prop_assert!(
                    found.key.spelled() == tool.key.spelled() || found.name == tool.key.spelled()
                ),
                Err(CallError::Ambiguous { candidates, .. }) => prop_assert!(candidates.len() > 1),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}

#[test]
fn an_editors_other_tools_are_the_hosts_to_call_and_nobody_elses() {
    let items = ["executeCode", "getDiagnostics", "openDiff"].map(named);
    let editor = ServerOffer {
        listed: Some(&EDITOR_TOOLS),
        ..offer("ide", &items)
    };
    let catalog = catalog([editor, offer("other", &[named("openDiff")])]);
    let names: Vec<&str> = catalog
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "mcp__ide__executeCode",
            "mcp__ide__getDiagnostics",
            "mcp__other__openDiff"
        ]
    );
    assert_eq!(catalog.tools_of(&server("ide")).len(), 2);
    assert_eq!(
        found(&catalog, &key("ide", "openDiff")),
        pair("ide", "openDiff")
    );
    let by_name = catalog.find(&exposed("mcp__ide__openDiff"));
    assert!(
        matches!(by_name, Err(CallError::Unknown { .. })),
        "{by_name:?}"
    );
    let other = pair("other", "openDiff");
    assert_eq!(found(&catalog, &key("other", "openDiff")), other);
}
