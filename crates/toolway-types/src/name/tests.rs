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
        let apart = key(server, tool).exposed_apart();
        assert_eq!(seen.insert(apart, (server, tool)), None, "{server} {tool}");
    }
}

#[test]
fn sec_31_a_tool_cannot_take_the_digest_name_of_another() {
    let honest = key("my.server", "get").exposed_apart();
    let (_, stolen) = honest.split_at("mcp__my_server__".len());
    let thief = key("my_server", stolen);
    assert_ne!(thief.exposed(), honest);
    assert_ne!(thief.exposed_apart(), honest);
    // Nor by copying the copy.
    let thief = thief.exposed();
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
    // Rules, transcripts and pins hold these: a change here breaks them for everyone. First the
    // name of a tool that is spelled like no other, then the one that tells it from others.
    let long = "long_name_".repeat(9);
    let cut = "mcp__git__long_name_long_name_long_name_long_name_lon_3049177589";
    for (server, tool, alone, apart) in [
        ("git", "status", "mcp__git__status", "mcp__git__status"),
        ("a", "b__c", "mcp__a__b__c", "mcp__a__b__c"),
        ("_a", "-b", "mcp___a__-b", "mcp___a__-b"),
        ("a__b", "c", "mcp__a__b__c", "mcp__a__b__c_17a08e2111"),
        (
            "My Server!",
            "do thing",
            "mcp__My_Server___do_thing",
            "mcp__My_Server___do_thing_c9f8c57f6c",
        ),
        (
            "plugin:p:s",
            "t",
            "mcp__plugin_p_s__t",
            "mcp__plugin_p_s__t_c0ad3ee5cb",
        ),
        (
            "my-server",
            "get-item",
            "mcp__my-server__get-item",
            "mcp__my-server__get-item",
        ),
        (
            "my server",
            "get.item",
            "mcp__my_server__get_item",
            "mcp__my_server__get_item_7b31a457bc",
        ),
        (
            "caf\u{e9}",
            "\u{4f60}\u{597d}",
            "mcp__caf_____",
            "mcp__caf______8f02885b3a",
        ),
        (
            "git",
            "x_0123456789",
            "mcp__git__x_0123456789_90ec2167fb",
            "mcp__git__x_0123456789_90ec2167fb",
        ),
        ("git", "", "mcp__git___eb30832e92", "mcp__git___eb30832e92"),
        ("git", long.as_str(), cut, cut),
    ] {
        let key = key(server, tool);
        assert_eq!(key.exposed(), alone, "{server} {tool}");
        assert_eq!(key.exposed_apart(), apart, "{server} {tool}");
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
    let apart = key.exposed_apart();
    let plain = normalize(&flat);
    let mut pairs = Vec::new();
    for text in [flat.as_str(), &plain, apart.trim_start_matches("mcp__")] {
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
            let apart = key.exposed_apart();
            if let Some(other) = seen.get(&apart) {
                prop_assert_eq!(other, &key, "{}", apart);
            }
            seen.insert(apart, key);
        }
    }

    #[test]
    fn an_exposed_name_fits_every_provider(key in tool_key()) {
        for name in [key.exposed(), key.exposed_apart()] {
            prop_assert!(name.len() <= MAX_EXPOSED_LEN);
            prop_assert!(name.starts_with("mcp__"));
            prop_assert!(name.chars().all(is_plain));
        }
    }

    #[test]
    fn sec_31_a_lossless_name_is_nobody_elses(key in tool_key()) {
        if key.is_lossless() {
            prop_assert_eq!(key.exposed(), key.exposed_apart());
        }
        for other in cousins(&key).iter().filter(|other| **other != key) {
            prop_assert!(!(key.is_lossless() && other.is_lossless()) || key.exposed() != other.exposed());
            // No tool is shown under a name that identifies another one.
            prop_assert_ne!(other.exposed_apart(), key.exposed_apart());
            prop_assert!(key.is_lossless() || other.exposed() != key.exposed_apart());
        }
    }
}

/// Names that flatten alike more often than any honest ones: few pieces, each of which is replaced,
/// is a border, or looks like a digest. The same every time.
fn awkward(count: usize) -> impl Iterator<Item = (String, String)> {
    const PIECES: [&str; 16] = [
        "a",
        "b",
        "_",
        "__",
        ".",
        "-",
        " ",
        "é",
        "/",
        "mcp__",
        "A",
        "\u{200b}",
        "_0123456789",
        "你",
        "x_y",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    let mut state: u64 = 0x5eed;
    let mut piece = move || {
        // A linear congruence is random enough for choosing, and needs no crate.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default()
    };
    let mut text = move |most: usize| {
        let pieces = 1 + piece() % most;
        let text: String = (0..pieces)
            .map(|_| PIECES[piece() % PIECES.len()])
            .collect();
        text
    };
    (0..count).map(move |_| (text(3), text(6)))
}

fn all_stay_apart(count: usize) {
    let mut owners: HashMap<String, ToolKey> = HashMap::with_capacity(count);
    for (server, tool) in awkward(count) {
        let Ok(server) = ServerName::new(server) else {
            continue;
        };
        let key = ToolKey::new(server, tool);
        let exposed = key.exposed_apart();
        assert!(exposed.len() <= MAX_EXPOSED_LEN && normalize(&exposed) == exposed);
        if let Some(owner) = owners.insert(exposed, key.clone()) {
            assert_eq!(owner, key);
        }
    }
    assert!(owners.len() > count / 2, "{} different pairs", owners.len());
}

#[test]
fn sec_31_fifty_thousand_awkward_pairs_stay_apart() {
    all_stay_apart(50_000);
}

#[test]
#[ignore = "takes a while: the whole number that SEC-31 asks for"]
fn sec_31_two_million_awkward_pairs_stay_apart() {
    all_stay_apart(2_000_000);
}

proptest! {
    #[test]
    fn sec_31_a_bare_name_fits_every_provider(one in "\\PC{0,70}", other in "[a-b_.]{0,3}") {
        for key in [key("s", &one), key("s", &other)] {
            let bare = key.exposed_bare();
            prop_assert!(bare.len() <= MAX_EXPOSED_LEN && normalize(&bare) == bare);
            prop_assert!(bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
            // Nothing without prefix is taken for something with one.
            prop_assert!(!bare.starts_with("mcp__") || bare == key.exposed());
        }
    }
}
