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
        let exposed = key.exposed();
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
    fn sec_31_a_bare_name_fits_every_provider_and_is_one_of_its_server(
        one in "\\PC{0,70}",
        other in "[a-b_.]{0,3}",
    ) {
        let (one, other) = (key("s", &one), key("s", &other));
        for key in [&one, &other] {
            let bare = key.exposed_bare();
            prop_assert!(bare.len() <= MAX_EXPOSED_LEN && normalize(&bare) == bare);
            prop_assert!(bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
            // Nothing without prefix is taken for something with one.
            prop_assert!(!bare.starts_with("mcp__") || bare == key.exposed());
        }
        if one != other {
            prop_assert_ne!(one.exposed_bare(), other.exposed_bare());
        }
    }
}
