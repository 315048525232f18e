//! Fuzz target: names that models see.
//!
//! Owns the promises of `toolway_types::name`: an exposed name has at most 64 characters of
//! `[A-Za-z0-9_-]`; the one that tells a tool apart is a function of its key alone, and differs for
//! different keys; of those that share a plain spelling at most one is lossless. Collisions
//! are looked for where they could be: besides the given keys, every key that one of them could
//! be mistaken for is tried against it.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use toolway_types::name::{MAX_EXPOSED_LEN, as_word, normalize, normalize_connector, shell_word};
use toolway_types::text::is_hidden;
use toolway_types::{ServerName, ToolKey};

/// How many keys of one input are compared with each other.
const MAX_KEYS: usize = 8;

// Parts are separated by 0xFF, which no text has: server, tool, server, tool, …
fuzz_target!(|data: &[u8]| {
    let parts: Vec<String> = data
        .split(|byte| *byte == 0xFF)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect();
    for part in &parts {
        check_words(part);
    }
    let given: Vec<ToolKey> = parts
        .chunks(2)
        .take(MAX_KEYS)
        .filter_map(|pair| key(&pair[0], pair.get(1).map_or("", String::as_str)))
        .collect();
    let mut owners: HashMap<String, ToolKey> = HashMap::new();
    for key in &given {
        for key in lookalikes(key) {
            let exposed = check_exposed(&key);
            if let Some(owner) = owners.insert(exposed, key.clone()) {
                assert_eq!(owner, key, "two keys have one exposed name");
            }
        }
    }
});

fn key(server: &str, tool: &str) -> Option<ToolKey> {
    let name = ServerName::new(server).ok()?;
    assert_eq!(name.as_str(), server, "a name is kept as written");
    assert!(!server.contains(is_hidden) && !server.trim().is_empty());
    Some(ToolKey::new(name, tool))
}

fn check_exposed(key: &ToolKey) -> String {
    let apart = key.exposed_apart();
    for name in [&apart, &key.exposed()] {
        assert!(name.len() <= MAX_EXPOSED_LEN, "{name}");
        assert!(is_plain(name), "{name}");
        assert!(name.starts_with("mcp__"), "{name}");
    }
    assert!(!key.is_lossless() || key.exposed() == apart, "{apart}");
    let same = ToolKey::new(key.server.clone(), key.tool.as_str());
    assert_eq!(same.exposed_apart(), apart, "a name is a function of its key");
    apart
}

/// The key, and keys whose names come as near to its own as can be.
fn lookalikes(key: &ToolKey) -> Vec<ToolKey> {
    let (server, tool) = (key.server.as_str(), key.tool.as_str());
    let mut near = vec![key.clone()];
    let mut add = |server: &str, tool: &str| near.extend(self::key(server, tool));
    // The same spelling with the border elsewhere.
    let joined = format!("{server}__{tool}");
    for (at, _) in joined.match_indices("__").take(8) {
        add(&joined[..at], &joined[at + 2..]);
    }
    // `___` has a border at its second character too, which `match_indices` passes over.
    for (at, _) in joined.match_indices("___").take(4) {
        add(&joined[..=at], &joined[at + 3..]);
    }
    add(&normalize(server), tool);
    add(server, &normalize(tool));
    add(&normalize(server), &normalize(tool));
    add(&normalize_connector(server), tool);
    // A tool that calls itself by another one's exposed name, whole or without its prefix.
    let exposed = key.exposed_apart();
    add(server, &exposed);
    let rest = &exposed["mcp__".len()..];
    for (at, _) in rest.match_indices('_').take(64) {
        let behind = rest[at..].trim_start_matches('_');
        add(&rest[..at], behind);
        add(server, behind);
    }
    add(server, &format!("{tool}_"));
    add(&format!("{server}_"), tool);
    let swapped: String = tool
        .chars()
        .map(|c| match c {
            'a'..='z' => c.to_ascii_uppercase(),
            c => c.to_ascii_lowercase(),
        })
        .collect();
    add(server, &swapped);
    near
}

/// What is pasted into a shell is read back as the same one word.
fn check_words(text: &str) {
    assert_eq!(unquoted(&shell_word(text)).as_deref(), Some(text));
    let word = as_word(text);
    let word = word.strip_prefix("-- ").unwrap_or(&word);
    assert_eq!(unquoted(word).as_deref(), Some(text));
    assert!(text.starts_with('-') == as_word(text).starts_with("-- "));
    let normal = normalize(text);
    assert!(is_plain(&normal) && normal.chars().count() == text.chars().count());
    assert_eq!(normalize(&normal), normal);
    let connector = normalize_connector(text);
    assert_eq!(normalize_connector(&connector), connector);
}

/// One word as a POSIX shell reads it; none where it would read several, or do something.
fn unquoted(word: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = word.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => loop {
                match rest.next()? {
                    '\'' => break,
                    c => text.push(c),
                }
            },
            '\\' => text.push(rest.next()?),
            c if c.is_ascii_alphanumeric() || "_-.:@/+%,=".contains(c) => text.push(c),
            _ => return None,
        }
    }
    Some(text)
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
