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
    assert_eq!(name, "mcp__my_server__get_item");
    let ToolTarget::Key(own) = key("my server", "get.item") else {
        unreachable!("it is a key");
    };
    for target in [
        exposed(&name),
        // Whether or not it is shown so.
        exposed(&own.exposed_apart()),
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
    let suggestions = |target: &ToolTarget| match catalog.find(target).unwrap_err() {
        CallError::Unknown { suggestions, .. } => suggestions,
        other => panic!("{other}"),
    };
    assert_eq!(suggestions(&key("git", "comit")), ["mcp__git__commit"]);
    assert_eq!(
        suggestions(&exposed("mcp__git__stauts")),
        ["mcp__git__status"]
    );
    assert_eq!(
        suggestions(&key("fils", "read_file")),
        ["mcp__files__read_file"]
    );
    assert!(suggestions(&key("git", "launch_rocket")).is_empty());
    let message = catalog.find(&key("git", "comit")).unwrap_err().to_string();
    assert_eq!(
        message,
        "no tool `git.comit`; did you mean `mcp__git__commit`?"
    );
}

#[test]
fn names_that_are_equally_near_are_all_brought_but_not_many() {
    let items = ["cat", "car", "cab", "can", "opt", "launch"].map(named);
    let catalog = catalog([offer("b", &items)]);
    let message = |target: &ToolTarget| catalog.find(target).unwrap_err().to_string();
    // Two letters that changed places are one slip, however short the word.
    assert_eq!(
        message(&exposed("mcp__b__otp")),
        "no tool `mcp__b__otp`; did you mean `mcp__b__opt`?"
    );
    assert_eq!(
        message(&key("b", "cap")),
        "no tool `b.cap`; did you mean `mcp__b__cab`, `mcp__b__can` or `mcp__b__car`?"
    );
    assert_eq!(
        message(&key("b", "lanuch")),
        "no tool `b.lanuch`; did you mean `mcp__b__launch`?"
    );
    assert_eq!(message(&key("b", "xyz")), "no tool `b.xyz`");
}

#[test]
fn what_was_left_out_for_its_flaws_or_the_cap_says_so() {
    let mut items: Vec<Value> = (0..600).map(|i| named(&format!("t{i:04}"))).collect();
    items[0] = json!({"name": "hidden", "inputSchema": {"properties": {"a\u{200b}": {}}}});
    let catalog = catalog([offer("s", &items)]);
    let message = |target: &ToolTarget| catalog.find(target).unwrap_err().to_string();
    assert_eq!(
        message(&exposed("mcp__s__t0550")),
        "`t0550` of server `s` is not offered: the server offers 600 tools; only the first 512 it \
         lists are used"
    );
    assert_eq!(
        message(&key("s", "hidden")),
        "`hidden` of server `s` is not offered: its input schema has an invisible character \
         (U+200B) in a property name"
    );
    assert_eq!(catalog.left_out().count(), 89);
    assert_eq!(catalog.warnings().count(), 2);
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
    assert_eq!(catalog.tools().count(), 9);
    assert_eq!(warnings(&catalog), []);
    for tool in catalog.tools() {
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

/// The names of all tools, by what they are.
fn names(offers: impl IntoIterator<Item = ServerOffer>) -> Vec<(String, String)> {
    let catalog = catalog(offers);
    let name = |tool: &CatalogTool| {
        (
            format!("{}.{}", tool.key.server, tool.key.tool),
            tool.name.clone(),
        )
    };
    catalog.tools().map(name).collect()
}

fn apart(of: &str, tool: &str) -> String {
    ToolKey::new(server(of), tool).exposed_apart()
}

#[test]
fn a_name_carries_a_digest_only_where_two_tools_really_collide() {
    let one = |of: &str, tool: &str| names([offer(of, &[named(tool)])]).remove(0).1;
    assert_eq!(one("My Server!", "do thing"), "mcp__My_Server___do_thing");
    assert_eq!(one("plugin:p:s", "t"), "mcp__plugin_p_s__t");
    assert_eq!(one("my-server", "get-item"), "mcp__my-server__get-item");
    // Both are lossy: neither is more than the other.
    let both = [
        offer("x y", &[named("t"), named("u")]),
        offer("x.y", &[named("t")]),
    ];
    let expected = [
        ("x y.t", apart("x y", "t")),
        ("x y.u", "mcp__x_y__u".to_owned()),
        ("x.y.t", apart("x.y", "t")),
    ];
    assert_eq!(
        names(both),
        expected.map(|(what, name)| (what.to_owned(), name))
    );
}

#[test]
fn sec_31_nothing_that_another_server_offers_renames_a_lossless_tool() {
    let honest = || offer("my_server", &[named("get_item")]);
    let plain = (
        "my_server.get_item".to_owned(),
        "mcp__my_server__get_item".to_owned(),
    );
    for hostile in [
        offer(
            "my server",
            &[named("get_item"), named("get.item"), named("get item")],
        ),
        offer("my.server", &[named("get_item")]),
        offer("my_server__", &[named("get_item")]),
        offer("my", &[named("_server__get_item")]),
    ] {
        let count = hostile.tools.len();
        let names = names([hostile, honest()]);
        assert!(names.contains(&plain), "{names:?}");
        assert_eq!(names.len(), count + 1, "{names:?}");
    }
    // Nor does a tool take the name of one that its entry keeps out.
    let kept_out = curated(
        r#"{"command": "x", "excludeTools": ["get_item"]}"#,
        offer("s", &[named("get_item"), named("get.item")]),
    );
    assert_eq!(
        names([kept_out]),
        [("s.get.item".to_owned(), apart("s", "get.item"))]
    );
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
    let name = ToolKey::new(server("s"), one).exposed_apart();
    assert_eq!(name, ToolKey::new(server("s"), other).exposed_apart());

    let catalog = catalog([offer("s", &[named(one), named(other), named("honest")])]);
    assert_eq!(keys(&catalog), [pair("s", "honest")]);
    for hidden in [exposed(&name), key("s", one), key("s", other)] {
        assert!(matches!(
            catalog.find(&hidden),
            Err(CallError::Failed(_, CallFault::LeftOut { .. }))
        ));
    }
    assert_eq!(catalog.warnings().count(), 2);
    for warning in catalog.warnings() {
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
        let mut servers: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (name, tool) in &pairs {
            if ServerName::new(name.as_str()).is_ok() {
                servers.entry(name).or_default().push(named(tool));
            }
        }
        let count = servers.values().map(Vec::len).sum::<usize>();
        let catalog = catalog(servers.iter().map(|(name, tools)| offer(name, tools)));
        prop_assert_eq!(catalog.tools().count(), count);
        for tool in catalog.tools() {
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
    let names: Vec<&str> = catalog.tools().map(|tool| tool.name.as_str()).collect();
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
