//! SEC-35: what a server says of itself in the handshake, and in errors.

use serde_json::{Value, json};
use toolway_types::text::{TRUNCATED, is_hidden};
use toolway_types::{Era, ServerName, ToolKey, Untrusted};

use super::super::facts;
use crate::call::{CallError, CallFault};

/// One of each class that hides or steers; the catalogue's tests have them all.
const HIDDEN: [&str; 12] = [
    "\u{0}",
    "\u{1b}[31m",
    "\u{1b}]0;t\u{7}",
    "\u{9b}1m",
    "\u{ad}",
    "\u{200b}",
    "\u{202e}",
    "\u{2066}",
    "\u{2060}",
    "\u{fe0f}",
    "\u{feff}",
    "\u{e0041}",
];

fn is_clean(text: &str) -> bool {
    !text.contains(|c| is_hidden(c) && c != '\n')
}

fn all_clean(value: &Value) -> bool {
    match value {
        Value::String(text) => is_clean(text),
        Value::Array(items) => items.iter().all(all_clean),
        Value::Object(members) => members
            .iter()
            .all(|(key, member)| is_clean(key) && all_clean(member)),
        _ => true,
    }
}

#[test]
fn sec_35_server_info_and_instructions_are_cleaned() {
    for hidden in HIDDEN {
        let word = format!("be{hidden}fore");
        let info = json!({"name": word, "title": word, "version": word, "websiteUrl": word,
            "icons": [{"src": word, "sizes": [word]}], word.clone(): {word.clone(): word}});
        let facts = facts(
            Era::Legacy,
            "2025-11-25".to_owned(),
            info,
            json!({}),
            &json!(word),
        );
        assert!(
            all_clean(&facts.server_info),
            "{hidden:?}: {}",
            facts.server_info
        );
        assert_eq!(facts.server_info["name"], "before");
        assert_eq!(facts.instructions.unwrap().as_received(), "before");
    }
}

#[test]
fn sec_32_instructions_are_cut_after_cleaning_and_say_so() {
    let said = |text: String| {
        let facts = facts(
            Era::Legacy,
            String::new(),
            json!({}),
            json!({}),
            &json!(text),
        );
        facts.instructions.unwrap().as_received().to_owned()
    };
    // What is not seen takes no room.
    assert_eq!(said(format!("{}end", "\u{200b}".repeat(5_000))), "end");
    let cut = said("y".repeat(2_049));
    assert_eq!(cut.chars().count(), 2_048);
    assert!(cut.ends_with(TRUNCATED));
}

#[test]
fn sec_35_a_servers_words_in_an_error_are_cleaned() {
    for hidden in HIDDEN {
        let word = format!("be{hidden}fore");
        let server = ServerName::new("s").unwrap();
        let protocol = CallFault::Protocol {
            code: -1,
            message: Untrusted::new(&word),
            data: None,
            remarks: Vec::new(),
        };
        let malformed = CallFault::Malformed(Untrusted::new(&word));
        for fault in [protocol, malformed] {
            let key = ToolKey::new(server.clone(), &word);
            let shown = CallError::Failed(key, fault).to_string();
            assert!(is_clean(&shown) && shown.contains("before"), "{shown:?}");
        }
    }
}
