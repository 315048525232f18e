//! Names stay apart, fit every provider, and never change.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn key(server: &str, tool: &str) -> ToolKey {
    ToolKey::new(ServerName::new(server).unwrap(), tool)
}

/// Different keys that a naive flattening would give one name.
const COLLISIONS: &[&[(&str, &str)]] = &[
    &[
        ("a", "b__c"),
        ("a__b", "c"),
        ("a", "b.__c"),
        ("a__b__c", ""),
    ],
    &[
        ("acme", "_status"),
        ("acme_", "status"),
        ("acme_", "_status"),
        ("acme", "__status"),
    ],
    &[
        ("evil__foo", "bar"),
        ("evil", "foo__bar"),
        ("evil_", "_foo__bar"),
    ],
    &[
        ("s", "foo.bar"),
        ("s", "foo_bar"),
        ("s", "foo bar"),
        ("s", "foo/bar"),
        ("s", "foo\u{200b}bar"),
    ],
    &[
        ("my server", "x"),
        ("my.server", "x"),
        ("my_server", "x"),
        ("my/server", "x"),
    ],
    &[
        ("s", "caf\u{e9}"),
        ("s", "cafe\u{301}"),
        ("s", "caf_"),
        ("s", "caf\u{4f60}"),
    ],
    &[("s", ""), ("s", "_"), ("s", "__"), ("s_", "")],
    &[("s", "Read"), ("s", "read"), ("S", "read")],
];

#[test]
fn sec_31_the_known_collisions_stay_apart() {
    let mut seen = HashMap::new();
    for (server, tool) in COLLISIONS.iter().copied().flatten().copied() {
        let exposed = key(server, tool).exposed();
        assert_eq!(
            seen.insert(exposed, (server, tool)),
            None,
            "{server} {tool}"
        );
    }
}

#[test]
fn sec_31_a_tool_cannot_take_the_digest_name_of_another() {
    let honest = key("my.server", "get").exposed();
    let (_, stolen) = honest.split_at("mcp__my_server__".len());
    let thief = key("my_server", stolen).exposed();
    assert_ne!(thief, honest);
    // Nor by copying the copy.
    let (_, again) = thief.split_at("mcp__my_server__".len());
    assert_ne!(key("my_server", again).exposed(), thief);
}

#[test]
fn long_names_that_differ_at_the_end_stay_apart() {
    let long = "x".repeat(100);
    let names: Vec<String> = ["a", "b", ""]
        .map(|end| key("s", &(long.clone() + end)).exposed())
        .into();
    assert_eq!(
        names.iter().collect::<std::collections::HashSet<_>>().len(),
        3
    );
    assert!(names.iter().all(|name| name.len() == MAX_EXPOSED_LEN));
    // A long server must not swallow the difference between its tools.
    assert_ne!(key(&long, "a").exposed(), key(&long, "b").exposed());
    // At the limit the plain name stays, one above it does not.
    let fits = "x".repeat(MAX_EXPOSED_LEN - "mcp__s__".len());
    assert_eq!(key("s", &fits).exposed(), format!("mcp__s__{fits}"));
    assert_ne!(
        key("s", &(fits.clone() + "x")).exposed(),
        format!("mcp__s__{fits}x")
    );
}

#[test]
fn exposed_names_never_change() {
    // Rules, transcripts and pins hold these: a change here breaks them for everyone.
    let long = "long_name_".repeat(9);
    for (server, tool, expected) in [
        ("git", "status", "mcp__git__status"),
        ("a", "b__c", "mcp__a__b__c"),
        ("_a", "-b", "mcp___a__-b"),
        ("a__b", "c", "mcp__a__b__c_17a08e2111"),
        (
            "my server",
            "get.item",
            "mcp__my_server__get_item_7b31a457bc",
        ),
        ("caf\u{e9}", "\u{4f60}\u{597d}", "mcp__caf______8f02885b3a"),
        ("git", "x_0123456789", "mcp__git__x_0123456789_90ec2167fb"),
        ("git", "", "mcp__git___eb30832e92"),
        (
            "git",
            long.as_str(),
            "mcp__git__long_name_long_name_long_name_long_name_lon_3049177589",
        ),
    ] {
        assert_eq!(key(server, tool).exposed(), expected, "{server} {tool}");
    }
}

#[test]
fn a_server_name_must_be_visible() {
    assert_eq!(ServerName::new(" "), Err(NameError::Empty));
    assert_eq!(
        ServerName::new(" a"),
        Err(NameError::HiddenSpace(" a".into()))
    );
    assert_eq!(
        ServerName::new("a\u{200b}"),
        Err(NameError::Invisible(0x200b))
    );
    assert_eq!(ServerName::new("a\n"), Err(NameError::Invisible(0xa)));
    assert_eq!(
        ServerName::new("my server").unwrap().normalized(),
        "my_server"
    );
}

#[test]
fn connector_names_are_folded_and_trimmed() {
    assert_eq!(
        normalize_connector("Google Drive (beta)"),
        "Google_Drive_beta"
    );
    assert_eq!(normalize_connector("__a___b__"), "a_b");
    assert_eq!(normalize_connector("(…)"), "");
}

/// Parts in which borders, replaced characters, lengths and digests meet often.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a_.]{0,4}",
        "[a_]{0,2}__[a_]{0,2}",
        "[ab_]{40,64}",
        "a_[0-9a-f]{10}",
        "[a\u{e9}e\u{301}\u{4f60} ]{0,4}",
        any::<String>(),
    ]
}

fn tool_key() -> impl Strategy<Value = ToolKey> {
    (part(), part()).prop_filter_map("a server name", |(server, tool)| {
        Some(ToolKey::new(ServerName::new(server).ok()?, tool))
    })
}

/// The same key with its border moved, its characters replaced, or its exposed name as tool.
fn cousins(key: &ToolKey) -> Vec<ToolKey> {
    let flat = format!("{}__{}", key.server, key.tool);
    let exposed = key.exposed();
    let plain = normalize(&flat);
    let mut pairs = Vec::new();
    for text in [flat.as_str(), &plain, exposed.trim_start_matches("mcp__")] {
        for (at, _) in text.match_indices('_') {
            if let Some(tool) = text[at..].strip_prefix("__") {
                pairs.push((text[..at].to_owned(), tool.to_owned()));
            }
        }
    }
    pairs.push((key.server.normalized(), key.tool.clone()));
    pairs.push((key.server.to_string(), normalize(&key.tool)));
    pairs
        .into_iter()
        .filter_map(|(server, tool)| Some(ToolKey::new(ServerName::new(server).ok()?, tool)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn sec_31_exposed_names_are_injective(keys in prop::collection::vec(tool_key(), 1..12)) {
        let mut seen: HashMap<String, ToolKey> = HashMap::new();
        for key in keys.iter().flat_map(|key| {
            let mut family = cousins(key);
            family.push(key.clone());
            family
        }) {
            let exposed = key.exposed();
            if let Some(other) = seen.get(&exposed) {
                prop_assert_eq!(other, &key, "{}", exposed);
            }
            seen.insert(exposed, key);
        }
    }

    #[test]
    fn an_exposed_name_fits_every_provider(key in tool_key()) {
        let exposed = key.exposed();
        prop_assert!(exposed.len() <= MAX_EXPOSED_LEN);
        prop_assert!(exposed.starts_with("mcp__"));
        prop_assert!(exposed.chars().all(is_plain));
        prop_assert_eq!(key.clone().exposed(), exposed);
    }
}
