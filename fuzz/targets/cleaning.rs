//! Fuzz target: cleaning what servers say (SEC-35).
//!
//! Owns the promises of `toolway_types::text` and of the catalogue's `sanitize`: nothing hidden is
//! left, a second pass changes nothing, lengths are bounded, and JSON keeps its structure. The
//! table of what must go is written down here once more, on purpose.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use toolway::catalog::sanitize::{self, MAX_DESCRIPTION, MAX_SCHEMA_BYTES, MAX_TITLE, SchemaSide};
use toolway_types::Untrusted;
use toolway_types::text::{
    self, TextKind, clean, clean_counted, clean_json, clean_line, legible, legible_within,
    spelled_out,
};

/// NFC makes UTF-8 at most three times as long.
const NFC_GROWTH: usize = 3;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    check_text(&text);
    check_lines(&text);
    check_limits(
        &text,
        usize::from(data.first().copied().unwrap_or_default()),
    );
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        check_json(&value);
    }
    if let Ok(raw) = serde_json::from_str::<&RawValue>(&text) {
        check_schema(raw);
    }
});

/// The classes of SEC-35. Line ends and tabs are the callers' to allow.
fn must_go(c: char) -> bool {
    matches!(
        u32::from(c),
        0x00..=0x1F
            | 0x7F..=0x9F
            | 0x200B..=0x200F
            | 0x2028..=0x202E
            | 0x2060..=0x206F
            | 0xFE00..=0xFE0F
            | 0xFEFF
            | 0xE0000..=0xE007F
            | 0xE0100..=0xE01EF
    )
}

fn assert_clean(text: &str) {
    let found = text
        .chars()
        .find(|c| !matches!(c, '\n' | '\t') && must_go(*c));
    assert_eq!(found, None, "{text:?}");
}

fn check_text(text: &str) {
    let (cleaned, removed) = clean_counted(text);
    assert_clean(&cleaned);
    assert_eq!(clean(&cleaned), cleaned, "a second pass changes nothing");
    assert_eq!(clean_counted(&cleaned).1, 0);
    assert!(cleaned.len() <= NFC_GROWTH * text.len());
    let (before, after) = (text.chars().count(), cleaned.chars().count());
    assert!(removed <= before && after <= NFC_GROWTH * (before - removed));
    let received = Untrusted::new(text);
    assert_eq!(received.to_string(), cleaned);
    assert_eq!(received.as_received(), text);
    let spelled = spelled_out(text);
    assert!(!spelled.contains(must_go), "{spelled:?}");
    for nature in [TextKind::Code, TextKind::Source, TextKind::Prose] {
        for shown in [legible(text, nature), legible_within(text, nature, 60)] {
            assert!(!shown.contains(must_go), "{shown:?}");
        }
    }
    let folded = text::fold(text);
    assert_eq!(text::fold(&folded), folded, "folding twice is folding once");
}

fn check_lines(text: &str) {
    let line = clean_line(text);
    assert!(!line.contains(must_go), "{line:?}");
    assert_eq!(line.trim(), line);
    assert_eq!(clean_line(&line), line, "a second pass changes nothing");
}

fn check_limits(text: &str, limit: usize) {
    let cut = text::cut(text, limit);
    assert!(cut.chars().count() <= limit);
    assert!(text.chars().count() > limit || cut == text);
    type Cleaning = fn(&str) -> String;
    let cleanings: [(Cleaning, usize); 3] = [
        (sanitize::description, MAX_DESCRIPTION),
        (sanitize::line, MAX_TITLE),
        (sanitize::words, MAX_DESCRIPTION),
    ];
    for (cleaning, limit) in cleanings {
        let cleaned = cleaning(text);
        assert_clean(&cleaned);
        assert!(cleaned.chars().count() <= limit);
        assert_eq!(cleaning(&cleaned), cleaned, "a second pass changes nothing");
    }
}

/// A result or any other JSON: texts and keys are cleaned, everything else stays.
fn check_json(value: &Value) {
    let (cleaned, removed) = clean_json(value);
    assert_same_structure(value, &cleaned, Keys::Cleaned);
    assert_no_hidden_text(&cleaned);
    let (again, more) = clean_json(&cleaned);
    assert_eq!((again, more), (cleaned, 0), "a second pass changes nothing");
    assert!(removed <= value.to_string().len());
}

/// What becomes of keys.
#[derive(Clone, Copy)]
enum Keys {
    Cleaned,
    /// They are part of what a tool takes.
    Kept,
}

fn assert_same_structure(before: &Value, after: &Value, keys: Keys) {
    match (before, after) {
        (Value::String(before), Value::String(after)) => assert_eq!(clean(before), *after),
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len());
            for (before, after) in before.iter().zip(after) {
                assert_same_structure(before, after, keys);
            }
        }
        (Value::Object(before), Value::Object(after)) if matches!(keys, Keys::Kept) => {
            assert!(before.keys().eq(after.keys()), "a schema keeps its keys");
            for (before, after) in before.values().zip(after.values()) {
                assert_same_structure(before, after, keys);
            }
        }
        (Value::Object(before), Value::Object(after)) => {
            assert!(after.len() <= before.len());
            for (key, after) in after {
                // The honest key wins, else the first that is disguised as it.
                let honest = before.get(key);
                let disguised = || before.iter().find(|(name, _)| clean(name) == *key);
                let before = honest.or_else(|| disguised().map(|(_, member)| member));
                assert_same_structure(before.expect("no key is invented"), after, keys);
            }
            for key in before.keys() {
                assert!(after.contains_key(clean(key).as_ref()), "a key is lost");
            }
        }
        (before, after) => assert_eq!(before, after),
    }
}

fn assert_no_hidden_text(value: &Value) {
    match value {
        Value::String(text) => assert_clean(text),
        Value::Array(items) => items.iter().for_each(assert_no_hidden_text),
        Value::Object(members) => {
            for (key, member) in members {
                assert_clean(key);
                assert_no_hidden_text(member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A schema: keys are refused instead of cleaned, and what would be another value once cleaned is
/// left out, so the structure stays to the letter wherever nothing is.
fn check_schema(raw: &RawValue) {
    for side in [SchemaSide::Input, SchemaSide::Output] {
        let Ok(shown) = sanitize::schema(raw, side) else {
            continue;
        };
        check_shown(raw, &shown.json, shown.left_out.is_empty());
        let again = sanitize::schema(&shown.json, side).expect("what is clean is fit");
        assert_eq!(
            again.json.get(),
            shown.json.get(),
            "a second pass changes nothing"
        );
        assert!(again.left_out.is_empty(), "nothing is left to leave out");
    }
    if let Ok(cleaned) = sanitize::json(raw) {
        check_shown(raw, &cleaned, true);
        let again = sanitize::json(&cleaned).expect("what is clean is fit");
        assert_eq!(again.get(), cleaned.get(), "a second pass changes nothing");
    }
}

fn check_shown(raw: &RawValue, shown: &RawValue, is_whole: bool) {
    assert!(raw.get().len() <= MAX_SCHEMA_BYTES);
    // Whoever reads it, and whichever of two equal keys they take: nothing hidden is in the text,
    // where `\r` can only stand between tokens.
    let found = shown
        .get()
        .chars()
        .find(|c| !matches!(c, '\n' | '\t' | '\r') && must_go(*c));
    assert_eq!(found, None, "{shown}");
    let before: Value = serde_json::from_str(raw.get()).expect("it was read before");
    let after: Value = serde_json::from_str(shown.get()).expect("it is still JSON");
    if is_whole {
        assert_same_structure(&before, &after, Keys::Kept);
    }
    assert_no_hidden_text(&after);
}
